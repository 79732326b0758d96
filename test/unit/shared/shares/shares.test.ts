// What each client may hold of one thing.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fullest, Shares } from "../../../../shared/shares/shares.ts";

test("a client gets its share, all clients together no more than there is", () => {
	const shares = new Shares({ total: 10, perClient: 6 });
	assert.equal(shares.take("a", 6), null);
	assert.equal(shares.take("a", 1), "client");
	assert.equal(shares.take("b", 5), "total");
	assert.equal(shares.take("b", 4), null);
	assert.deepEqual([shares.of("a"), shares.of("b"), shares.taken], [6, 4, 10]);
	assert.equal(shares.largest(), "a");
	shares.give("a", 5);
	assert.equal(shares.largest(), "b");
	assert.equal(shares.refusal("a", 5), null);
});

test("how full it is, of all and of the part of whoever holds the most", () => {
	const shares = new Shares({ total: 10, perClient: 4 });
	assert.deepEqual(shares.fullness, { all: 0, client: 0 });
	shares.take("a", 1);
	shares.take("b", 3);
	assert.deepEqual(shares.fullness, { all: 0.4, client: 0.75 });
	assert.deepEqual(fullest([shares.fullness, { all: 0.5, client: 0 }]), { all: 0.5, client: 0.75 });
	assert.deepEqual(fullest([]), { all: 0, client: 0 });
});

test("what was acknowledged is counted whatever the bounds say, and given back whole", () => {
	const shares = new Shares({ total: 10, perClient: 6 });
	shares.force("a", 20);
	assert.equal(shares.take("b", 1), "total");
	shares.give("a", 20);
	assert.equal(shares.largest(), null);
	assert.equal(shares.take("b", 1), null);
});
