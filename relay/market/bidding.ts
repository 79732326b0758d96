// Handles each incoming bid: decodes the backrun, checks the rules and limits, simulates it behind
// its target, and passes it to the auctioneer.

import { pause } from "../../shared/clock.ts";
import { type DecodedTransaction, decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { nodeUnavailable } from "../admission/admission.ts";
import type { Bid } from "../auction/bid.ts";
import type { Bids } from "../auction/bids.ts";
import type { BundleEntry, BundleTable, Withdrawal } from "../auction/bundleTable.ts";
import {
	type BidRequest,
	type BundleOutcome,
	blockRange,
	bundleHash,
	comingOf,
	firstAt,
	type Range,
	rejectedBundle,
} from "../domain/bundle.ts";
import type { Bidder } from "../domain/bundleStatus.ts";
import { EXECUTION_FAILURES } from "../domain/simulation.ts";
import { firstRejection, STATIC_RULES } from "../domain/transactionRules.ts";
import type { Auctioneer } from "./auctioneer.ts";
import { withReadyBlobs } from "./bundleBlobs.ts";
import type { BundleSimulation } from "./bundleSimulation.ts";
import { type BidVerdict, isTransient, LATER_HEAD_MS, revertMessage } from "./bundleSimulation.ts";
import type { MarketDependencies, MarketOptions } from "./dependencies.ts";

/**
 * Most simulations of one bid when the target's state or the sender's account changes meanwhile, or
 * the node does not support it.
 */
const MAX_TRIES = 3;

/**
 * The rejection for every target that can't be bid on: it must not reveal whether the target is
 * unknown or hidden.
 */
const TARGET_NOT_FOUND = rejectedBundle("TARGET_NOT_FOUND", "target transaction not found");
/** The same rejection after a simulation in which the target failed. */
const TARGET_FAILS: BundleOutcome = { ...TARGET_NOT_FOUND, simulated: true };

/** A bid that is not accepted yet. */
interface Considered {
	readonly request: BidRequest;
	readonly entry: BundleEntry;
	readonly bidder: Bidder;
	readonly backrun: DecodedTransaction;
	/** The requested blocks that are still to come. */
	readonly range: Range;
}

/** The market classes that it depends on. */
interface BiddingMarket {
	readonly bids: Bids;
	readonly table: BundleTable;
	readonly simulation: BundleSimulation;
	readonly auctioneer: Auctioneer;
	/** Names of the builders that pay refunds. */
	readonly refundingBuilders: readonly string[];
}

/** Accepts or rejects bids. */
export class Bidding {
	readonly #options: Pick<MarketOptions, "rules" | "bidding">;
	readonly #dependencies: Pick<MarketDependencies, "tip" | "clock" | "blobProofs" | "transactions">;
	readonly #market: BiddingMarket;
	#seq = 0;

	constructor(options: MarketOptions, dependencies: MarketDependencies, market: BiddingMarket) {
		this.#options = options;
		this.#dependencies = dependencies;
		this.#market = market;
	}

	/**
	 * Resolves once the bid was simulated. Throws RpcError if the node fails, and then keeps nothing.
	 */
	async bid(request: BidRequest, entry: BundleEntry): Promise<BundleOutcome> {
		const { tip, clock } = this.#dependencies;
		const { simulation } = this.#market;
		const { rules } = this.#options;
		const early = this.#unavailable(request);
		if (early !== null) return early;
		const raw = await withReadyBlobs(
			{ raw: request.backrun, i: 0, count: 1 },
			request.network,
			rules,
			this.#dependencies,
		);
		if ("outcome" in raw) return raw;
		const decoded = decodeTransaction(raw);
		if (!decoded.ok) return rejectedBundle("BAD_TRANSACTION", decoded.message);
		const { tx } = decoded;
		const bidder: Bidder = { owner: request.owner, client: request.network, sender: tx.from };
		const head = tip.head();
		if (head === null) throw nodeUnavailable();
		const asked = blockRange(request.blocks, head.number);
		if (!asked.ok) return rejectedBundle(asked.code, asked.message);
		for (let left = MAX_TRIES; left > 0; left--) {
			const next = tip.next();
			if (next === null) throw nodeUnavailable();
			const range = comingOf(request.blocks, asked, next.number);
			if (!range.ok) return rejectedBundle(range.code, range.message);
			const target = simulation.target(request.target);
			if (target === null || tx.hash === request.target) return TARGET_NOT_FOUND;
			const rejected = firstRejection(STATIC_RULES, tx, rules, next);
			if (rejected !== null) return rejectedBundle("BAD_TRANSACTION", rejected.message);
			const one: Considered = { request, entry, bidder, backrun: tx, range };
			const stopped = this.#rejection(one);
			if (stopped !== null) return stopped;
			const basis = simulation.basis(target);
			const run = { backrun: tx, client: request.network, signal: entry.stop.signal };
			const verdict = await simulation.bid(target, run, firstAt(range, request.times, next));
			const { withdrawn } = entry;
			// The simulation was aborted because its owner replaced or cancelled the bid.
			if (verdict.kind === "unavailable" && withdrawn !== null)
				return this.#withdrawnOutcome(one, withdrawn, null);
			// The head or the target's chain has changed meanwhile: the result is stale.
			const now = simulation.target(request.target);
			if (now?.entry !== target.entry || simulation.basis(now) !== basis) continue;
			if (verdict.kind === "valid") return this.#accept(one, verdict, basis);
			if (!isTransient(verdict) || left === 1) return rejectionOf(verdict);
			await pause(clock, LATER_HEAD_MS);
		}
		throw nodeUnavailable();
	}

	/** The rejection if bidding is not available here or at the named builders; else null. */
	#unavailable({ builders }: BidRequest): BundleOutcome | null {
		const { refundingBuilders } = this.#market;
		const missing = !this.#options.bidding()
			? "this node"
			: refundingBuilders.length === 0
				? "these builders: none pays refunds"
				: builders?.every((name) => !refundingBuilders.includes(name))
					? "the builders named: none pays refunds"
					: null;
		return missing && rejectedBundle("NO_BIDDING", `bidding is not available with ${missing}`);
	}

	/** The rejection if a limit of its client is reached; else null. */
	#rejection(one: Considered): BundleOutcome | null {
		const { bids, table } = this.#market;
		const { request, backrun, entry } = one;
		const freed = this.#sameBackrun(one).length + (table.replaces(entry) ? 1 : 0);
		const full = bids.full(request.network, request.target, backrun, freed);
		return full === null ? null : rejectedBundle("LIMIT", `limit exceeded: ${full}`);
	}

	/** The owner's live bids with the same target and backrun, whose blocks overlap. */
	#sameBackrun({ request: { owner, target }, backrun, range }: Considered): readonly Bid[] {
		return this.#market.bids
			.of(target)
			.filter(
				(bid) =>
					bid.owner === owner &&
					bid.backrun.hash === backrun.hash &&
					bid.firstBlock <= range.last &&
					range.first <= bid.lastBlock,
			);
	}

	/**
	 * Accepts a bid that is valid in the state `basis`. Synchronous, so that nothing changes in
	 * between.
	 */
	#accept(one: Considered, { value, refundIsToNew }: ValidBid, basis: string): BundleOutcome {
		const { table, auctioneer } = this.#market;
		const { request, entry, bidder, backrun, range } = one;
		const { owner, network, target, times, builders } = request;
		// Other bids may have been accepted during the simulation.
		const stopped = this.#rejection(one);
		if (stopped !== null) return stopped;
		const same = this.#sameBackrun(one);
		// A bid with other times is sent as a new one, so that builders learn the times.
		const renewed = same.find((bid) => JSON.stringify(bid.times) === JSON.stringify(times));
		if (entry.withdrawn !== null) return this.#withdrawnOutcome(one, entry.withdrawn, value);
		const hash = bundleHash([target, backrun.hash]);
		const firstBlock = Math.min(range.first, ...same.map((bid) => bid.firstBlock));
		const lastBlock = Math.max(range.last, ...same.map((bid) => bid.lastBlock));
		const { receivedAt } = entry;
		const feedMs = this.#feedMs(target, receivedAt);
		const about = { owner, client: network, hash, bidder, target, receivedAt, feedMs };
		const record = table.open({ ...about, firstBlock, lastBlock, isSimulated: true });
		const lastCheck = { basis, result: "passed" } as const;
		const found = { lastCheck, refundIsToNew, value, claimed: value };
		const terms = { entry, builders, firstBlock, lastBlock, ...found };
		const merged = same.filter((bid) => bid !== renewed);
		auctioneer.comesAgain({ owner, target, backrun }, merged);
		if (renewed !== undefined) {
			table.freeUuid(renewed.entry);
			table.take(entry, (how) => auctioneer.withdraw(renewed, how));
			Object.assign(renewed, terms);
			auctioneer.reconcile([renewed.target]);
			return { outcome: "accepted", hash };
		}
		this.#seq += 1;
		const bid: Bid = {
			record,
			bidder,
			owner,
			client: network,
			target,
			backrun,
			times,
			seq: this.#seq,
			...terms,
			runningCheck: null,
		};
		table.take(entry, (how) => auctioneer.withdraw(bid, how));
		auctioneer.add(bid);
		return { outcome: "accepted", hash };
	}

	/** From the last disclosure of the target to `at`; null if it is not known. */
	#feedMs(target: string, at: number): number | null {
		const events = this.#dependencies.transactions.records.get(target)?.record.events;
		const shared = events?.findLast(({ type }) => type === "shared");
		return shared === undefined ? null : Math.max(0, at - shared.at);
	}

	/**
	 * The outcome of a bid that was replaced or cancelled before it was accepted. A live identical
	 * bid keeps its status.
	 */
	#withdrawnOutcome(one: Considered, how: Withdrawal, bid: bigint | null): BundleOutcome {
		const { request, entry, bidder, backrun, range } = one;
		const { owner, network, target } = request;
		const hash = bundleHash([target, backrun.hash]);
		if (this.#sameBackrun(one).length > 0) return { outcome: "accepted", hash };
		const record = this.#market.table.open({
			owner,
			client: network,
			hash,
			bidder,
			target,
			receivedAt: entry.receivedAt,
			feedMs: this.#feedMs(target, entry.receivedAt),
			firstBlock: range.first,
			lastBlock: range.last,
			isSimulated: bid !== null,
		});
		this.#market.table.change(record, range.first, { stage: how, bid });
		return { outcome: "accepted", hash };
	}
}

type ValidBid = Extract<BidVerdict, { kind: "valid" }>;

/** The rejection that follows from a simulation's result. Throws if there was none. */
function rejectionOf(verdict: Exclude<BidVerdict, ValidBid>): BundleOutcome {
	switch (verdict.kind) {
		case "outdated":
		case "unavailable":
			throw nodeUnavailable();
		case "impossible":
			return rejectedBundle("NO_BIDDING", `bidding is not available with this target: ${verdict.why}`, true);
		case "targetFails":
			return TARGET_FAILS;
		case "unpaid": {
			const message = `backrun pays nothing to the fee recipient ${verdict.feeRecipient}`;
			return rejectedBundle("PAYS_NOTHING", message, true);
		}
		case "failed": {
			const { code, message } = verdict.error;
			if (!EXECUTION_FAILURES.has(code)) return rejectedBundle("BACKRUN_INVALID", message, true);
			return rejectedBundle("BACKRUN_REVERTED", revertMessage("backrun", message), true);
		}
	}
}
