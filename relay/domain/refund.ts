// Computes the refund that a builder owes the user for a backrun. Pure.

import type { Fork } from "../../shared/ethereum/forks.ts";
import type { BuilderRow } from "./builder.ts";

/** A builder's terms for refunds. */
export interface RefundTerms {
	/** Percent of the backrun's proceeds: the smaller of our setting and the builder's maximum. */
	readonly percent: number;
	/** As in the builder's row. */
	readonly refundGas: BuilderRow["refundGas"];
}

/** The values that the cost of paying a refund depends on. */
export interface Payout {
	/** The fork whose rules apply in the block. */
	readonly fork: Fork;
	/** Wei per gas. */
	readonly baseFee: bigint;
	/**
	 * Whether the recipient's account is empty before the payment. Creating it is expensive since
	 * Amsterdam.
	 */
	readonly isNew: boolean;
}

/** Whether a refund to an account that does not exist costs more than one to another. */
export function isNewAccountCostlier({ transferGas }: Fork): boolean {
	return transferGas.toEmpty > transferGas.toExisting;
}

/**
 * The refund due for `brought` wei, never below zero, and the cost of paying it, which the builder
 * deducts.
 */
export function owedRefund(
	brought: bigint,
	{ percent, refundGas }: RefundTerms,
	{ fork, baseFee, isNew }: Payout,
): { readonly cost: bigint; readonly owed: bigint } {
	const { toEmpty, toExisting } = refundGas === "transfer" ? fork.transferGas : fork.payoutGas;
	const gas = typeof refundGas === "number" ? BigInt(refundGas) : isNew ? toEmpty : toExisting;
	const cost = gas * baseFee;
	const owed = (brought * BigInt(percent)) / 100n - cost;
	return { cost, owed: owed > 0n ? owed : 0n };
}
