// PER BID: a searcher's backrun and its target's hash come in, the bundle's hash or a refusal goes out, once it was
// simulated. Decode, judge, simulate behind the target, and hand it to the auctioneer.

import { type DecodedTransaction, decodeTransaction } from "../shared/ethereum/transaction.ts";
import { UpstreamError } from "../shared/jsonrpc/client.ts";
import { nodeUnavailable } from "./admission/admission.ts";
import { type ChainRules, firstRefusal, STATIC_RULES } from "./admission/rules.ts";
import { blockRange, type Range } from "./auction/blockRange.ts";
import type { AuctionBook, Bid } from "./auction/book.ts";
import { bundleHash } from "./auction/bundleHash.ts";
import type { BundleRecords } from "./auction/bundleRecords.ts";
import type { Ticket, UuidSlots } from "./auction/slots.ts";
import type { Auctioneer } from "./auctioneer.ts";
import type { BidSimulation, BidTarget, BidVerdict } from "./bidSimulation.ts";
import type { BidRequest, BundleOutcome, BundleRefusal } from "./domain/bundle.ts";
import type { Tip } from "./domain/ports.ts";
import { EXECUTION_FAILURES } from "./domain/simulation.ts";

export interface BiddingOptions extends ChainRules {
	/** Whether the node can simulate one transaction behind another. */
	readonly enabled: boolean;
	/** Names of the builders that pay refunds: bids go to no others. */
	readonly refunding: readonly string[];
}

export interface BiddingDependencies {
	readonly tip: Tip;
	readonly book: AuctionBook;
	readonly bundles: BundleRecords;
	readonly slots: UuidSlots;
	readonly simulation: BidSimulation;
	readonly auctioneer: Auctioneer;
	/** How a bid ended. */
	readonly onOutcome: (outcome: "accepted" | "failed" | BundleRefusal) => void;
}

/** How often a bid is simulated again because the state behind its target changed meanwhile. */
const MAX_TRIES = 3;

/** Why all targets that can't be bid on can't be bid on: whether they are unknown or hidden must not show. */
const TARGET_NOT_FOUND = refused("TARGET_NOT_FOUND", "target transaction not found");
/** The same answer, for one whose target was simulated and failed. */
const TARGET_FAILS: BundleOutcome = { ...TARGET_NOT_FOUND, simulated: true };

/** Takes bids. */
export class Bidding {
	readonly #options: BiddingOptions;
	readonly #deps: BiddingDependencies;
	#seq = 0;

	constructor(options: BiddingOptions, dependencies: BiddingDependencies) {
		this.#options = options;
		this.#deps = dependencies;
	}

	/** Resolves once it was simulated behind its target. Throws RpcError where the node fails: nothing is kept then. */
	async bid(request: BidRequest): Promise<BundleOutcome> {
		const { slots, onOutcome } = this.#deps;
		const ticket = slots.enter(request.owner, request.uuid);
		try {
			const outcome = await this.#consider(request, ticket);
			onOutcome(outcome.outcome === "refused" ? outcome.code : "accepted");
			return outcome;
		} catch (thrown) {
			onOutcome("failed");
			throw thrown instanceof UpstreamError ? nodeUnavailable() : thrown;
		} finally {
			ticket.leave();
		}
	}

