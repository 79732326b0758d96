// The book of bids: valid ones come in, those that win go out. It ranks and bounds; it simulates nothing, sends
// nothing, and knows no clock.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";

/** A bid that was simulated behind its target. */
export interface Bid {
	/** Who sent it, and from which network. */
	readonly owner: string;
	readonly network: string;
	/** The bundle's hash: keccak256 of the target's hash and the backrun's. */
	readonly hash: string;
	readonly target: string;
	readonly backrun: DecodedTransaction;
	/** The blocks it is for, both included. */
	readonly firstBlock: number;
	readonly lastBlock: number;
	/** Names of the builders that may have it; null: all. */
	readonly builders: readonly string[] | null;
	/** Of those accepted; of equal bids the earlier one wins. */
	readonly seq: number;
	/** Wei that it pays by transfer, as last simulated. */
	value: bigint;
	/** The state that it was simulated in: head and links up to its target. It wins only while that is the present one. */
	basis: string | null;
	/** The state that it is being simulated in now, or null. */
	checking: string | null;
	/** The last state in which it was simulated and nothing was found out of it, or null. */
	tried: string | null;
	/** Gives its uuid back, once it has ended. */
	readonly release: () => void;
}

export interface AuctionBookOptions {
	/** Bids at most: in all, of one network, on one target, and of one owner on one target. */
	readonly maxTotal: number;
	readonly maxPerNetwork: number;
	readonly maxPerTarget: number;
	readonly maxOwnPerTarget: number;
	/** Bytes of raw backruns at most. */
	readonly maxBytes: number;
}

export const BOOK_LIMITS: AuctionBookOptions = {
	maxTotal: 50_000,
	maxPerNetwork: 2_000,
	maxPerTarget: 1_000,
	maxOwnPerTarget: 32,
	maxBytes: 128 * 1024 * 1024,
};

/** All live bids. */
export class AuctionBook {
	readonly #options: AuctionBookOptions;
	/** The dearest first, of equals the earlier. */
	readonly #ranked: Bid[] = [];
	readonly #byTarget = new Map<string, Set<Bid>>();
	readonly #byNetwork = new Map<string, number>();
	#bytes = 0;
	#restricted = 0;

	constructor(options: AuctionBookOptions) {
		this.#options = options;
	}

	get size(): number {
		return this.#ranked.length;
	}

	/** Whether any bid is for some of the builders alone. */
	get restricted(): boolean {
		return this.#restricted > 0;
	}

	/** Whether there is a bid on `target`. */
	has(target: string): boolean {
		return this.#byTarget.has(target);
	}

	/** Whether a bid is still here. */
	holds(bid: Bid): boolean {
		return this.#byTarget.get(bid.target)?.has(bid) === true;
	}

