// What the journal's tests share: entries by number, a journal on a disk in memory, and what of it can be seen.

import type { NewRow } from "../../../../boost-proxy/domain/row.ts";
import type { RowLimits } from "../../../../boost-proxy/rows/rows.ts";
import type { KeyValueStore } from "../../../../shared/kv/port.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import { openedVerbs, type RowVerbs } from "./rowVerbs.ts";

export const TTL_MS = 300_000;
export const REORG_MS = 144_000;

export const hashOf = (n: number): string => `0x${n.toString(16).padStart(64, "0")}`;
export const senderOf = (n: number): string => `0x${n.toString(16).padStart(40, "a")}`;

/** Each its own client. */
export const addressOf = (n: number): string => `192.0.${2 + Math.floor(n / 250)}.${n % 250}`;

/** Entry `n` of sender 1, unless said; its bytes and its client are its own. */
export function newEntry(n: number, changed: Partial<NewRow> = {}): NewRow {
	return {
		hash: hashOf(n),
		from: senderOf(1),
		nonce: BigInt(n),
		raw: rawOf(n),
		path: "fast",
		search: "",
		softCancellations: false,
		address: addressOf(n),
		receivedAt: Date.UTC(2026, 0, 1),
		replacesAt: [],
		...changed,
	};
}

export function rawOf(n: number, length = 120): Buffer {
	return Buffer.alloc(length, `raw ${n} `);
}

/** A journal on `disk`; what is left out is new. */
export async function fixture(options: Partial<RowLimits> = {}, disk = new FakeDisk()) {
	const clock = new ManualClock();
	const faults = { count: 0 };
	const onFault = () => {
		faults.count += 1;
	};
	const journal = await openedVerbs(
		{ ttlMs: TTL_MS, reorgMs: REORG_MS, ...options },
		{ kv: disk, clock, log: silentLogger, onFault },
	);
	return { journal, disk, clock, faults };
}

/** A second journal on what lies in `disk` now, as after a SIGKILL. */
export async function reopened(disk: FakeDisk, options: Partial<RowLimits> = {}) {
	const copy = new FakeDisk();
	for (const [key, value] of disk.map) copy.map.set(key, value);
	return fixture(options, copy);
}

/** A store that counts reads of single keys. */
export function countingReads(kv: KeyValueStore): { readonly kv: KeyValueStore; reads(): number } {
	let reads = 0;
	const counted: KeyValueStore = {
		get(key) {
			reads += 1;
			return kv.get(key);
		},
		range: (start, end, limit) => kv.range(start, end, limit),
		write: (changes) => kv.write(changes),
		close: () => kv.close(),
	};
	return { kv: counted, reads: () => reads };
}

/** What a restart must bring back of some hashes. */
export function contents(journal: RowVerbs, hashes: readonly string[]): Promise<readonly unknown[]> {
	return Promise.all(
		hashes.map(async (hash) => {
			const open = journal.get(hash);
			const kept = open === null ? null : { ...open, underWay: null };
			return { hash, kept, raw: await journal.raw(hash), ended: journal.ended(hash) };
		}),
	);
}
