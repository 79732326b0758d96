// The rows of two boost instances on one database: what one of them has accepted, ended or taken
// over while the database did not answer, and what it notices while it reads.

import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { markGiven, markHeld } from "../../../../boost-proxy/domain/deliveries.ts";
import { beginRequest, endRequest, setReplacementPending } from "../../../../boost-proxy/domain/row.ts";
import { nextTurn } from "../../../../shared/clock.ts";
import { hashOf, newEntry } from "../journal/journalFixture.ts";
import { SharedDisk } from "../journal/sharedDisk.ts";
import {
	accepts,
	acceptsAlone,
	decides,
	ends,
	FROM,
	type Instance,
	liveAt,
	started,
} from "./sharedRowsFixture.ts";

let disk: SharedDisk;
let a: Instance;
let b: Instance;
beforeEach(async () => {
	disk = new SharedDisk();
	a = await started(disk, "A");
	b = await started(disk, "B");
});

describe("while the database does not answer", () => {
	it("nothing may be sent, and what was accepted all the same is written later", async () => {
		await accepts(a, 1);
		a.wire.isCut = true;
		assert.ok(a.rows.add(newEntry(2)));
		assert.equal(await a.rows.claimed(hashOf(2)), "failed");
		assert.equal(await a.rows.claimed(hashOf(1)), "failed");
		a.rows.change(hashOf(2), (row) => markHeld({ ...row, requests: 0 }, "fallback"));
		// The other one goes on meanwhile.
		await accepts(b, 3);
		a.wire.isCut = false;
		await a.tick(1_000);
		await a.tick(1_000);
		assert.equal(a.rows.isDurable, true);
		assert.deepEqual(liveAt(a), [1, 2, 3]);
		const c = await started(disk, "C");
		await decides(c, 1, () => assert.deepEqual(liveAt(c), [1, 2, 3]));
	});

	it("an account can't be entered, and nothing of it is lost", async () => {
		await accepts(a, 1);
		b.wire.isCut = true;
		await assert.rejects(decides(b, 1, () => {}));
		b.wire.isCut = false;
		assert.equal(await accepts(b, 2), "won");
		assert.deepEqual(liveAt(b), [1, 2]);
	});

	for (const [what, endsBefore] of [
		["a new one", false],
		["one that had expired", true],
	] as const) {
		it(`${what} that was accepted all the same is not lost`, async () => {
			await accepts(a, 1);
			if (endsBefore) await ends(a, 1, "expired");
			const n = endsBefore ? 1 : 2;
			a.wire.isCut = true;
			await acceptsAlone(a, n);
			await accepts(b, 3);
			a.wire.isCut = false;
			for (let i = 0; i < 3; i += 1) await a.tick(1_000);
			assert.ok(liveAt(a).includes(n));
			const c = await started(disk, "C");
			await decides(c, n, () => assert.ok(liveAt(c).includes(n)));
		});
	}

	for (const how of ["live", "cancelled"] as const) {
		it(`one that the other one has accepted too, and is ${how} there, counts as sent to the fallback`, async () => {
			await accepts(a, 9);
			a.wire.isCut = true;
			await acceptsAlone(a, 1);
			assert.equal(await accepts(b, 1), "won");
			if (how === "cancelled") await ends(b, 1, how);
			a.wire.isCut = false;
			for (let i = 0; i < 3; i += 1) await a.tick(1_000);
			const row = (await a.rows.find(hashOf(1))) ?? assert.fail();
			assert.deepEqual([row.desired, row.requests], [how, 0]);
			const { presence, cancelPending } = row.at.fallback;
			if (how === "live") assert.equal(presence, "unanswered");
			else assert.equal(cancelPending, true);
		});
	}
});

