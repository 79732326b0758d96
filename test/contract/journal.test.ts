// Contract of boost's journal on every storage engine: what it has confirmed is there after a
// restart and after a SIGKILL, in every state, and the last change of each entry counts.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { RowLimits } from "../../boost-proxy/rows/rows.ts";
import { silentLogger } from "../../shared/log.ts";
import { ManualClock } from "../support/manualClock.ts";
import { type StoreEngine, StorePlaces } from "../support/storeEngines.ts";
import {
	contents,
	hashOf,
	newEntry,
	openedVerbs,
	rawOf,
	senderOf,
	TTL_MS,
} from "../unit/boost-proxy/journal/journalFixture.ts";
import { FakeDisk } from "../unit/relay/fakeDisk.ts";

interface Engine extends Pick<StoreEngine, "newPlace" | "open"> {
	readonly name: string;
	/** How another process opens it, where it can. */
	readonly elsewhere?: StoreEngine;
}

const places = new StorePlaces();
after(() => places.remove());

const disks = new Map<string, FakeDisk>();
const ENGINES: readonly Engine[] = [
	...places.engines.map((engine) => ({ ...engine, elsewhere: engine })),
	{
		name: "memory",
		newPlace: async () => `${disks.size}`,
		open: async (place) => {
			const disk = disks.get(place) ?? new FakeDisk();
			disks.set(place, disk);
			return disk;
		},
	},
];

