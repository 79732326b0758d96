// Two real stores for the tests of a copy, cleared for each of them: entries come in, what the stores hold and a store
// that is lost at a certain write go out.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CopyResult, copyStore, planCopy } from "../../../../../shared/kv/copy/copyStore.ts";
import { refuseIfMarked } from "../../../../../shared/kv/copy/marks.ts";
import { openLmdb } from "../../../../../shared/kv/lmdb.ts";
import { type KeyValueStore, prefixRange } from "../../../../../shared/kv/port.ts";
import { ManualClock } from "../../../../support/manualClock.ts";

export type Entries = ReadonlyMap<string, Buffer>;

/** Two stores, and their end. */
export interface CopyScene {
	readonly a: KeyValueStore;
	readonly b: KeyValueStore;
	remove(): Promise<void>;
}

/** Opens two empty ones. */
export async function copyScene(): Promise<CopyScene> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-copy-"));
	const [a, b] = [await openLmdb(join(folder, "a")), await openLmdb(join(folder, "b"))];
	return {
		a,
		b,
		async remove() {
			await a.close();
			await b.close();
			rmSync(folder, { recursive: true, force: true });
		},
	};
}

/** All that is in it, marks too. */
export async function everything(kv: KeyValueStore): Promise<Map<string, Buffer>> {
	const all = new Map<string, Buffer>();
	for await (const [key, value] of kv.range(...prefixRange(""))) all.set(key, Buffer.from(value));
	return all;
}

/** Makes it hold these entries and nothing else. */
export async function fill(kv: KeyValueStore, entries: Entries): Promise<void> {
	const gone = [...(await everything(kv)).keys()].map((key) => ({ key, value: null }));
	await kv.write([...gone, ...[...entries].map(([key, value]) => ({ key, value }))]);
}

/** Some of `count` entries, their values told by `what`. */
export function someEntries(count: number, what: string, isIn = (_i: number) => true): Map<string, Buffer> {
	const all = Array.from({ length: count }, (_, i) => i).filter(isIn);
	return new Map(all.map((i) => [`p/${String(i).padStart(6, "0")}`, Buffer.from(`${what} ${i}`)]));
}

/** Copies `from` to `to`, as from LMDB to PostgreSQL unless it is said to go back. */
export async function copyOver(
	from: KeyValueStore,
	to: KeyValueStore,
	{ isBack = false, report = (_read: number) => {} } = {},
): Promise<CopyResult> {
	const [source, destination] = isBack ? (["postgres", "lmdb"] as const) : (["lmdb", "postgres"] as const);
	const plan = await planCopy("relay", { engine: source, kv: from }, { engine: destination, kv: to });
	return copyStore(plan, { clock: new ManualClock(), report: ({ read }) => report(read) });
}

/** Whether a relay would start on it. */
export function isUsable(kv: KeyValueStore): Promise<boolean> {
	return refuseIfMarked(kv, "relay").then(
		() => true,
		() => false,
	);
}

/** How many writes are still made, over all stores that share it. */
export interface Luck {
	writes: number;
	/** Whether the one that fails is made all the same, as where its answer alone is lost. */
	readonly lastIsMade: boolean;
}

/** The store, for a process that ends at a certain write. */
export function endingAt(kv: KeyValueStore, luck: Luck): KeyValueStore {
	return {
		get: (key) => kv.get(key),
		range: (start, end, limit) => kv.range(start, end, limit),
		close: () => kv.close(),
		async write(changes) {
			luck.writes -= 1;
			if (luck.writes >= 0 || (luck.writes === -1 && luck.lastIsMade)) await kv.write(changes);
			if (luck.writes < 0) throw new Error("the process has ended");
		},
	};
}
