// Keeps a builder's orders, which are bundles and private transactions, applies cancels, and lists
// the orders that are live for a block. It neither parses requests nor uses a chain.

import type { DecodedTransaction } from "./builderTransactions.ts";

/** A transaction of an order. */
export interface OrderTransaction extends DecodedTransaction {
	/** Whether it may revert. */
	readonly mayRevert: boolean;
	/** Whether the order may land without it. */
	readonly mayDrop: boolean;
}

/** A part of what an order pays, to be refunded after it. */
export interface OrderRefund {
	/**
	 * Share of the gain in millionths: 1 percent is 10,000, so the product of two percentages is
	 * exact.
	 */
	readonly millionths: bigint;
	/** Checksummed. */
	readonly recipient: string;
	/** Hashes of the transactions whose coinbase gain counts. */
	readonly of: readonly string[];
}

/** A received order. */
export interface NewOrder {
	readonly kind: "bundle" | "private";
	/** The method that brought it. */
	readonly method: string;
	/** Time of arrival, in Unix ms. */
	readonly at: number;
	/**
	 * The signer of the request, checksummed; null for unsigned requests, if the builder accepts
	 * them.
	 */
	readonly signer: string | null;
	readonly uuid: string | null;
	/** keccak256 of the concatenated hashes; for a private transaction its hash. */
	readonly hash: string;
	readonly transactions: readonly OrderTransaction[];
	/** The blocks it may land in, both included. */
	readonly firstBlock: number;
	readonly lastBlock: number;
	/** In Unix seconds, if given. */
	readonly minTimestamp: number | null;
	readonly maxTimestamp: number | null;
	readonly refunds: readonly OrderRefund[];
}

/** An order in the book. */
export interface Order extends NewOrder {
	/** 1 for the first order, 2 for the second, and so on. */
	readonly id: number;
	readonly state: "live" | "landed" | "cancelled" | "replaced" | "expired";
	/** The block it is in, while it is `landed`. */
	readonly landed: LandedBlock | null;
}

/** A block that holds orders. */
interface LandedBlock {
	readonly number: number;
	readonly hash: string;
}

type MutableOrder = { -readonly [K in keyof Order]: Order[K] };

/** Number of finished orders that {@link OrderBook.all} still returns. */
const KEPT_ORDERS = 50_000;
/**
 * Landed and expired orders can become live again by reorganisations of at most this many blocks.
 */
const REORG_BLOCKS = 8;

/** All orders of one builder. */
export class OrderBook {
	#all: MutableOrder[] = [];
	/**
	 * Orders that may still land, or land again after a reorganisation, by signer and uuid or hash.
	 */
	readonly #current = new Map<string, MutableOrder>();
	#lastId = 0;

	/**
	 * Adds an order, which replaces an earlier one with the same key; returns the replaced one's id
	 * if it was live.
	 */
	add(order: NewOrder): { readonly id: number; readonly replaced: number | null } {
		const name = nameOf(order);
		const replaced = this.#end(name, "replaced");
		const kept: MutableOrder = { ...order, id: ++this.#lastId, state: "live", landed: null };
		this.#current.set(name, kept);
		this.#all.push(kept);
		if (this.#all.length > KEPT_ORDERS) this.#all = this.#all.slice(-KEPT_ORDERS / 2);
		return { id: kept.id, replaced };
	}

	/** Cancels the live order of `signer` with `uuid`; returns its id, or null if there is none. */
	cancelUuid(signer: string | null, uuid: string): number | null {
		return this.#end(nameOfUuid(signer, uuid), "cancelled");
	}

	/** Cancels the private transaction `hash` if `signer` has sent it; returns its id, or null. */
	cancelTransaction(signer: string | null, hash: string): number | null {
		return this.#end(nameOfPrivate(signer, hash), "cancelled");
	}

	/** Blocks in which orders landed, and which a reorganisation could still remove. */
	landedBlocks(): LandedBlock[] {
		const blocks = new Map<string, LandedBlock>();
		for (const { landed } of this.#current.values()) if (landed !== null) blocks.set(landed.hash, landed);
		return [...blocks.values()];
	}

	/**
	 * The orders that are live for block `next`, oldest first. Makes orders that landed in a block of
	 * `gone` (hashes) live again, and expires those whose range has ended.
	 */
	liveFor(next: number, gone: ReadonlySet<string>): Order[] {
		const live: Order[] = [];
		for (const [name, order] of this.#current) {
			if (order.landed !== null && gone.has(order.landed.hash)) {
				order.landed = null;
				order.state = "live";
			}
			if (order.state !== "landed") order.state = order.lastBlock < next ? "expired" : "live";
			if (order.state === "live" && order.firstBlock <= next) live.push(order);
			if (order.lastBlock + REORG_BLOCKS < next) this.#current.delete(name);
		}
		return live.sort((a, b) => a.id - b.id);
	}

	/**
	 * Marks orders as landed: those that the block was built of, and those whose transactions are all
	 * in it through other orders.
	 */
	landed(built: ReadonlySet<number>, block: LandedBlock, hashes: ReadonlySet<string>): void {
		for (const order of this.#current.values()) {
			if (order.state !== "live") continue;
			const held = order.transactions.every(({ hash, mayDrop }) => mayDrop || hashes.has(hash));
			const some = order.transactions.some(({ hash }) => hashes.has(hash));
			if (!built.has(order.id) && !(held && some)) continue;
			order.state = "landed";
			order.landed = block;
		}
	}

	/** All orders, at least the last 25,000, oldest first. */
	all(): readonly Order[] {
		return this.#all;
	}

	/** Forgets everything. */
	clear(): void {
		this.#all = [];
		this.#current.clear();
	}

	/** Makes landed and expired orders final: no reorganisation makes them live again. */
	#end(name: string, state: "cancelled" | "replaced"): number | null {
		const order = this.#current.get(name);
		this.#current.delete(name);
		if (order?.state !== "live") return null;
		order.state = state;
		return order.id;
	}
}

function nameOf(order: NewOrder): string {
	if (order.kind === "private") return nameOfPrivate(order.signer, order.hash);
	if (order.uuid !== null) return nameOfUuid(order.signer, order.uuid);
	return `bundle ${order.signer} ${order.hash} ${order.firstBlock}`;
}

function nameOfUuid(signer: string | null, uuid: string): string {
	return `uuid ${signer} ${uuid}`;
}

function nameOfPrivate(signer: string | null, hash: string): string {
	return `private ${signer} ${hash}`;
}
