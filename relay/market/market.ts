// The searchers' side, put together from its parts, and the way in that bids and plain bundles share.

import type { Background } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Logger } from "../../shared/log.ts";
import { nodeUnavailable } from "../admission/admission.ts";
import { BID_LIMITS, Bids } from "../auction/bids.ts";
import { BundleTable, type Submission, TABLE_LIMITS } from "../auction/bundleTable.ts";
import { bidderOf, type ConductFact } from "../auction/conduct.ts";
import { createFeed } from "../auction/feed.ts";
import type { Searchers } from "../chainActions.ts";
import type { BundleEnvelope, BundleOutcome, BundleRefusal } from "../domain/bundle.ts";
import type { BundleBlockStatus, BundleRecord, Standing } from "../domain/bundleStatus.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import type {
	Accounts,
	BundleReader,
	BundleSender,
	Market,
	PaymentReader,
	Publisher,
	SharedTransactions,
	Simulations,
	Tip,
} from "../domain/ports.ts";
import { isLive, isMined } from "../domain/record.ts";
import type { RefundTerms } from "../domain/refund.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import type { ChainRules } from "../domain/transactionRules.ts";
import type { Pool } from "../transactions/pool.ts";
import type { TransactionRecords } from "../transactions/records.ts";
import { Auctioneer } from "./auctioneer.ts";
import { BidderConduct, type FactStore } from "./bidderConduct.ts";
import { Bidding } from "./bidding.ts";
import { BidSimulation } from "./bidSimulation.ts";
import { PlainBundles } from "./plainBundles.ts";
import { PlainSimulation } from "./plainSimulation.ts";
import { reportRound } from "./roundReport.ts";
import { Settlement } from "./settlement.ts";

export interface MarketOptions {
	readonly rules: ChainRules;
	readonly slotSeconds: number;
	readonly refundPercent: number;
	/** Bids of one target that are with the builders at most. */
	readonly bidsPerTarget: number;
	/** Whether bids can be simulated. */
	readonly bidding: boolean;
	/** The coinbase of all blocks, where it is fixed. */
	readonly feeRecipient: string | undefined;
	/** The coinbase of a simulated block. */
	readonly feeRecipientOf: () => string;
}

export interface MarketDependencies {
	readonly pool: Pool;
	readonly records: TransactionRecords;
	readonly accounts: Accounts;
	readonly tip: Tip;
	readonly simulations: Simulations;
	readonly sender: BundleSender & { terms(builder: string, percent: number): RefundTerms | null };
	readonly payments: PaymentReader;
	readonly publisher: Publisher;
	/** Where facts about bidders are kept. */
	readonly facts: FactStore;
	/** How subscribers see a bundle. */
	readonly view: (record: BundleRecord, status: BundleBlockStatus, standing: Standing | null) => unknown;
	readonly onBundle: (kind: "bid" | "plain", outcome: "accepted" | "failed" | BundleRefusal) => void;
	/** Told of each fact about a bidder. */
	readonly onFact: (kind: ConductFact["kind"]) => void;
	/** Called where the node has a later head than the tracked one: a look at it is due. */
	readonly onLaterHead: () => void;
	readonly background: Background;
	readonly clock: Clock;
	readonly log: Logger;
}

/** The searchers' side. */
export interface MarketParts {
	readonly market: Market;
	readonly bundles: BundleReader;
	readonly shared: SharedTransactions;
	/** For the chain runner. */
	readonly searchers: Searchers;
	/** Shows a transaction to searchers at once. */
	readonly share: (transaction: PrivateTransaction) => void;
	/** To be told of each change of the chain, when it is worked off and the tip is its head. */
	readonly blocksCame: (update: ChainUpdate) => void;
	/** Whether bids are taken: the node can simulate them, and a builder pays refunds. */
	readonly open: boolean;
	/** Live bids. */
	readonly size: () => number;
	/** Owners, senders and contracts that are barred. */
	readonly barred: () => number;
	/** Reads what is remembered of bidders; before the first block. */
	readonly load: () => Promise<void>;
	/** Begins nothing more; what runs is joined by its background. */
	readonly stop: () => void;
}

