// The pool owns the transactions that may still go out: by hash, and by sender and nonce. What comes in are
// admitted transactions and account nonces, what goes out are chains of nonces. It does no I/O and emits nothing:
// those who change it say what happened.

import type { AccountState } from "../domain/chain.ts";
import type { PendingReader } from "../domain/ports.ts";
import { type Rejection, rejection } from "../domain/rejection.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import { mayReplace } from "./replacement.ts";

/** A transaction in the pool, with what is known of its way to the builders. */
export interface PoolEntry {
	readonly transaction: PrivateTransaction;
	/** False while its write is under way: nothing that is not on disk goes out. */
	durable: boolean;
	/** The last block it was handed to builders for, or null. */
	outFor: number | null;
	/** Names of the builders that it was handed to for that block. */
	outTo: ReadonlySet<string>;
	/** Names of the builders that it was ever handed to: who must be told when it is withdrawn. */
	sentTo: ReadonlySet<string>;
}

/** What became of an attempt to add. */
export type AddOutcome =
	| { readonly outcome: "added"; readonly entry: PoolEntry }
	| { readonly outcome: "replaced"; readonly entry: PoolEntry; readonly old: PoolEntry }
	| { readonly outcome: "refused"; readonly rejection: Rejection };

/** One sender's transactions, in nonce order. Those from the first one on whose write is under way are left out. */
export interface SenderChain {
	/** From the account's nonce on, without a gap. */
	readonly ready: readonly PoolEntry[];
	/** Behind a gap. */
	readonly waiting: readonly PoolEntry[];
}

interface Sender {
	/** The account's nonce as of block `asOf`. */
	nonce: bigint;
	asOf: number;
	/** No nonce below it is free in the chain as it stands; 0 where that is not known. */
	floor: bigint;
	/** Of the raw transactions. */
	bytes: number;
	/** In nonce order. */
	entries: PoolEntry[];
}

export interface PoolOptions {
	/** Transactions at most, of one sender and of all. */
	readonly maxPerSender: number;
	readonly maxTotal: number;
	/** Bytes of raw transactions at most, of one sender and of all. */
	readonly maxSenderBytes: number;
	readonly maxTotalBytes: number;
}

/**
 * A transaction of 200 bytes takes some 10 KiB of memory in all, a large one its own size beside that. One sender may
 * have eight transactions of six blobs.
 */
export const POOL_LIMITS: PoolOptions = {
	maxPerSender: 64,
	maxTotal: 200_000,
	maxSenderBytes: 8 * 1024 * 1024,
	maxTotalBytes: 512 * 1024 * 1024,
};

/** The pending transactions. */
export class Pool implements PendingReader {
	readonly #options: PoolOptions;
	readonly #byHash = new Map<string, PoolEntry>();
	readonly #bySender = new Map<string, Sender>();
	#bytes = 0;

	constructor(options: PoolOptions) {
		this.#options = options;
	}

	get size(): number {
		return this.#byHash.size;
	}

	get(hash: string): PoolEntry | undefined {
		return this.#byHash.get(hash);
	}

	/** The transaction with this hash, or null; one whose write is under way is not there yet. */
	pending(hash: string): PrivateTransaction | null {
		const entry = this.#byHash.get(hash);
		return entry?.durable === true ? entry.transaction : null;
	}

	/** The holder of a sender's nonce. */
	at(sender: string, nonce: bigint): PoolEntry | undefined {
		return this.#bySender.get(sender)?.entries.find((entry) => entry.transaction.tx.nonce === nonce);
	}

	/** Every sender that has a transaction here. */
	senders(): readonly string[] {
		return [...this.#bySender.keys()];
	}

	/**
	 * Adds a transaction that is not here yet, in place of another one with its nonce where its fees allow it.
	 * The entry is not durable yet.
	 */
	add(transaction: PrivateTransaction, account: AccountState): AddOutcome {
		const { tx } = transaction;
		const sender = this.#bySender.get(tx.from);
		const old = sender?.entries.find((entry) => entry.transaction.tx.nonce === tx.nonce);
		if (old !== undefined && !mayReplace(tx, old.transaction.tx)) {
			return refused("UNDERPRICED", "replacement transaction underpriced: expected 10 % more on every fee");
		}
		const full = this.#full(sender, tx.size, old);
		if (full !== null) return full;
		const entry: PoolEntry = {
			transaction,
			durable: false,
			outFor: null,
			outTo: new Set(),
			sentTo: new Set(),
		};
		if (sender === undefined || old === undefined) {
			this.insert(entry, account.nonce, account.block);
			this.setAccount(account);
			return { outcome: "added", entry };
		}
		sender.entries[sender.entries.indexOf(old)] = entry;
		this.#byHash.delete(old.transaction.tx.hash);
		this.#byHash.set(tx.hash, entry);
		sender.bytes += tx.size - old.transaction.tx.size;
		this.#bytes += tx.size - old.transaction.tx.size;
		this.setAccount(account);
		return { outcome: "replaced", entry, old };
	}

	/** The refusal where there is no room for `size` bytes more, in the place of `old` if there is one; else null. */
	#full(sender: Sender | undefined, size: number, old: PoolEntry | undefined): AddOutcome | null {
		const { maxPerSender, maxTotal, maxSenderBytes, maxTotalBytes } = this.#options;
		const more = size - (old?.transaction.tx.size ?? 0);
		if (old === undefined && (sender?.entries.length ?? 0) >= maxPerSender) {
			return refused("SENDER_FULL", `txpool is full: ${maxPerSender} transactions of this sender`, "sender");
		}
		if ((sender?.bytes ?? 0) + more > maxSenderBytes) {
			return refused("SENDER_FULL", `txpool is full: ${maxSenderBytes} bytes of this sender`, "sender");
		}
		const isFull = old === undefined && this.#byHash.size >= maxTotal;
		return isFull || this.#bytes + more > maxTotalBytes
			? refused("POOL_FULL", "txpool is full", "pool")
			: null;
	}