	async #consider(request: BidRequest, ticket: Ticket): Promise<BundleOutcome> {
		const { tip, book, simulation } = this.#deps;
		const { enabled, refunding } = this.#options;
		if (!enabled || refunding.length === 0) {
			const what = enabled ? "these builders: none pays refunds" : "this node";
			return refused("NO_BIDDING", `bidding is not available with ${what}`);
		}
		if (request.builders?.every((name) => !refunding.includes(name))) {
			return refused("NO_BIDDING", "bidding is not available with the builders named: none pays refunds");
		}
		const decoded = decodeTransaction(request.backrun);
		if (!decoded.ok) return refused("BAD_TRANSACTION", decoded.message);
		const { tx } = decoded;
		for (let left = MAX_TRIES; left > 0; left--) {
			const next = tip.next();
			if (next === null) throw nodeUnavailable();
			const range = blockRange(request.blocks, next.number - 1);
			if (!range.ok) return refused(range.code, range.message);
			const target = simulation.target(request.target);
			if (target === null || tx.hash === request.target) return TARGET_NOT_FOUND;
			const refusal = firstRefusal(STATIC_RULES, tx, this.#options, next);
			if (refusal !== null) return refused("BAD_TRANSACTION", refusal.message);
			const full = book.full(request.owner, tx.size);
			if (full !== null) return refused("LIMIT", `limit exceeded: ${full}`);
			const basis = simulation.basis(target);
			const verdict = await simulation.simulate(target, tx, range.first);
			// The chain went on, or its sender's links are others by now: what was found out is of no use.
			if (!this.#stands(target, request.target, basis)) continue;
			const fault = faultOf(verdict);
			if (fault !== null || verdict.kind !== "valid") return fault ?? TARGET_NOT_FOUND;
			return this.#accept(request, ticket, tx, range, verdict.value, basis);
		}
		throw nodeUnavailable();
	}

	#stands(target: BidTarget, hash: string, basis: string): boolean {
		const { simulation } = this.#deps;
		const now = simulation.target(hash);
		return now !== null && now.entry === target.entry && simulation.basis(now) === basis;
	}

	#accept(
		{ owner, target, builders }: BidRequest,
		ticket: Ticket,
		backrun: DecodedTransaction,
		{ first: firstBlock, last: lastBlock }: Range,
		value: bigint,
		basis: string,
	): BundleOutcome {
		const { book, bundles, auctioneer } = this.#deps;
		const cheapest = book.cheapestIfFull(target);
		if (cheapest !== null && cheapest.value >= value) {
			return refused("LIMIT", "limit exceeded: too many better bids on this transaction", true);
		}
		const hash = bundleHash([target, backrun.hash]);
		const bid: Bid = {
			...{ owner, hash, target, backrun, firstBlock, lastBlock, builders, value, basis },
			seq: ++this.#seq,
			checking: null,
			release: () => ticket.release(),
		};
		const overtaken = ticket.take((how) => auctioneer.withdraw(bid, how));
		bundles.open(bid, target, firstBlock, lastBlock);
		if (overtaken === null) {
			const isTwin = (one: Bid) => one.owner === owner && one.hash === hash && one.firstBlock === firstBlock;
			for (const twin of book.of(target).filter(isTwin)) auctioneer.supersede(twin);
			auctioneer.add(bid);
		} else {
			bundles.change(bid, firstBlock, { stage: overtaken, bid: value });
		}
		return { outcome: "accepted", hash };
	}
}

function refused(
	code: BundleRefusal,
	message: string,
	simulated = false,
): Extract<BundleOutcome, { outcome: "refused" }> {
	return { outcome: "refused", code, message, simulated };
}

/** The refusal that a verdict comes to; null where the bid is good. Throws where there was no verdict. */
function faultOf(verdict: BidVerdict): BundleOutcome | null {
	switch (verdict.kind) {
		case "valid":
			return null;
		case "unavailable":
			throw nodeUnavailable();
		case "targetFails":
			return TARGET_FAILS;
		case "unpaid": {
			const message = `backrun pays nothing to the fee recipient ${verdict.feeRecipient}`;
			return refused("PAYS_NOTHING", message, true);
		}
		case "failed": {
			const { code, message } = verdict.error;
			if (!EXECUTION_FAILURES.has(code)) return refused("BACKRUN_INVALID", message, true);
			const why = message.replace(/^execution reverted(: )?/, "");
			return refused("BACKRUN_REVERTED", why === "" ? "backrun reverted" : `backrun reverted: ${why}`, true);
		}
	}
}
