// Computes the refund that a builder owes the user for a backrun. Pure.

/** How a builder refunds. */
export interface RefundTerms {
	/** Percent of the backrun's proceeds: the smaller of our setting and the builder's maximum. */
	readonly percent: number;
	/** Gas whose cost at the base fee the builder deducts. */
	readonly refundGas: number;
}

/** The refund due for `brought` wei, never below zero, and the deducted cost. */
export function owedRefund(
	brought: bigint,
	baseFee: bigint,
	terms: RefundTerms,
): { readonly cost: bigint; readonly owed: bigint } {
	const cost = BigInt(terms.refundGas) * baseFee;
	const owed = (brought * BigInt(terms.percent)) / 100n - cost;
	return { cost, owed: owed > 0n ? owed : 0n };
}
