// What can happen to a transaction: one union, that every stage emits and that status, metrics and subscriptions
// fold. An event never holds the transaction itself, a signature or a text of a builder's.

import type { SimulationError } from "./simulation.ts";

/**
 * How a builder took a delivery. `rejected` is an answer too; `failed` and `timeout` are none; `unsent`: it never left,
 * because the lane was full, its block had come, or it was cancelled while it waited.
 */
export type DeliveryAnswer = "accepted" | "rejected" | "failed" | "timeout" | "unsent";

/** In which form a builder got a transaction. */
export type DeliveryKind = "bundle" | "private" | "cancel";

/** Why a transaction waits as `QUEUED`. */
export type QueueReason = "nonceGap" | "behindHeld" | "behindUnchecked";

/** A refund as it was read back from the chain. Amounts are wei as decimal strings; hashes and addresses lower case. */
export interface Refund {
	readonly bundle: string;
	readonly backrun: string;
	/** What the backrun paid by transfer, as simulated before. */
	readonly bid: string;
	/** What it brought to the coinbase in all: transfers and priority fees. */
	readonly brought: string;
	/** What the builder takes off for paying it out: its row's `refundGas` at the base fee. */
	readonly cost: string;
	/** The builder's percent of what was brought, less the cost. */
	readonly owed: string;
	readonly paid: string;
	/** The block's coinbase. */
	readonly payer: string;
	readonly recipient: string;
}

/** What happened; `at` is in ms since the epoch, `block` the block it was about. */
export type TxEvent =
	| { readonly type: "received"; readonly at: number; readonly block: number }
	/** It waits since the block `block`. */
	| {
			readonly type: "queued";
			readonly at: number;
			readonly block: number;
			readonly reason: QueueReason;
	  }
	/** Its nonce is next in line: its life in blocks starts, with `block` as the first it may be in. */
	| { readonly type: "ready"; readonly at: number; readonly block: number }
	/** `gasUsed` is null where searchers know the transaction, and must not learn of the one that it was run behind. */
	| {
			readonly type: "simulated";
			readonly at: number;
			readonly block: number;
			readonly gasUsed: number | null;
	  }
	| {
			readonly type: "simulationFailed";
			readonly at: number;
			readonly block: number;
			readonly error: SimulationError;
	  }
	/** Searchers have been shown it. */
	| { readonly type: "shared"; readonly at: number }
	/** One more bid on it was accepted: another backrun than those before. It is counted, not listed. */
	| { readonly type: "bid"; readonly at: number; readonly bundle: string }
	/** The best bid was handed over to the builders' lanes, behind it, for `block`. `bid`: wei. */
	| {
			readonly type: "bundled";
			readonly at: number;
			readonly block: number;
			readonly bundle: string;
			readonly backrun: string;
			readonly bid: string;
			readonly builders: readonly string[];
	  }
	/** What came of the backrun behind it in the block that holds both; amounts in wei. */
	| ({ readonly type: "refunded"; readonly at: number; readonly block: number } & Refund)
	/**
	 * Handed over to the builders' lanes for `block`. `behindHidden`: behind one of its sender's that searchers don't see,
	 * so that who gets it tells of that one.
	 */
	| {
			readonly type: "broadcast";
			readonly at: number;
			readonly block: number;
			readonly behindHidden?: boolean;
	  }
	| {
			readonly type: "delivered";
			readonly at: number;
			readonly block: number;
			readonly builder: string;
			readonly kind: DeliveryKind;
			readonly answer: DeliveryAnswer;
			/** From sending to the answer, in ms. */
			readonly ms: number;
			/** Of a cancel: it was the one of the bundle with the best bid behind it. */
			readonly backrun?: boolean;
	  }
	| {
			readonly type: "included";
			readonly at: number;
			readonly block: number;
			readonly blockHash: string;
			readonly index: number;
			readonly reverted: boolean;
	  }
	/** The block that held it, or that used its nonce, is no longer in the chain. */
	| { readonly type: "reorged"; readonly at: number; readonly block: number }
	| {
			readonly type: "replaced";
			readonly at: number;
			readonly block: number;
			readonly by: string;
			/** The builders that have had it, and are told to forget it. */
			readonly builders: readonly string[];
			/** Set where `by` came on a path that nothing is shared of: it is named to nobody who may be a searcher. */
			readonly discreet?: boolean;
	  }
	/** Its user took it back. `builders` have had it, and are told to forget it. */
	| {
			readonly type: "cancelled";
			readonly at: number;
			readonly block: number;
			readonly builders: readonly string[];
	  }
	| { readonly type: "expired"; readonly at: number; readonly block: number }
	/** Its nonce was used by another transaction, in `block` or before. */
	| { readonly type: "dropped"; readonly at: number; readonly block: number };

export type TxEventType = TxEvent["type"];
