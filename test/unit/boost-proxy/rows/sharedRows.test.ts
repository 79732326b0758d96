// The rows of two boost instances on one database: which are in memory where, and what becomes of
// changes that another instance was faster with.

import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import {
	beginRequest,
	endRequest,
	isLive,
	markHeld,
	setReplacementPending,
} from "../../../../boost-proxy/domain/row.ts";
import type { Rows } from "../../../../boost-proxy/rows/rows.ts";
import type { SharedRows } from "../../../../boost-proxy/rows/sharedRows.ts";
import { fixtureOn, hashOf, newEntry, senderOf } from "../journal/journalFixture.ts";
import { SharedDisk } from "../journal/sharedDisk.ts";

const FROM = senderOf(1);

interface Instance {
	readonly rows: Rows;
	readonly shared: SharedRows;
	/** Whether its calls to the database fail. */
	readonly wire: { isCut: boolean };
	tick(ms: number): Promise<void>;
}

let disk: SharedDisk;
let a: Instance;
let b: Instance;
beforeEach(async () => {
	disk = new SharedDisk();
	a = await started("A");
	b = await started("B");
});

async function started(name: string): Promise<Instance> {
	const wire = { isCut: false };
	const store = disk.open(name);
	const { accounts } = store;
	const orCut = <A extends unknown[], T>(call: (...args: A) => Promise<T>) => {
		return async (...args: A): Promise<T> => {
			if (wire.isCut) throw new Error("the database does not answer");
			return call(...args);
		};
	};
	accounts.load = orCut(accounts.load.bind(accounts));
	accounts.write = orCut(accounts.write.bind(accounts));
	accounts.isCurrent = orCut(accounts.isCurrent.bind(accounts));
	const { journal, clock } = await fixtureOn(store);
	const { rows } = journal;
	assert.ok(rows.shared !== null);
	return { rows, shared: rows.shared, wire, tick: (ms) => clock.advance(ms) };
}

/** The instance decides about the account, as requests do. */
async function decides<T>({ shared }: Instance, n: number, work: () => Promise<T> | T, isCareful = false) {
	const leave = await shared.enter({ from: FROM, hash: hashOf(n), isCareful });
	try {
		return await work();
	} finally {
		leave();
	}
}

/** A transaction that the instance has accepted and the relay has. */
function accepts(one: Instance, n: number): Promise<string> {
	return decides(one, n, async () => {
		const { rows } = one;
		assert.ok(rows.add(newEntry(n)));
		const claim = await rows.claimed(hashOf(n));
		if (claim === "won") rows.change(hashOf(n), (row) => markHeld({ ...row, requests: 0 }, "relay"));
		await rows.written(hashOf(n));
		return claim;
	});
}

/** The same while the database does not answer and no other instance was known; at the fallback. */
function acceptsAlone(one: Instance, n: number): Promise<void> {
	return decides(one, n, async () => {
		assert.ok(one.rows.add(newEntry(n)));
		assert.equal(await one.rows.claimed(hashOf(n)), "failed");
		one.rows.change(hashOf(n), (row) => markHeld({ ...row, requests: 0 }, "fallback"));
	});
}

function ends(one: Instance, n: number, how: "expired" | "cancelled"): Promise<void> {
	return decides(one, n, async () => {
		one.rows.end(one.rows.live(hashOf(n)) ?? assert.fail(), how);
		assert.equal(await one.rows.written(hashOf(n)), true);
	});
}

const liveAt = ({ rows }: Instance) => rows.liveOf(FROM).map(({ nonce }) => Number(nonce));

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
		const c = await started("C");
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
		const c = await started("C");
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
			const c = await started("C");
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
