// Everything that can happen to a transaction, as one union of events. Records, status, metrics and
// subscriptions are derived from them. Events never contain the transaction, a signature or a
// builder's text.

import type { Exposure } from "../../shared/ethereum/statusRecord.ts";
import type { SimulationError } from "./simulation.ts";

/**
 * A builder's response to a delivery. `failed` and `timeout`: the builder did not respond.
 * `unsent`: never sent, because the builder queue was full, its block had passed, or it was
 * cancelled while it waited.
 */
export type DeliveryAnswer = "accepted" | "rejected" | "failed" | "timeout" | "unsent";

/** The kind of a delivery: a bundle, a private transaction or a cancel. */
export type DeliveryKind = "bundle" | "private" | "cancel";

/** Why a transaction is `QUEUED`. */
export type QueueReason = "nonceGap" | "behindHeld" | "behindUnchecked";

/**
 * A refund as read from the chain. Amounts are wei as decimal strings; hashes and addresses are
 * lower case.
 */
export interface Refund {
	readonly bundle: string;
	readonly backrun: string;
	/** Amount that the backrun paid by transfer in its simulation. */
	readonly bid: string;
	/** Amount that the backrun brought to the coinbase: transfers and priority fees. */
	readonly brought: string;
	/** Amount that the builder deducts for the payment, by its row's `refundGas`, at the base fee. */
	readonly cost: string;
	/** The builder's percentage of `brought`, less the cost. */
	readonly owed: string;
	readonly paid: string;
	/** The block's coinbase. */
	readonly payer: string;
	readonly recipient: string;
}

/**
 * Something that happened at `at`, in ms since the epoch; `block` is the block that it concerns.
 */
type Event<T extends string, Fields = unknown> = { readonly type: T; readonly at: number } & Fields;
type BlockEvent<T extends string, Fields = unknown> = Event<T, { readonly block: number } & Fields>;

export type TxEvent =
	| BlockEvent<"received">
	/**
	 * Another client submitted the same bytes, or one of several asked for more. Its terms may be
	 * stricter now.
	 */
	| BlockEvent<"joined">
	/** One of several clients withdrew its request; the others have not. */
	| BlockEvent<"left">
	/** It waits since block `block`. */
	| BlockEvent<"queued", { readonly reason: QueueReason }>
	/** Its nonce is next: its lifetime starts, and `block` is the first block that it may be in. */
	| BlockEvent<"ready">
	/** `gasUsed` is null if it would reveal a hidden transaction to searchers. */
	| BlockEvent<"simulated", { readonly gasUsed: number | null }>
	| BlockEvent<"simulationFailed", { readonly error: SimulationError }>
	/** The node can't simulate it, and its path sends it anyway. */
	| BlockEvent<"notSimulated", { readonly error: SimulationError }>
	/** It was disclosed to searchers. */
	| Event<"shared">
	/** A new bid on it was accepted. Bids are counted, not listed. */
	| Event<"bid", { readonly bundle: string }>
	/**
	 * A bid behind it was sent to a builder, the first of `builders`, for `block`. `bid` is in wei.
	 * `recipient` gets the refund; events of earlier versions lack it.
	 */
	| BlockEvent<
			"bundled",
			Pick<Refund, "bundle" | "backrun" | "bid"> & {
				readonly builders: readonly string[];
				readonly recipient?: string;
			}
	  >
	/** The refund for the backrun behind it was read from the block. */
	| BlockEvent<"refunded", Refund>
	/**
	 * It was sent to a builder, the first one for `block`. `behindHidden`: an earlier transaction
	 * of its sender is hidden from searchers, and the list of builders would reveal it.
	 */
	| BlockEvent<"broadcast", { readonly behindHidden?: boolean }>
	/** `ms` is from sending to the answer. `backrun`: the cancel of a bundle with a bid behind it. */
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
	/** `coinbase`: the block's, lower case; events of earlier versions lack it. */
	| BlockEvent<
			"included",
			{
				readonly blockHash: string;
				readonly index: number;
				readonly reverted: boolean;
				readonly coinbase?: string;
			}
	  >
	/**
	 * Its block has it without any backrun that was sent for it. `builders` had accepted one early
	 * enough. `isOther`: the transaction behind it paid the coinbase all the same.
	 */
	| BlockEvent<"backrunLeftOut", { readonly builders: readonly string[]; readonly isOther: boolean }>
	/**
	 * The node's public mempool had it at `at`, before any block did. `alone`: the only builder that
	 * had been sent it by then.
	 */
	| BlockEvent<"seenInPublic", { readonly alone?: string }>
	/** The block that contained it, or that used its nonce, has left the chain. */
	| BlockEvent<"reorged">
	/**
	 * `block` contained it and has left the chain, so that anybody may know it now. `depth`: how
	 * many blocks left, from the head down to that one, as far as known; 1: it was the head.
	 */
	| BlockEvent<"exposed", Exposure>
	/**
	 * `builders` had it and receive a cancel. `discreet`: `by` came on a path that is never
	 * disclosed, so searchers don't see it.
	 */
	| BlockEvent<
			"replaced",
			{ readonly by: string; readonly builders: readonly string[]; readonly discreet?: boolean }
	  >
	/**
	 * Its user cancelled it. `builders` had it and receive a cancel. `byAddress`: the last address
	 * that requested it cancelled it.
	 */
	| BlockEvent<"cancelled", { readonly builders: readonly string[]; readonly byAddress?: true }>
	| BlockEvent<"expired">
	/** Its nonce was used by another transaction, in `block` or before. */
	| BlockEvent<"dropped">;

export type TxEventType = TxEvent["type"];

/** An event as clients see it: its time in ms since the epoch, and JSON values. */
export interface ShownEvent {
	readonly at: number;
	readonly data: object;
}
