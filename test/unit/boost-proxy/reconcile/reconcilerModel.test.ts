// Random scenarios of submissions, outages, cancels, blocks, losses and faults, played with two upstreams that judge what
// they are handed: whatever comes, nothing that ended is handed over, nothing goes where it may not or before its turn, and
// in the end everything is where it belongs.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Sendable } from "../../../../boost-proxy/domain/ports.ts";
import type { BoostPath, Delivery, UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import type { LiveRow } from "../journal/journalFixture.ts";
import { newEntry } from "../journal/journalFixture.ts";
import {
	ACKNOWLEDGED,
	type FakeUpstream,
	fault,
	hashOf,
	type ReconcileFixture,
	reconcileFixture,
	refused,
	senderOf,
} from "./reconcileFixture.ts";

const ACCOUNTS = 3;
const STEPS = [
	...["submit", "submit", "submit", "replace", "ambiguous"],
	...["trip", "return", "cancel", "cancelAtRelay", "mine", "lose", "fail", "heal", "wait"],
] as const;
const FAILINGS = ["refused", "sent", "kept", "full"] as const;
const FULL = refused("txpool is full");
/** `n` picks what it is about; `ms` pass after it. */
interface Step {
	readonly kind: (typeof STEPS)[number];
	readonly n: number;
	readonly ms: number;
}
interface Known {
	readonly from: string;
	readonly nonce: bigint;
	readonly path: BoostPath;
	/** A later one of a nonce pays more. */
	readonly order: number;
}

/** Plays scenarios; each upstream judges what it is handed by what it has, and checks that it may be handed it. */
class Scenario {
	readonly #fixture: ReconcileFixture;
	readonly #known = new Map<string, Known>();
	readonly #next = new Map<string, bigint>();
	readonly #failing = new Map<UpstreamName, (typeof FAILINGS)[number]>();
	readonly #refusedAt = new Set<string>();
	/** Refused because an upstream was full: who asks again later is not. */
	readonly #refusedForNow = new Set<string>();
	readonly faults: string[] = [];

	constructor(fixture: ReconcileFixture) {
		this.#fixture = fixture;
		fixture.fallback.refuses = (path) => (path === "noreverts" ? "not protected" : null);
		for (const upstream of this.#all) upstream.answer = (tx) => this.#handed(upstream, tx);
	}

	get #all(): readonly FakeUpstream[] {
		return [this.#fixture.relay, this.#fixture.fallback];
	}

	#holds(upstream: FakeUpstream, hash: string): boolean {
		return upstream.stages.get(hash) === "BROADCAST";
	}

	/** What an upstream makes of a transaction. */
	#judge(upstream: FakeUpstream, hash: string): Delivery {
		const tx = this.#of(hash);
		const failing = this.#failing.get(upstream.name);
		if (failing === "refused") return fault(false);
		if (failing === "sent") return fault(true);
		if (!upstream.isOver(hash)) return { kind: "acknowledged", known: true };
		if (failing === "full") return FULL;
		if (tx.nonce < (this.#fixture.chain.nonces.get(tx.from) ?? 0n)) return refused("nonce too low");
		for (const [other, one] of this.#known) {
			if (one.from !== tx.from || one.nonce !== tx.nonce || !this.#holds(upstream, other)) continue;
			if (one.order > tx.order) return refused("replacement transaction underpriced");
			upstream.stages.set(other, "REPLACED");
		}
		upstream.stages.set(hash, "BROADCAST");
		return failing === "kept" ? fault(true) : ACKNOWLEDGED;
	}

	#handed(upstream: FakeUpstream, { hash }: Sendable): Delivery {
		const entry = this.#fixture.journal.get(hash);
		const fail = (what: string): void => {
			this.faults.push(`${hash.slice(-3)} at the ${upstream.name}: ${what}`);
		};
		if (entry === null) fail("has ended");
		else {
			if (entry.underWay || !entry.acknowledged) fail("is not the handover's");
			if (upstream.refusal(entry.path) !== null) fail("may not go there");
			if (!this.#isInTurn(upstream, entry)) fail("not in its turn");
		}
		const verdict = this.#judge(upstream, hash);
		const refusedAt = verdict === FULL ? this.#refusedForNow : this.#refusedAt;
		if (verdict.kind === "rejected") refusedAt.add(`${upstream.name} ${hash}`);
		return verdict;
	}

	#isInTurn(upstream: FakeUpstream, entry: LiveRow): boolean {
		const { journal, chain } = this.#fixture;
		const open = journal.of(entry.from);
		const isOwed = entry.replacesAt.includes(upstream.name) || entry.holders.includes(upstream.name);
		const isNonceThere = [...this.#known].some(
			([hash, one]) => one.from === entry.from && one.nonce === entry.nonce && this.#holds(upstream, hash),
		);
		if (isNonceThere || entry.replacesAt.includes(upstream.name)) return true;
		if (upstream.dialect?.takesGaps === false && !isOwed) {
			for (let nonce = chain.nonces.get(entry.from) ?? 0n; nonce < entry.nonce; nonce += 1n) {
				const there = open.some((one) => one.nonce === nonce && this.#holds(upstream, one.hash));
				// A request that brought no verdict counts: nobody can know better.
				const maybe = open.some((one) => one.nonce === nonce && one.holders.includes(upstream.name));
				if (!there && !maybe) return false;
			}
		}
		return open.every((one) => {
			if (one.nonce >= entry.nonce || !one.acknowledged || one.underWay) return true;
			if (one.nonce < (chain.nonces.get(entry.from) ?? 0n)) return true;
			const isLast = open.findLast(({ nonce, acknowledged }) => nonce === one.nonce && acknowledged) === one;
			const elsewhere = this.#all.some(
				({ name, breaker }) => !breaker.isUnavailable && one.holders.includes(name),
			);
			const place = `${upstream.name} ${one.hash}`;
			const refusedThere = this.#refusedAt.has(place) || this.#refusedForNow.has(place);
			if (!isLast || elsewhere || refusedThere || upstream.refusal(one.path) !== null) return true;
			return !upstream.isOver(one.hash);
		});
	}

	async play({ kind, n, ms }: Step): Promise<void> {
		const { clock, handover } = this.#fixture;
		const upstream = n % 2 === 0 ? this.#fixture.relay : this.#fixture.fallback;
		if (kind === "submit") await this.#submit(n, null, false);
		else if (kind === "ambiguous") await this.#submit(n, null, true);
		else if (kind === "replace") await this.#submit(n, this.#pick(n), false);
		else if (kind === "trip") upstream.breaker.set(true);
		else if (kind === "return") upstream.breaker.set(false);
		else if (kind === "cancel") await this.#cancel(this.#pick(n));
		else if (kind === "cancelAtRelay") this.#cancelAtRelay(this.#pick(n));
		else if (kind === "mine") this.#mine(senderOf(n % ACCOUNTS));
		else if (kind === "lose") this.#lose(this.#pick(n));
		else if (kind === "fail") this.#failing.set(upstream.name, FAILINGS[n % FAILINGS.length] ?? "sent");
		else if (kind === "heal") this.#failing.delete(upstream.name);
		handover.wake();
		await clock.advance(ms);
	}

	#of(hash: string): Known {
		const known = this.#known.get(hash);
		assert.ok(known !== undefined, "a hash of the scenario's");
		return known;
	}

	#pick(n: number): LiveRow | null {
		const open = [...this.#fixture.journal.open()];
		return open[n % Math.max(1, open.length)] ?? null;
	}

	/** As a request does: the relay first, then the fallback. */
	async #submit(n: number, earlier: LiveRow | null, ambiguous: boolean): Promise<void> {
		const { journal, relay, fallback, clock } = this.#fixture;
		const from = earlier?.from ?? senderOf(n % ACCOUNTS);
		const next = this.#next.get(from) ?? 0n;
		const nonce = earlier?.nonce ?? next;
		const path = n % 5 === 0 ? "noreverts" : "fast";
		const order = this.#known.size + 1;
		const hash = hashOf(order);
		const able = [relay, fallback].filter((one) => !one.breaker.isUnavailable && one.refusal(path) === null);
		const [first, second] = able;
		if (first === undefined) return;
		this.#known.set(hash, { from, nonce, path, order });
		const siblings = journal.of(from).filter((one) => one.nonce === nonce);
		const owed = [...new Set(siblings.flatMap(({ holders }) => holders))];
		await journal.add(
			newEntry(order, { from, nonce, path, receivedAt: clock.now(), replacesAt: owed }),
			first.name,
		);
		if (n % 7 === 0) await clock.advance(40);
		let by: FakeUpstream | null = null;
		for (const upstream of ambiguous ? [first] : [first, second]) {
			if (upstream === undefined || by !== null) continue;
			const verdict = this.#judge(upstream, hash);
			if (verdict.kind === "acknowledged" && !ambiguous) by = upstream;
			if (verdict.kind === "failed" && !verdict.sent) await journal.notHeld(hash, upstream.name);
			else if (verdict.kind === "rejected") {
				await journal.notHeld(hash, upstream.name);
				break;
			} else await journal.held(hash, upstream.name);
		}
		if (by === null) {
			await journal.settle(hash, false);
			return;
		}
		if (nonce === next) this.#next.set(from, next + 1n);
		await journal.paid(hash, by.name);
		for (const { hash: old, holders } of siblings) {
			await journal.end(
				old,
				"replaced",
				holders.filter((name) => name !== by.name),
			);
		}
		await journal.settle(hash, true);
	}

	/** As a client's cancel does. */
	async #cancel(entry: LiveRow | null): Promise<void> {
		const { journal, clock } = this.#fixture;
		if (entry === null) return;
		journal.setUnderWay(entry.hash, true);
		await clock.advance(30);
		const holders = this.#all.filter(({ name }) => entry.holders.includes(name));
		const reached = holders.filter(({ breaker }) => !breaker.isUnavailable);
		for (const { stages } of reached)
			if (stages.get(entry.hash) === "BROADCAST") stages.set(entry.hash, "CANCELLED");
		const untold = holders.filter((one) => !reached.includes(one)).map(({ name }) => name);
		if (reached.length > 0) await journal.end(entry.hash, "cancelled", untold);
		journal.setUnderWay(entry.hash, false);
	}

	#cancelAtRelay(entry: LiveRow | null): void {
		const { relay } = this.#fixture;
		if (entry !== null && this.#holds(relay, entry.hash)) relay.stages.set(entry.hash, "CANCELLED");
	}

	/** A block with one transaction of the account's next nonce that anybody holds. */
	#mine(from: string): void {
		const { chain } = this.#fixture;
		const next = chain.nonces.get(from) ?? 0n;
		const candidates = [...this.#known].filter(([, one]) => one.from === from && one.nonce === next);
		const mined = candidates.find(([hash]) => this.#all.some((one) => this.#holds(one, hash)));
		if (mined === undefined) return;
		chain.nonces.set(from, next + 1n);
		chain.receipts.add(mined[0]);
		for (const { stages } of this.#all) {
			for (const [hash] of candidates) {
				if (hash === mined[0] && stages.has(hash)) stages.set(hash, "INCLUDED");
				else if (stages.get(hash) === "BROADCAST") stages.set(hash, "DROPPED");
			}
		}
	}

	/** The relay's store is lost, as far as this one goes. */
	#lose(entry: LiveRow | null): void {
		const { relay } = this.#fixture;
		if (entry !== null && this.#holds(relay, entry.hash)) relay.stages.delete(entry.hash);
	}

	/** One upstream alone, and well: what it may have and nobody refused is there. */
	async settleAt(name: UpstreamName): Promise<void> {
		const { clock, journal, chain } = this.#fixture;
		this.#failing.clear();
		for (const { name: other, breaker } of this.#all) breaker.set(other !== name);
		await clock.advance(35_000);
		const live = this.#all.find((one) => one.name === name);
		assert.ok(live !== undefined, "one of the two");
		for (const { hash, from, path, acknowledged, nonce, holders } of journal.open()) {
			if (!acknowledged || live.refusal(path) !== null) continue;
			if (this.#holds(live, hash) || this.#refusedAt.has(`${name} ${hash}`)) continue;
			// Its holder may come back, and who was full is asked again then; at once where nobody holds it.
			if (holders.length > 0 && this.#refusedForNow.has(`${name} ${hash}`)) continue;
			// A later one arrived there without a verdict: its client was told of an error, and it counts all the same.
			if (name === "fallback" && live.stages.get(hash) === "REPLACED") continue;
			if (live.dialect?.takesGaps === false && this.#hasGap(live, from, nonce)) continue;
			this.faults.push(
				`${hash.slice(-3)} is open and not at the ${name}; next nonce ${chain.nonces.get(from)}`,
			);
		}
	}

	#hasGap(upstream: FakeUpstream, from: string, below: bigint): boolean {
		const { journal, chain } = this.#fixture;
		for (let nonce = chain.nonces.get(from) ?? 0n; nonce < below; nonce += 1n) {
			const siblings = journal.of(from).filter((one) => one.nonce === nonce);
			if (!siblings.some(({ hash }) => this.#holds(upstream, hash))) return true;
		}
		return false;
	}

	/** Both are well: who ended something has reached everybody who had it. */
	async settleAll(): Promise<void> {
		const { clock, journal } = this.#fixture;
		for (const { breaker } of this.#all) breaker.set(false);
		await clock.advance(35_000);
		assert.deepEqual([...journal.untold()], [], "everybody was told");
		for (const [hash, { from, nonce }] of this.#known) {
			const ending = journal.ended(hash)?.ending;
			if (ending !== "cancelled" && ending !== "replaced") continue;
			for (const upstream of this.#all) {
				if (!this.#holds(upstream, hash)) continue;
				// Who knows no cancel keeps it until a replacement that it may have is there.
				const later = journal.of(from).findLast((one) => one.nonce === nonce && one.acknowledged);
				const cannot = later === undefined || upstream.refusal(later.path) !== null;
				if (upstream.dialect?.cancelMethod === null && cannot) continue;
				this.faults.push(`${hash.slice(-3)} was ${ending}, and the ${upstream.name} has it`);
			}
		}
	}
}

const SCENARIO = fc.array(
	fc.record<Step>({
		kind: fc.constantFrom(...STEPS),
		n: fc.nat(1_000),
		ms: fc.constantFrom(0, 5, 60, 1_100, 3_000),
	}),
	{ minLength: 5, maxLength: 40 },
);

for (const dialect of ["mevblocker", "flashbots"] as const) {
	test(`whatever comes, with a fallback of the kind ${dialect}`, async () => {
		await fc.assert(
			fc.asyncProperty(SCENARIO, fc.boolean(), async (steps, relayFirst) => {
				const fixture = await reconcileFixture({ dialect });
				const scenario = new Scenario(fixture);
				await fixture.observer.start();
				for (const step of steps) await scenario.play(step);
				await scenario.settleAt(relayFirst ? "relay" : "fallback");
				await scenario.settleAt(relayFirst ? "fallback" : "relay");
				await scenario.settleAll();
				await fixture.stop();
				assert.deepEqual(scenario.faults, []);
				assert.equal(fixture.clock.timers > 2, false, "no timer is left behind");
			}),
			{ numRuns: 25, includeErrorInReport: true },
		);
	});
}
