// Room for requests that wait: by number and bytes, of all and of one client, each request's bytes once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientLife } from "../../../../shared/http/callContext.ts";
import { WaitingRoom } from "../../../../shared/http/syncWaits.ts";

const LIMITS = { maxWaits: 4, maxPerClient: 2, maxBytes: 100, maxBytesPerClient: 60 };

const waiting = (client: string, bytes = 0) => ({ client, life: new ClientLife(bytes) });

test("no client has more waits than its own, and all together not more than there may be", () => {
	const room = new WaitingRoom(LIMITS);
	const inside = ["a", "a", "b", "b"].map((client) => waiting(client));
	for (const one of inside) assert.equal(room.enter(one), true);
	assert.equal(room.enter(waiting("c")), false, "it is full");
	for (const one of inside.slice(0, 1)) room.leave(one);
	assert.equal(room.enter(waiting("b")), false, "b has its two");
	assert.equal(room.enter(waiting("c")), true);
});

test("bytes are bounded of all and of one client", () => {
	const room = new WaitingRoom(LIMITS);
	const first = waiting("a", 50);
	assert.equal(room.enter(first), true);
	assert.equal(room.enter(waiting("a", 11)), false, "61 of a's 60");
	assert.equal(room.enter(waiting("b", 51)), false, "101 of 100");
	assert.equal(room.enter(waiting("b", 50)), true);
	assert.equal(room.enter(waiting("c", 1)), false);
	room.leave(first);
	assert.equal(room.enter(waiting("c", 50)), true);
});

test("the calls of one request hold it once, until the last of them is over", () => {
	const room = new WaitingRoom(LIMITS);
	const one = waiting("a", 60);
	assert.equal(room.enter(one), true);
	assert.equal(room.enter(one), true, "its bytes are held already");
	room.leave(one);
	assert.equal(room.enter(waiting("a", 1)), false);
	room.leave(one);
	assert.equal(room.enter(waiting("a", 60)), true);
});
