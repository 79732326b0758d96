// Assembles the searchers' market from its modules, and is the common entry point of bids and plain
// bundles.

import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { nodeUnavailable } from "../admission/admission.ts";
import { Bids } from "../auction/bids.ts";
import { type BundleEntry, type BundleKind, BundleTable } from "../auction/bundleTable.ts";
import { partialPendingTransaction } from "../auction/feed.ts";
import {
	type BidRequest,
	type BundleEnvelope,
	type BundleOutcome,
	type PlainBundleRequest,
	type RejectedBundle,
	rejectedBundle,
} from "../domain/bundle.ts";
import {
	type Bidder,
	type BundleReader,
	type BundleRecord,
	bidderKey,
	isKeys,
	settledPart,
} from "../domain/bundleStatus.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import { PENDING_TRANSACTIONS } from "../domain/endpoints.ts";
import { isLive, isMined, type TransactionRecord } from "../domain/record.ts";
import { type DayFigures, settledFigures } from "../domain/searcherFigures.ts";
import type { SenderTransactions } from "../transactions/pool.ts";
import { Auctioneer } from "./auctioneer.ts";
import { Bidding } from "./bidding.ts";
import { BundleSimulation } from "./bundleSimulation.ts";
import type { MarketDependencies, MarketOptions } from "./dependencies.ts";
import { SearcherFigures } from "./figures.ts";
import { PaymentLedger } from "./ledger.ts";
import { PlainBundles } from "./plainBundles.ts";
import { Settlement } from "./settlement.ts";

/**
 * The searchers' side. Its modules are created in this order, and each depends on those before it.
 */
export class SearcherMarket {
	/** Names of the builders that pay refunds: bids go to no others. */
	readonly refundingBuilders: readonly string[];
	readonly bids: Bids;
	readonly ledger: PaymentLedger;
	readonly figures: SearcherFigures;
	readonly table: BundleTable;
	readonly simulation: BundleSimulation;
	readonly auctioneer: Auctioneer;
	readonly #bidding: Bidding;
	readonly #plain: PlainBundles;
	readonly #settlement: Settlement;
	readonly #dependencies: MarketDependencies;
	readonly #canSimulate: () => boolean;

	/** Subscribes to the records immediately. */
	constructor(options: MarketOptions, dependencies: MarketDependencies) {
		const { transactions, sender, clock, publisher, view } = dependencies;
		this.#dependencies = dependencies;
		this.refundingBuilders = sender
			.names()
			.filter((name) => sender.terms(name, options.refundPercent) !== null);
		this.#canSimulate = options.bidding;
		this.bids = new Bids(options.limits.bids);
		this.ledger = new PaymentLedger(dependencies);
		this.figures = new SearcherFigures(options.limits.figures, dependencies);
		this.table = new BundleTable(options.limits.table, {
			clock,
			publisher,
			view,
			count: (record, status, by) => this.figures.count(record, status, by),
		});
		this.simulation = new BundleSimulation(options, dependencies);
		const { refundingBuilders, bids, table, ledger, simulation } = this;
		const modules = { refundingBuilders, bids, table, ledger, simulation };
		const auctioneer = new Auctioneer(options, dependencies, modules);
		this.auctioneer = auctioneer;
		this.#bidding = new Bidding(options, dependencies, { ...modules, auctioneer });
		this.#plain = new PlainBundles(options, dependencies, modules);
		this.#settlement = new Settlement(options, dependencies, { ...modules, auctioneer });
		transactions.records.subscribe((record, before, event) => {
			// The record already shows the event: a bid may arrive immediately.
			if (event.type === "shared") this.#publish(record.hash);
			if (isLive(before) && !isLive(record.stage) && !isMined(record.stage))
				this.auctioneer.targetEnded(record.hash);
		});
	}

	/** Whether the refund in the record's block is known; see {@link Settlement.isSettled}. */
	isSettled(record: TransactionRecord): boolean {
		return this.#settlement.isSettled(record);
	}

	/** Whether bids are accepted now: the node can simulate them, and a builder pays refunds. */
	get isOpen(): boolean {
		return this.#canSimulate() && this.refundingBuilders.length > 0;
	}

	/** Resolves once the bid was simulated behind its target. Throws RpcError if the node fails. */
	bid(request: BidRequest): Promise<BundleOutcome> {
		return this.#enter("bid", request, (timed, entry) => this.#bidding.bid(timed, entry));
	}

	/** Submits a plain bundle. Throws RpcError if the node fails. */
	submit(request: PlainBundleRequest): Promise<BundleOutcome> {
		return this.#enter("plain", request, (timed, entry) => this.#plain.submit(timed, entry));
	}

	/** Cancels the owner's bundles with this uuid, if any. */
	cancel(owner: string, uuid: string): void {
		this.table.cancel(owner, uuid);
	}

