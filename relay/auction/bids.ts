// The live bids, by their targets: bounded by client, with the targets that share a sender's nonce; which of them win, worked
// out anew each time from these alone; and the bundle that a winner goes out in.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { Shares } from "../../shared/shares/shares.ts";
import type { OutgoingBundle } from "../domain/bundle.ts";
import type { Bidder, BundleRecord } from "../domain/bundleStatus.ts";
import { policyOf } from "../domain/endpoints.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import type { Submission } from "./bundleTable.ts";

/** A bid that was simulated behind its target. */
export interface Bid {
	/** What its owner is told. */
	readonly record: BundleRecord;
	readonly bidder: Bidder;
	/** Who sent it, and the client that it came from. */
	readonly owner: string;
	readonly client: string;
	readonly target: string;
	readonly backrun: DecodedTransaction;
	/** Of those accepted: of equal bids the earlier one wins. */
	readonly seq: number;
	/** Its place under its uuid. */
	submission: Submission;
	/** The blocks it is for, both included. */
	firstBlock: number;
	lastBlock: number;
	/** Names of the builders that may have it; null: all. */
	builders: readonly string[] | null;
	/** Wei that it pays by transfer, as last simulated. */
	value: bigint;
	/** The state that it was simulated in: head and links up to its target. It wins only while that is the present one. */
	basis: string | null;
	/** The state that it is being simulated in now, and what takes it out of the queue; or null. */
	checking: { readonly basis: string; readonly stop: AbortController } | null;
	/** The last state in which nothing was found out of it, for want of the node or because its target failed; or null. */
	tried: { readonly basis: string; readonly isTarget: boolean } | null;
	/** The block that it is out for, the builders that have it, and all that have its target: who may make the block. */
	out: {
		readonly block: number;
		readonly builders: readonly string[];
		readonly makers: readonly string[];
	} | null;
}

export interface BidsOptions {
	/** Bids at most: in all, of one client, on one target, and of one client on one target. */
	readonly maxTotal: number;
	readonly maxPerClient: number;
	readonly maxPerTarget: number;
	readonly maxOwnPerTarget: number;
	/** Bytes of raw backruns at most, in all and of one client. */
	readonly maxBytes: number;
	readonly maxClientBytes: number;
}

export const BID_LIMITS: BidsOptions = {
	maxTotal: 20_000,
	maxPerClient: 2_000,
	maxPerTarget: 1_000,
	maxOwnPerTarget: 32,
	maxBytes: 128 * 1024 * 1024,
	maxClientBytes: 16 * 1024 * 1024,
};

/** The live bids. */
export class Bids {
	readonly #options: BidsOptions;
	readonly #byTarget = new Map<string, Set<Bid>>();
	readonly #byNonce = new Map<string, Set<Bid>>();
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

	/** Whether a bid is still here. */
	holds(bid: Bid): boolean {
		return this.#byTarget.get(bid.target)?.has(bid) === true;
	}

	/** Whether there is a bid on `target`. */
	has(target: string): boolean {
		return this.#byTarget.has(target);
	}

