// PER BID AND STATE: bids whose target stands behind another state than when they were simulated come in; each is
// simulated there once more, and what it comes to goes out. One that the node gives no verdict on is tried again.

import type { Background } from "../shared/background.ts";
import type { Clock, Timer } from "../shared/clock.ts";
import { UpstreamError } from "../shared/jsonrpc/client.ts";
import type { AuctionBook, Bid } from "./auction/book.ts";
import type { BidSimulation, BidTarget, BidVerdict } from "./bidSimulation.ts";
import type { Tip } from "./domain/ports.ts";

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

/** Between two tries while the node gives no verdict, in ms. */
const RETRY_MS = 500;

/** Simulates bids again. */
export class BidChecks {
	readonly #deps: BidChecksDependencies;
	/** Bids to be tried again, and who wants to know. */
	readonly #waiting = new Map<Bid, OnJudged>();
	#timer: Timer | null = null;
	#stopped = false;

	constructor(dependencies: BidChecksDependencies) {
		this.#deps = dependencies;
	}

	/** Simulates a bid for the next block behind `target`, where it was not in the state that this stands in now. */
	check(bid: Bid, target: BidTarget, judged: OnJudged): void {
		const { tip, simulation, background } = this.#deps;
		const block = tip.next()?.number ?? 0;
		const basis = simulation.basis(target);
		if (bid.basis === basis) bid.checking = null;
		if (this.#stopped || bid.basis === basis || bid.checking === basis) return;
		if (bid.firstBlock > block || bid.lastBlock < block) return;
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

	/** Begins nothing more. */
	stop(): void {
		this.#stopped = true;
		this.#timer?.cancel();
	}

	#judge(bid: Bid, basis: string, verdict: BidVerdict, judged: OnJudged): void {
		const { book } = this.#deps;
		if (!book.holds(bid)) return;
		if (verdict.kind === "unavailable") {
			bid.basis = null;
			this.#retry(bid, judged);
			return;
		}
		// Behind a target that fails now nothing is known of the bid: it waits until that passes again.
		bid.basis = verdict.kind === "valid" ? basis : null;
		if (verdict.kind === "valid") book.revalue(bid, verdict.value);
		judged(bid, verdict);
	}

	#retry(bid: Bid, judged: OnJudged): void {
		if (this.#stopped) return;
		this.#waiting.set(bid, judged);
		this.#timer ??= this.#deps.clock.after(RETRY_MS, () => {
			this.#timer = null;
			const bids = [...this.#waiting];
			this.#waiting.clear();
			for (const [one, told] of bids) {
				const target = this.#deps.book.holds(one) ? this.#deps.simulation.target(one.target) : null;
				if (target !== null) this.check(one, target, told);
			}
		});
	}
}

function unavailable(thrown: unknown): BidVerdict {
	if (thrown instanceof UpstreamError) return { kind: "unavailable" };
	throw thrown;
}
