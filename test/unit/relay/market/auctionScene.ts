// The market's own parts with real pool, ledger, book and records, around simulations, accounts and builders held by
// hand. What comes in are targets, bids, bundles and blocks; what goes out can be looked at. Time stands still.

import { AuctionBook, type AuctionBookOptions, BOOK_LIMITS } from "../../../../relay/auction/book.ts";
import { BundleRecords } from "../../../../relay/auction/bundleRecords.ts";
import { LandedBids } from "../../../../relay/auction/landedBids.ts";
import { UuidSlots } from "../../../../relay/auction/slots.ts";
import type { BundleOutcome } from "../../../../relay/domain/bundle.ts";
import type { BundleBlockStatus } from "../../../../relay/domain/bundleStatus.ts";
import type { Block, ChainUpdate } from "../../../../relay/domain/chain.ts";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { isLive, isMined } from "../../../../relay/domain/lifecycle.ts";
import { fold, newRecord } from "../../../../relay/domain/record.ts";
import type { PrivateTransaction } from "../../../../relay/domain/transaction.ts";
import { ChainTip } from "../../../../relay/inclusion/chainTip.ts";
import { Auctioneer } from "../../../../relay/market/auctioneer.ts";
import { Awards } from "../../../../relay/market/awards.ts";
import { BidChecks } from "../../../../relay/market/bidChecks.ts";
import { Bidding } from "../../../../relay/market/bidding.ts";
import { BidSimulation } from "../../../../relay/market/bidSimulation.ts";
import { PlainBundles } from "../../../../relay/market/plainBundles.ts";
import { POOL_LIMITS, Pool, type PoolEntry } from "../../../../relay/pool/pool.ts";
import { Ledger } from "../../../../relay/status/ledger.ts";
import { Background } from "../../../../shared/background.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import {
	privateTransaction,
	rawTransaction,
	signedTransaction,
	testAccount,
} from "../../../support/txFactory.ts";
import {
	HandAccounts,
	HandBundleSender,
	HandChain,
	HandSimulations,
	nextOf,
	type Pays,
} from "./auctionHands.ts";

export interface SceneOptions {
	readonly book?: Partial<AuctionBookOptions>;
	readonly enabled?: boolean;
	readonly refunding?: readonly string[];
	readonly maxTxGas?: bigint;
}

export interface BidOptions {
	/** 1 for the signer, unless said the bid's own. */
	readonly by?: number;
	readonly nonce?: number;
	readonly owner?: string;
	readonly uuid?: string;
	readonly first?: number;
	readonly last?: number;
	readonly builders?: readonly string[];
}

/** All of it, at head 100. */
export class AuctionScene {
	readonly clock = new ManualClock();
	readonly simulations = new HandSimulations();
	readonly accounts = new HandAccounts();
	readonly builders = new HandBundleSender();
	readonly chain = new HandChain();
	readonly tip = new ChainTip();
	readonly pool = new Pool(POOL_LIMITS);
	/** Faults of ours that were logged. */
	readonly faults: string[] = [];
	/** What subscribers of bundles were told: `label block STAGE reason`. */
	readonly told: string[] = [];
	readonly outcomes: string[] = [];
	readonly ledger: Ledger;
	readonly background: Background;
	readonly book: AuctionBook;
	readonly bundles: BundleRecords;
	readonly slots = new UuidSlots();
	readonly simulation: BidSimulation;
	readonly awards: Awards;
	readonly auctioneer: Auctioneer;
	readonly bidding: Bidding;
	readonly plain: PlainBundles;
	/** Names of transactions and bundles, by hash. */
	readonly #labels = new Map<string, string>();
	readonly #signers = new Map<string, number>();

