// The pending transactions, by hash and by sender and nonce, and how many bytes of them each client holds. It does no
// I/O and emits no events; its callers do.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { clientOf } from "../../shared/http/callContext.ts";
import { Shares } from "../../shared/shares/shares.ts";
import type { AccountState, NextBlock } from "../domain/chain.ts";
import type { PendingReader } from "../domain/ports.ts";
import { type Rejection, rejection } from "../domain/rejection.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import { paysFor } from "../domain/transactionRules.ts";

/** A transaction in the pool, with what is known of its way to the builders. */
export interface PoolEntry {
	readonly transaction: PrivateTransaction;
	/** False while its write is under way: nothing that is not on disk goes out. */
	durable: boolean;
	/** The last block it was handed to builders for, or null. */
	sentForBlock: number | null;
	/** Names of the builders that it was handed to for that block. */
	currentBuilders: ReadonlySet<string>;
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
	/** In nonce order. */
	entries: PoolEntry[];
}

export interface PoolOptions {
	/** Bytes in all; a transaction counts as {@link bytesOf} says. */
	readonly maxBytes: number;
}

/** Transactions of one sender at most. */
export const MAX_PER_SENDER = 64;
/** What a transaction counts beside its raw bytes. */
const OVERHEAD_BYTES = 512;
/** One client's share of the pool. */
const CLIENT_SHARE = 1 / 16;
/** What can't be in the next block: its share of the pool, and one client's bytes of it. */
const PARKED_SHARE = 1 / 2;
const PARKED_CLIENT_BYTES = 4 * 1024 * 1024;

/** The pending transactions. */
export class Pool implements PendingReader {
	readonly #byHash = new Map<string, PoolEntry>();
	readonly #bySender = new Map<string, Sender>();
	/** Bytes by client: of all, and of what is parked. */
	readonly #held: Shares;
	readonly #heldParked: Shares;
	/** What can't be in the next block, as of the last time that its sender was looked at. */
	readonly #parked = new Set<PoolEntry>();
	#next: Pick<NextBlock, "baseFee" | "blobBaseFee"> = { baseFee: 0n, blobBaseFee: 0n };

	constructor({ maxBytes }: PoolOptions) {
		this.#held = new Shares({ total: maxBytes, perClient: maxBytes * CLIENT_SHARE });
		this.#heldParked = new Shares({ total: maxBytes * PARKED_SHARE, perClient: PARKED_CLIENT_BYTES });
	}

	get size(): number {
		return this.#byHash.size;
	}

