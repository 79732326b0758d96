// The only place that changes a transaction's life. Each kind of change has a method here, which
// updates the record, the pool and the disk together. Clients' changes are in clientChanges.ts. All
// others read `pool` and `records`, and subscribe.

import type { Background } from "../../shared/background.ts";
import { clientOf } from "../../shared/client.ts";
import type { Clock } from "../../shared/clock.ts";
import type { BlobProofs } from "../../shared/ethereum/blobProofs.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { DamagedEntries } from "../../shared/kv/damagedEntries.ts";
import type { KeyValueStore } from "../../shared/kv/port.ts";
import type { Logger } from "../../shared/log.ts";
import { isOwnedBy } from "../../shared/ownership.ts";
import type { Broadcaster } from "../broadcast/fanout.ts";
import { type AccountState, type Inclusion, laterTime, type NextBlock, type Tip } from "../domain/chain.ts";
import { mustPass, policyOf } from "../domain/endpoints.ts";
import type { QueueReason, Refund } from "../domain/events.ts";
import { isOver, type Lifetime, lastBlockFrom } from "../domain/lifetime.ts";
import { holdersOf, isLive, isMined, isOutgoing, type TransactionRecord } from "../domain/record.ts";
import type { SimulationError } from "../domain/simulation.ts";
import type { ChainLink, PrivateTransaction } from "../domain/transaction.ts";
import { BlobConversion } from "./blobConversion.ts";
import { ClientChanges, replacedBy } from "./clientChanges.ts";
import { ConductTable } from "./conductTable.ts";
import { Disclosures } from "./disclosures.ts";
import { TransactionDisk } from "./disk.ts";
import { NonceTurns, type SenderNonce } from "./nonceTurns.ts";
import { TransactionPacker } from "./packedTransaction.ts";
import { isHeldFor, lastOf, type Of, sightingOf } from "./pastEvents.ts";
import { newEntry, Pool, type PoolEntry, type PoolReader } from "./pool.ts";
import { RecordKeeper } from "./recordKeeper.ts";
import { type RecordEntry, type RecordsReader, TransactionRecords } from "./records.ts";
import { RefundTable } from "./refundTable.ts";
import { StatsTable } from "./statsTable.ts";

export interface TransactionsOptions extends Lifetime {
	/** Most bytes of pending transactions. */
	readonly maxBytes: number;
	/** The account that sends canaries, lower case; null: none. */
	readonly canary: string | null;
}

export interface TransactionsDependencies {
	readonly kv: KeyValueStore;
	readonly damaged: DamagedEntries;
	readonly broadcaster: Omit<Broadcaster, "isOut" | "leastWaiting" | "send">;
	readonly tip: Tip;
	readonly clock: Clock;
	/**
	 * Called when a sender's pending transactions have changed and must be checked again.
	 * `refresh`: its nonce may have changed too, so read it again.
	 */
	readonly onChange: (sender: string, refresh: boolean) => void;
	/** Called with the time that writing a submission took. */
	readonly onWritten: (seconds: number, hash: string) => void;
	readonly blobProofs: Pick<BlobProofs, "ready">;
	readonly background: Pick<Background, "run">;
	readonly log: Logger;
}

/** How a transaction is sent. */
export interface GoingOut {
	/** The target block. */
	readonly block: number;
	/** Names of the builders to send it to. */
	readonly builders: readonly string[];
	/** Why it is sent without the simulation that it needs; null: it has passed, or needs none. */
	readonly unsimulated: SimulationError | null;
}

/** All transactions of the relay. */
export class Transactions {
	/** The pending transactions. */
	readonly pool: PoolReader;
	/** Records of all transactions that are not archived yet. */
	readonly records: RecordsReader;
	/** Clients' changes to their transactions. */
	readonly changes: ClientChanges;
	/** Disclosures to searchers, and those that wait. */
	readonly disclosures: Disclosures;
	/** Keeps the records on disk. */
	readonly keeper: RecordKeeper;
	/** Gives blob transactions cell proofs at a fork. */
	readonly blobs: BlobConversion;
	/** Refunds by address, and their totals. */
	readonly refunds: RefundTable;
	/** The builders' conduct by day. */
	readonly conduct: ConductTable;
	/** The public statistics of each day. */
	readonly stats: StatsTable;
	readonly #lifetime: Lifetime;
	readonly #timeToStore: () => number;
	readonly #pool: Pool;
	readonly #records: TransactionRecords;
	readonly #disk: TransactionDisk;
	readonly #packer = new TransactionPacker();
	readonly #turns = new NonceTurns();
	readonly #dependencies: TransactionsDependencies;