	/** The bids on `target`, in no order. */
	of(target: string): readonly Bid[] {
		return [...(this.#byTarget.get(target) ?? [])];
	}

	/** Hashes of all targets that have bids. */
	targets(): readonly string[] {
		return [...this.#byTarget.keys()];
	}

	/** `targets`, and all whose winners depend on theirs: they share a sender's nonce, by way of others too. */
	linked(targets: Iterable<string>): readonly string[] {
		const found = new Set(targets);
		// What is added while it is gone through is gone through too.
		for (const target of found) {
			for (const bid of this.#byTarget.get(target) ?? []) {
				for (const other of this.#byNonce.get(nonceOf(bid)) ?? []) found.add(other.target);
			}
		}
		return [...found];
	}

	/** What stands against one more bid of `client` on `target`, of `bytes`, in the place of `freed` others; or null. */
	full(client: string, target: string, bytes: number, freed: number): string | null {
		const { maxPerClient, maxOwnPerTarget, maxClientBytes } = this.#options;
		if (this.#count.refusal(client, 1 - freed) === "client") return `${maxPerClient} bids of one client`;
		if (this.#bytes.refusal(client, bytes) === "client")
			return `${maxClientBytes} bytes of one client's bids`;
		const own = this.of(target).filter((bid) => bid.client === client).length;
		return own - freed < maxOwnPerTarget ? null : `${maxOwnPerTarget} bids of one client on one transaction`;
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

	/** The bid that must give way where there is no room for `bytes` more in all, else null: the fullest client's cheapest. */
	cheapestIfFull(bytes: number): Bid | null {
		const isFull = this.#count.refusal("", 1) === "total" || this.#bytes.refusal("", bytes) === "total";
		if (!isFull) return null;
		const fullest = this.#count.largest();
		const own = this.targets().flatMap((target) =>
			this.of(target).filter(({ client }) => client === fullest),
		);
		return own.length === 0 ? null : own.reduce((low, bid) => (compare(bid, low) > 0 ? bid : low));
	}

	add(bid: Bid): void {
		addTo(this.#byTarget, bid.target, bid);
		addTo(this.#byNonce, nonceOf(bid), bid);
		this.#count.force(bid.client, 1);
		this.#bytes.force(bid.client, bid.backrun.size);
	}

	/** Takes a bid out; answers false where it is not here any more. */
	remove(bid: Bid): boolean {
		if (!this.holds(bid)) return false;
		removeFrom(this.#byTarget, bid.target, bid);
		removeFrom(this.#byNonce, nonceOf(bid), bid);
		this.#count.give(bid.client, 1);
		this.#bytes.give(bid.client, bid.backrun.size);
		return true;
	}
}

/** Whether a bid is for `block`. */
export function isFor({ firstBlock, lastBlock }: Bid, block: number): boolean {
	return firstBlock <= block && block <= lastBlock;
}

function nonceOf({ backrun }: Bid): string {
	return `${backrun.from} ${backrun.nonce}`;
}

function addTo(index: Map<string, Set<Bid>>, key: string, bid: Bid): void {
	const bids = index.get(key);
	if (bids === undefined) index.set(key, new Set([bid]));
	else bids.add(bid);
}

function removeFrom(index: Map<string, Set<Bid>>, key: string, bid: Bid): void {
	const bids = index.get(key);
	bids?.delete(bid);
	if (bids?.size === 0) index.delete(key);
}

export interface WinnersOptions {
	/** Bids of one target that are with one builder at most. */
	readonly places: number;
	/** Names of the builders that have the target and pay refunds. */
	readonly buildersOf: (target: string) => readonly string[];
	/** Whether it ranks behind everybody else's. */
	readonly isBehind: (bid: Bid) => boolean;
}

/** Where a bid shall be. */
export interface Award {
	readonly builders: readonly string[];
	/** Whether it is the best one at any of them. */
	readonly isBest: boolean;
}

/**
 * The best bids of each target at each builder: distinct by owner, by the backrun's sender and by the contract that it
 * calls, so that no single bidder takes all places. A sender's nonce is given out once at a builder: of two targets whose
 * bids share one, the one where it ranks higher (pays more) keeps it.
 */
export function winners(
	bids: readonly Bid[],
	{ places, buildersOf, isBehind }: WinnersOptions,
): ReadonlyMap<Bid, Award> {
	const behind = new Set(bids.filter(isBehind));
	const ranked = [...bids].sort((a, b) => Number(behind.has(a)) - Number(behind.has(b)) || compare(a, b));
	const names = new Set(ranked.flatMap(({ target }) => buildersOf(target)));
	const won = new Map<Bid, { builders: string[]; isBest: boolean }>();
	for (const name of names) {
		const taken = new Set<string>();
		const counts = new Map<string, number>();
		for (const bid of ranked) {
			const { target, bidder, builders } = bid;
			const count = counts.get(target) ?? 0;
			if (count >= places || builders?.includes(name) === false || !buildersOf(target).includes(name))
				continue;
			const claims = [
				`nonce ${nonceOf(bid)}`,
				`owner ${target} ${bidder.owner}`,
				`sender ${target} ${bidder.sender}`,
				`contract ${target} ${bidder.contract}`,
			];
			if (claims.some((claim) => taken.has(claim))) continue;
			for (const claim of claims) taken.add(claim);
			counts.set(target, count + 1);
			const award = won.get(bid) ?? { builders: [], isBest: false };
			award.builders.push(name);
			award.isBest ||= count === 0;
			won.set(bid, award);
		}
	}
	return won;
}

/** Below zero where `a` pays more, or as much and came earlier. */
export function compare(a: Bid, b: Bid): number {
	if (a.value !== b.value) return a.value > b.value ? -1 : 1;
	return a.seq - b.seq;
}

/** Under which name an owner's bid on a target goes out: one of each is out at a time, and his next takes its place. */
export function backrunName(target: string, owner: string): string {
	return `backrun ${target} ${owner}`;
}

/** The bundle for `block`; `refundPercent` is the user's share of what the backrun brings. */
export function backrunBundle(
	bid: Bid,
	{ tx, path, refundRecipient }: PrivateTransaction,
	block: number,
	refundPercent: number,
): OutgoingBundle {
	return {
		name: backrunName(bid.target, bid.owner),
		transactions: [
			{ tx, mayRevert: policyOf(path).mayRevert, mayDrop: false },
			{ tx: bid.backrun, mayRevert: false, mayDrop: true },
		],
		...{ block, client: bid.client, isPlain: false },
		refund: {
			percent: refundPercent,
			recipient: refundRecipient ?? tx.from,
			bodyIdx: 0,
			of: bid.backrun.hash,
		},
	};
}