	constructor(options: SceneOptions = {}) {
		const { clock, accounts, tip, pool, simulations, slots } = this;
		const error: Logger["error"] = (message, fields) =>
			this.faults.push(`${message} ${JSON.stringify(fields)}`);
		const log: Logger = { ...silentLogger, error };
		this.ledger = new Ledger({ log });
		this.background = new Background({}, { log });
		this.book = new AuctionBook({ ...BOOK_LIMITS, ...options.book });
		this.bundles = new BundleRecords({
			clock,
			publisher: { publish: (_topic, make) => void make() },
			view: ({ hash }, { block, stage, reason }) => {
				this.told.push(
					[this.#labels.get(hash) ?? "?", block, stage, ...(reason === null ? [] : [reason])].join(" "),
				);
			},
		});
		const { ledger, background, book, bundles, builders } = this;
		const names = (hash: string) => this.#labels.get(hash) ?? "?";
		simulations.names = names;
		builders.labelOf = names;
		this.simulation = new BidSimulation(
			{ slotSeconds: 12, feeRecipientOf: () => `0xfee${this.head.number + 1}` },
			{ pool, records: ledger, accounts, tip, simulations },
		);
		const { simulation } = this;
		const refunding = options.refunding ?? ["a", "b"];
		builders.refunding = refunding;
		this.awards = new Awards({ refunding }, { pool, tip, book, simulation });
		const { awards } = this;
		const landed = new LandedBids({ bundles });
		const checks = new BidChecks({ tip, book, simulation, background, clock });
		this.auctioneer = new Auctioneer(
			{ refundPercent: 90 },
			{
				...{ pool, records: ledger, events: ledger, tip, book, bundles, awards, checks, landed, clock },
				sender: builders,
			},
		);
		const { auctioneer } = this;
		const rules = { chainId: 31_337n, maxTxGas: options.maxTxGas ?? null };
		const onOutcome = (outcome: string) => void this.outcomes.push(outcome);
		this.bidding = new Bidding(
			{ ...rules, enabled: options.enabled ?? true, refunding },
			{ tip, book, bundles, slots, simulation, auctioneer, onOutcome },
		);
		this.plain = new PlainBundles(
			{ ...rules, refunding },
			{ accounts, tip, bundles, slots, sender: builders, onOutcome },
		);
		ledger.subscribe((record, before) => {
			if (isLive(before) && !isLive(record.stage) && !isMined(record.stage)) auctioneer.gone(record.hash);
		});
		tip.set(this.head, nextOf(this.head));
	}

	get head(): Block {
		return this.chain.head;
	}

	get next(): number {
		return this.head.number + 1;
	}

	/** The signer that belongs to a label: the same for the same one. */
	signer(label: string): number {
		const known = this.#signers.get(label) ?? 100 + this.#signers.size;
		this.#signers.set(label, known);
		return known;
	}

	label(hash: string, label: string): void {
		this.#labels.set(hash, label);
	}

	/** A transaction that is shared and out for the next block, unless said otherwise. */
	target(
		label: string,
		options: Parameters<typeof privateTransaction>[0] & { shared?: boolean; out?: boolean } = {},
	): PrivateTransaction {
		const transaction = privateTransaction({ by: testAccount(this.signer(label)), ...options });
		const { hash, from } = transaction.tx;
		this.label(hash, label);
		const account = { address: from, block: this.head.number, nonce: 0n, balance: 10n ** 21n };
		const added = this.pool.add(transaction, { ...account, code: "none" });
		if (added.outcome === "refused") throw new Error(added.rejection.message);
		added.entry.durable = true;
		const record = newRecord(transaction);
		fold(record, { type: "received", at: 1, block: this.head.number });
		this.ledger.open({ transaction, record });
		if (options.shared !== false) this.emit(transaction, { type: "shared", at: 1 });
		if (options.out !== false) this.sendTarget(transaction);
		return transaction;
	}

	entry({ tx }: PrivateTransaction): PoolEntry {
		const entry = this.pool.get(tx.hash);
		if (entry === undefined) throw new Error("not in the pool");
		return entry;
	}

	/** The target is out for the next block; the auctioneer is not told. */
	sendTarget(transaction: PrivateTransaction): void {
		const entry = this.entry(transaction);
		entry.outFor = this.next;
		entry.outTo = new Set(this.builders.all);
		this.emit(transaction, { type: "broadcast", at: 1, block: this.next });
	}

	emit({ tx }: PrivateTransaction, event: TxEvent): void {
		this.ledger.emit(tx.hash, event);
	}

	/** The sender's chain was looked at, and what is ready is out for the next block. */
	async look(...transactions: readonly PrivateTransaction[]): Promise<void> {
		for (const transaction of transactions)
			if (this.entry(transaction).outFor !== this.next) this.sendTarget(transaction);
		for (const { tx } of transactions) this.auctioneer.looked(this.pool.chain(tx.from));
		await this.turn();
	}

	/** A bid that pays as said when it is simulated; named `label`, also as a bundle. */
	bid(
		label: string,
		target: PrivateTransaction,
		pays: Pays | null,
		options: BidOptions = {},
	): Promise<BundleOutcome> {
		const by = testAccount(options.by ?? this.signer(label));
		const tx = { by, nonce: options.nonce ?? 0 };
		const { hash } = signedTransaction(tx);
		this.label(hash, label);
		if (pays !== null) this.simulations.pays.set(label, pays);
		const outcome = this.bidding.bid({
			owner: options.owner ?? "me",
			network: options.owner ?? "me",
			blocks: {
				first: options.first === undefined ? null : BigInt(options.first),
				last: options.last === undefined ? null : BigInt(options.last),
			},
			uuid: options.uuid ?? null,
			builders: options.builders ?? null,
			target: target.tx.hash,
			backrun: rawTransaction(tx),
		});
		return outcome.then((one) => {
			if (one.outcome === "accepted") this.label(one.hash, label);
			return one;
		});
	}

	/** Bids, and fails where it is refused; answers the bundle's hash. */
	async accepted(
		label: string,
		target: PrivateTransaction,
		pays: Pays | null,
		options: BidOptions = {},
	): Promise<string> {
		const outcome = await this.bid(label, target, pays, options);
		if (outcome.outcome !== "accepted") throw new Error(`${label}: ${outcome.message}`);
		return outcome.hash;
	}

	/** The next block with these of ours in it, worked off; targets that were mined leave the pool. */
	async block(mined: readonly { tx: { hash: string; from: string } }[] = [], fork = ""): Promise<Block> {
		const block = this.chain.make(mined, fork);
		await this.came({ applied: [block], reverted: [] });
		return block;
	}

	async came(change: Pick<ChainUpdate, "applied" | "reverted">, gap = false): Promise<void> {
		const { applied, reverted } = change;
		for (const { transactions } of applied) {
			for (const { hash } of transactions) {
				const entry = this.pool.get(hash);
				if (entry === undefined) continue;
				this.pool.remove(entry);
				const place = { block: this.head.number, blockHash: this.head.hash, index: 0, reverted: false };
				this.emit(entry.transaction, { type: "included", at: 2, ...place });
			}
		}
		this.tip.set(this.head, nextOf(this.head));
		const update = { head: this.head, applied, reverted, gap };
		this.auctioneer.blocksCame(update);
		this.plain.blocksCame(update);
		await this.turn();
	}

	/** What is known of a bundle in a block: `STAGE reason`. */
	status(hash: string, block: number, owner = "me"): string | undefined {
		const status = this.detail(hash, block, owner);
		return status && [status.stage, ...(status.reason === null ? [] : [status.reason])].join(" ");
	}

	detail(hash: string, block: number, owner = "me"): BundleBlockStatus | undefined {
		return this.bundles.status({ owner, hash }, block);
	}

	/** The events of one type of a target. */
	events<T extends TxEvent["type"]>({ tx }: PrivateTransaction, type: T) {
		const events = this.ledger.get(tx.hash)?.record.events ?? [];
		return events.filter((event): event is Extract<typeof event, { type: T }> => event.type === type);
	}

	/** Whatever can go on without the node does. */
	turn(): Promise<void> {
		return this.clock.advance(0);
	}
}
