// The market with real transactions, bids and table, around fake simulations, accounts and
// builders. Time stands still. With each block it compares owners' figures with all that the table
// has of their bundles.

import assert from "node:assert/strict";
import { BID_LIMITS, type BidsOptions } from "../../../../relay/auction/bids.ts";
import { statusIn, TABLE_LIMITS } from "../../../../relay/auction/bundleTable.ts";
import { PLAIN_LIMITS, type PlainLimits } from "../../../../relay/auction/plainBundle.ts";
import type {
	BidRequest,
	BundleOutcome,
	PlainBundleRequest,
	TimeRange,
} from "../../../../relay/domain/bundle.ts";
import type { BundleBlockStatus } from "../../../../relay/domain/bundleStatus.ts";
import { type Block, ChainTip, type ChainUpdate } from "../../../../relay/domain/chain.ts";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { count, noFigures } from "../../../../relay/domain/searcherFigures.ts";
import type { PrivateTransaction } from "../../../../relay/domain/transaction.ts";
import type { MarketDependencies } from "../../../../relay/market/dependencies.ts";
import { FIGURES_LIMITS } from "../../../../relay/market/figures.ts";
import { PaymentLedger } from "../../../../relay/market/ledger.ts";
import { SearcherMarket } from "../../../../relay/market/market.ts";
import type { PoolEntry } from "../../../../relay/transactions/pool.ts";
import { Transactions } from "../../../../relay/transactions/transactions.ts";
import { Background } from "../../../../shared/background.ts";
import { dayOf } from "../../../../shared/days.ts";
import { BlobProofs } from "../../../../shared/ethereum/blobProofs.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import { PRAGUE } from "../../../support/forks.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import {
	privateTransaction,
	rawTransaction,
	signedTransaction,
	type TestAccount,
	type TxOptions,
	testAccount,
} from "../../../support/txFactory.ts";
import { UNDAMAGED } from "../../../support/undamaged.ts";
import { FakeDisk } from "../fakeDisk.ts";
import {
	FakeAccounts,
	FakeBundleSender,
	FakeChain,
	FakeSimulations,
	nextOf,
	type Pays,
} from "./auctionFakes.ts";

export interface FixtureOptions {
	readonly bids?: Partial<BidsOptions>;
	/** Slots of a target at a builder; 2 unless said, which is the least. */
	readonly slots?: number;
	readonly enabled?: boolean;
	readonly plain?: PlainLimits;
	readonly refunding?: readonly string[];
}

export interface BidOptions {
	/** 1 for the signer, unless said the bid's own. */
	readonly by?: number;
	readonly nonce?: number;
	readonly owner?: string;
	/** The owner unless said. */
	readonly client?: string;
	/** The contract that it calls; unless said one for each signer. */
	readonly to?: string;
	readonly uuid?: string;
	readonly first?: number;
	readonly last?: number;
	readonly times?: TimeRange;
	readonly builders?: readonly string[];
}

export const SECRET: Buffer = Buffer.alloc(32, 7);

/** Turns of the event loop within which all work that waits for nothing has ended. */
const TURNS = 8;

/** All of it, and one target that may be bid on. */
export async function withTarget(options: FixtureOptions = {}) {
	const fixture = new AuctionFixture(options);
	return { fixture, target: await fixture.target("T") };
}

/** All of it, at head 100. */
export class AuctionFixture {
	readonly clock = new ManualClock();
	readonly simulations = new FakeSimulations();
	readonly accounts = new FakeAccounts();
	readonly builders = new FakeBundleSender();
	readonly chain = new FakeChain();
	readonly tip = new ChainTip();
	readonly disk = new FakeDisk();
	/**
	 * Wei that backruns pay by transfers in their blocks, by hash; the node can't trace the others.
	 */
	readonly transfers = new Map<string, bigint>();
	/** Logged errors. */
	readonly faults: string[] = [];
	/** The messages to subscribers of bundles: `label block STAGE reason`. */
	readonly published: string[] = [];
	readonly outcomes: string[] = [];
	/** How often a later head was reported. */
	laterHeads = 0;
	readonly transactions: Transactions;
	readonly market: SearcherMarket;
	readonly #dependencies: MarketDependencies;
	/** Names of transactions and bundles, by hash. */
	readonly #labels = new Map<string, string>();
	readonly #signers = new Map<string, number>();
	readonly #owners = new Set<string>();

