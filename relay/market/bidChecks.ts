// PER TARGET AND STATE: a target whose bids were simulated in another state than the present one comes in; the dearest of
// them are simulated once more, as many as it takes to know the best and some in reserve, and what each comes to goes
// out. One that the node gives no verdict on is tried again.

import type { Background } from "../../shared/background.ts";
import type { Clock, Timer } from "../../shared/clock.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { type AuctionBook, type Bid, isFor } from "../auction/book.ts";
import type { Tip } from "../domain/ports.ts";
import type { BidSimulation, BidTarget, BidVerdict } from "./bidSimulation.ts";

export interface BidChecksDependencies {
	readonly tip: Tip;
	readonly book: AuctionBook;
	readonly simulation: BidSimulation;
	readonly background: Background;
	readonly clock: Clock;
}

/** What a simulation came to. */
export type Judged = Exclude<BidVerdict, { kind: "unavailable" }>;
/** Told of each verdict on a bid that is still in the book, when its basis and value are what they are now. */
export type OnJudged = (bid: Bid, verdict: Judged) => void;

/** Bids of a target that are known to be valid, or soon will be: the best one and its reserve. */
const KNOWN = 3;
/** Between two tries while the node gives no verdict, in ms. */
const RETRY_MS = 500;

/** Simulates bids again. */
export class BidChecks {
	readonly #deps: BidChecksDependencies;
	/** Targets that are to be looked at again, and who wants to know. */
	readonly #waiting = new Map<string, OnJudged>();
	#timer: Timer | null = null;
	#stopped = false;

	constructor(dependencies: BidChecksDependencies) {
		this.#deps = dependencies;
	}

	/**
	 * Sees to it that the dearest bids on the target with this hash are known in the state that it stands in now. Where
	 * it `wins` nothing, those that are valid lost their nonces to other targets, and more must be known.
	 */
	look(hash: string, wins: boolean, judged: OnJudged): void {
		const { tip, simulation, book } = this.#deps;
		const target = simulation.target(hash);
		if (this.#stopped || target === null) return;
		const block = tip.next()?.number ?? 0;
		const basis = simulation.basis(target);
		let known = 0;
		for (const bid of book.ranked(hash)) {
			if (known >= KNOWN) return;
			if (!isFor(bid, block)) continue;
			// The target itself fails there, or the node gives no verdict: the others would fare no better.
			if (bid.tried === basis) return;
			if (bid.basis === basis) {
				bid.checking = null;
				known += wins ? 1 : 0;
				continue;
			}
			if (bid.checking !== basis) this.#check(bid, target, basis, judged);
			known += 1;
		}
	}

	/** Begins nothing more. */
	stop(): void {
		this.#stopped = true;
		this.#timer?.cancel();
	}

	#check(bid: Bid, target: BidTarget, basis: string, judged: OnJudged): void {
		const { tip, simulation, background } = this.#deps;
		const block = tip.next()?.number ?? 0;
		bid.checking = basis;
		background.run("bids", async () => {
			const verdict = await simulation.simulate(target, bid.backrun, block).catch(unavailable);
			// Another look has begun, in a later state.
			if (bid.checking !== basis) return;
			bid.checking = null;
			const now = simulation.target(bid.target);
			// Or is about to: what was found out is of a state that is no more.
			if (now !== null && simulation.basis(now) === basis) this.#judge(bid, basis, verdict, judged);
		});
	}

	#judge(bid: Bid, basis: string, verdict: BidVerdict, judged: OnJudged): void {
		const { book } = this.#deps;
		if (!book.holds(bid)) return;
		if (verdict.kind === "valid") {
			bid.basis = basis;
			book.revalue(bid, verdict.value);
		} else {
			bid.basis = null;
			bid.tried = basis;
		}
		if (verdict.kind === "unavailable") this.#retry(bid, judged);
		else judged(bid, verdict);
	}

	#retry(bid: Bid, judged: OnJudged): void {
		if (this.#stopped) return;
		this.#waiting.set(bid.target, judged);
		this.#timer ??= this.#deps.clock.after(RETRY_MS, () => {
			this.#timer = null;
			const targets = [...this.#waiting];
			this.#waiting.clear();
			for (const [target, told] of targets) {
				for (const one of this.#deps.book.of(target)) one.tried = null;
				this.look(target, true, told);
			}
		});
	}
}

function unavailable(thrown: unknown): BidVerdict {
	if (thrown instanceof UpstreamError) return { kind: "unavailable" };
	throw thrown;
}
