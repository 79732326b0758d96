// Simulates bids again after their target's state has changed, and retries when the node gives no
// result. The auctioneer decides which bids to check.

import type { Timer } from "../../shared/clock.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Bid } from "../auction/bid.ts";
import type { Bids } from "../auction/bids.ts";
import type { BundleSimulation } from "./bundleSimulation.ts";
import { type BidVerdict, retryMs } from "./bundleSimulation.ts";
import type { MarketDependencies } from "./dependencies.ts";

/** Receives the results. */
export interface BidChecksListener {
	/** Called with the result for a bid that is still live, after its check and value were set. */
	readonly onVerdict: (bid: Bid, verdict: BidVerdict) => void;
	/** Called with a target whose bids may be checked again. */
	readonly onRetry: (target: string) => void;
}

/** The market classes that it depends on. */
interface BidChecksMarket {
	readonly bids: Bids;
	readonly simulation: BundleSimulation;
}

/** Runs the checks. */
export class BidChecks {
	readonly #dependencies: Pick<MarketDependencies, "tip" | "background" | "clock">;
	readonly #market: BidChecksMarket;
	readonly #listener: BidChecksListener;
	/** By target. */
	readonly #retries = new Map<string, Timer>();
	#stopped = false;

	constructor(dependencies: MarketDependencies, market: BidChecksMarket, listener: BidChecksListener) {
		this.#dependencies = dependencies;
		this.#market = market;
		this.#listener = listener;
	}

	/**
	 * Simulates a bid for the next block in the target's current state `basis`, unless that is
	 * already under way.
	 */
	check(bid: Bid, basis: string): void {
		const { bids, simulation } = this.#market;
		const { background, tip } = this.#dependencies;
		const target = simulation.target(bid.target);
		if (this.#stopped || target === null || bid.runningCheck?.basis === basis) return;
		const block = tip.next()?.number ?? 0;
		const { backrun, client } = bid;
		const check = { basis, stop: new AbortController() };
		bid.runningCheck?.stop.abort();
		bid.runningCheck = check;
		background.run("bids", async () => {
			const one = { backrun, client, signal: check.stop.signal };
			const verdict = await simulation.bid(target, one, block).catch(unavailable);
			// A newer check, in a later state, has started.
			if (bid.runningCheck !== check) return;
			bid.runningCheck = null;
			if (!bids.holds(bid)) return;
			const now = simulation.target(bid.target);
			// Ignore the result if the target's state has changed meanwhile.
			if (now !== null && simulation.basis(now) === basis) this.#judge(bid, basis, verdict);
		});
	}

	/** Starts no further check. */
	stop(): void {
		this.#stopped = true;
		for (const timer of this.#retries.values()) timer.cancel();
	}

	#judge(bid: Bid, basis: string, verdict: BidVerdict): void {
		const isValid = verdict.kind === "valid";
		const failed = verdict.kind === "targetFails" ? "targetFailed" : "noResult";
		bid.lastCheck = { basis, result: isValid ? "passed" : failed };
		if (isValid) Object.assign(bid, { value: verdict.value, refundIsToNew: verdict.refundIsToNew });
		const againMs = retryMs(verdict);
		if (againMs !== null) this.#retry(bid.target, againMs);
		this.#listener.onVerdict(bid, verdict);
	}

	#retry(target: string, afterMs: number): void {
		if (this.#retries.has(target) || this.#stopped) return;
		const timer = this.#dependencies.clock.after(afterMs, () => {
			this.#retries.delete(target);
			for (const bid of this.#market.bids.of(target))
				if (bid.lastCheck?.result !== "passed") bid.lastCheck = null;
			this.#listener.onRetry(target);
		});
		this.#retries.set(target, timer);
	}
}

function unavailable(thrown: unknown): BidVerdict {
	if (thrown instanceof UpstreamError) return { kind: "unavailable" };
	throw thrown;
}
