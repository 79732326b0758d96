// The pending transactions, by hash and by sender and nonce. Also counts each client's bytes, and
// tracks which builders have a transaction. Does no I/O and emits no events. Only this folder
// changes it; all others use a PoolReader.

import { clientOf } from "../../shared/client.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { Shares } from "../../shared/shares/shares.ts";
import type { AccountState, NextBlock } from "../domain/chain.ts";
import { type Rejection, rejection } from "../domain/rejection.ts";
import { mayReplace, PAYS_TOO_LITTLE } from "../domain/replacement.ts";
import type { SimulationError } from "../domain/simulation.ts";
import { isSentAlike, MAX_PER_SENDER, type PrivateTransaction } from "../domain/transaction.ts";
import { blockProblem } from "../domain/transactionRules.ts";

/** A transaction in the pool, with its delivery state. */
export interface PoolEntry {
	readonly transaction: PrivateTransaction;
	/** Gas that it is expected to use: the gas of its last simulation, or else its limit. */
	readonly gas: number;
	/** False while it is being written: nothing is sent before it is on disk. */
	readonly durable: boolean;
	/**
	 * The builders that it was last queued for; null if there are none, or if it must be queued
	 * again.
	 */
	readonly given: Given | null;
	/**
	 * Whether it can't be in the next block, by what was last computed for its sender: it comes after
	 * a gap or a too low fee. Its bytes are then counted as such, too.
	 */
	readonly isNonExecutable: boolean;
}

/** An entry that is not in the pool yet. */
export function newEntry(transaction: PrivateTransaction, durable: boolean): PoolEntry {
	return { transaction, gas: Number(transaction.tx.gasLimit), durable, given: null, isNonExecutable: false };
}

/**
 * Builders that a transaction was queued for in `block`. Immutable, so that many entries use one
 * object.
 */
export interface Given {
	readonly block: number;
	readonly builders: readonly string[];
}

/** An entry as the pool itself changes it. */
interface OwnEntry extends PoolEntry {
	gas: number;
	durable: boolean;
	given: Given | null;
	isNonExecutable: boolean;
}

const NOBODY: readonly string[] = [];

/** The result of {@link Pool.add}. */
export type AddOutcome =
	| { readonly outcome: "added"; readonly entry: PoolEntry }
	| { readonly outcome: "replaced"; readonly entry: PoolEntry; readonly old: PoolEntry }
	| Rejected;
type Rejected = { readonly outcome: "rejected"; readonly rejection: Rejection };

/**
 * One sender's transactions with unused nonces, in nonce order, split at the first gap, up to the
 * first that is not durable.
 */
export interface SenderTransactions {
	/** Consecutive nonces from the account's nonce on. */
	readonly ready: readonly PoolEntry[];
	/** Entries behind a gap. */
	readonly waiting: readonly PoolEntry[];
}

interface Sender {
	/** The account's nonce as of block `asOf`; a guess unless `isKnown`. */
	nonce: bigint;
	asOf: number;
	/** Whether a block of the current chain shows `nonce`. */
	isKnown: boolean;
	/** In nonce order. */
	entries: PoolEntry[];
}

export interface PoolOptions {
	/** Most bytes in all, as counted by {@link bytesOf}. */
	readonly maxBytes: number;
}

const SENDER_IS_FULL = `txpool is full: ${MAX_PER_SENDER} transactions of this sender`;
/** Bytes that a transaction counts in addition to its raw bytes. */
const OVERHEAD_BYTES = 512;
/** The part of the pool that one client may use. */
const CLIENT_SHARE = 1 / 16;
/**
 * Limits on transactions that can't be in the next block ("parked"): their part of the pool, and
 * bytes of one client.
 */
const NON_EXECUTABLE_SHARE = 1 / 2;
const NON_EXECUTABLE_CLIENT_BYTES = 4 * 1024 * 1024;

/** The pool for read-only use. */
export type PoolReader = Pick<
	Pool,
	| "at"
	| "get"
	| "givenFor"
	| "holds"
	| "isNonceKnown"
	| "nextProblem"
	| "oldestReceivedAt"
	| "pending"
	| "pendingNonce"
	| "senders"
	| "size"
	| "transactionsOf"
>;

/** The pending transactions. */
export class Pool {
	readonly #byHash = new Map<string, PoolEntry>();
	readonly #bySender = new Map<string, Sender>();
	/** Bytes by client: of all transactions, and of those that can't be in the next block. */
	readonly #bytes: Shares;
	readonly #nonExecutableBytes: Shares;
	/** The last object that {@link give} created. */
	#lastGiven: Given = { block: 0, builders: NOBODY };
	#next: NextBlock | null = null;

