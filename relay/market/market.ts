// The searchers' side, put together: the parts of the relay that it stands on come in, what takes bundles and what must
// be told of chains, blocks and ends goes out. No rule of the market's is here.

import type { Background } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Logger } from "../../shared/log.ts";
import { AuctionBook, BOOK_LIMITS } from "../auction/book.ts";
import { BundleRecords, type BundleView } from "../auction/bundleRecords.ts";
import { createFeed } from "../auction/feed.ts";
import { LandedBids } from "../auction/landedBids.ts";
import { UuidSlots } from "../auction/slots.ts";
import type { Searchers } from "../chainActions.ts";
import type { BundleRefusal } from "../domain/bundle.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import { isLive, isMined } from "../domain/lifecycle.ts";
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
import type { RefundTerms } from "../domain/refund.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import type { ChainRules } from "../domain/transactionRules.ts";
import type { Pool } from "../pool/pool.ts";
import type { Ledger } from "../status/ledger.ts";
import { Auctioneer } from "./auctioneer.ts";
import { Awards } from "./awards.ts";
import { BidChecks } from "./bidChecks.ts";
import { Bidding } from "./bidding.ts";
import { BidSimulation } from "./bidSimulation.ts";
import { PlainBundles } from "./plainBundles.ts";
import { Settlement } from "./settlement.ts";

export interface MarketOptions extends ChainRules {
	readonly slotSeconds: number;
	readonly refundPercent: number;
	/** Whether bids can be simulated. */
	readonly bidding: boolean;
	/** The coinbase of a simulated block. */
	readonly feeRecipientOf: () => string;
}

export interface MarketDependencies {
	readonly pool: Pool;
	readonly ledger: Ledger;
	readonly accounts: Accounts;
	readonly tip: Tip;
	readonly simulations: Simulations;
	readonly sender: BundleSender & { terms(builder: string, percent: number): RefundTerms | null };
	readonly payments: PaymentReader;
	readonly publisher: Publisher;
	/** How subscribers see a bundle. */
	readonly view: BundleView;
	readonly onBundle: (kind: "bid" | "plain", outcome: "accepted" | "failed" | BundleRefusal) => void;
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
	/** Begins nothing more; what runs is joined by its background. */
	readonly stop: () => void;
}

/** Makes it; it listens to the ledger from now on. */
export function createMarket(options: MarketOptions, dependencies: MarketDependencies): MarketParts {
	const { ledger, pool, tip, sender, background, clock, publisher, onBundle } = dependencies;
	const refunding = sender.names().filter((name) => sender.terms(name, options.refundPercent) !== null);
	const book = new AuctionBook(BOOK_LIMITS);
	const slots = new UuidSlots();
	const bundles = new BundleRecords(dependencies);
	const simulation = new BidSimulation(options, { ...dependencies, records: ledger });
	const landed = new LandedBids({ bundles });
	const checks = new BidChecks({ tip, book, simulation, background, clock });
	const awards = new Awards({ refunding }, { pool, tip, book, simulation });
	const auctioneer = new Auctioneer(
		{ refundPercent: options.refundPercent },
		{ pool, records: ledger, events: ledger, tip, book, bundles, awards, checks, landed, sender, clock },
	);
	const bidding = new Bidding(
		{
			...options,
			enabled: options.bidding,
			refunding,
		},
		{ tip, book, bundles, slots, simulation, auctioneer, onOutcome: (outcome) => onBundle("bid", outcome) },
	);
	const plain = new PlainBundles(
		{ ...options, refunding },
		{
			...dependencies,
			bundles,
			slots,
			onOutcome: (outcome) => onBundle("plain", outcome),
		},
	);
	const settlement = new Settlement({
		...dependencies,
		events: ledger,
		termsOf: (builder) => sender.terms(builder, options.refundPercent),
	});
	const share = createFeed({
		publisher,
		events: ledger,
		isNew: (hash) => ledger.get(hash)?.record.shared === false,
		clock,
	});
	ledger.subscribe((record, before) => {
		const ended = isLive(before) && !isLive(record.stage) && !isMined(record.stage);
		if (ended) auctioneer.gone(record.hash);
	});
	return {
		market: {
			bid: (request) => bidding.bid(request),
			submit: (request) => plain.submit(request),
			cancel: (owner, uuid) => slots.cancel(owner, uuid),
		},
		bundles,
		shared: simulation,
		searchers: {
			share: (entry) => share(entry.transaction),
			looked: (chain) => auctioneer.looked(chain),
		},
		share,
		blocksCame(update) {
			auctioneer.blocksCame(update);
			plain.blocksCame(update);
			settlement.run();
		},
		open: options.bidding && refunding.length > 0,
		size: () => book.size,
		stop: () => checks.stop(),
	};
}