describe("rows that have ended", () => {
	it("are read again with their account, so an earlier end in memory hides no cancel", async () => {
		await accepts(a, 1);
		await ends(a, 1, "expired");
		assert.equal(await accepts(b, 1), "won");
		await ends(b, 1, "cancelled");
		await accepts(a, 2);
		await decides(a, 1, async () => assert.equal((await a.rows.find(hashOf(1)))?.desired, "cancelled"));
	});

	for (const late of ["expired", "mined"] as const) {
		it(`stay cancelled if this instance sees later that they are ${late}`, async () => {
			await accepts(a, 1);
			await ends(b, 1, "cancelled");
			a.rows.end(a.rows.live(hashOf(1)) ?? assert.fail(), late);
			await a.rows.written(hashOf(1));
			assert.equal((await a.rows.find(hashOf(1)))?.desired, "cancelled");
			assert.equal(
				[...disk.entries.keys()].some((key) => /^[bs]\//.test(key)),
				false,
			);
		});
	}
});

it("an account whose take-over was not read is read later", async () => {
	await accepts(a, 1);
	const senders = await b.shared.accounts.takeOver(["A"]);
	b.wire.isCut = true;
	await assert.rejects(b.shared.takeIn(senders));
	b.wire.isCut = false;
	const { accounts } = b.shared;
	const unread = (await accounts.owned()).filter((sender) => !accounts.isHome(sender));
	assert.deepEqual(unread, [FROM]);
	await b.shared.takeIn(unread);
	assert.deepEqual(liveAt(b), [1]);
});

it("requests in progress are not counted twice", async () => {
	await accepts(a, 1);
	await decides(a, 1, async () => {
		a.rows.change(hashOf(1), (row) => beginRequest(beginRequest(row)));
		await accepts(b, 2);
		a.rows.change(hashOf(1), (row) => endRequest(setReplacementPending(row, "relay", true)));
		await a.rows.written(hashOf(1));
		assert.equal(a.rows.live(hashOf(1))?.requests, 1);
	});
});

/** Some retries of the journal. */
const passes = async ({ tick }: Instance) => {
	for (let i = 0; i < 4; i += 1) await tick(1_000);
};

describe("a transaction that was accepted without the database", () => {
	beforeEach(async () => {
		await accepts(a, 9);
		a.wire.isCut = true;
	});

	for (const how of ["expired", "dropped"] as const) {
		it(`overrules an end as ${how} at the other instance, whose records go`, async () => {
			await accepts(b, 1);
			await ends(b, 1, how);
			await acceptsAlone(a, 1);
			a.wire.isCut = false;
			await passes(a);
			assert.equal(a.rows.isDurable, true);
			assert.equal([...disk.entries.keys()].filter((key) => key.includes(hashOf(1))).length, 1);
			const c = await started(disk, "C");
			await decides(c, 1, () => assert.deepEqual(liveAt(c), [1, 9]));
		});
	}

	it("stays cancelled though the other one has accepted it too", async () => {
		await acceptsAlone(a, 1);
		await accepts(b, 1);
		a.wire.isCut = false;
		a.rows.end(a.rows.live(hashOf(1)) ?? assert.fail(), "cancelled", ["fallback"]);
		assert.equal(await a.rows.written(hashOf(1)), true);
		const row = a.rows.get(hashOf(1)) ?? assert.fail();
		assert.equal(row.desired, "cancelled");
		assert.deepEqual([row.at.relay.cancelPending, row.at.fallback.cancelPending], [true, true]);
	});

	it("stays acknowledged though the other one's client got an error", async () => {
		await acceptsAlone(a, 1);
		await decides(b, 1, async () => {
			assert.ok(b.rows.add(newEntry(1)));
			assert.equal(await b.rows.claimed(hashOf(1)), "won");
			b.rows.change(hashOf(1), (row) => endRequest(markGiven(row, "relay", 1), false));
			await b.rows.written(hashOf(1));
		});
		a.wire.isCut = false;
		await passes(a);
		assert.equal(a.rows.live(hashOf(1))?.acknowledged, true);
	});

	it("is not dropped if a later claim of it loses", async () => {
		await acceptsAlone(a, 1);
		await accepts(b, 2);
		const { accounts } = a.shared;
		const { write } = accounts;
		let isOpen = false;
		a.wire.isCut = false;
		// While it is being written again, the other one is faster once more.
		accounts.write = async (one) => {
			if (!isOpen && one.changes.some(({ key }) => key.includes(hashOf(1)))) {
				isOpen = true;
				await accepts(b, 3);
			}
			return write(one);
		};
		await a.tick(1_000);
		await a.rows.claimed(hashOf(1));
		await passes(a);
		assert.deepEqual(liveAt(a), [1, 2, 3, 9]);
	});
});

for (const how of ["expired", "mined"] as const) {
	it(`an end as ${how} that is noticed while an account is read hides no cancel`, async () => {
		await accepts(a, 1);
		await ends(b, 1, "cancelled");
		const { accounts } = a.shared;
		const { load } = accounts;
		let go = (): void => {};
		const gate = new Promise<void>((resolve) => {
			go = resolve;
		});
		accounts.load = async (...args) => {
			const found = await load(...args);
			await gate;
			return found;
		};
		const refreshing = a.shared.refresh([FROM]);
		await nextTurn();
		a.rows.end(a.rows.live(hashOf(1)) ?? assert.fail(), how);
		go();
		await refreshing;
		await a.rows.written(hashOf(1));
		const c = await started(disk, "C");
		await decides(c, 1, async () => assert.equal((await c.rows.find(hashOf(1)))?.desired, "cancelled"));
		assert.equal(
			[...disk.entries.keys()].some((key) => /^[bs]\//.test(key)),
			false,
		);
	});
}

it("a soft cancel's own transaction that is not on disk yet stays when its account is read", async () => {
	await accepts(a, 1);
	const { from, nonce, fields, path, address } = a.rows.live(hashOf(1)) ?? assert.fail();
	a.wire.isCut = true;
	a.rows.end({ hash: hashOf(7), from, nonce, fields, path, address }, "cancelled");
	await a.rows.written(hashOf(7));
	await accepts(b, 2);
	a.wire.isCut = false;
	await decides(a, 7, async () => assert.equal((await a.rows.find(hashOf(7)))?.desired, "cancelled"), true);
});