	constructor({ maxBytes }: PoolOptions) {
		this.#bytes = new Shares({ total: maxBytes, perClient: maxBytes * CLIENT_SHARE });
		this.#nonExecutableBytes = new Shares({
			total: maxBytes * NON_EXECUTABLE_SHARE,
			perClient: NON_EXECUTABLE_CLIENT_BYTES,
		});
	}

	get size(): number {
		return this.#byHash.size;
	}

	/** When the oldest transaction was received, in ms since the epoch; null if the pool is empty. */
	oldestReceivedAt(): number | null {
		let oldest: number | null = null;
		for (const { transaction } of this.#byHash.values())
			oldest = Math.min(oldest ?? transaction.receivedAt, transaction.receivedAt);
		return oldest;
	}

	get(hash: string): PoolEntry | undefined {
		return this.#byHash.get(hash);
	}

	/** Whether this entry itself is still in the pool. */
	holds(entry: PoolEntry): boolean {
		return this.#byHash.get(entry.transaction.tx.hash) === entry;
	}

	/** The transaction with this hash, or null; one that is still being written does not count. */
	pending(hash: string): PrivateTransaction | null {
		const entry = this.#byHash.get(hash);
		return entry?.durable === true ? entry.transaction : null;
	}

	/** The entry with this sender and nonce. */
	at(sender: string, nonce: bigint): PoolEntry | undefined {
		return this.#bySender.get(sender)?.entries.find((entry) => entry.transaction.tx.nonce === nonce);
	}

	/** Any of the sender's transactions; undefined if there is none. */
	anyOf(sender: string): DecodedTransaction | undefined {
		return this.#bySender.get(sender)?.entries[0]?.transaction.tx;
	}

	/** All senders with pending transactions. */
	senders(): IterableIterator<string> {
		return this.#bySender.keys();
	}

	/**
	 * Adds a new transaction, or replaces the one with its nonce if its fees allow it. The entry is
	 * not durable yet.
	 */
	add(transaction: PrivateTransaction, account: AccountState): AddOutcome {
		const { tx } = transaction;
		const sender = this.#bySender.get(tx.from);
		const old = sender?.entries.find((entry) => entry.transaction.tx.nonce === tx.nonce);
		if (old !== undefined && !mayReplace(tx, old.transaction.tx))
			return rejectedFor("UNDERPRICED", PAYS_TOO_LITTLE);
		if (old === undefined && (sender?.entries.length ?? 0) >= MAX_PER_SENDER)
			return rejectedFor("SENDER_FULL", SENDER_IS_FULL, "sender");
		const entry = newEntry(transaction, false);
		// Free the old entry's bytes for the check. They are counted again if the new one is
		// rejected.
		if (old !== undefined) this.#release(old);
		const rejected = this.#rejectionIfFull(transaction, sender, account);
		if (sender === undefined || old === undefined) {
			if (rejected !== null) return rejected;
			this.insert(entry);
			// If the account shows used nonces, the sender's run after the write ends their
			// transactions.
			this.setAccount(account);
			return { outcome: "added", entry };
		}
		if (rejected !== null) {
			this.#count(old);
			this.#updateExecutable(sender);
			return rejected;
		}
		sender.entries[sender.entries.indexOf(old)] = entry;
		this.#byHash.delete(old.transaction.tx.hash);
		this.#byHash.set(tx.hash, entry);
		this.#count(entry);
		this.#updateExecutable(sender);
		this.setAccount(account);
		return { outcome: "replaced", entry, old };
	}

	/** The rejection if the pool or the client's quota is full; else null. */
	#rejectionIfFull(
		transaction: PrivateTransaction,
		sender: Sender | undefined,
		account: AccountState,
	): Rejected | null {
		const { tx, submitterAddress } = transaction;
		const nonce = sender !== undefined && sender.asOf > account.block ? sender.nonce : account.nonce;
		const isNonExecutable =
			tx.nonce > this.#firstNonExecutable(sender?.entries ?? [], nonce) || this.nextProblem(tx) !== null;
		const [client, bytes] = [clientOf(submitterAddress), bytesOf(transaction)];
		const exceeded =
			this.#bytes.exceeded(client, bytes) ??
			(isNonExecutable ? this.#nonExecutableBytes.exceeded(client, bytes) : null);
		if (exceeded === null) return null;
		return exceeded === "total"
			? rejectedFor("POOL_FULL", "txpool is full", "pool")
			: rejectedFor("CLIENT_FULL", "too many pending transactions from this client", "client");
	}

	/**
	 * Inserts an entry without checking limits: at startup, after a reorganisation or a failed write.
	 * Returns false if its nonce is taken.
	 */
	insert(entry: PoolEntry): boolean {
		const sender = this.#place(entry);
		if (sender !== null) this.#updateExecutable(sender);
		return sender !== null;
	}

	/**
	 * Inserts stored entries like {@link insert}. Returns those whose nonce an earlier one already
	 * has.
	 */
	restore(entries: readonly PoolEntry[]): readonly PoolEntry[] {
		const late = entries.filter((entry) => this.#place(entry) === null);
		for (const sender of this.#bySender.values()) this.#updateExecutable(sender);
		return late;
	}

	/**
	 * Inserts an entry for its sender, without updating which ones are parked. Null if its nonce is
	 * taken.
	 */
	#place(entry: PoolEntry): Sender | null {
		const { tx } = entry.transaction;
		let sender = this.#bySender.get(tx.from);
		if (sender === undefined) {
			sender = { nonce: tx.nonce, asOf: 0, isKnown: false, entries: [] };
			this.#bySender.set(tx.from, sender);
		} else if (!sender.isKnown && tx.nonce < sender.nonce) sender.nonce = tx.nonce;
		const at = sender.entries.findIndex((other) => other.transaction.tx.nonce >= tx.nonce);
		if (at >= 0 && sender.entries[at]?.transaction.tx.nonce === tx.nonce) return null;
		sender.entries.splice(at < 0 ? sender.entries.length : at, 0, entry);
		this.#byHash.set(tx.hash, entry);
		this.#count(entry);
		return sender;
	}

	/**
	 * Replaces `entry` with a new one for the same transaction with other owners or bytes. So
	 * decisions about the old one are outdated. On another path, for other builders or with other
	 * bytes it must be queued again.
	 */
	exchange(entry: PoolEntry, transaction: PrivateTransaction): void {
		const sender = this.#bySender.get(transaction.tx.from);
		if (sender === undefined || !this.holds(entry)) return;
		const isSame = transaction.tx === entry.transaction.tx && isSentAlike(transaction, entry.transaction);
		const changed: PoolEntry = {
			...newEntry(transaction, entry.durable),
			...{ gas: entry.gas, given: isSame ? entry.given : null },
		};
		this.#release(entry);
		sender.entries[sender.entries.indexOf(entry)] = changed;
		this.#byHash.set(transaction.tx.hash, changed);
		this.#count(changed);
		this.#updateExecutable(sender);
	}

	/** Removes an entry, if it is still in the pool. */
	remove(entry: PoolEntry): void {
		const { tx } = entry.transaction;
		if (!this.holds(entry)) return;
		this.#byHash.delete(tx.hash);
		this.#release(entry);
		const sender = this.#bySender.get(tx.from);
		if (sender === undefined) return;
		sender.entries = sender.entries.filter((other) => other !== entry);
		if (sender.entries.length === 0) this.#bySender.delete(tx.from);
		else this.#updateExecutable(sender);
	}

	/** Marks it as on disk: it may be sent from now on. */
	markDurable(entry: PoolEntry): void {
		(entry as OwnEntry).durable = true;
	}

	/** Records the gas that its simulation used. */
	setGas(entry: PoolEntry, gas: number): void {
		(entry as OwnEntry).gas = gas;
	}

	/**
	 * Records that the entry is queued for `builders` in `block`. Returns the builders that are new
	 * for that block.
	 */
	give(entry: PoolEntry, block: number, builders: readonly string[]): readonly string[] {
		const before = this.givenFor(entry, block);
		const added = before.length === 0 ? builders : builders.filter((name) => !before.includes(name));
		if (added.length === 0) return added;
		const all = before.length === 0 ? builders : [...before, ...added];
		const last = this.#lastGiven;
		if (last.block !== block || last.builders !== all) this.#lastGiven = { block, builders: all };
		(entry as OwnEntry).given = this.#lastGiven;
		return added;
	}

	/** Records that the entry must be queued again. */
	ungive(entry: PoolEntry): void {
		(entry as OwnEntry).given = null;
	}

	/** The builders that the entry was queued for in `block`. */
	givenFor({ given }: PoolEntry, block: number): readonly string[] {
		return given?.block === block ? given.builders : NOBODY;
	}

	/**
	 * Records an account's nonce; returns the entries whose nonce is used, which the caller removes.
	 */
	setAccount(account: AccountState): readonly PoolEntry[] {
		const sender = this.#bySender.get(account.address);
		if (sender === undefined) return [];
		if (account.block >= sender.asOf) {
			sender.nonce = account.nonce;
			sender.isKnown = true;
			sender.asOf = account.block;
			this.#updateExecutable(sender);
		}
		return sender.entries.filter((entry) => entry.transaction.tx.nonce < sender.nonce);
	}

	/** Records that a nonce of the sender was used in `block`. */
	markNonceUsed(sender: string, nonce: bigint, block: number): void {
		const state = this.#bySender.get(sender);
		if (state === undefined || block < state.asOf || nonce < state.nonce) return;
		state.nonce = nonce + 1n;
		state.isKnown = true;
		state.asOf = block;
		this.#updateExecutable(state);
	}

	/**
	 * Forgets nonces known from blocks above `block`: after a reorganisation an account's nonce may
	 * be lower.
	 */
	rewind(block: number): void {
		for (const sender of this.#bySender.values()) {
			if (sender.asOf > block) sender.isKnown = false;
			sender.asOf = Math.min(sender.asOf, block);
		}
	}

	/** False if the account must be read before {@link transactionsOf} can be trusted. */
	isNonceKnown(sender: string): boolean {
		return this.#bySender.get(sender)?.isKnown !== false;
	}

	/** Records the next block; {@link fitToNext} applies it to a sender. */
	setNext(next: NextBlock): void {
		this.#next = next;
	}

	/**
	 * Updates which of the sender's transactions are parked; returns whether its first one can be in
	 * the next block.
	 */
	fitToNext(address: string): boolean {
		const sender = this.#bySender.get(address);
		return sender !== undefined && this.#updateExecutable(sender);
	}

	/** See {@link SenderTransactions}. */
	transactionsOf(address: string): SenderTransactions {
		const sender = this.#bySender.get(address);
		if (sender === undefined) return { ready: [], waiting: [] };
		const ready: PoolEntry[] = [];
		const waiting: PoolEntry[] = [];
		let expected = sender.nonce;
		for (const entry of sender.entries) {
			const { nonce } = entry.transaction.tx;
			if (nonce < sender.nonce) continue;
			if (!entry.durable) break;
			(nonce === expected ? ready : waiting).push(entry);
			if (nonce === expected) expected += 1n;
		}
		return { ready, waiting };
	}

	/**
	 * The next free nonce from `base` on, counting the sender's pending transactions. A lower
	 * `base` from a lagging node is corrected by the known nonce.
	 */
	pendingNonce(address: string, base: bigint): bigint {
		const sender = this.#bySender.get(address);
		let next = sender?.isKnown && sender.nonce > base ? sender.nonce : base;
		for (const entry of sender?.entries ?? []) {
			if (entry.transaction.tx.nonce === next) next += 1n;
		}
		return next;
	}

	/** Why the next block can't contain it in any state, or null. */
	nextProblem(tx: DecodedTransaction): SimulationError | null {
		return this.#next === null ? null : blockProblem(tx, this.#next);
	}

	/**
	 * The first nonce from the account's `nonce` on that can't be in the next block. It is missing,
	 * pays too little or breaks that block's rules.
	 */
	#firstNonExecutable(entries: readonly PoolEntry[], nonce: bigint): bigint {
		let first = nonce;
		for (const { transaction } of entries) {
			const { tx } = transaction;
			if (tx.nonce < nonce) continue;
			if (tx.nonce !== first || this.nextProblem(tx) !== null) break;
			first += 1n;
		}
		return first;
	}

	/** As {@link fitToNext}. */
	#updateExecutable(sender: Sender): boolean {
		const firstNonExecutable = this.#firstNonExecutable(sender.entries, sender.nonce);
		for (const entry of sender.entries) {
			const isNonExecutable = entry.transaction.tx.nonce >= firstNonExecutable;
			if (isNonExecutable === entry.isNonExecutable) continue;
			const [client, bytes] = [clientOf(entry.transaction.submitterAddress), bytesOf(entry.transaction)];
			(entry as OwnEntry).isNonExecutable = isNonExecutable;
			if (isNonExecutable) this.#nonExecutableBytes.takeAnyway(client, bytes);
			else this.#nonExecutableBytes.release(client, bytes);
		}
		return firstNonExecutable > sender.nonce;
	}

	/** Counts an entry's bytes. */
	#count({ transaction }: PoolEntry): void {
		this.#bytes.takeAnyway(clientOf(transaction.submitterAddress), bytesOf(transaction));
	}

	/** Releases an entry's bytes. */
	#release(entry: PoolEntry): void {
		const [client, bytes] = [clientOf(entry.transaction.submitterAddress), bytesOf(entry.transaction)];
		this.#bytes.release(client, bytes);
		if (entry.isNonExecutable) this.#nonExecutableBytes.release(client, bytes);
		(entry as OwnEntry).isNonExecutable = false;
	}
}

/** The bytes that a transaction counts in the pool. */
function bytesOf({ tx }: PrivateTransaction): number {
	return tx.size + OVERHEAD_BYTES;
}

function rejectedFor(
	code: "UNDERPRICED" | "SENDER_FULL" | "POOL_FULL" | "CLIENT_FULL",
	message: string,
	scope?: string,
): Rejected {
	return {
		outcome: "rejected",
		rejection: rejection(code, message, scope === undefined ? undefined : { scope }),
	};
}
