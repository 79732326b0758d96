// The live bids by target, with their limits.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { MultiMap } from "../../shared/multiMap.ts";
import { Shares } from "../../shared/shares/shares.ts";
import { type Bid, compare } from "./bid.ts";

export interface BidsOptions {
	/** Most bids in all, of one client, on one target, and of one client on one target. */
	readonly maxTotal: number;
	readonly maxPerClient: number;
	readonly maxPerTarget: number;
	readonly maxOwnPerTarget: number;
	/** Most bids of one client with backruns of one sender. */
	readonly maxPerSender: number;
	/** Most bytes of raw backruns in all and of one client. */
	readonly maxBytes: number;
	readonly maxClientBytes: number;
}

export const BID_LIMITS: BidsOptions = {
	maxTotal: 20_000,
	maxPerClient: 2_000,
	maxPerTarget: 1_000,
	maxOwnPerTarget: 32,
	maxPerSender: 64,
	maxBytes: 128 * 1024 * 1024,
	maxClientBytes: 16 * 1024 * 1024,
};

/** The live bids. */
export class Bids {
	readonly #options: BidsOptions;
	readonly #byTarget = new MultiMap<Bid>();
	/**
	 * By client and backrun's sender. Another client that has the sender's signed backruns counts
	 * separately.
	 */
	readonly #bySender = new MultiMap<Bid>();
	readonly #count: Shares;
	readonly #bytes: Shares;

	constructor(options: BidsOptions) {
		const { maxTotal, maxPerClient, maxBytes, maxClientBytes } = options;
		this.#options = options;
		this.#count = new Shares({ total: maxTotal, perClient: maxPerClient });
		this.#bytes = new Shares({ total: maxBytes, perClient: maxClientBytes });
	}

	get size(): number {
		return this.#count.taken;
	}

	/** How many targets have bids. */
	get targetCount(): number {
		return this.#byTarget.size;
	}

	/** Whether the bid is still live. */
	holds(bid: Bid): boolean {
		return this.#byTarget.get(bid.target).has(bid);
	}

	/** Whether there is a bid on `target`. */
	has(target: string): boolean {
		return this.#byTarget.has(target);
	}

	/** The bids on `target`, unordered. */
	of(target: string): readonly Bid[] {
		return [...this.#byTarget.get(target)];
	}

	/** Hashes of all targets that have bids. */
	targets(): readonly string[] {
		return [...this.#byTarget.keys()];
	}

	/**
	 * The limit that one more bid of `client` on `target` would exceed, after `freed` of its bids are
	 * removed; or null.
	 */
	full(
		client: string,
		target: string,
		{ from, size: bytes }: DecodedTransaction,
		freed: number,
	): string | null {
		const { maxPerClient, maxOwnPerTarget, maxPerSender, maxClientBytes } = this.#options;
		if (this.#count.exceeded(client, 1 - freed) === "client") return `${maxPerClient} bids of one client`;
		if (this.#bytes.exceeded(client, bytes) === "client")
			return `${maxClientBytes} bytes of one client's bids`;
		if (this.#bySender.get(senderKey(client, from)).size - freed >= maxPerSender)
			return `${maxPerSender} bids of one sender`;
		return this.#countOn(target, client) - freed < maxOwnPerTarget
			? null
			: `${maxOwnPerTarget} bids of one client on one transaction`;
	}

	/**
	 * If `target` has too many bids, the one to evict when `block` is the next; null if there is
	 * room. It belongs to the client with the most bids. The bid that starts latest after `block`
	 * goes first, else the lowest.
	 */
	toEvictOnTarget(target: string, block: number): Bid | null {
		const all = this.of(target);
		if (all.length <= this.#options.maxPerTarget) return null;
		const counts = new Map<string, number>();
		for (const { client } of all) counts.set(client, (counts.get(client) ?? 0) + 1);
		const most = Math.max(...counts.values());
		const bids = all.filter(({ client }) => counts.get(client) === most);
		const later = bids.filter((bid) => bid.firstBlock > block);
		if (later.length > 0) return later.reduce((far, bid) => (bid.firstBlock > far.firstBlock ? bid : far));
		return bids.reduce((low, bid) => (compare(bid, low) > 0 ? bid : low));
	}

	#countOn(target: string, client: string): number {
		return this.of(target).filter((bid) => bid.client === client).length;
	}

	/**
	 * If there are too many bids or bytes in all, the lowest bid of the client with the most bids,
	 * to evict. Else null.
	 */
	toEvictInAll(): Bid | null {
		const isOver = this.#count.exceeded("", 0) === "total" || this.#bytes.exceeded("", 0) === "total";
		if (!isOver) return null;
		const fullest = this.#count.largest();
		const own = this.targets().flatMap((target) =>
			this.of(target).filter(({ client }) => client === fullest),
		);
		return own.length === 0 ? null : own.reduce((low, bid) => (compare(bid, low) > 0 ? bid : low));
	}

	add(bid: Bid): void {
		this.#byTarget.add(bid.target, bid);
		this.#bySender.add(senderKey(bid.client, bid.backrun.from), bid);
		this.#count.takeAnyway(bid.client, 1);
		this.#bytes.takeAnyway(bid.client, bid.backrun.size);
	}

	/** Removes a bid; returns false if it was not live. */
	remove(bid: Bid): boolean {
		if (!this.holds(bid)) return false;
		this.#byTarget.delete(bid.target, bid);
		this.#bySender.delete(senderKey(bid.client, bid.backrun.from), bid);
		this.#count.release(bid.client, 1);
		this.#bytes.release(bid.client, bid.backrun.size);
		return true;
	}
}

function senderKey(client: string, sender: string): string {
	return `${client} ${sender}`;
}
