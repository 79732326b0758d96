// One account's open transactions, in the order of their nonces: what each upstream must still get comes out as
// deliveries, what they said goes into the journal. When to look and at which accounts is handover.ts's.

import { readQuantity } from "../../shared/ethereum/hex.ts";
import type { Logger } from "../../shared/log.ts";
import { type Delivery, mayHave, type UpstreamName } from "../domain/delivery.ts";
import type { OpenEntry } from "../domain/journalEntry.ts";
import type { ChainReads, Journal, Upstream, Upstreams } from "../domain/ports.ts";
import { onBehalfOf } from "../domain/request.ts";
import type { HandoverMarks } from "./handoverMarks.ts";

/** What became of a delivery of the handover's; `failed`: no verdict. */
export const HANDOVER_OUTCOMES = ["acknowledged", "rejected", "failed"] as const;
export type HandoverOutcome = (typeof HANDOVER_OUTCOMES)[number];

/** Why an upstream must get a transaction: nobody else has it, it holds an earlier one of the nonce, or it has lost it. */
type Need = "handover" | "owed" | "lost";

/**
 * What there is to do for a nonce at an upstream. `there`: nothing, the nonce is there. `never`: nothing, and it won't be
 * there. `wait`: not now, and what stands behind it waits too.
 */
type Choice =
	| { readonly kind: "there" | "never" | "wait" }
	| { readonly kind: "send"; readonly entry: OpenEntry; readonly need: Need };

/** The way to an upstream for one account in one look. */
interface Lane {
	readonly upstream: Upstream;
	/** The account's next nonce on chain, where it was asked for; null where nobody says. */
	latest: bigint | null | undefined;
	/** Something is not there: what stands behind it waits, but for what is owed, whose nonce is there. */
	isHeldUp: boolean;
}

export interface WalkDependencies {
	readonly journal: Journal;
	readonly upstreams: Upstreams;
	readonly chain: ChainReads;
	readonly marks: HandoverMarks;
	readonly clock: { now(): number };
	readonly log: Logger;
	/** An upstream got what had ended meanwhile, and is to be told. */
	readonly onLate: () => void;
	readonly onHandover?: ((to: UpstreamName, outcome: HandoverOutcome) => void) | undefined;
}

/** −32005: too much at once. It says nothing about the transaction. */
const LIMITED_CODE = -32005;

/** Walks over accounts. */
export class HandoverWalk {
	readonly #deadlineMs: number;
	readonly #with: WalkDependencies;
	readonly #all: readonly Upstream[];
	#stopped = false;

	/** `deadlineMs`: of one delivery, and of one question to the chain. */
	constructor(options: { readonly deadlineMs: number }, dependencies: WalkDependencies) {
		this.#deadlineMs = options.deadlineMs;
		this.#with = dependencies;
		const { relay, fallback } = dependencies.upstreams;
		this.#all = fallback === null ? [relay] : [relay, fallback];
	}

	/** Nothing more is sent. */
	stop(): void {
		this.#stopped = true;
	}