/** Makes it; it listens to the records from now on. */
export function createMarket(options: MarketOptions, dependencies: MarketDependencies): MarketParts {
	const { records, tip, sender, clock, publisher, onBundle } = dependencies;
	const refunding = sender.names().filter((name) => sender.terms(name, options.refundPercent) !== null);
	const bids = new Bids(BID_LIMITS);
	const conduct = new BidderConduct({ ...dependencies, store: dependencies.facts });
	const standing = ({ bidder }: BundleRecord) => (bidder === null ? null : conduct.standing(bidder));
	const table = new BundleTable(TABLE_LIMITS, {
		clock,
		publisher,
		view: (record, status) => dependencies.view(record, status, standing(record)),
	});
	const simulation = new BidSimulation(options, { ...dependencies, records });
	const auctioneer = new Auctioneer(
		{ ...options, refunding },
		{ ...dependencies, records, events: records, bids, table, conduct, simulation },
	);
	const bidding = new Bidding(
		{ ...options, enabled: options.bidding, refunding },
		{ clock, tip, bids, table, conduct, simulation, auctioneer },
	);
	const plain = new PlainBundles(
		{ ...options, refunding },
		{ ...dependencies, table, simulation: new PlainSimulation(options, dependencies) },
	);
	const settlement = new Settlement({
		...dependencies,
		events: records,
		termsOf: (builder) => sender.terms(builder, options.refundPercent),
		onOutcome: (outcome) =>
			reportRound(outcome, {
				...{ table, auctioneer, conduct },
				bidderOf: (from, to) => bidderOf({ from, to }, null, options.feeRecipient),
			}),
	});
	const entrance = (kind: "bid" | "plain") => ({
		table,
		onOutcome: (outcome: "accepted" | "failed" | BundleRefusal) => onBundle(kind, outcome),
	});
	const share = createFeed({
		publisher,
		events: records,
		isNew: (hash) => records.get(hash)?.record.shared === false,
		clock,
	});
	records.subscribe((record, before) => {
		const ended = isLive(before) && !isLive(record.stage) && !isMined(record.stage);
		if (ended) auctioneer.gone(record.hash);
	});
	return {
		market: {
			bid: (request) =>
				enterBundle(request, entrance("bid"), (one, submission) => bidding.bid(one, submission)),
			submit: (request) =>
				enterBundle(request, entrance("plain"), (one, submission) => plain.submit(one, submission)),
			cancel: (owner, uuid) => table.cancel(owner, uuid),
		},
		bundles: { bundle: (owner, hash) => table.bundle(owner, hash), standing },
		shared: simulation,
		searchers: {
			share: (entry) => share(entry.transaction),
			chainPlanned: (chain) => auctioneer.chainPlanned(chain),
		},
		share,
		blocksCame(update) {
			conduct.blocksCame(update);
			auctioneer.blocksCame(update);
			plain.blocksCame(update);
			settlement.run();
		},
		open: options.bidding && refunding.length > 0,
		size: () => bids.size,
		barred: () => conduct.barred,
		load: () => conduct.load(),
		stop() {
			auctioneer.stop();
			plain.stop();
		},
	};
}

export interface BundleEntranceDependencies {
	readonly table: BundleTable;
	/** How a bundle ended: a refusal by its code. */
	readonly onOutcome: (outcome: "accepted" | "failed" | BundleRefusal) => void;
}

/**
 * What `consider` answers for the bundle; meanwhile it holds its place in the order of its uuid. Throws RpcError where
 * the node fails.
 */
export async function enterBundle<R extends BundleEnvelope>(
	request: R,
	{ table, onOutcome }: BundleEntranceDependencies,
	consider: (request: R, submission: Submission) => Promise<BundleOutcome>,
): Promise<BundleOutcome> {
	const submission = table.enter(request.owner, request.uuid);
	try {
		const outcome = await consider(request, submission);
		onOutcome(outcome.outcome === "refused" ? outcome.code : "accepted");
		return outcome;
	} catch (thrown) {
		onOutcome("failed");
		throw thrown instanceof UpstreamError ? nodeUnavailable() : thrown;
	} finally {
		if (submission.end === null) table.release(submission);
	}
}