	/** The reader's bundle with this hash, or null; other owners' bundles are not visible. */
	bundle({ owner, isLive }: Pick<BundleReader, "owner" | "isLive">, hash: string): BundleRecord | null {
		const record = this.table.bundle(owner, hash);
		return isLive || record === null ? record : settledPart(record, this.#head);
	}

	/**
	 * At most `limit` of its bundles, newest first. `before`: only those that arrived before the
	 * bundle with that hash. Null if that bundle is not known.
	 */
	bundles(
		{ owner, isLive }: BundleReader,
		limit: number,
		before: string | null,
	): readonly BundleRecord[] | null {
		const all = this.table.bundles(owner);
		const seen = isLive ? all : all.flatMap((record) => settledPart(record, this.#head) ?? []);
		const start = before === null ? 0 : seen.findIndex(({ hash }) => hash === before) + 1;
		return before !== null && start === 0 ? null : seen.slice(start, start + limit);
	}

	/** Figures of its bundles by day, newest first. */
	figuresOf({ owner, isLive }: BundleReader): readonly DayFigures[] {
		const days = this.figures.of(owner);
		return isLive ? days : settledFigures(days, this.table.bundles(owner), this.#head);
	}

	get #head(): number {
		return this.#dependencies.tip.head()?.number ?? -1;
	}

	/** Whether the bidder of a bundle has a record at a builder. */
	hasRecord(bidder: Bidder): boolean {
		return this.ledger.hasRecord(bidderKey(bidder));
	}

	/**
	 * Whether a bidder of the reader's has a record. The bidder is its key, or without a signature
	 * any that came from its client.
	 */
	hasOwnRecord({ owner, client }: BundleReader): boolean {
		return isKeys(owner) ? this.ledger.hasRecord(owner) : this.ledger.hasUnsignedRecord(client);
	}

	/**
	 * Loads what is stored; call before the first block. Throws StoreFormatError on a damaged entry.
	 */
	async load(): Promise<void> {
		await this.ledger.load();
		await this.figures.load();
	}

	/** Discloses a transaction to searchers. */
	#publish(hash: string): void {
		const { transactions, publisher } = this.#dependencies;
		const known = transactions.records.get(hash);
		if (known === undefined) return;
		publisher.publish(PENDING_TRANSACTIONS, () => partialPendingTransaction(known.transaction.tx));
	}

	/** The transactions that searchers see now, as they are published; for new subscribers. */
	*sharedNow(): Iterable<{ readonly hash: string; readonly text: string }> {
		const { pool } = this.#dependencies.transactions;
		for (const sender of pool.senders()) {
			const { ready, waiting } = pool.transactionsOf(sender);
			for (const { transaction } of [...ready, ...waiting]) {
				const { tx } = transaction;
				if (this.simulation.shared(tx.hash) === null) continue;
				yield {
					hash: tx.hash,
					// Made when it is read, since it may be long and known already.
					get text() {
						return JSON.stringify(partialPendingTransaction(tx));
					},
				};
			}
		}
	}

	/**
	 * Called when it is decided which of a sender's transactions are sent for the next block and
	 * which wait.
	 */
	senderPlanned(transactions: SenderTransactions): void {
		this.auctioneer.senderPlanned(transactions);
	}

	/** Must be called for each change of the chain after the tip was set. */
	onChainUpdate(update: ChainUpdate): void {
		this.ledger.onChainUpdate(update);
		this.auctioneer.onChainUpdate(update);
		this.#plain.onChainUpdate(update);
		this.#settlement.run();
		this.figures.write();
	}

	/**
	 * More is known of the next block. Bids must be simulated in it again, and its time may have
	 * changed, as after a missed slot. Must be called after the tip was refreshed.
	 */
	nextBlockChanged(): void {
		this.auctioneer.reconcile(this.bids.targets());
		this.#plain.nextBlockChanged();
	}

	/** Starts no further work; running work is awaited through `background`. */
	stop(): void {
		this.auctioneer.stop();
		this.#plain.stop();
		this.figures.write();
	}

	/**
	 * Registers the bundle under its uuid while `consider` decides on it, and reports the outcome.
	 */
	async #enter<Request extends BundleEnvelope>(
		kind: BundleKind,
		request: Request,
		consider: (request: Request, entry: BundleEntry) => Promise<BundleOutcome>,
	): Promise<BundleOutcome> {
		const entry = this.table.enter(kind, request.owner, request.uuid);
		try {
			const timed = this.#timed(request);
			const outcome = "outcome" in timed ? timed : await consider(timed, entry);
			this.#dependencies.onBundle(kind, outcome.outcome === "rejected" ? outcome.code : "accepted");
			return outcome;
		} catch (thrown) {
			this.#dependencies.onBundle(kind, "failed");
			throw thrown instanceof UpstreamError ? nodeUnavailable() : thrown;
		} finally {
			if (entry.end === null) this.table.freeUuid(entry);
		}
	}

	/** The request, limited to the builders that enforce a bundle's times; or its rejection. */
	#timed<Request extends BundleEnvelope>(request: Request): Request | RejectedBundle {
		const { times, builders } = request;
		const { tip, sender } = this.#dependencies;
		if (times === null) return request;
		if (times.until < (tip.head()?.timestamp ?? 0))
			return rejectedBundle("BLOCK_PAST", `bundle maxTimestamp ${times.until} is in the past`);
		const keeping = (builders ?? sender.names()).filter((name) => sender.keepsTimes(name));
		if (keeping.length > 0) return { ...request, builders: keeping };
		return rejectedBundle("NO_BIDDING", "no builder accepts minTimestamp and maxTimestamp");
	}
}
