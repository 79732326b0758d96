// Contract of boost's archive on every storage engine: a row that has ended is found where it is
// asked for, dated anew and dropped, whatever process it ended in. It costs no memory, and is not
// read at a start.

import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { after, test } from "node:test";
import { type EndedOne, type Ending, endRow } from "../../boost-proxy/domain/row.ts";
import { ChainBinding } from "../../boost-proxy/journal/chain.ts";
import { recordsOf } from "../../boost-proxy/journal/records.ts";
import { type RowLimits, Rows } from "../../boost-proxy/rows/rows.ts";
import { keccak256 } from "../../shared/ethereum/signatures.ts";
import type { Change } from "../../shared/kv/port.ts";
import { silentLogger } from "../../shared/log.ts";
import { sized } from "../support/length.ts";
import { ManualClock } from "../support/manualClock.ts";
import { type StoreEngine, StorePlaces } from "../support/storeEngines.ts";
import { until } from "../support/until.ts";
import { newEntry, senderOf, TTL_MS } from "../unit/boost-proxy/journal/journalFixture.ts";

const HOUR_MS = 3600 * 1000;
const SWEEP_MS = 10_000;

const places = new StorePlaces();
after(() => places.remove());

/** As a transaction's. */
const hashOf = (n: number): string => `0x${keccak256(Buffer.from(`${n}`)).toString("hex")}`;
const ended = (n: number): Omit<EndedOne, "id"> => ({
	...{ hash: hashOf(n), from: senderOf(n % 1_000), nonce: BigInt(n), path: "fast", address: "192.0.2.1" },
	fields: { to: `0x${"ab".repeat(20)}`, gas: "21000", value: "7" },
});

/** The rows of a process. `chain`: its time, which is the machine's if it is known. */
async function started(
	engine: StoreEngine,
	place: string,
	{
		clock = new ManualClock(),
		chain = { isKnown: true },
		...limits
	}: Partial<RowLimits> & {
		readonly clock?: ManualClock;
		readonly chain?: { isKnown: boolean };
	} = {},
) {
	const kv = await engine.open(place);
	await ChainBinding.open(kv);
	const chainTime = { now: () => (chain.isKnown ? clock.now() : null) };
	const rows = await Rows.load(
		{ ttlMs: TTL_MS, maxRecent: 0, ...limits },
		{ kv, clock, chainTime, log: silentLogger },
	);
	return {
		rows,
		clock,
		async end(n: number, ending: Ending) {
			rows.end(ended(n), ending);
			assert.equal(await rows.written(hashOf(n)), true);
			await clock.advance(1);
		},
		/** How each of `count` ended, as long as it is kept. */
		endings: (count: number) =>
			Promise.all(
				Array.from({ length: count }, async (_, n) => (await rows.find(hashOf(n)))?.desired ?? null),
			),
		/** Lets time pass until `is`; a sweep waits for the disk. */
		async sweeps(what: string, is: () => Promise<boolean>) {
			await until(what, async () => {
				await clock.advance(SWEEP_MS);
				return is();
			});
		},
		async stop() {
			await rows.close();
			await kv.close();
		},
	};
}

