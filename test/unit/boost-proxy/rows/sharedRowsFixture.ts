// Two boost instances on one database in memory, and verbs for what they do with one account.

import assert from "node:assert/strict";
import { markHeld } from "../../../../boost-proxy/domain/deliveries.ts";
import type { Rows } from "../../../../boost-proxy/rows/rows.ts";
import type { SharedRows } from "../../../../boost-proxy/rows/sharedRows.ts";
import { fixtureOn, hashOf, newEntry, senderOf } from "../journal/journalFixture.ts";
import type { SharedDisk } from "../journal/sharedDisk.ts";

export const FROM = senderOf(1);
/** More than any test needs, so that calls without an end fail. */
const MOST_CALLS = 200;

export interface Instance {
	readonly rows: Rows;
	readonly shared: SharedRows;
	/** Whether its calls to the database fail, and their number. */
	readonly wire: { isCut: boolean; calls: number };
	tick(ms: number): Promise<void>;
}

export async function started(disk: SharedDisk, name: string): Promise<Instance> {
	const wire = { isCut: false, calls: 0 };
	const store = disk.open(name);
	const { accounts } = store;
	const orCut = <A extends unknown[], T>(call: (...args: A) => Promise<T>) => {
		return async (...args: A): Promise<T> => {
			wire.calls += 1;
			if (wire.isCut || wire.calls > MOST_CALLS) throw new Error("the database does not answer");
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
export async function decides<T>(
	{ shared }: Instance,
	n: number,
	work: () => Promise<T> | T,
	isCareful = false,
) {
	const leave = await shared.enter({ from: FROM, hash: hashOf(n), isCareful });
	try {
		return await work();
	} finally {
		leave();
	}
}

/** A transaction that the instance has accepted and the relay has. */
export function accepts(one: Instance, n: number): Promise<string> {
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
export function acceptsAlone(one: Instance, n: number): Promise<void> {
	return decides(one, n, async () => {
		assert.ok(one.rows.add(newEntry(n)));
		assert.equal(await one.rows.claimed(hashOf(n)), "failed");
		one.rows.change(hashOf(n), (row) => markHeld({ ...row, requests: 0 }, "fallback"));
	});
}

export function ends(one: Instance, n: number, how: "expired" | "dropped" | "cancelled"): Promise<void> {
	return decides(one, n, async () => {
		one.rows.end(one.rows.live(hashOf(n)) ?? assert.fail(), how);
		assert.equal(await one.rows.written(hashOf(n)), true);
	});
}

export const liveAt = ({ rows }: Instance) => rows.liveOf(FROM).map(({ nonce }) => Number(nonce));