	/** Whether it isn't where it should be; whether it can be sent there now is not looked at. */
	isWanting(entry: OpenEntry): boolean {
		if (!entry.acknowledged) return false;
		if (!this.#hasLiveHolder(entry)) return this.#with.clock.now() < entry.aliveUntil;
		return this.#all.some((upstream) => {
			const { name, breaker } = upstream;
			if (breaker.isOut) return false;
			return this.#isOwed(entry, name) || this.#isLostAt(entry, upstream);
		});
	}

	/** Sends what is needed and possible, one after another. Answers whether something is still wanting. */
	async walk(from: string): Promise<boolean> {
		const { journal } = this.#with;
		const nonces = new Set(journal.of(from).map(({ nonce }) => nonce));
		const lanes = this.#all.map((upstream): Lane => ({ upstream, latest: undefined, isHeldUp: false }));
		for (const nonce of nonces) {
			for (const lane of lanes) {
				if (this.#stopped) return true;
				if (!(await this.#step(lane, from, nonce))) lane.isHeldUp = true;
			}
		}
		return journal.of(from).some((entry) => this.isWanting(entry));
	}

	/** One nonce at one upstream. Answers whether what stands behind it may go there. */
	async #step(lane: Lane, from: string, nonce: bigint): Promise<boolean> {
		const { upstream } = lane;
		const takesGaps = upstream.dialect?.takesGaps ?? true;
		const choice = this.#choose(upstream, from, nonce);
		if (choice.kind !== "send") return choice.kind === "there" || (choice.kind === "never" && takesGaps);
		const { entry, need } = choice;
		if (lane.isHeldUp && need !== "owed") return false;
		if (need === "owed" && upstream.refusal(entry.path) !== null) {
			this.#with.marks.refuse(entry.hash, upstream.name, "forGood");
			this.#keep(this.#with.journal.paid(entry.hash, upstream.name));
			return takesGaps;
		}
		if (!takesGaps && need === "handover") {
			lane.latest ??= await this.#latest(from);
			if (lane.latest === null) return this.#waitFor(entry, upstream);
			if (nonce < lane.latest) return !this.#waitFor(entry, upstream);
			if (nonce > this.#firstMissing(upstream, from, lane.latest)) return this.#waitFor(entry, upstream);
		}
		const raw = await this.#with.journal.raw(entry.hash).catch(() => null);
		// It may have ended meanwhile, have been replaced, or be under way again.
		const now = this.#choose(upstream, from, nonce);
		if (this.#stopped || now.kind !== "send" || now.entry.hash !== entry.hash || now.need !== need)
			return false;
		if (raw === null) return this.#waitFor(entry, upstream);
		return this.#send(upstream, now.entry, need, raw);
	}

	#choose(upstream: Upstream, from: string, nonce: bigint): Choice {
		const { journal, marks } = this.#with;
		const siblings = journal.of(from).filter((entry) => entry.nonce === nonce);
		const there = siblings.some((entry) => this.#isAt(entry, upstream.name));
		// What becomes of the nonce is being decided.
		if (siblings.some(({ underWay }) => underWay)) return { kind: there ? "there" : "wait" };
		// The last one counts: those before it have been replaced.
		const entry = siblings.findLast(({ acknowledged }) => acknowledged);
		const need = entry === undefined ? null : this.#need(entry, upstream);
		if (entry === undefined || need === null) return { kind: there ? "there" : "never" };
		if (marks.isDue(entry.hash, upstream.name)) return { kind: "send", entry, need };
		return { kind: there ? "there" : "wait" };
	}

	#need(entry: OpenEntry, upstream: Upstream): Need | null {
		const { name } = upstream;
		const { marks, clock } = this.#with;
		if (upstream.breaker.isOut) return null;
		if (this.#isOwed(entry, name)) return "owed";
		if (this.#isLostAt(entry, upstream)) return "lost";
		if (this.#isAt(entry, name) || this.#hasLiveHolder(entry)) return null;
		if (marks.isRefused(entry.hash, name) || upstream.refusal(entry.path) !== null) return null;
		return clock.now() < entry.aliveUntil ? "handover" : null;
	}

	#isOwed(entry: OpenEntry, by: UpstreamName): boolean {
		return entry.owed.includes(by) || this.#with.marks.isOwed(entry.hash, by);
	}

	/** Whether it gets it again because it has lost it: a third party only where nobody else has it. */
	#isLostAt(entry: OpenEntry, { name, dialect }: Upstream): boolean {
		if (!this.#with.marks.isLost(entry.hash, name)) return false;
		return dialect === null || !this.#hasLiveHolder(entry);
	}

	#isAt(entry: OpenEntry, by: UpstreamName): boolean {
		return entry.holders.includes(by) && this.#with.marks.isSure(entry.hash, by);
	}

	#hasLiveHolder(entry: OpenEntry): boolean {
		return this.#all.some(({ name, breaker }) => !breaker.isOut && this.#isAt(entry, name));
	}

	/** The first nonce from `latest` on that `upstream` does not have. */
	#firstMissing(upstream: Upstream, from: string, latest: bigint): bigint {
		let next = latest;
		for (const entry of this.#with.journal.of(from)) {
			if (entry.nonce === next && this.#isAt(entry, upstream.name)) next += 1n;
		}
		return next;
	}

	#waitFor(entry: OpenEntry, upstream: Upstream): false {
		this.#with.marks.fault(entry.hash, upstream.name);
		return false;
	}

	async #send(upstream: Upstream, entry: OpenEntry, need: Need, raw: Buffer): Promise<boolean> {
		const { hash, from, path, search } = entry;
		const asker = upstream.dialect === null ? onBehalfOf(entry) : null;
		const options = { deadlineMs: this.#deadlineMs, asker, whole: null };
		const delivery = await upstream.deliver({ hash, from, raw, path, search }, options);
		if (delivery === null) return false;
		if (delivery.kind === "acknowledged") {
			this.#with.onHandover?.(upstream.name, "acknowledged");
			this.#with.marks.clear(hash, upstream.name);
			this.#reached(upstream, entry);
			return true;
		}
		if (delivery.kind === "rejected" && delivery.error.code !== LIMITED_CODE) {
			this.#with.onHandover?.(upstream.name, "rejected");
			const { code } = delivery.error;
			this.#with.log.warn("what was handed over is refused", {
				...{ upstream: upstream.name, hash, reason: need, code },
			});
			return this.#rejected(upstream, entry, need);
		}
		this.#with.onHandover?.(upstream.name, "failed");
		this.#failed(upstream, entry, delivery);
		return false;
	}

	#failed(upstream: Upstream, entry: OpenEntry, delivery: Delivery): void {
		const { marks } = this.#with;
		if (mayHave(delivery)) {
			marks.unsure(entry.hash, upstream.name);
			this.#reached(upstream, entry);
		}
		const retryMs = delivery.kind === "failed" ? (delivery.retryAfterS ?? 0) * 1_000 : 0;
		marks.fault(entry.hash, upstream.name, retryMs);
		// A fallback's limit is about us, not about one client.
		const limited = delivery.kind === "failed" && delivery.fault === "limited";
		if (limited && upstream.dialect !== null) marks.pause(upstream.name, retryMs);
	}

	/** It is there, or may be. What its user did meanwhile must reach it there. */
	#reached(upstream: Upstream, entry: OpenEntry): void {
		const { journal, marks, onLate } = this.#with;
		const { name } = upstream;
		const ended = journal.get(entry.hash) === null ? journal.ended(entry.hash) : null;
		if (ended === null) {
			this.#keep(journal.held(entry.hash, name));
			this.#keep(journal.paid(entry.hash, name));
		} else if (ended.ending !== "mined") {
			this.#keep(journal.end(entry.hash, ended.ending, [name]));
			onLate();
		}
		for (const sibling of journal.of(entry.from)) {
			const isLater = sibling.nonce === entry.nonce && sibling.receivedAt >= entry.receivedAt;
			if (!isLater || sibling.hash === entry.hash || this.#isAt(sibling, name)) continue;
			marks.owe(sibling.hash, name);
			onLate();
		}
	}

	/**
	 * Where somebody else has it still, that one may come back and this one is not asked again until it has. Where nobody
	 * has it any more, everybody is asked again now and then, until its time is over or the chain says that its nonce is used.
	 */
	#rejected(upstream: Upstream, entry: OpenEntry, need: Need): boolean {
		const { journal, marks } = this.#with;
		const { hash } = entry;
		const { name, dialect } = upstream;
		const others = entry.holders.some((holder) => holder !== name && !marks.isLost(hash, holder));
		marks.refuse(hash, name, others ? "untilChange" : "forNow");
		this.#keep(journal.paid(hash, name));
		this.#keep(journal.notHeld(hash, name));
		// The earlier one of its nonce is there still.
		return need === "owed" || (dialect?.takesGaps ?? true);
	}

	/** The next nonce of an account on chain; null where nobody says. */
	async #latest(from: string): Promise<bigint | null> {
		const call = { method: "eth_getTransactionCount", params: [from, "latest"] };
		const [count] = (await this.#with.chain.batch([call], this.#deadlineMs)) ?? [];
		return count?.ok === true ? readQuantity(count.result) : null;
	}

	/** The journal says itself where it fails, and goes on in memory. */
	#keep(write: Promise<unknown>): void {
		write.catch(() => {});
	}
}