for (const engine of places.engines) {
	test(`${engine.name}: what has ended is found by its hash, in memory and on disk alone, and in a later process`, async () => {
		const place = await engine.newPlace();
		const one = await started(engine, place);
		const all = ["mined", "replaced", "cancelled", "expired", "dropped"] as const;
		for (const [n, ending] of all.entries()) await one.end(n, ending);
		assert.equal(one.rows.get(hashOf(0))?.desired, "mined");
		await one.sweeps("they leave memory", async () => all.every((_, n) => one.rows.get(hashOf(n)) === null));
		assert.deepEqual(await one.endings(6), [...all, null]);
		const before = await one.rows.find(hashOf(2));
		await one.stop();
		const later = await started(engine, place);
		assert.equal(later.rows.get(hashOf(0)), null);
		assert.deepEqual(await later.endings(6), [...all, null]);
		assert.deepEqual(await later.rows.find(hashOf(2)), before);
		await later.stop();
	});

	test(`${engine.name}: a later process drops what is too much or too old, the oldest first and what users ended last`, async () => {
		const place = await engine.newPlace();
		const one = await started(engine, place);
		const all = ["cancelled", "mined", "dropped", "replaced", "expired"] as const;
		for (const [n, ending] of all.entries()) await one.end(n, ending);
		const { clock } = one;
		await one.stop();
		const bounded = await started(engine, place, { clock, maxEnded: 3 });
		await bounded.sweeps("two are dropped", async () => (await bounded.endings(5)).includes(null));
		assert.deepEqual(await bounded.endings(5), ["cancelled", null, null, "replaced", "expired"]);
		await bounded.stop();
		await clock.advance(HOUR_MS);
		const last = await started(engine, place, { clock, endedKeepMs: 2 * HOUR_MS });
		await last.end(5, "cancelled");
		await clock.advance(HOUR_MS / 2);
		assert.deepEqual(await last.endings(6), ["cancelled", null, null, "replaced", "expired", "cancelled"]);
		await clock.advance(HOUR_MS);
		await last.sweeps("the old ones are forgotten", async () =>
			(await last.endings(5)).every((one) => one === null),
		);
		assert.deepEqual(await last.endings(6), [null, null, null, null, null, "cancelled"]);
		await last.stop();
	});

	test(`${engine.name}: what ended before the chain's time was known is the newest, and is kept as long as any other`, async () => {
		const place = await engine.newPlace();
		const one = await started(engine, place, { chain: { isKnown: false } });
		const { clock } = one;
		await one.end(0, "cancelled");
		await one.stop();
		const chain = { isKnown: true };
		const bounded = await started(engine, place, { clock, chain, maxEnded: 2, endedKeepMs: HOUR_MS });
		await bounded.sweeps(
			"it has a time",
			async () => ((await bounded.rows.find(hashOf(0)))?.endedAt ?? 0) > 0,
		);
		await clock.advance(HOUR_MS / 2);
		assert.deepEqual(await bounded.endings(1), ["cancelled"]);
		await clock.advance(HOUR_MS);
		await bounded.sweeps("it is forgotten", async () => (await bounded.endings(1))[0] === null);
		for (const n of [1, 2]) await bounded.end(n, "cancelled");
		chain.isKnown = false;
		await bounded.end(0, "cancelled");
		await bounded.sweeps("one is dropped", async () => (await bounded.endings(3)).includes(null));
		assert.deepEqual(await bounded.endings(3), ["cancelled", null, "cancelled"]);
		await bounded.stop();
	});
}

const OPEN = sized(2_000, 20_000);
/** Number of the rows ended in a process that stay in memory. */
const RECENT = sized(1_000, 10_000);
/** At length it is the default. */
const LIMIT = sized(`, maxRecent: ${RECENT}`, "");
const ENDED = sized(30_000, 200_000);
/**
 * Heap for each, at most, in bytes: 52 bits of its hash in a set with free slots. A hash alone
 * would take 80 bytes.
 */
const HEAP_BYTES = 56;

test(`${ENDED} ended rows take no more memory than a part of their hashes, and a start reads none of them`, {
	timeout: 240_000,
}, async () => {
	const [engine] = places.engines;
	assert.ok(engine !== undefined);
	const [place, copy] = [await engine.newPlace(), await engine.newPlace()];
	await fillOpen(engine, place);
	cpSync(place, copy, { recursive: true });
	const without = await measured(engine, copy);
	await fillEnded(engine, place);
	const withThem = await measured(engine, place);
	assert.deepEqual([without.live, withThem.live], [OPEN, OPEN]);
	assert.deepEqual(withThem.read, ["b/", "x/"]);
	assert.equal(withThem.ending, "cancelled");
	const heapBytes = (withThem.heap - without.heap) / ENDED;
	assert.ok(heapBytes < HEAP_BYTES, `${heapBytes} bytes of heap each`);
	assert.ok(withThem.inMemory <= RECENT, `${withThem.inMemory} of those that ended since are in memory`);
	assert.ok(withThem.heapInTheEnd < withThem.heap, "what ended since costs more than what is live");
});