	/** The bids on `target`, in no order. */
	of(target: string): readonly Bid[] {
		return [...(this.#byTarget.get(target) ?? [])];
	}

	/** The bids on `target`, the dearest first. */
	ranked(target: string): readonly Bid[] {
		return [...(this.#byTarget.get(target) ?? [])].sort(compare);
	}

	/** Hashes of all targets that have bids. */
	targets(): readonly string[] {
		return [...this.#byTarget.keys()];
	}

	/** What stands against one more bid of `client` on `target` in the place of `freed` others; or null. */
	full(client: Pick<Bid, "owner" | "network">, target: string, freed: number): string | null {
		const { maxPerNetwork, maxOwnPerTarget } = this.#options;
		if ((this.#byNetwork.get(client.network) ?? 0) - freed >= maxPerNetwork) {
			return `${maxPerNetwork} bids of one network`;
		}
		const own = this.of(target).filter((bid) => bid.owner === client.owner).length;
		if (own - freed < maxOwnPerTarget) return null;
		return `${maxOwnPerTarget} bids of one searcher on one transaction`;
	}

	/**
	 * The bid on `target` that must give way to one for `block` where there is no room for one more, else null: the one
	 * for the latest block after that, or else the cheapest.
	 */
	lastIfFull(target: string, block: number): Bid | null {
		const bids = this.of(target);
		if (bids.length < this.#options.maxPerTarget) return null;
		const later = bids.filter((bid) => bid.firstBlock > block);
		if (later.length > 0) return later.reduce((far, bid) => (bid.firstBlock > far.firstBlock ? bid : far));
		return bids.reduce((low, bid) => (compare(bid, low) > 0 ? bid : low));
	}

	/** The bid that must give way where the whole book has no room for `bytes` more, else null: the fullest network's cheapest. */
	cheapestIfFull(bytes: number): Bid | null {
		const { maxTotal, maxBytes } = this.#options;
		if (this.size < maxTotal && this.#bytes + bytes <= maxBytes) return null;
		const [fullest] = [...this.#byNetwork].reduce((most, one) => (one[1] > most[1] ? one : most), ["", 0]);
		return this.#ranked.findLast((bid) => bid.network === fullest) ?? null;
	}

	add(bid: Bid): void {
		this.#ranked.splice(this.#place(bid), 0, bid);
		const bids = this.#byTarget.get(bid.target);
		if (bids === undefined) this.#byTarget.set(bid.target, new Set([bid]));
		else bids.add(bid);
		this.#byNetwork.set(bid.network, (this.#byNetwork.get(bid.network) ?? 0) + 1);
		this.#bytes += bid.backrun.size;
		if (bid.builders !== null) this.#restricted += 1;
	}

	/** Takes a bid out; answers false where it is not here any more. */
	remove(bid: Bid): boolean {
		const bids = this.#byTarget.get(bid.target);
		if (bids?.delete(bid) !== true) return false;
		if (bids.size === 0) this.#byTarget.delete(bid.target);
		this.#ranked.splice(this.#place(bid), 1);
		const left = (this.#byNetwork.get(bid.network) ?? 1) - 1;
		if (left === 0) this.#byNetwork.delete(bid.network);
		else this.#byNetwork.set(bid.network, left);
		this.#bytes -= bid.backrun.size;
		if (bid.builders !== null) this.#restricted -= 1;
		return true;
	}

	/** Takes note of what a bid pays now. */
	revalue(bid: Bid, value: bigint): void {
		if (value === bid.value) return;
		this.#ranked.splice(this.#place(bid), 1);
		bid.value = value;
		this.#ranked.splice(this.#place(bid), 0, bid);
	}

	/**
	 * The winner of each target among the bids that `mayWin`. The dearest is served first; a sender's nonce is given
	 * out once, so of two targets whose best backruns share one, the other one takes its next best.
	 */
	winners(mayWin: (bid: Bid) => boolean): ReadonlyMap<string, Bid> {
		const winners = new Map<string, Bid>();
		const nonces = new Set<string>();
		for (const bid of this.#ranked) {
			if (winners.has(bid.target) || !mayWin(bid)) continue;
			const nonce = `${bid.backrun.from} ${bid.backrun.nonce}`;
			if (nonces.has(nonce)) continue;
			nonces.add(nonce);
			winners.set(bid.target, bid);
		}
		return winners;
	}

	/** Where it stands, or would. */
	#place(bid: Bid): number {
		let low = 0;
		let high = this.#ranked.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			const other = this.#ranked[middle];
			if (other !== undefined && compare(other, bid) < 0) low = middle + 1;
			else high = middle;
		}
		return low;
	}
}

/** Whether a bid is for `block`. */
export function isFor(bid: Bid, block: number): boolean {
	return bid.firstBlock <= block && block <= bid.lastBlock;
}

/** Below zero where `a` goes before `b`. */
function compare(a: Bid, b: Bid): number {
	if (a.value !== b.value) return a.value > b.value ? -1 : 1;
	return a.seq - b.seq;
}
