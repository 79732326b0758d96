// The rows of two boost instances on one database: which instance has which rows in memory, and the
// fate of changes when another instance was faster.

import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { markHeld } from "../../../../boost-proxy/domain/deliveries.ts";
import {
	beginRequest,
	endRequest,
	isLive,
	setReplacementPending,
} from "../../../../boost-proxy/domain/row.ts";
import { hashOf, newEntry } from "../journal/journalFixture.ts";
import { SharedDisk } from "../journal/sharedDisk.ts";
import { accepts, decides, FROM, type Instance, liveAt, started } from "./sharedRowsFixture.ts";

let disk: SharedDisk;
let a: Instance;
let b: Instance;
beforeEach(async () => {
	disk = new SharedDisk();
	a = await started(disk, "A");
	b = await started(disk, "B");
});

describe("an account's rows", () => {
	it("are in memory at the instance that wrote it last, after the other one has compared", async () => {
		assert.equal(await accepts(a, 1), "won");
		assert.equal(await accepts(b, 2), "won");
		assert.deepEqual(liveAt(b), [1, 2]);
		await a.shared.refresh([FROM]);
		assert.deepEqual(liveAt(a), []);
		assert.equal((await b.rows.raw(hashOf(1)))?.equals(newEntry(1).raw), true);
	});

	it("leave memory when a request that wrote nothing ends", async () => {
		await accepts(a, 1);
		await decides(b, 1, () => assert.deepEqual(liveAt(b), [1]));
		assert.deepEqual(liveAt(b), []);
		assert.deepEqual(liveAt(a), [1]);
	});

	it("are read again by a careful request", async () => {
		await accepts(a, 1);
		await accepts(b, 2);
		await decides(a, 2, () => assert.deepEqual(liveAt(a), [1]), false);
		await decides(a, 2, () => assert.deepEqual(liveAt(a), [1, 2]), true);
	});

	it("are taken over with their state", async () => {
		await accepts(a, 1);
		await b.shared.takeIn(await b.shared.accounts.takeOver(["A"]));
		assert.deepEqual(
			b.rows.liveOf(FROM).map(({ at }) => at.relay.presence),
			["has"],
		);
		await a.shared.refresh([FROM]);
		assert.deepEqual(liveAt(a), []);
	});
});

describe("if the other instance was faster", () => {
	it("a new transaction is not sent, and its request decides again", async () => {
		await accepts(a, 1);
		await decides(a, 2, async () => {
			await accepts(b, 3);
			assert.ok(a.rows.add(newEntry(2)));
			assert.equal(await a.rows.claimed(hashOf(2)), "lost");
			assert.deepEqual(liveAt(a), [1, 3]);
		});
		assert.equal(await accepts(a, 2), "won");
		assert.deepEqual(liveAt(a), [1, 2, 3]);
	});

	it("one that the other one has ended is found as ended, and not added again", async () => {
		await accepts(a, 1);
		await decides(b, 1, async () => {
			b.rows.end(b.rows.live(hashOf(1)) ?? assert.fail(), "cancelled");
			await b.rows.written(hashOf(1));
		});
		// The same bytes at the instance without knowledge of the end.
		await decides(a, 1, async () => {
			const row = a.rows.live(hashOf(1)) ?? assert.fail();
			assert.equal(await a.shared.claimed(row), "lost");
			assert.equal(a.rows.live(hashOf(1)), null);
		});
		const c = await started(disk, "C");
		await decides(c, 1, async () => assert.equal((await c.rows.find(hashOf(1)))?.desired, "cancelled"));
	});

	it("a change is applied to what the other one has written", async () => {
		await accepts(a, 1);
		await decides(b, 1, async () => {
			b.rows.changeLive(hashOf(1), (row) => setReplacementPending(row, "fallback", true));
			await b.rows.written(hashOf(1));
		});
		a.rows.changeLive(hashOf(1), (row) => setReplacementPending(row, "relay", true));
		assert.equal(await a.rows.written(hashOf(1)), true);
		const { at } = a.rows.live(hashOf(1)) ?? assert.fail();
		assert.deepEqual([at.relay.replacementPending, at.fallback.replacementPending], [true, true]);
	});

	it("an end stays an end, with the other one's holders cancelled, too", async () => {
		await accepts(a, 1);
		await decides(b, 1, async () => {
			b.rows.changeLive(hashOf(1), (row) => markHeld(row, "fallback"));
			await b.rows.written(hashOf(1));
		});
		await decides(a, 1, async () => {
			a.rows.end(a.rows.live(hashOf(1)) ?? assert.fail(), "cancelled", ["relay"]);
			assert.equal(await a.rows.written(hashOf(1)), true);
		});
		const ended = a.rows.get(hashOf(1)) ?? assert.fail();
		assert.equal(isLive(ended), false);
		assert.deepEqual([ended.at.relay.cancelPending, ended.at.fallback.cancelPending], [true, true]);
	});

	it("a row that its request deletes is deleted at once, though this is not its home", async () => {
		await accepts(a, 1);
		await decides(b, 2, async () => {
			assert.ok(b.rows.add(newEntry(2)));
			assert.equal(await b.rows.claimed(hashOf(2)), "won");
			await a.shared.refresh([FROM]);
			assert.equal(await accepts(a, 3), "won");
			b.rows.change(hashOf(2), (row) => endRequest(row, false));
		});
		assert.equal(await b.rows.written(hashOf(2)), true);
		assert.ok(b.wire.calls < 20, `${b.wire.calls} calls`);
		await decides(a, 2, () => assert.deepEqual(liveAt(a), [1, 3]), true);
	});

	it("requests in progress are counted as before", async () => {
		await accepts(a, 1);
		await decides(a, 1, async () => {
			a.rows.change(hashOf(1), beginRequest);
			await accepts(b, 2);
			a.rows.changeLive(hashOf(1), (row) => setReplacementPending(row, "relay", true));
			await a.rows.written(hashOf(1));
			assert.equal(a.rows.live(hashOf(1))?.requests, 1);
		});
	});
});
