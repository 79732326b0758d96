// Keeps the bundles, private transactions and cancels that a builder received, and lists the orders live for a block.
// It neither reads the wire nor tries anything on a chain.

import type { DecodedTransaction } from "./builderTransactions.ts";

/** A transaction of an order. */
export interface OrderTransaction extends DecodedTransaction {
	/** It may be mined as reverted. */
	readonly mayRevert: boolean;
	/** The order may land without it. */
	readonly mayDrop: boolean;
}

/** A part of what an order earns, to be paid behind it. */
export interface OrderRefund {
	/** Of the gain; 1 percent is 10,000. Two percents multiplied stay exact so. */
	readonly millionths: bigint;
	/** Checksummed. */
	readonly recipient: string;
	/** Hashes of the transactions whose coinbase gain counts. */
	readonly of: readonly string[];
}

/** An order as it comes from the wire. */
export interface NewOrder {
	readonly kind: "bundle" | "private";
	/** The method that brought it. */
	readonly method: string;
	/** When, Unix ms. */
	readonly at: number;
	/** Who signed the request, checksummed; null where unsigned requests are taken. */
	readonly signer: string | null;
	readonly uuid: string | null;
	/** keccak256 of the transactions' hashes in a row; of a private transaction its hash. */
	readonly hash: string;
	readonly transactions: readonly OrderTransaction[];
	/** The blocks it may land in, both included. */
	readonly firstBlock: number;
	readonly lastBlock: number;
	/** Unix seconds, where given. */
	readonly minTimestamp: number | null;
	readonly maxTimestamp: number | null;
	readonly refunds: readonly OrderRefund[];
}

/** An order as the book keeps it. */
export interface Order extends NewOrder {
	/** 1 for the first; grows by one an order. */
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

/** Orders of the past that are kept for {@link OrderBook.all}. */
const KEPT_ORDERS = 50_000;
/** What has landed or expired can come back when so many blocks are reorganised away. */
const REORG_BLOCKS = 8;

/** All orders of one builder. */
export class OrderBook {
	#all: MutableOrder[] = [];
	/** Those that may still land, or land again after a reorganisation, by what names them. */
	readonly #current = new Map<string, MutableOrder>();
	#lastId = 0;

	/** Takes an order, in the place of an earlier one of the same name: its id is told, if it was live. */
	add(order: NewOrder): { readonly id: number; readonly replaced: number | null } {
		const name = nameOf(order);
		const replaced = this.#end(name, "replaced");
		const kept: MutableOrder = { ...order, id: ++this.#lastId, state: "live", landed: null };
		this.#current.set(name, kept);
		this.#all.push(kept);
		if (this.#all.length > KEPT_ORDERS) this.#all = this.#all.slice(-KEPT_ORDERS / 2);
		return { id: kept.id, replaced };
	}

	/** Cancels what `signer` has live under `uuid`; its id, or null where there is none. */
	cancelUuid(signer: string | null, uuid: string): number | null {
		return this.#end(nameOfUuid(signer, uuid), "cancelled");
	}

	/** Cancels the private transaction `hash` where `signer` has sent it; its id, or null. */
	cancelTransaction(signer: string | null, hash: string): number | null {
		return this.#end(nameOfPrivate(signer, hash), "cancelled");
	}

	/** Blocks that orders have landed in and that a reorganisation could take back. */
	landedBlocks(): LandedBlock[] {
		const blocks = new Map<string, LandedBlock>();
		for (const { landed } of this.#current.values()) if (landed !== null) blocks.set(landed.hash, landed);
		return [...blocks.values()];
	}

	/**
	 * The orders that may go into block `next`, oldest first. What landed in a block of `gone` (hashes) is live
	 * again; what is past is expired by this.
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
	 * Marks as landed what is in a block: the orders it was built of, and those whose transactions are all in it by
	 * other orders.
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

	/** Every order ever taken (of the last 25,000 at least), oldest first. */
	all(): readonly Order[] {
		return this.#all;
	}

	/** Forgets everything. */
	clear(): void {
		this.#all = [];
		this.#current.clear();
	}

	/** What has landed stays so, but will not come back after a reorganisation. */
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