	constructor(options: TransactionsOptions, dependencies: TransactionsDependencies) {
		const { kv, damaged, broadcaster, tip, clock, onChange, onWritten, background, log } = dependencies;
		const { blobProofs } = dependencies;
		const pool = new Pool({ maxBytes: options.maxBytes });
		const records = new TransactionRecords({ log: log.child("records") });
		// An ended transaction is not sent any more, and its end has already named the builders that
		// had it.
		records.subscribe(({ hash, stage }) => {
			if (!isLive(stage)) broadcaster.forget(hash);
		});
		const disk = new TransactionDisk({ kv, damaged, log: log.child("store") });
		const turns = this.#turns;
		// The later of the machine's and the chain's time, so that a record is not purged too early.
		const timeToStore = () => laterTime(clock.now(), tip.head());
		this.#lifetime = options;
		this.#dependencies = dependencies;
		this.pool = this.#pool = pool;
		this.records = this.#records = records;
		this.#disk = disk;
		this.#timeToStore = timeToStore;
		const refunds = new RefundTable({ kv, damaged, records });
		this.refunds = refunds;
		this.stats = new StatsTable({ kv, damaged, refunds, broadcaster });
		const builtBy = broadcaster.builtBy.bind(broadcaster);
		const conduct = new ConductTable({ kv, damaged, records, clock, builtBy, canary: options.canary });
		this.conduct = conduct;
		const tables = [refunds, this.stats, conduct];
		this.keeper = new RecordKeeper({ pool, records, disk, tables, turns, timeToStore, clock, background });
		const packer = this.#packer;
		this.disclosures = new Disclosures({ pool, records, clock });
		this.blobs = new BlobConversion({ pool, records, packer, blobProofs, background, onChange });
		this.changes = new ClientChanges({
			...{ pool, records, disk, packer, broadcaster, tip, clock, timeToStore, onChange, onWritten },
			disclosures: this.disclosures,
		});
	}

	/** The record of a transaction that the relay has or had, or null. Throws if the store fails. */
	async record(hash: string): Promise<TransactionRecord | null> {
		return this.#records.get(hash)?.record ?? (await this.#disk.archived(hash));
	}

	/** The record of an archived transaction, or null. Throws if the store fails. */
	archived(hash: string): Promise<TransactionRecord | null> {
		return this.#disk.archived(hash);
	}

