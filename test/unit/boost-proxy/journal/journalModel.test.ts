// Any words in any order, with a disk that fails and comes back, restarts and kills in between: the journal is what its
// plain model is, and a start brings back what was on disk.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { UPSTREAMS } from "../../../../boost-proxy/domain/request.ts";
import { ENDINGS } from "../../../../boost-proxy/domain/row.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import { hashOf, newEntry, rawOf, senderOf } from "./journalFixture.ts";
import { JournalModel } from "./journalModel.ts";
import { openedVerbs, type RowVerbs } from "./rowVerbs.ts";

const HASHES = 6;
const KEEP_MS = 1_000_000;
const LIMITS = { ttlMs: 300_000, reorgMs: 144_000, maxLive: 5, maxEnded: 3 };
const OPTIONS = { ...LIMITS, endedKeepMs: KEEP_MS, rawCacheBytes: 2 * 420 };

const n = fc.integer({ min: 0, max: HASHES - 1 });
const by = fc.constantFrom(...UPSTREAMS);
const some = fc.subarray([...UPSTREAMS]);
const ending = fc.constantFrom(...ENDINGS);
const command = fc.oneof(
	{ weight: 6, arbitrary: fc.record({ do: fc.constant("add"), n, by, some }) },
	{ weight: 4, arbitrary: fc.record({ do: fc.constant("settle"), n, yes: fc.boolean() }) },
	{ weight: 4, arbitrary: fc.record({ do: fc.constantFrom("held", "notHeld", "paid", "told"), n, by }) },
	{ weight: 3, arbitrary: fc.record({ do: fc.constant("end"), n, ending, some }) },
	{ weight: 1, arbitrary: fc.record({ do: fc.constant("markEnded"), n, ending, some }) },
	{ weight: 3, arbitrary: fc.record({ do: fc.constantFrom("reopen", "alive"), n }) },
	{ weight: 2, arbitrary: fc.record({ do: fc.constant("setUnderWay"), n, yes: fc.boolean() }) },
	{ weight: 3, arbitrary: fc.record({ do: fc.constantFrom("break", "heal", "restart", "kill") }) },
	{ weight: 2, arbitrary: fc.record({ do: fc.constant("wait"), ms: fc.integer({ min: 1, max: 200_000 }) }) },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

/** The journal and its model, side by side. */
class Pair {
	readonly clock = new ManualClock();
	model = new JournalModel(LIMITS);
	/** What is on disk. */
	#durable = this.model.copy();
	#disk = new FakeDisk();
	#startedAt = 0;
	#journal: RowVerbs | null = null;

	get journal() {
		assert.ok(this.#journal !== null, "it is open");
		return this.#journal;
	}

	async start(): Promise<void> {
		const dependencies = { kv: this.#disk, clock: this.clock, log: silentLogger };
		this.#journal = await openedVerbs(OPTIONS, dependencies);
		this.#startedAt = this.clock.now();
		for (const known of this.model.known.values()) {
			if (known.open === null) continue;
			// How long it lives on is written now and then.
			const aliveUntil = this.journal.get(known.open.hash)?.aliveUntil ?? 0;
			const lost = known.open.aliveUntil - aliveUntil;
			assert.ok(lost >= 0 && lost <= LIMITS.ttlMs / 2, `${lost} ms of its life are lost`);
			known.open = { ...known.open, aliveUntil };
		}
		this.model.restart();
	}

	async #kill(): Promise<void> {
		const left = new FakeDisk();
		for (const [key, value] of this.#disk.map) left.map.set(key, value);
		this.#disk = left;
		this.model = new JournalModel(LIMITS, structuredClone(this.#durable));
		await this.start();
	}

	async #restart(): Promise<void> {
		await this.journal.close();
		await this.#noteDurable();
		await this.#kill();
	}

	/** What a command does to both; the promise is the journal's. */
	#do(one: Command): Promise<unknown> | undefined {
		const { journal, model } = this;
		const now = this.clock.now();
		const hash = "n" in one ? hashOf(one.n) : "";
		const entry = "n" in one ? newEntryOf(one.n, now) : newEntryOf(0, now);
		if ("yes" in one) {
			if (one.do === "settle") {
				model.settle(hash, one.yes);
				return journal.settle(hash, one.yes);
			}
			model.setUnderWay(hash, one.yes);
			return void journal.setUnderWay(hash, one.yes);
		}
		if ("ending" in one) {
			if (one.do === "end") {
				model.end(hash, one.ending, one.some, now);
				return journal.end(hash, one.ending, one.some);
			}
			const { from, nonce, path, address } = entry;
			const mark = { hash, from, nonce, path, address, ending: one.ending, untold: one.some };
			model.markEnded(mark, now);
			return journal.markEnded(mark);
		}
		if ("some" in one) {
			const added = model.add({ ...entry, replacesAt: one.some }, one.by);
			return journal.add({ ...entry, replacesAt: one.some }, one.by).then((is) => assert.equal(is, added));
		}
		if ("by" in one) {
			if (one.do === "paid")
				model.change(hash, ({ replacesAt }) => ({
					replacesAt: replacesAt.filter((name) => name !== one.by),
				}));
			if (one.do === "held" || one.do === "notHeld" || one.do === "told") model[one.do](hash, one.by);
			return journal[one.do as "held"](hash, one.by);
		}
		if (one.do === "reopen") {
			model.reopen(hash, now);
			return journal.reopen(hash);
		}
		if (one.do === "alive") {
			const until = now + LIMITS.ttlMs;
			model.change(hash, ({ aliveUntil }) => ({ aliveUntil: Math.max(aliveUntil, until) }));
			return void journal.alive(hash);
		}
		return undefined;
	}

	async run(one: Command): Promise<void> {
		if (one.do === "break" || one.do === "heal") this.#disk.broken = one.do === "break";
		else if (one.do === "kill") await this.#kill();
		else if (one.do === "restart") await this.#restart();
		else if ("ms" in one) await this.clock.advance(one.ms);
		else {
			// What could not be written a moment ago is not there yet, though the disk works again.
			const mayFail = this.#disk.broken || !this.journal.isDurable;
			await this.#do(one)?.catch((thrown: unknown) => {
				assert.ok(mayFail && thrown instanceof Error && thrown.message === "disk", `${thrown}`);
			});
		}
		// No two ends at the same time.
		await this.clock.advance(1);
		this.#forgetOld();
		await this.#noteDurable();
		await this.#compare();
	}

	/** Where the disk failed for one transaction, others may be on it. */
	async #noteDurable(): Promise<void> {
		for (let i = 0; i < HASHES; i += 1) {
			const hash = hashOf(i);
			if (!(await this.journal.rows.written(hash))) continue;
			const known = this.model.known.get(hash);
			if (known === undefined) this.#durable.delete(hash);
			else this.#durable.set(hash, structuredClone(known));
		}
	}

	/** What is due to be forgotten may be gone; a little later it must be. */
	#forgetOld(): void {
		const now = this.clock.now();
		for (const [hash, { ended }] of this.model.known) {
			if (ended === null || ended.endedAt + KEEP_MS > now) continue;
			if (this.journal.ended(hash) === null) this.model.forget(hash);
			const late = Math.min(now - ended.endedAt - KEEP_MS, now - this.#startedAt);
			assert.ok(late < 3_000 || this.journal.ended(hash) === null, "it is forgotten in the end");
		}
	}

	async #compare(): Promise<void> {
		const { journal, model } = this;
		assert.equal(journal.depth, model.opens.length);
		for (let i = 0; i < HASHES; i += 1) {
			const hash = hashOf(i);
			const { ended } = model.of(hash);
			const open = model.openOf(hash);
			assert.deepEqual(plain(journal.get(hash)), plain(open));
			assert.deepEqual(plain(journal.ended(hash)), plain(ended));
			assert.deepEqual(await journal.raw(hash), open === null ? null : rawOf(i));
		}
		const now = this.clock.now();
		const mined = [...journal.recentlyMined()].map(({ entry }) => entry.hash);
		const mayBeGone = (hash: string) => now - (model.of(hash).ended?.endedAt ?? 0) >= LIMITS.reorgMs;
		assert.deepEqual(
			mined.filter((hash) => !mayBeGone(hash)),
			model.mined.filter((hash) => !mayBeGone(hash)),
		);
		const untold = [...model.known.values()].flatMap(({ ended }) => (ended?.untold.length ? ended.hash : []));
		assert.deepEqual([...journal.untold()].map(({ hash }) => hash).sort(), untold.sort());
		const sorted = [...model.opens].sort((a, b) => Number(a.nonce - b.nonce) || a.receivedAt - b.receivedAt);
		const bySender = [0, 1].map((s) =>
			sorted.filter(({ from }) => from === senderOf(s)).map(({ hash }) => hash),
		);
		assert.deepEqual(
			[0, 1].map((s) => journal.of(senderOf(s)).map(({ hash }) => hash)),
			bySender,
		);
		assert.deepEqual([...journal.open()].map(({ hash }) => hash).sort(), bySender.flat().sort());
	}
}

/** Two senders, with two transactions of one nonce each; what comes later is asked for otherwise. */
function newEntryOf(i: number, now: number) {
	const asked = {
		path: now % 2 === 0 ? "fast" : "noreverts",
		search: `at=${now}`,
		address: `${now}`,
	} as const;
	return newEntry(i, { from: senderOf(i % 2), nonce: BigInt(Math.floor(i / 4)), receivedAt: now, ...asked });
}

/** Without what each of the two has for itself. */
function plain(entry: object | null): unknown {
	if (entry === null) return null;
	const { said: _said, was: _was, ...rest } = { said: 0, was: 0, ...entry };
	// Names have no order.
	return Object.fromEntries(
		Object.entries(rest).map(([key, value]) => [key, Array.isArray(value) ? [...value].sort() : value]),
	);
}

test("the journal is what its model is, whatever is said and whatever fails", async () => {
	await fc.assert(
		fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 60 }), async (commands) => {
			const pair = new Pair();
			await pair.start();
			for (const one of commands) await pair.run(one);
			await pair.journal.close();
		}),
		{ numRuns: 150 },
	);
});