for (const engine of ENGINES) {
	const opened = async (place: string, options: Partial<RowLimits> = {}) => {
		const kv = await engine.open(place);
		const dependencies = { kv, clock: new ManualClock(), log: silentLogger };
		const journal = await openedVerbs({ ttlMs: TTL_MS, ...options }, dependencies);
		const close = async () => {
			await journal.close();
			await kv.close();
		};
		return { journal, close };
	};

	test(`${engine.name}: every kind of state is there again after a restart`, async () => {
		const place = await engine.newPlace();
		const { journal, close } = await opened(place);
		const hashes = Array.from({ length: 12 }, (_, i) => hashOf(i));
		await journal.bindTo(1n);
		for (let i = 0; i < 10; i += 1) {
			const entry = newEntry(i, {
				from: senderOf(i % 2),
				nonce: BigInt(20 - i),
				raw: rawOf(i, 100 + 13_000 * i),
				path: i % 3 === 0 ? "noreverts" : "fast",
				search: `refundRecipient=${senderOf(i)}`,
				softCancellations: i % 2 === 0,
				replacesAtUpstreams: i === 3 ? ["fallback"] : [],
			});
			assert.equal(await journal.add(entry, "relay"), true);
			await journal.settle(hashOf(i), i !== 1);
		}
		await journal.held(hashOf(2), "fallback");
		await journal.notHeld(hashOf(2), "relay");
		await journal.replacementDelivered(hashOf(3), "fallback");
		await journal.end(hashOf(4), "cancelled", ["relay", "fallback"]);
		await journal.cancelDone(hashOf(4), "relay");
		await journal.end(hashOf(5), "replaced");
		await journal.end(hashOf(6), "mined");
		await journal.end(hashOf(7), "mined");
		await journal.reopen(hashOf(7));
		await journal.end(hashOf(8), "dropped");
		await journal.add(newEntry(8, { search: "again" }), "fallback");
		await journal.settle(hashOf(8), true);
		await journal.end(hashOf(9), "expired");
		const twice = { from: senderOf(2), path: "noreverts", address: "192.0.2.2" } as const;
		await journal.add(newEntry(11, { from: senderOf(2) }), "relay");
		await journal.settle(hashOf(11), false);
		await journal.add(newEntry(11, twice), "fallback");
		await journal.settle(hashOf(11), true);
		const mark = { ...newEntry(10), ending: "cancelled", cancelAt: [] } as const;
		await journal.markEnded(mark);
		const kept = await contents(journal, hashes);
		await close();
		// Twice: what was read is written again by nobody.
		for (let start = 0; start < 2; start += 1) {
			const again = await opened(place);
			assert.deepEqual(await contents(again.journal, hashes), kept);
			assert.equal(again.journal.depth, 7);
			assert.deepEqual(
				[...again.journal.rows.reopenable()].map(({ hash }) => hash),
				[hashOf(6)],
			);
			assert.deepEqual(
				again.journal.of(senderOf(0)).map(({ nonce }) => nonce),
				[18n, 20n],
			);
			assert.deepEqual(
				[...again.journal.pendingCancels()].map(({ hash }) => hash),
				[hashOf(4)],
			);
			await assert.rejects(again.journal.bindTo(2n), { code: "OTHER_CHAIN" });
			await again.close();
		}
		const late = await opened(place);
		await late.journal.reopen(hashOf(6));
		assert.deepEqual(await late.journal.raw(hashOf(6)), rawOf(6, 100 + 13_000 * 6));
		await late.close();
	});

	test(`${engine.name}: of words that nobody waits for the last one counts`, async () => {
		const place = await engine.newPlace();
		const { journal, close } = await opened(place);
		const said: Promise<unknown>[] = [];
		for (let i = 0; i < 100; i += 1) {
			const hash = hashOf(i);
			said.push(
				journal.add(newEntry(i), "relay"),
				journal.held(hash, "fallback"),
				journal.settle(hash, true),
			);
			if (i % 4 > 0) said.push(journal.end(hash, i % 4 === 1 ? "mined" : "dropped"));
			if (i % 4 === 1) said.push(journal.reopen(hash));
			if (i % 4 === 2) said.push(journal.add(newEntry(i), "fallback"));
		}
		const closing = close();
		await Promise.all(said);
		await closing;
		const again = await opened(place);
		for (let i = 0; i < 100; i += 1) {
			const holders = again.journal.get(hashOf(i))?.holders;
			const expected = [["relay", "fallback"], ["relay", "fallback"], ["fallback"], undefined][i % 4];
			assert.deepEqual(holders, expected, `entry ${i}`);
			assert.deepEqual(await again.journal.raw(hashOf(i)), i % 4 === 3 ? null : rawOf(i), `bytes ${i}`);
			assert.equal(
				(await again.journal.ended(hashOf(i)))?.ending,
				i % 4 === 3 ? "dropped" : undefined,
				`end ${i}`,
			);
		}
		await again.close();
	});

	const { elsewhere } = engine;
	if (elsewhere === undefined) continue;
	test(`${engine.name}: killed at any moment, what its promises said is there`, async () => {
		const place = await engine.newPlace();
		const fixture = new URL("../unit/boost-proxy/journal/journalFixture.ts", import.meta.url);
		const code = `
			import { hashOf, newEntry, openedVerbs, TTL_MS } from ${JSON.stringify(fixture.href)};
			const kv = await open(${JSON.stringify(place)});
			const journal = await openedVerbs({ ttlMs: TTL_MS }, { kv, clock: systemClock, log: silentLogger });
			let told = 0;
			for (let i = 0; ; i += 1) {
				const hash = hashOf(i);
				journal.add(newEntry(i), "relay").then(() => say("added " + i));
				if (i % 3 === 1) journal.held(hash, "fallback").then(() => say("held " + i));
				if (i % 3 === 2) journal.end(hash, "cancelled", ["relay"]).then(() => say("cancelled " + i));
				if (i % 20 === 0) await journal.settle(hash, true);
				if (i % 100 === 0) await journal.held(hash, "fallback");
				// A pipe takes 278 short lines that nobody has read; those behind them are lost with the
				// process.
				if (i % 100 === 0) await new Promise((resolve) => process.stdout.write("", resolve));
				if (i === 1_000) process.kill(process.pid, "SIGKILL");
			}`;
		const { line } = places.another(elsewhere, code);
		const said = new Set<string>();
		for (let one = await line(); one !== "it ended"; one = await line()) said.add(one);
		assert.ok(said.size > 1_000, `only ${said.size} were reported`);
		const again = await opened(place);
		for (const one of said) {
			const [what, i = ""] = one.split(" ");
			const hash = hashOf(Number(i));
			const open = again.journal.get(hash);
			const ending = (await again.journal.ended(hash))?.ending;
			if (what === "cancelled") assert.equal(ending, "cancelled", one);
			else if (ending === undefined) assert.deepEqual(await again.journal.raw(hash), rawOf(Number(i)), one);
			if (what === "held") assert.deepEqual(open?.holders, ["relay", "fallback"], one);
		}
		await again.close();
	});
}
