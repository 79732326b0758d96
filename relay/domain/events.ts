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

/** Something that happened at `at`, in ms since the epoch; `block` is the block that it was about. */
type Event<T extends string, Fields = unknown> = { readonly type: T; readonly at: number } & Fields;
type BlockEvent<T extends string, Fields = unknown> = Event<T, { readonly block: number } & Fields>;

/** What happened. */
export type TxEvent =
	| BlockEvent<"received">
	/** It waits since the block `block`. */
	| BlockEvent<"queued", { readonly reason: QueueReason }>
	/** Its nonce is next in line: its life in blocks starts, with `block` as the first it may be in. */
	| BlockEvent<"ready">
	/** `gasUsed` is null where searchers know the transaction, and must not learn of the one that it was run behind. */
	| BlockEvent<"simulated", { readonly gasUsed: number | null }>
	| BlockEvent<"simulationFailed", { readonly error: SimulationError }>
	/** Searchers have been shown it. */
	| Event<"shared">
	/** One more bid on it was accepted: another backrun than those before. It is counted, not listed. */
	| Event<"bid", { readonly bundle: string }>
	/** The best bid was handed over to the builders' lanes, behind it, for `block`. `bid`: wei. */
	| BlockEvent<
			"bundled",
			Pick<Refund, "bundle" | "backrun" | "bid"> & { readonly builders: readonly string[] }
	  >
	/** What came of the backrun behind it in the block that holds both; amounts in wei. */
	| BlockEvent<"refunded", Refund>
	/**
	 * Handed over to the builders' lanes for `block`. `behindHidden`: behind one of its sender's that searchers don't see,
	 * so that who gets it tells of that one.
	 */
	| BlockEvent<"broadcast", { readonly behindHidden?: boolean }>
	/** `ms` is from sending to the answer. `backrun`, of a cancel: it was the one of the bundle with the best bid behind it. */
	| BlockEvent<
			"delivered",
			{
				readonly builder: string;
				readonly kind: DeliveryKind;
				readonly answer: DeliveryAnswer;
				readonly ms: number;
				readonly backrun?: boolean;
			}
	  >
	| BlockEvent<"included", { readonly blockHash: string; readonly index: number; readonly reverted: boolean }>
	/** The block that held it, or that used its nonce, is no longer in the chain. */
	| BlockEvent<"reorged">
	/**
	 * `builders` have had it, and are told to forget it. `discreet`: `by` came on a path that nothing is shared of; it is named
	 * to nobody who may be a searcher.
	 */
	| BlockEvent<
			"replaced",
			{ readonly by: string; readonly builders: readonly string[]; readonly discreet?: boolean }
	  >
	/** Its user took it back. `builders` have had it, and are told to forget it. */
	| BlockEvent<"cancelled", { readonly builders: readonly string[] }>
	| BlockEvent<"expired">
	/** Its nonce was used by another transaction, in `block` or before. */
	| BlockEvent<"dropped">;

export type TxEventType = TxEvent["type"];