	/** When the oldest of them was received, in ms since the epoch; null where there is none. */
	oldestReceivedAt(): number | null {
		let oldest: number | null = null;
		for (const { transaction } of this.#byHash.values())
			oldest = Math.min(oldest ?? transaction.receivedAt, transaction.receivedAt);
		return oldest;
	}

	get(hash: string): PoolEntry | undefined {
		return this.#byHash.get(hash);
	}

	/** Whether this very entry is here still. */
	holds(entry: PoolEntry): boolean {
		return this.#byHash.get(entry.transaction.tx.hash) === entry;
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
	senders(): IterableIterator<string> {
		return this.#bySender.keys();
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
		if (old === undefined && (sender?.entries.length ?? 0) >= MAX_PER_SENDER) {
			return refused(
				"SENDER_FULL",
				`txpool is full: ${MAX_PER_SENDER} transactions of this sender`,
				"sender",
			);
		}
		const entry: PoolEntry = {
			transaction,
			durable: false,
			sentForBlock: null,
			currentBuilders: new Set(),
			sentTo: new Set(),
		};
		// What it replaces makes room for it.
		if (old !== undefined) this.#release(old);
		const full = this.#full(transaction, sender, account);
		if (sender === undefined || old === undefined) {
			if (full !== null) return full;
			this.insert(entry, account.nonce, account.block);
			this.setAccount(account);
			return { outcome: "added", entry };
		}
		if (full !== null) {
			this.#hold(old);
			this.#park(sender);
			return full;
		}
		sender.entries[sender.entries.indexOf(old)] = entry;
		this.#byHash.delete(old.transaction.tx.hash);
		this.#byHash.set(tx.hash, entry);
		this.#hold(entry);
		this.#park(sender);
		this.setAccount(account);
		return { outcome: "replaced", entry, old };
	}

	/** The refusal where its client, or all together, hold too much for one more; else null. */
	#full(
		transaction: PrivateTransaction,
		sender: Sender | undefined,
		account: AccountState,
	): AddOutcome | null {
		const { tx, origin } = transaction;
		const nonce = sender !== undefined && sender.asOf > account.block ? sender.nonce : account.nonce;
		const goes = tx.nonce <= this.#reach(sender?.entries ?? [], nonce) && paysFor(tx, this.#next);
		const [client, bytes] = [clientOf(origin), bytesOf(transaction)];
		const over = this.#held.refusal(client, bytes) ?? (goes ? null : this.#heldParked.refusal(client, bytes));
		if (over === null) return null;
		return over === "total"
			? refused("POOL_FULL", "txpool is full", "pool")
			: refused("CLIENT_FULL", "too many pending transactions from this client", "client");
	}

	/**
	 * Puts an entry at its place without asking: at a start, after a reorganisation, or back after a failed write.
	 * Answers false where its place is taken.
	 */
	insert(entry: PoolEntry, nonce: bigint, asOf: number): boolean {
		const { tx } = entry.transaction;
		let sender = this.#bySender.get(tx.from);
		if (sender === undefined) {
			sender = { nonce, asOf, floor: 0n, entries: [] };
			this.#bySender.set(tx.from, sender);
		} else if (asOf >= sender.asOf) {
			sender.nonce = nonce;
			sender.asOf = asOf;
		}
		const at = sender.entries.findIndex((other) => other.transaction.tx.nonce >= tx.nonce);
		if (at >= 0 && sender.entries[at]?.transaction.tx.nonce === tx.nonce) return false;
		sender.entries.splice(at < 0 ? sender.entries.length : at, 0, entry);
		this.#byHash.set(tx.hash, entry);
		this.#hold(entry);
		this.#park(sender);
		return true;
	}

	/** Takes an entry out; one that is not here any more is left alone. */
	remove(entry: PoolEntry): void {
		const { tx } = entry.transaction;
		if (!this.holds(entry)) return;
		this.#byHash.delete(tx.hash);
		this.#release(entry);
		const sender = this.#bySender.get(tx.from);
		if (sender === undefined) return;
		sender.entries = sender.entries.filter((other) => other !== entry);
		if (sender.entries.length === 0) this.#bySender.delete(tx.from);
		else this.#park(sender);
	}

	/** Takes note of an account's nonce; answers the entries whose nonce is used, which the caller takes out. */
	setAccount(account: AccountState): readonly PoolEntry[] {
		const sender = this.#bySender.get(account.address);
		if (sender === undefined) return [];
		if (account.block >= sender.asOf) {
			sender.nonce = account.nonce;
			sender.floor = account.nonce;
			sender.asOf = account.block;
			this.#park(sender);
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
		this.#park(known);
	}

	/** Forgets what blocks above `block` said: after a reorganisation an account's nonce may be lower again. */
	rewind(block: number): void {
		for (const sender of this.#bySender.values()) {
			if (sender.asOf > block) sender.floor = 0n;
			sender.asOf = Math.min(sender.asOf, block);
		}
	}

	/** Takes note of what the next block asks for; what that means for a sender is worked out by {@link canGoOut}. */
	setNext(next: NextBlock): void {
		this.#next = next;
	}

	/** Whether the first of the sender's transactions can be in the next block; counts anew which of them can't. */
	canGoOut(address: string): boolean {
		const sender = this.#bySender.get(address);
		return sender !== undefined && this.#park(sender);
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
	/** The first nonce from `nonce` on that can't be in the next block with what is here. */
	#reach(entries: readonly PoolEntry[], nonce: bigint): bigint {
		let reach = nonce;
		for (const { transaction } of entries) {
			const { tx } = transaction;
			if (tx.nonce < nonce) continue;
			if (tx.nonce !== reach || !paysFor(tx, this.#next)) break;
			reach += 1n;
		}
		return reach;
	}

	/** Parks what can't be in the next block, and no other; answers whether the first can. */
	#park(sender: Sender): boolean {
		const reach = this.#reach(sender.entries, sender.nonce);
		for (const entry of sender.entries) {
			const isParked = entry.transaction.tx.nonce >= reach;
			if (isParked === this.#parked.has(entry)) continue;
			const [client, bytes] = [clientOf(entry.transaction.origin), bytesOf(entry.transaction)];
			if (isParked) {
				this.#parked.add(entry);
				this.#heldParked.force(client, bytes);
			} else {
				this.#parked.delete(entry);
				this.#heldParked.give(client, bytes);
			}
		}
		return reach > sender.nonce;
	}

	#hold({ transaction }: PoolEntry): void {
		this.#held.force(clientOf(transaction.origin), bytesOf(transaction));
	}

	#release(entry: PoolEntry): void {
		const [client, bytes] = [clientOf(entry.transaction.origin), bytesOf(entry.transaction)];
		this.#held.give(client, bytes);
		if (this.#parked.delete(entry)) this.#heldParked.give(client, bytes);
	}
}

/** What a transaction counts in the pool. */
function bytesOf({ tx }: PrivateTransaction): number {
	return tx.size + OVERHEAD_BYTES;
}

function refused(
	code: "UNDERPRICED" | "SENDER_FULL" | "POOL_FULL" | "CLIENT_FULL",
	message: string,
	scope?: string,
): AddOutcome {
	return {
		outcome: "refused",
		rejection: rejection(code, message, scope === undefined ? undefined : { scope }),
	};
}

/** By how many percent each fee must grow, as in go-ethereum's pool. */
const PRICE_BUMP_PERCENT = 10n;

/**
 * Whether every fee of `fresh` is at least 10 % above that of `held`, fractions of a wei left out as go-ethereum does
 * (core/txpool/legacypool/list.go) and wallets reckon with; of a small fee, at least one wei.
 */
export function mayReplace(fresh: DecodedTransaction, held: DecodedTransaction): boolean {
	return (
		bumped(fresh.maxFeePerGas, held.maxFeePerGas) &&
		bumped(fresh.maxPriorityFeePerGas, held.maxPriorityFeePerGas) &&
		(held.maxFeePerBlobGas === null ||
			fresh.maxFeePerBlobGas === null ||
			bumped(fresh.maxFeePerBlobGas, held.maxFeePerBlobGas))
	);
}

function bumped(fresh: bigint, held: bigint): boolean {
	return fresh > held && fresh >= (held * (100n + PRICE_BUMP_PERCENT)) / 100n;
}