/** Writes open rows. */
async function fillOpen(engine: StoreEngine, place: string): Promise<void> {
	const kv = await engine.open(place);
	await ChainBinding.open(kv);
	const clock = new ManualClock();
	const chainTime = { now: () => clock.now() };
	const rows = await Rows.load({ ttlMs: TTL_MS }, { kv, clock, chainTime, log: silentLogger });
	const hashes = Array.from({ length: OPEN }, (_, n) => hashOf(-1 - n));
	for (const [n, hash] of hashes.entries())
		assert.ok(
			rows.add(newEntry(n, { hash, from: senderOf(n % 1_000), address: `10.1.${n >> 8}.${n & 255}` })),
		);
	await Promise.all(hashes.map((hash) => rows.written(hash)));
	await rows.close();
	await kv.close();
}

/** Writes ended rows. */
async function fillEnded(engine: StoreEngine, place: string): Promise<void> {
	const kv = await engine.open(place);
	const clock = new ManualClock();
	const endings = ["cancelled", "replaced", "expired", "dropped", "mined"] as const;
	// In the order of their keys, which is the fastest.
	const all = Array.from({ length: ENDED }, (_, n) => ({ ...ended(n), id: 0 }));
	all.sort((one, other) => (one.hash < other.hash ? -1 : 1));
	let changes: Change[] = [];
	const first = hashOf(0);
	for (const [i, one] of all.entries()) {
		const ending = one.hash === first ? "cancelled" : (endings[i % 5] ?? "mined");
		changes.push(...recordsOf(endRow(one, ending, clock.now() + i), null));
		if (changes.length < 2_000) continue;
		await kv.write(changes);
		changes = [];
	}
	await kv.write(changes);
	await kv.close();
}

interface Figures {
	readonly live: number;
	/** Size of the heap, in bytes. */
	readonly heap: number;
	/** Prefixes of the keys that the start has read. */
	readonly read: readonly string[];
	/** How transaction 0 ended. */
	readonly ending: string;
	/**
	 * Some minutes after all live ones have been cancelled: how many of them are in memory, and the
	 * heap.
	 */
	readonly inMemory: number;
	readonly heapInTheEnd: number;
}

/** The figures of a process that has loaded the store at `place`. */
async function measured(engine: StoreEngine, place: string): Promise<Figures> {
	const at = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
	const code = `
		import { setFlagsFromString } from "node:v8";
		import { runInNewContext } from "node:vm";
		import { Rows } from ${at("../../boost-proxy/rows/rows.ts")};
		import { ManualClock } from ${at("../support/manualClock.ts")};
		import { until } from ${at("../support/until.ts")};
		setFlagsFromString("--expose-gc");
		const gc = runInNewContext("gc");
		const memory = () => { gc(); gc(); return process.memoryUsage(); };
		const kv = await open(${JSON.stringify(place)});
		const read = new Set();
		const range = kv.range.bind(kv);
		kv.range = async function* (...args) {
			for await (const entry of range(...args)) { read.add(entry[0].slice(0, 2)); yield entry; }
		};
		const clock = new ManualClock();
		const load = () => Rows.load({ ttlMs: ${TTL_MS}${LIMIT} },
			{ kv, clock, chainTime: { now: () => clock.now() }, log: silentLogger });
		// The code that it takes is not counted.
		await (await load()).close();
		read.clear();
		const before = memory();
		const rows = await load();
		const after = memory();
		const figures = {
			live: rows.liveCount,
			heap: after.heapUsed - before.heapUsed,
			read: [...read].sort(),
			ending: (await rows.find(${JSON.stringify(hashOf(0))}))?.desired ?? null,
		};
		const live = [...rows.allLive()].map(({ hash }) => hash);
		for (const hash of live) rows.end(rows.get(hash), "cancelled");
		for (const hash of live) await rows.written(hash);
		const inMemory = () => live.filter((hash) => rows.get(hash) !== null).length;
		await until("they leave memory", async () => {
			await clock.advance(10_000);
			return inMemory() < live.length;
		});
		await rows.close();
		const heapInTheEnd = memory().heapUsed - before.heapUsed;
		say(JSON.stringify({ ...figures, inMemory: inMemory(), heapInTheEnd }));
		await kv.close();
		process.exit(0);`;
	const { line } = places.another(engine, code);
	return JSON.parse(await line());
}
