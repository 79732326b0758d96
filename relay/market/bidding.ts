// PER BID: a searcher's backrun and its target's hash come in, the bundle's hash or a refusal goes out, once it was
// simulated. Decode, judge, simulate behind the target, and hand it to the auctioneer.

import { type DecodedTransaction, decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { nodeUnavailable } from "../admission/admission.ts";
import { blockRange, comingOf, type Range } from "../auction/blockRange.ts";
import type { AuctionBook, Bid } from "../auction/book.ts";
import { bundleHash } from "../auction/bundleHash.ts";
import type { BundleRecords } from "../auction/bundleRecords.ts";
import type { Ticket } from "../auction/slots.ts";
import { type BidRequest, type BundleOutcome, refusedBundle } from "../domain/bundle.ts";
import type { Tip } from "../domain/ports.ts";
import { EXECUTION_FAILURES } from "../domain/simulation.ts";
import { type ChainRules, firstRefusal, STATIC_RULES } from "../domain/transactionRules.ts";
import type { Auctioneer } from "./auctioneer.ts";
import type { BidSimulation, BidTarget, BidVerdict } from "./bidSimulation.ts";
import { type BundleEntranceDependencies, enterBundle } from "./bundleEntrance.ts";

export interface BiddingOptions extends ChainRules {
	/** Whether the node can simulate one transaction behind another. */
	readonly enabled: boolean;
	/** Names of the builders that pay refunds: bids go to no others. */
	readonly refunding: readonly string[];
}

export interface BiddingDependencies extends BundleEntranceDependencies {
	readonly tip: Tip;
	readonly book: AuctionBook;
	readonly bundles: BundleRecords;
	readonly simulation: BidSimulation;
	readonly auctioneer: Auctioneer;
}

/** How often a bid is simulated again because the state behind its target changed meanwhile. */
const MAX_TRIES = 3;

/** Why all targets that can't be bid on can't be bid on: whether they are unknown or hidden must not show. */
const TARGET_NOT_FOUND = refusedBundle("TARGET_NOT_FOUND", "target transaction not found");
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
	bid(request: BidRequest): Promise<BundleOutcome> {
		return enterBundle(request, this.#deps, (one, ticket) => this.#consider(one, ticket));
	}

	async #consider(request: BidRequest, ticket: Ticket): Promise<BundleOutcome> {
		const { tip, simulation } = this.#deps;
		const { enabled, refunding } = this.#options;
		if (!enabled || refunding.length === 0) {
			const what = enabled ? "these builders: none pays refunds" : "this node";
			return refusedBundle("NO_BIDDING", `bidding is not available with ${what}`);
		}
		if (request.builders?.every((name) => !refunding.includes(name))) {
			return refusedBundle(
				"NO_BIDDING",
				"bidding is not available with the builders named: none pays refunds",
			);
		}
		const decoded = decodeTransaction(request.backrun);
		if (!decoded.ok) return refusedBundle("BAD_TRANSACTION", decoded.message);
		const { tx } = decoded;
		const head = tip.head();
		if (head === null) throw nodeUnavailable();
		const asked = blockRange(request.blocks, head.number);
		if (!asked.ok) return refusedBundle(asked.code, asked.message);
		for (let left = MAX_TRIES; left > 0; left--) {
			const next = tip.next();
			if (next === null) throw nodeUnavailable();
			const range = comingOf(request.blocks, asked, next.number);
			if (!range.ok) return refusedBundle(range.code, range.message);
			const target = simulation.target(request.target);
			if (target === null || tx.hash === request.target) return TARGET_NOT_FOUND;
			const refusal = firstRefusal(STATIC_RULES, tx, this.#options, next);
			if (refusal !== null) return refusedBundle("BAD_TRANSACTION", refusal.message);
			const full = this.#full(request, tx, range, ticket);
			if (full !== null) return full;
			const basis = simulation.basis(target);
			const verdict = await simulation.simulate(target, tx, range.first);
			// The chain went on, or its sender's links are others by now: what was found out is of no use.
			if (!this.#stands(target, request.target, basis)) continue;
			if (verdict.kind !== "valid") return refusalOf(verdict);
			return this.#accept(request, ticket, tx, range, verdict.value, basis);
		}
		throw nodeUnavailable();
	}

	#stands(target: BidTarget, hash: string, basis: string): boolean {
		const { simulation } = this.#deps;
		const now = simulation.target(hash);
		return now !== null && now.entry === target.entry && simulation.basis(now) === basis;
	}

	/** The refusal where there is no room for one more bid; else null. */
	#full(
		request: BidRequest,
		backrun: DecodedTransaction,
		range: Range,
		ticket: Ticket,
	): BundleOutcome | null {
		const { book } = this.#deps;
		const freed = this.#twins(request, backrun, range).length + (ticket.replaces() ? 1 : 0);
		const full = book.full(request, request.target, freed);
		return full === null ? null : refusedBundle("LIMIT", `limit exceeded: ${full}`);
	}

	/** Live bids that are the very same bundle, for some of the same blocks. */
	#twins({ owner, target }: BidRequest, backrun: DecodedTransaction, { first, last }: Range): readonly Bid[] {
		const bids = this.#deps.book.of(target);
		return bids.filter(
			(bid) =>
				bid.owner === owner &&
				bid.backrun.hash === backrun.hash &&
				bid.firstBlock <= last &&
				first <= bid.lastBlock,
		);
	}

	/** From here on nothing else can come between. */
	#accept(
		request: BidRequest,
		ticket: Ticket,
		backrun: DecodedTransaction,
		range: Range,
		value: bigint,
		basis: string,
	): BundleOutcome {
		const { book, bundles, auctioneer } = this.#deps;
		const { owner, network, target, builders } = request;
		// Others may have come while it was simulated.
		const full = this.#full(request, backrun, range, ticket);
		if (full !== null) return full;
		const twins = this.#twins(request, backrun, range);
		const last = twins.length > 0 ? null : book.lastIfFull(target, range.first);
		if (last !== null && last.firstBlock <= range.first && last.value >= value) {
			return refusedBundle("LIMIT", "limit exceeded: too many better bids on this transaction", true);
		}
		const hash = bundleHash([target, backrun.hash]);
		const firstBlock = Math.min(range.first, ...twins.map((twin) => twin.firstBlock));
		const lastBlock = Math.max(range.last, ...twins.map((twin) => twin.lastBlock));
		const overtaken = ticket.overtaken();
		if (overtaken !== null) {
			// One that is live has the same record.
			if (twins.length > 0) return { outcome: "accepted", hash };
			bundles.open({ owner, hash }, target, firstBlock, lastBlock);
			bundles.change({ owner, hash }, firstBlock, { stage: overtaken, bid: value });
			return { outcome: "accepted", hash };
		}
		const bid: Bid = {
			...{ owner, network, hash, target, backrun, firstBlock, lastBlock, builders, value, basis },
			seq: twins[0]?.seq ?? ++this.#seq,
			checking: null,
			tried: null,
			release: () => ticket.release(),
		};
		for (const twin of twins) auctioneer.supersede(twin, bid);
		ticket.take((how) => auctioneer.withdraw(bid, how));
		bundles.open(bid, target, firstBlock, lastBlock);
		auctioneer.add(bid);
		return { outcome: "accepted", hash };
	}
}

/** The refusal that a verdict comes to. Throws where there was none. */
function refusalOf(verdict: Exclude<BidVerdict, { kind: "valid" }>): BundleOutcome {
	switch (verdict.kind) {
		case "unavailable":
			throw nodeUnavailable();
		case "targetFails":
			return TARGET_FAILS;
		case "unpaid": {
			const message = `backrun pays nothing to the fee recipient ${verdict.feeRecipient}`;
			return refusedBundle("PAYS_NOTHING", message, true);
		}
		case "failed": {
			const { code, message } = verdict.error;
			if (!EXECUTION_FAILURES.has(code)) return refusedBundle("BACKRUN_INVALID", message, true);
			const why = message.replace(/^execution reverted(: )?/, "");
			return refusedBundle(
				"BACKRUN_REVERTED",
				why === "" ? "backrun reverted" : `backrun reverted: ${why}`,
				true,
			);
		}
	}
}