	/**
	 * Puts an entry at its place without asking: at a start, after a reorganisation, or back after a failed write.
	 * Answers false where its place is taken.
	 */
	insert(entry: PoolEntry, nonce: bigint, asOf: number): boolean {
		const { tx } = entry.transaction;
		let sender = this.#bySender.get(tx.from);
		if (sender === undefined) {
			sender = { nonce, asOf, floor: 0n, bytes: 0, entries: [] };
			this.#bySender.set(tx.from, sender);
		} else if (asOf >= sender.asOf) {
			sender.nonce = nonce;
			sender.asOf = asOf;
		}
		const at = sender.entries.findIndex((other) => other.transaction.tx.nonce >= tx.nonce);
		if (at >= 0 && sender.entries[at]?.transaction.tx.nonce === tx.nonce) return false;
		sender.entries.splice(at < 0 ? sender.entries.length : at, 0, entry);
		this.#byHash.set(tx.hash, entry);
		sender.bytes += tx.size;
		this.#bytes += tx.size;
		return true;
	}

	/** Takes an entry out; one that is not here any more is left alone. */
	remove(entry: PoolEntry): void {
		const { tx } = entry.transaction;
		if (this.#byHash.get(tx.hash) !== entry) return;
		this.#byHash.delete(tx.hash);
		this.#bytes -= tx.size;
		const sender = this.#bySender.get(tx.from);
		if (sender === undefined) return;
		sender.bytes -= tx.size;
		sender.entries = sender.entries.filter((other) => other !== entry);
		if (sender.entries.length === 0) this.#bySender.delete(tx.from);
	}

	/** Takes note of an account's nonce; answers the entries whose nonce is used, which the caller takes out. */
	setAccount(account: AccountState): readonly PoolEntry[] {
		const sender = this.#bySender.get(account.address);
		if (sender === undefined) return [];
		if (account.block >= sender.asOf) {
			sender.nonce = account.nonce;
			sender.floor = account.nonce;
			sender.asOf = account.block;
		}
		return sender.entries.filter((entry) => entry.transaction.tx.nonce < sender.nonce);
	}

	/** Takes note that a nonce of the sender's was used in `block`: what stands behind it is next in line. */
	use(sender: string, nonce: bigint, block: number): void {
		const known = this.#bySender.get(sender);
		if (known === undefined || block < known.asOf || nonce < known.nonce) return;
		known.nonce = nonce + 1n;
		known.floor = known.nonce;
		known.asOf = block;
	}

	/** Forgets what blocks above `block` said: after a reorganisation an account's nonce may be lower again. */
	rewind(block: number): void {
		for (const sender of this.#bySender.values()) {
			if (sender.asOf > block) sender.floor = 0n;
			sender.asOf = Math.min(sender.asOf, block);
		}
	}

	/** The sender's transactions, split where the nonces stop following one another. */
	chain(address: string): SenderChain {
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
	 * `base` raised over the sender's nonces that follow it without a gap. A node that is behind is not believed where
	 * the chain is known to have used more.
	 */
	pendingNonce(address: string, base: bigint): bigint {
		const sender = this.#bySender.get(address);
		let next = base > (sender?.floor ?? 0n) ? base : (sender?.floor ?? 0n);
		for (const entry of sender?.entries ?? []) {
			if (entry.transaction.tx.nonce === next) next += 1n;
		}
		return next;
	}
}

function refused(
	code: "UNDERPRICED" | "SENDER_FULL" | "POOL_FULL",
	message: string,
	scope?: string,
): AddOutcome {
	return {
		outcome: "refused",
		rejection: rejection(code, message, scope === undefined ? undefined : { scope }),
	};
}