	/**
	 * The sender's pending transactions from the account's nonce on. Stops at the first whose
	 * simulation failed or that did not come from `address`. `sender` in lower case.
	 */
	chainOf(sender: string, address: string | null): readonly ChainLink[] {
		const chain: ChainLink[] = [];
		if (!this.#pool.isNonceKnown(sender)) return chain;
		for (const { transaction } of this.#pool.transactionsOf(sender).ready) {
			const { tx, path, owners } = transaction;
			const record = this.#records.get(tx.hash)?.record;
			if (record === undefined || record.stage === "SIMULATION_FAILED") break;
			if (!isOwnedBy(owners, address)) break;
			chain.push({ tx, mayFail: !mustPass({ policy: policyOf(path), passed: record.passed }) });
		}
		return chain;
	}

	/** The client that work for a sender is charged to: that of its first transaction. */
	clientOf(sender: string, { ready, waiting } = this.#pool.transactionsOf(sender)): string {
		const first = ready[0] ?? waiting[0] ?? this.#records.droppedOf(sender)[0];
		return clientOf(first?.transaction.submitterAddress ?? "");
	}

	/** Runs `work` exclusively for a sender and nonce, in the order of the calls. */
	exclusively<T>(at: SenderNonce, work: () => Promise<T>): Promise<T> {
		return this.#turns.exclusively(at, work);
	}

	/** Loads the transactions from disk; call once, before the first head is processed. */
	async load(): Promise<void> {
		const entries: RecordEntry[] = [];
		const bySender = new Map<string, DecodedTransaction>();
		const keep = (decoded: DecodedTransaction) => {
			const tx = this.#packer.pack(decoded, bySender.get(decoded.from));
			bySender.set(decoded.from, tx);
			return tx;
		};
		for await (const entry of this.#disk.load(keep)) entries.push(entry);
		const pooled: PoolEntry[] = [];
		// If two have the same nonce, the later one wins.
		for (const entry of entries.sort((a, b) => b.record.receivedAt - a.record.receivedAt)) {
			this.#records.add(entry);
			if (isLive(entry.record.stage)) pooled.push(this.#pooled(entry, true));
		}
		for (const entry of this.#pool.restore(pooled)) this.#nonceIsTaken(entry);
		for (const table of [this.refunds, this.stats])
			this.#disk.writeLater(await table.load(this.#timeToStore()));
		await this.conduct.load();
	}

	// The state of the chain.

	/** Sets the next block; see {@link fitToNext}. */
	setNext(next: NextBlock): void {
		this.#pool.setNext(next);
	}

	/**
	 * Updates which transactions the next block can't contain; returns whether it can have the
	 * first.
	 */
	fitToNext(sender: string): boolean {
		return this.#pool.fitToNext(sender);
	}

	/** Forgets nonces known from blocks above `block`, after a reorganisation. */
	rewind(block: number): void {
		this.#pool.rewind(block);
	}

	/**
	 * A sender's account was read at the head. Dropped transactions whose nonce is free are pending
	 * again: the block that used it has left the chain, or was never in the followed chain. Returns
	 * transactions with used nonces, for {@link included} or {@link dropped}, except those that are
	 * still being written.
	 */
	accountRead(account: AccountState): readonly PoolEntry[] {
		for (const entry of this.#records.droppedOf(account.address)) {
			if (entry.transaction.tx.nonce < account.nonce) continue;
			this.reorged(entry);
			// Its lifetime may have ended while it was dropped.
			this.expireIfOver(entry, account.block);
		}
		return this.#pool.setAccount(account).filter((entry) => entry.durable);
	}

	// Sending to the builders.

	/**
	 * Its simulation for `block` has passed. A path that simulates once records the first pass;
	 * others record one for each block. `hidesGas`: the gas would reveal a hidden transaction to
	 * searchers.
	 */
	passed(entry: PoolEntry, block: number, gasUsed: number, hidesGas: boolean): void {
		this.#pool.setGas(entry, gasUsed);
		const { tx, path } = entry.transaction;
		const record = this.#records.get(tx.hash)?.record;
		if (record === undefined) return;
		if (record.passed && !policyOf(path).resimulated) return;
		const isKnown = record.passed && isOutgoing(record.stage);
		if (isKnown && lastOf(record, "simulated")?.block === block) return;
		this.#startLifetime(record, block);
		const gas = hidesGas ? null : gasUsed;
		this.#records.emit(tx.hash, { type: "simulated", at: this.#now(), block, gasUsed: gas });
	}

	/**
	 * It waits for an earlier transaction of its sender. If it becomes ready again for the same
	 * block, it is sent again.
	 */
	waits(entry: PoolEntry, reason: QueueReason, next: number): void {
		if (entry.given !== null) this.#takeBack(entry);
		const { hash } = entry.transaction.tx;
		const record = this.#records.get(hash)?.record;
		if (record?.stage === "QUEUED" && lastOf(record, "queued")?.reason === reason) return;
		this.#records.emit(hash, { type: "queued", at: this.#now(), block: next - 1, reason });
	}

	/** Its simulation for `block` fails, so it is not sent. If it was queued, it is cancelled. */
	held(entry: PoolEntry, error: SimulationError, block: number): void {
		const { transaction } = entry;
		const { hash } = transaction.tx;
		const record = this.#records.get(hash)?.record;
		if (record === undefined) return;
		this.#startLifetime(record, block);
		const isGiven = this.#pool.givenFor(entry, block).length > 0;
		// It has passed and is already queued for this block: an unavailable node changes nothing.
		if (isGiven && error.code === "NODE_UNAVAILABLE") return;
		if (!isHeldFor(record, error, block))
			this.#records.emit(hash, { type: "simulationFailed", at: this.#now(), block, error });
		if (isGiven) this.#dependencies.broadcaster.cancel(transaction, this.#takeBack(entry), block);
	}

	/** Removes the entry from all builders' queues. Returns the builders that were sent it. */
	#takeBack(entry: PoolEntry): readonly string[] {
		this.#pool.ungive(entry);
		return this.#dependencies.broadcaster.takeBack(entry.transaction);
	}

	/**
	 * Records that it is queued for builders. Returns the builders that are new for that block, and
	 * the last block of its lifetime. Null, with nothing recorded, if none is new.
	 */
	goesOut(
		entry: PoolEntry,
		{ block, builders, unsimulated }: GoingOut,
	): { readonly builders: readonly string[]; readonly lastBlock: number } | null {
		const { hash } = entry.transaction.tx;
		const record = this.#records.get(hash)?.record;
		const added = this.#pool.give(entry, block, builders);
		if (record === undefined || added.length === 0) return null;
		const firstBlock = this.#startLifetime(record, block);
		if (unsimulated !== null) this.#notSimulated(record, unsimulated, block);
		return { builders: added, lastBlock: lastBlockFrom(firstBlock, this.#lifetime) };
	}

	/** A request with it for `block` is written, so a builder may have it. */
	left(hash: string, block: number, behindHidden: boolean): void {
		const record = this.#records.get(hash)?.record;
		if (record === undefined || !isOutgoing(record.stage)) return;
		if (record.stage === "BROADCAST" && lastOf(record, "broadcast")?.block === block) return;
		this.#records.emit(hash, { type: "broadcast", at: this.#now(), block, behindHidden });
	}

	/** Records that it is sent without a simulation, unless that is recorded. */
	#notSimulated({ hash, stage, simulationError }: TransactionRecord, error: SimulationError, block: number) {
		if (isOutgoing(stage) && simulationError?.message === error.message) return;
		this.#records.emit(hash, { type: "notSimulated", at: this.#now(), block, error });
	}

	/** Starts its lifetime, unless it has started. Returns its first block. */
	#startLifetime(record: TransactionRecord, block: number): number {
		if (record.stage === "QUEUED" || record.firstBlock === null)
			this.#records.emit(record.hash, { type: "ready", at: this.#now(), block });
		return record.firstBlock ?? block;
	}

	/** A builder has answered, or will not receive it. */
	delivered(hash: string, event: Of<"delivered">): void {
		this.#records.emit(hash, event);
	}

	// Searchers.

	/** Searchers may see it. It is disclosed now, or when its client's turn comes. */
	shared(transaction: PrivateTransaction): void {
		this.disclosures.request(transaction);
	}

	/** A new bid on it was accepted. */
	bid(hash: string, bundle: string): void {
		this.#records.emit(hash, { type: "bid", at: this.#now(), bundle });
	}

	/**
	 * A bid behind it is sent, with it. Returns false, with nothing recorded, if it is not sent any
	 * more.
	 */
	bundled(hash: string, bundle: Omit<Of<"bundled">, "type" | "at">): boolean {
		const stage = this.#records.get(hash)?.record.stage;
		if (stage === undefined || !isOutgoing(stage)) return false;
		this.#records.emit(hash, Object.assign({ type: "bundled", at: this.#now() } as const, bundle));
		// After a crash only this event shows that a refund is due to the user.
		this.keeper.flushSoon();
		return true;
	}

	/** The refund that its block paid for the backrun behind it was read from the chain. */
	refunded(hash: string, block: number, refund: Refund): void {
		this.#records.emit(hash, Object.assign({ type: "refunded", at: this.#now(), block } as const, refund));
	}

	/** Its block has it without a backrun that `builders` had accepted; see the event. */
	backrunLeftOut(hash: string, block: number, builders: readonly string[], isOther: boolean): void {
		this.#records.emit(hash, { type: "backrunLeftOut", at: this.#now(), block, builders, isOther });
	}

	/** The public mempool had it at `at`, in ms since the epoch. Known news is ignored. */
	seenInPublic(hash: string, at: number): void {
		const record = this.#records.get(hash)?.record;
		const { broadcaster, tip } = this.#dependencies;
		const seen = record && sightingOf(record, tip.head()?.number ?? 0, broadcaster.sentTo(hash));
		if (seen) this.#records.emit(hash, { ...seen, at });
	}

	// Blocks that contain it.

	/** It was mined. */
	included({ record, transaction }: RecordEntry, inclusion: Inclusion): void {
		const { hash, ...place } = inclusion;
		const { block, blockHash } = place;
		const { from, nonce } = transaction.tx;
		const pooled = this.#pool.get(hash);
		// It is being resubmitted: the account check after its write will find that it was mined.
		if (pooled?.durable === false) return;
		if (pooled !== undefined) this.#pool.remove(pooled);
		this.#pool.markNonceUsed(from, nonce, block);
		if (isMined(record.stage)) {
			if (record.blockHash === blockHash) return;
			// It moved to another block, by a reorganisation that was not seen.
			this.#leftBlock(record);
		}
		this.#records.emit(hash, Object.assign({ type: "included", at: this.#now() } as const, place));
	}

	/**
	 * It was mined, but its receipt is missing. It leaves the pool until that comes, so that it is
	 * neither sent nor ended.
	 */
	awaitReceipt(hash: string): void {
		const pooled = this.#pool.get(hash);
		if (pooled?.durable === true) this.#pool.remove(pooled);
	}

	/**
	 * The block that contained it, or that used its nonce, has left the chain. Call it before the tip
	 * is set to the new head.
	 */
	reorged(entry: RecordEntry): void {
		this.#leftBlock(entry.record);
		this.revive(entry);
	}

	/** Its block, or the block that used its nonce, has left the chain. */
	#leftBlock({ hash, stage, block }: TransactionRecord): void {
		const left = block ?? 0;
		this.#records.emit(hash, { type: "reorged", at: this.#now(), block: left });
		if (isMined(stage)) this.exposed(hash, left);
	}

	/**
	 * `block` contained it and has left the chain, so it is public. Call it before the tip is set to
	 * the new head.
	 */
	exposed(hash: string, block: number): void {
		const depth = Math.max(1, (this.#dependencies.tip.head()?.number ?? 0) - block + 1);
		this.#records.emit(hash, { type: "exposed", at: this.#now(), block, depth });
	}

	/** Another transaction used its nonce. */
	dropped(entry: PoolEntry, block: number): void {
		this.#pool.remove(entry);
		this.#records.emit(entry.transaction.tx.hash, { type: "dropped", at: this.#now(), block });
	}

	/**
	 * Expires a pending transaction if its lifetime is over at `head`, or if it has waited too long
	 * behind a gap. Returns whether it did.
	 */
	expireIfOver({ record }: RecordEntry, head: number): boolean {
		const entry = this.#pool.get(record.hash);
		if (!isLive(record.stage) || entry === undefined || !entry.durable) return false;
		if (!isOver(record, head, this.#lifetime)) return false;
		this.#expired(entry, head);
		return true;
	}

	#expired(entry: PoolEntry, head: number): void {
		const { transaction } = entry;
		this.#pool.remove(entry);
		const builders = this.#takeBack(entry);
		this.#records.emit(transaction.tx.hash, { type: "expired", at: this.#now(), block: head });
		// A bundle is for one block only; a private transaction stays at the builder until it is
		// cancelled.
		if (policyOf(transaction.path).form === "private")
			this.#dependencies.broadcaster.cancel(transaction, builders, head + 1);
	}

	/** Puts a live transaction back into the pool, or marks it as replaced if its nonce is taken. */
	revive(entry: RecordEntry): void {
		const { record } = entry;
		if (!this.#turns.isBusy(record)) {
			this.#reviveNow(entry);
			return;
		}
		// A submission or cancel of its nonce is running; whether the transaction is still live is
		// checked after it.
		void this.exclusively(record, async () => {
			this.#reviveNow(entry);
			this.#dependencies.onChange(record.from, true);
		});
	}

	#reviveNow({ record, transaction }: RecordEntry): void {
		if (!isLive(record.stage) || this.#pool.get(record.hash) !== undefined) return;
		// Its owners may have changed since.
		const now = this.#records.get(record.hash)?.transaction ?? transaction;
		const entry = this.#pooled({ record, transaction: now }, false);
		if (!this.#pool.insert(entry)) this.#nonceIsTaken(entry);
	}

	/** The entry of a transaction for the pool. `atStartup`: the process has just started. */
	#pooled({ record, transaction }: RecordEntry, atStartup: boolean): PoolEntry {
		const { broadcaster } = this.#dependencies;
		const holders = holdersOf(record, () => broadcaster.eligible(transaction), atStartup);
		broadcaster.restore(record.hash, holders);
		return newEntry(transaction, true);
	}

	/** It can't return to the pool: another transaction replaces it. */
	#nonceIsTaken({ transaction }: PoolEntry): void {
		const { hash, from, nonce } = transaction.tx;
		const other = this.#pool.at(from, nonce)?.transaction;
		if (other === undefined) return;
		const block = this.#records.get(hash)?.record.block ?? 0;
		const builders = this.#dependencies.broadcaster.takeBack(transaction);
		this.#records.emit(hash, replacedBy(other, this.#now(), block, builders));
		this.#dependencies.broadcaster.cancel(transaction, builders, block + 1);
	}

	#now(): number {
		return this.#dependencies.clock.now();
	}
}