	constructor(options: FixtureOptions = {}) {
		const { clock, accounts, tip, simulations, builders, disk } = this;
		const error: Logger["error"] = (message, fields) =>
			this.faults.push(`${message} ${JSON.stringify(fields)}`);
		const log: Logger = { ...silentLogger, error, child: () => log };
		const background = new Background({}, { log });
		const blobProofs = new BlobProofs({}, { clock });
		this.transactions = new Transactions(
			{ maxBytes: 256 * 1024 * 1024, txTtlBlocks: 25, slot: { ms: 12_000 }, canary: null },
			{
				...{ kv: disk, damaged: UNDAMAGED, tip, clock, blobProofs, background, log },
				// The builders have all targets; what they are sent of them alone is not looked at.
				broadcaster: {
					...{ eligible: () => builders.all, takeBack: () => builders.all },
					...{ cancel() {}, forget() {}, restore() {}, sentTo: () => builders.all, builtBy: () => [] },
				},
				onChange: () => {},
				onWritten: () => {},
			},
		);
		const names = (hash: string) => this.#labels.get(hash) ?? "?";
		simulations.names = names;
		builders.labelOf = names;
		builders.refunding = options.refunding ?? ["a", "b"];
		this.#dependencies = {
			...{ transactions: this.transactions, accounts, tip, simulations, clock, log },
			...{ sender: builders, background, kv: disk, damaged: UNDAMAGED, blobProofs },
			payments: {
				block: async (hash) => this.chain.paid(hash),
				brought: async (hash) => ({ fees: 0n, transfers: this.transfers.get(hash) ?? null }),
				isEmpty: async () => false,
				canonicalHash: async (number) => this.chain.hashAt(number),
			},
			forkAt: () => PRAGUE,
			slot: { ms: 12_000 },
			publisher: { publish: (_topic, make) => void make() },
			view: ({ hash }, { block, stage, reason }) => {
				this.published.push([names(hash), block, stage, ...(reason === null ? [] : [reason])].join(" "));
			},
			onBundle: (_, outcome) => void this.outcomes.push(outcome),
			onLanded: () => {},
			onLaterHead: () => void this.laterHeads++,
		};
		this.market = new SearcherMarket(
			{
				rules: { chainId: 31_337n },
				...{ refundPercent: 90, bidsPerTarget: options.slots ?? 2 },
				...{ bidding: () => options.enabled ?? true, feeRecipient: undefined },
				secret: SECRET,
				feeRecipientOf: () => `0xfee${this.head.number + 1}`,
				limits: {
					...{ bids: { ...BID_LIMITS, ...options.bids }, table: TABLE_LIMITS },
					plain: options.plain ?? PLAIN_LIMITS,
					figures: FIGURES_LIMITS,
				},
			},
			this.#dependencies,
		);
		tip.set(this.head, nextOf(this.head));
	}

	get bids() {
		return this.market.bids;
	}

	get table() {
		return this.market.table;
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

	/** A transaction that is shared and sent for the next block, unless said otherwise. */
	async target(
		label: string,
		options: Parameters<typeof privateTransaction>[0] & { shared?: boolean; out?: boolean } = {},
	): Promise<PrivateTransaction> {
		const transaction = privateTransaction({ by: testAccount(this.signer(label)), ...options });
		const { hash, from } = transaction.tx;
		this.label(hash, label);
		const account = { address: from, block: this.head.number, nonce: 0n, balance: 10n ** 21n };
		const isNew = { isResubmitted: false, unseen: [] };
		const added = await this.transactions.changes.add(transaction, { ...account, code: "none" }, isNew);
		if (added.outcome === "rejected") throw new Error(added.rejection.message);
		if (options.shared !== false) this.transactions.shared(transaction);
		if (options.out !== false) this.sendTarget(transaction);
		return transaction;
	}

	entry({ tx }: PrivateTransaction): PoolEntry {
		const entry = this.transactions.pool.get(tx.hash);
		if (entry === undefined) throw new Error("not in the pool");
		return entry;
	}

	/** Marks the target as sent for the next block, without notifying the auctioneer. */
	sendTarget(transaction: PrivateTransaction): void {
		const how = { block: this.next, builders: this.builders.all, behindHidden: false, unsimulated: null };
		this.transactions.goesOut(this.entry(transaction), how);
	}

	/** The sender's chain was checked, and what is ready is sent for the next block. */
	async look(...transactions: readonly PrivateTransaction[]): Promise<void> {
		const { pool } = this.transactions;
		for (const transaction of transactions) this.sendTarget(transaction);
		for (const { tx } of transactions) this.market.senderPlanned(pool.transactionsOf(tx.from));
		await this.turn();
	}

	/** Sends a bid with this simulation result; transaction and bundle are named `label`. */
	bid(
		label: string,
		target: PrivateTransaction,
		pays: Pays | null,
		options: BidOptions = {},
	): Promise<BundleOutcome> {
		const by = testAccount(options.by ?? this.signer(label));
		const to = options.to ?? `0x${by.address.slice(2).split("").reverse().join("")}`;
		const tx = { by, nonce: options.nonce ?? 0, to };
		const { hash } = signedTransaction(tx);
		this.label(hash, label);
		if (pays !== null) this.simulations.pays.set(label, pays);
		const owner = options.owner ?? "me";
		const request = {
			...{ owner, network: options.client ?? owner },
			blocks: { first: numberOrNull(options.first), last: numberOrNull(options.last) },
			times: options.times ?? null,
			uuid: options.uuid ?? null,
			builders: options.builders ?? null,
			target: target.tx.hash,
			backrun: rawTransaction(tx),
		};
		return this.send(request).then(async (one) => {
			if (one.outcome === "accepted") this.label(one.hash, label);
			await this.turn();
			return one;
		});
	}

	/** A bid as it is sent. */
	send(request: BidRequest): Promise<BundleOutcome> {
		this.#owners.add(request.owner);
		return this.market.bid(request);
	}

	/** A plain bundle as it is sent. */
	submit(request: PlainBundleRequest): Promise<BundleOutcome> {
		this.#owners.add(request.owner);
		return this.market.submit(request);
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

	/** Processes a new block with these transactions; mined targets leave the pool. */
	async block(mined: readonly { tx: { hash: string; from: string } }[] = [], fork = ""): Promise<Block> {
		const block = this.chain.make(mined, fork);
		await this.came({ applied: [block], reverted: [] });
		return block;
	}

	async came(change: Pick<ChainUpdate, "applied" | "reverted">, gap = false): Promise<void> {
		const { applied, reverted } = change;
		for (const block of applied) {
			for (const [index, { hash }] of block.transactions.entries()) {
				const known = this.transactions.records.get(hash);
				const place = {
					block: block.number,
					blockHash: block.hash,
					index,
					reverted: false,
					coinbase: block.miner,
				};
				if (known !== undefined) this.transactions.included(known, { hash, ...place });
			}
		}
		this.tip.set(this.head, nextOf(this.head));
		this.market.onChainUpdate({ head: this.head, applied, reverted, gap });
		await this.turn();
		this.#compareFigures();
	}

	#compareFigures(): void {
		for (const owner of this.#owners) {
			const counted = noFigures(dayOf(this.clock.now()));
			for (const record of this.table.bundles(owner))
				for (const status of record.blocks) count(counted, record, status, 1);
			const told = this.market.figures.of(owner);
			assert.deepEqual(told.length === 0 ? [noFigures(counted.day)] : told, [counted]);
		}
	}

	/** The status of a bundle in a block: `STAGE reason`. */
	status(hash: string, block: number, owner = "me"): string | undefined {
		const status = this.detail(hash, block, owner);
		return status && [status.stage, ...(status.reason === null ? [] : [status.reason])].join(" ");
	}

	detail(hash: string, block: number, owner = "me"): BundleBlockStatus | undefined {
		const record = this.table.bundle(owner, hash);
		return record === null ? undefined : statusIn(record, block);
	}

	/** The same of several of one block. */
	statuses(block: number, ...hashes: readonly string[]): readonly (string | undefined)[] {
		return hashes.map((hash) => this.status(hash, block));
	}

	/** The head is taken back, and another block with these in it comes in its place. */
	async reorganise(mined: Parameters<AuctionFixture["block"]>[0] = []): Promise<Block> {
		const reverted = this.chain.unmake(1);
		const block = this.chain.make(mined, "b");
		await this.came({ applied: [block], reverted });
		return block;
	}

	/** The ledger as a relay has it that is started again. */
	async restartedLedger(): Promise<PaymentLedger> {
		const ledger = new PaymentLedger(this.#dependencies);
		await ledger.load();
		ledger.onChainUpdate({ head: this.head, applied: [], reverted: [], gap: true });
		await this.turn();
		return ledger;
	}

	/** The events of one type of a target. */
	events<T extends TxEvent["type"]>({ tx }: PrivateTransaction, type: T) {
		const events = this.transactions.records.get(tx.hash)?.record.events ?? [];
		return events.filter((event): event is Extract<typeof event, { type: T }> => event.type === type);
	}

	/** So many slots are missed before the next block, as the consensus layer publishes it. */
	async missSlots(count: number): Promise<void> {
		const next = nextOf(this.head);
		this.tip.set(this.head, { ...next, timestamp: next.timestamp + count * 12 });
		this.market.nextBlockChanged();
		await this.turn();
	}

	/**
	 * Runs everything that is ready: places are worked out in a turn of their own, what they need is
	 * simulated, and so on.
	 */
	async turn(): Promise<void> {
		for (let i = 0; i < TURNS; i += 1) await this.clock.advance(0);
	}
}

/** A transaction by its number, or made up otherwise. */
type Entry = number | TxOptions;

export interface PlainOptions extends Partial<Omit<PlainBundleRequest, "blocks" | "body">> {
	/** The first and last block as they are asked for. */
	readonly first?: number;
	readonly last?: number;
	/** Numbers of those that may revert. */
	readonly mayRevert?: readonly number[];
}

/**
 * The market with plain bundles. A transaction is named by a number: `1` has its own signer and is
 * shown as `t1`.
 */
export class PlainFixture extends AuctionFixture {
	signerOf(label: number): TestAccount {
		return testAccount(300 + label);
	}

	/** The transaction of this number, for a block that holds it. */
	mined(label: number) {
		return { tx: signedTransaction({ by: this.signerOf(label), nonce: 0 }) };
	}

	/** Sends one bundle of these, by `me` unless said. */
	plainBundle(entries: readonly Entry[], options: PlainOptions = {}): Promise<BundleOutcome> {
		const { first, last, mayRevert = [], ...rest } = options;
		const body = entries.map((entry) => {
			if (typeof entry !== "number") return { raw: rawTransaction(entry), canRevert: false };
			this.label(this.mined(entry).tx.hash, `t${entry}`);
			const raw = rawTransaction({ by: this.signerOf(entry), nonce: 0 });
			return { raw, canRevert: mayRevert.includes(entry) };
		});
		return this.submit({
			...{ owner: "me", network: rest.owner ?? "me", uuid: null, times: null, builders: null, refund: null },
			...rest,
			blocks: { first: numberOrNull(first), last: numberOrNull(last) },
			body,
		});
	}

	/** Sends one, and fails where it is refused; answers its hash. */
	async taken(entries: readonly Entry[], options: PlainOptions = {}): Promise<string> {
		const outcome = await this.plainBundle(entries, options);
		if (outcome.outcome !== "accepted") throw new Error(outcome.message);
		return outcome.hash;
	}

	/** Sends one that is refused; answers `CODE message`. */
	async refused(entries: readonly Entry[], options: PlainOptions = {}): Promise<string> {
		const outcome = await this.plainBundle(entries, options);
		if (outcome.outcome !== "rejected") throw new Error("accepted");
		return `${outcome.code} ${outcome.message}`;
	}

	/** The calls to builders since the last time; a cancelled bundle is `it`. */
	lines(): string[] {
		return this.builders.take().map((line) => line.replace(/bundle \S+/, "it"));
	}

	/** The simulations since the last time: `t1 t2 in 101`. */
	tried(): string[] {
		return this.simulations.plain.splice(0).map(({ labels, block }) => `${labels} in ${block.number}`);
	}

	/** The number of names that bundles were sent under. */
	get names(): number {
		return new Set(this.builders.sent.map(({ name }) => name)).size;
	}

	/** The node's next answers about accounts wait until what this returns is called. */
	holdAccounts(): () => void {
		let open = () => {};
		this.accounts.gate = new Promise((resolve) => {
			open = resolve;
		});
		return () => {
			this.accounts.gate = Promise.resolve();
			open();
		};
	}
}

function numberOrNull(block: number | undefined): bigint | null {
	return block === undefined ? null : BigInt(block);
}
