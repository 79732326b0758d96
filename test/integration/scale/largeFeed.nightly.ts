// Edges read a feed of hundreds of megabytes when they start: they are ready within five seconds of
// their connection, and not before they have all of it. When another relay becomes the core, they
// read nothing again. No event loop is blocked for long.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type TestContext, test } from "node:test";
import type { TxEvent } from "../../../relay/domain/events.ts";
import { fold, newRecord, type TransactionRecord } from "../../../relay/domain/record.ts";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { TransactionDisk } from "../../../relay/transactions/disk.ts";
import { systemClock } from "../../../shared/clock.ts";
import { checkFormat } from "../../../shared/kv/format.ts";
import { openPostgres } from "../../../shared/kv/postgres/postgres.ts";
import { silentLogger } from "../../../shared/log.ts";
import { deniedMs } from "../../support/attacks/processFigures.ts";
import { CONNECTED, type LineRelay, startEdgeWorld } from "../../support/edgeWorld.ts";
import { heldSoFar, turnLimit } from "../../support/eventLoopTime.ts";
import { privateTransaction, type TestAccount } from "../../support/txFactory.ts";
import { UNDAMAGED } from "../../support/undamaged.ts";
import { until } from "../../support/until.ts";

/** A client's part of the pool is a sixteenth. */
const CLIENTS = 16;
/** Rows that are written together. */
const BATCH = 16;
const BUILDER = "sink";
/** From an edge's connection with the core to its readiness, in ms. */
const READY_MS = 5_000;
/** From the end of a core to the next one, in ms: as in takeover.ts, and for each MiB to load. */
const [TAKEN_MS, TAKEN_MS_PER_MIB] = [5_000, 10];
/** Between two looks, in ms. */
const LOOK_MS = 20;
const MIB = 1024 * 1024;
const DATA_BYTES = 130_000;

/** Numbers of transactions that fill so much of the default pool. */
const FEEDS = [
	{ mib: 64, count: 512 },
	{ mib: 256, count: 2_048 },
] as const;

/**
 * Writes what a core leaves that has sent a large transaction of each account and has shown it to
 * searchers.
 */
async function fill(url: string, accounts: readonly TestAccount[]): Promise<void> {
	const kv = await openPostgres(
		{ url, store: "relay", verify: false },
		{ clock: systemClock, log: silentLogger },
	);
	await checkFormat(kv);
	const disk = new TransactionDisk({ kv, damaged: UNDAMAGED, log: silentLogger });
	const data = randomBytes(DATA_BYTES);
	for (let from = 0; from < accounts.length; from += BATCH) {
		const batch = accounts.slice(from, from + BATCH).map((by, i) => {
			const transaction = privateTransaction({
				...{ by, data, gasLimit: 30_000 + 40 * DATA_BYTES, maxFeePerGas: 10n ** 11n },
				...{ path: "maxbackruns", receivedAt: Date.now() },
				submitterAddress: `198.51.100.${1 + ((from + i) % CLIENTS)}`,
			});
			return { transaction, record: sentRecord(transaction) };
		});
		await Promise.all(
			batch.map(({ transaction, record }) => disk.insert(transaction, record, [], Date.now())),
		);
		await disk.update(
			batch.map(({ record }) => record),
			Date.now(),
		);
	}
	await kv.close();
}

function sentRecord(transaction: PrivateTransaction): TransactionRecord {
	const record = newRecord(transaction);
	const at = transaction.receivedAt;
	const answer = { builder: BUILDER, kind: "bundle", answer: "accepted", ms: 3 } as const;
	const events: readonly TxEvent[] = [
		{ type: "received", at, block: 0 },
		{ type: "ready", at, block: 1 },
		{ type: "simulated", at, block: 1, gasUsed: null },
		{ type: "shared", at },
		{ type: "broadcast", at, block: 1, behindHidden: false },
		{ type: "delivered", at, block: 1, ...answer },
	];
	for (const event of events) fold(record, event);
	return record;
}

interface Reading {
	/**
	 * From the connection with the core to the readiness, in ms, without the time for which one of
	 * the processes waited for a processor.
	 */
	readonly ms: number;
	/** With that time. */
	readonly allMs: number;
	/** Bytes from the core by then. */
	readonly bytes: number;
	/** The reasons of /readyz before, each once. */
	readonly reasons: ReadonlySet<string>;
}

