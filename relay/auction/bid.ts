// A bid, how bids compare, and the bundle in which one is sent.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { OutgoingBundle, TimeRange } from "../domain/bundle.ts";
import type { Bidder, BundleRecord } from "../domain/bundleStatus.ts";
import type { NextBlock } from "../domain/chain.ts";
import { policyOf } from "../domain/endpoints.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import type { BundleEntry } from "./bundleTable.ts";

/**
 * An accepted bid: a searcher's transaction (the backrun) that pays `value` wei to the fee
 * recipient. It pays if it runs directly behind a user's transaction (the target). Its owner
 * submits it as a bundle. The bundle's hash and uuid identify it for queries and cancels.
 */
export interface Bid {
	/** The bundle's status, as its owner sees it. */
	readonly record: BundleRecord;
	readonly bidder: Bidder;
	/** The sender's identity, and the client (see clientOf) that it came from. */
	readonly owner: string;
	readonly client: string;
	readonly target: string;
	readonly backrun: DecodedTransaction;
	/** The order of acceptance: the earlier of two equal bids wins. */
	readonly seq: number;
	/** The bundle's entry under its uuid. */
	entry: BundleEntry;
	/** The range of blocks, both included. */
	firstBlock: number;
	lastBlock: number;
	/** The block times that it is for; null: any. */
	readonly times: TimeRange | null;
	/** Names of the allowed builders; null: all. */
	builders: readonly string[] | null;
	/** Wei that it paid by transfer in its last simulation: a claim. */
	value: bigint;
	/**
	 * The same value in the simulation that admitted it. Its owner sees no later value before the
	 * block: only bids near a slot have one.
	 */
	claimed: bigint;
	/** Whether the account that gets the refund was empty then. */
	refundIsToNew: boolean;
	/**
	 * Its last simulation that counts; null: none. It can win only while it has passed in the state
	 * of its target.
	 */
	lastCheck: BidCheck | null;
	/** The running simulation and the state that it runs in; null: none. */
	runningCheck: { readonly basis: string; readonly stop: AbortController } | null;
}

/**
 * How a bid's simulation ended. `basis` identifies the state that it ran in: the head, and the
 * sender's transactions up to the target. `noResult`: the node failed. `targetFailed`: the target
 * failed, so nothing is known of any bid behind it.
 */
export interface BidCheck {
	readonly basis: string;
	readonly result: "passed" | "noResult" | "targetFailed";
}

/**
 * Whether the bid has passed its simulation in the state `basis`; undefined: there is no such
 * state.
 */
export function hasPassedIn({ lastCheck }: Pick<Bid, "lastCheck">, basis: string | undefined): boolean {
	return lastCheck !== null && lastCheck.result === "passed" && lastCheck.basis === basis;
}

/** Sort order: the higher value first, then the earlier bid. */
export function compare(a: Bid, b: Bid): number {
	if (a.value !== b.value) return a.value > b.value ? -1 : 1;
	return a.seq - b.seq;
}

/** Whether a bid is for the block with this number, whatever its time. */
export function isFor({ firstBlock, lastBlock }: Bid, block: number): boolean {
	return firstBlock <= block && block <= lastBlock;
}

/**
 * The bundle's name at builders. A backrun's sender has one bid per target there, and the next bid
 * replaces it.
 */
export function backrunName({ target, backrun }: Pick<Bid, "target" | "backrun">): string {
	return `backrun ${target} ${backrun.from}`;
}

/** The bundle for the next block; `refundPercent` is the user's share of the backrun's proceeds. */
export function backrunBundle(
	bid: Bid,
	{ tx, path, refundRecipient, requestId }: PrivateTransaction,
	next: Pick<NextBlock, "number" | "fork" | "baseFee">,
	{ refundPercent, slot }: { readonly refundPercent: number; readonly slot: number },
): OutgoingBundle {
	return {
		name: backrunName(bid),
		transactions: [
			{ tx, mayRevert: policyOf(path).mayRevert, mayDrop: false },
			{ tx: bid.backrun, mayRevert: false, mayDrop: true },
		],
		block: next.number,
		times: bid.times,
		client: bid.client,
		requestId,
		...{ kind: "bid", slot },
		refund: {
			payout: { fork: next.fork, baseFee: next.baseFee, isNew: bid.refundIsToNew, brings: bid.value },
			percent: refundPercent,
			recipient: refundRecipient ?? tx.from,
			bodyIdx: 0,
			of: bid.backrun.hash,
		},
	};
}
