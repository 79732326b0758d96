// The refund in wei that a builder owes the user of a backrun. Pure.

/** How a builder refunds. */
export interface RefundTerms {
	/** Of what the backrun brings: the smaller of our setting and what the builder takes. */
	readonly percent: number;
	/** Gas whose cost at the base fee the builder takes off. */
	readonly refundGas: number;
}

/** Wei that are owed of `brought`, and the cost that was taken off before; never below zero. */
export function owedRefund(
	brought: bigint,
	baseFee: bigint,
	terms: RefundTerms,
): { readonly cost: bigint; readonly owed: bigint } {
	const cost = BigInt(terms.refundGas) * baseFee;
	const owed = (brought * BigInt(terms.percent)) / 100n - cost;
	return { cost, owed: owed > 0n ? owed : 0n };
}