/** Observes how `edge`, which has connected `times` times, connects to `core` and becomes ready. */
async function becomesReady(edge: LineRelay, core: LineRelay, times: number): Promise<Reading> {
	const reasons = new Set<string>();
	const connected = await until("it is connected", () => connectionsOf(edge)[times], undefined, LOOK_MS);
	const before = denied([edge, core]);
	await until(
		"it is ready",
		async () => {
			const answer = await fetch(`${edge.url}/readyz`).catch(() => null);
			const { checks } = ((await answer?.json()) ?? {}) as {
				checks?: { store?: { reason?: string } };
			};
			const reason = checks?.store?.reason;
			if (reason !== undefined) reasons.add(reason);
			return answer?.status === 200;
		},
		undefined,
		LOOK_MS,
	);
	const allMs = Date.now() - connected;
	// They wait for each other in turns, so at least the longest of these waits is the machine's.
	const waitedMs = Math.max(...denied([edge, core]).map((ms, i) => ms - (before[i] ?? 0)));
	return { ms: allMs - waitedMs, allMs, bytes: core.line.carried[1], reasons };
}

/** When it connected to a core, in Unix ms. */
function connectionsOf(edge: LineRelay): readonly number[] {
	return edge.logs().flatMap(({ msg, time }) => (msg === CONNECTED ? [Date.parse(String(time))] : []));
}

/** How long the main threads of these and of this process have waited for a processor, in ms. */
function denied(some: readonly LineRelay[]): readonly number[] {
	return [process.pid, ...some.map(({ pid }) => pid)].map(deniedMs);
}

for (const { mib, count } of FEEDS) {
	test(`${mib} MiB of transactions are shown to searchers`, async (t) => {
		const world = await startEdgeWorld();
		t.after(() => world.stop());
		await fill(world.database, await world.accounts(count));
		const first = await world.start();
		const second = await world.start();
		/** The calldata as hex. */
		const feed = 2 * count * DATA_BYTES;
		await t.test("a new edge is ready in time, and not before it has all of them", async (t) => {
			const before = first.line.carried[1];
			await heldSoFar(first);
			const third = await world.launch();
			const reading = becomesReady(third, first, 0);
			await third.logged("listening");
			await heldSoFar(third);
			const read = await reading;
			const held = { core: await heldSoFar(first), edge: await heldSoFar(third) };
			const [has, all] = [read.bytes - before, feed].map((bytes) => Math.floor(bytes / MIB));
			assertReady(t, read, held);
			assert.ok(read.bytes - before > feed, `it was ready with ${has} of ${all} MiB`);
			assert.deepEqual([...read.reasons], ["disclosed transactions are still being read from the core"]);
			await third.kill();
		});
		await t.test("the edges of the next core are ready without reading them again", async (t) => {
			const third = await world.start();
			for (const one of [second, third]) await heldSoFar(one);
			await until("the core has sent all of them", () => world.sent() >= count);
			const connections = new Map([second, third].map((one) => [one, connectionsOf(one).length]));
			const killedAt = Date.now();
			await first.kill();
			const isCore = (one: LineRelay) => one.logs().some(({ msg }) => msg === "became the core");
			const next = await until("there is a core", () => [second, third].find(isCore), undefined, LOOK_MS);
			const tookMs = Date.now() - killedAt;
			t.diagnostic(`the next core after ${tookMs} ms, blocked for ${await heldSoFar(next)} ms`);
			const edge = next === second ? third : second;
			const read = await becomesReady(edge, next, connections.get(edge) ?? 0);
			await until("it has sent all of them", () => world.sent() >= 2 * count);
			assertReady(t, read, { core: await heldSoFar(next), edge: await heldSoFar(edge) });
			assert.ok(read.bytes < MIB, `the edge read ${read.bytes} bytes again`);
			assert.ok(tookMs < TAKEN_MS + mib * TAKEN_MS_PER_MIB, `the next core after ${tookMs} ms`);
		});
	});
}

function assertReady(
	t: TestContext,
	{ ms, allMs }: Reading,
	held: Readonly<Record<"core" | "edge", number>>,
): void {
	t.diagnostic(
		`ready after ${ms.toFixed(0)} ms (${allMs.toFixed(0)} by the clock); event loops blocked for ${held.core.toFixed(1)} ms (core), ${held.edge.toFixed(1)} ms (edge)`,
	);
	const limitMs = turnLimit();
	// More on a machine that takes longer for everything.
	assert.ok(ms < (READY_MS * limitMs) / 20, `ready after ${ms} ms`);
	for (const [who, heldMs] of Object.entries(held))
		assert.ok(heldMs < limitMs, `the event loop of the ${who} was blocked for ${heldMs} ms`);
}
