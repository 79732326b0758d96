// The refund terms of a backrun, from the builder's row and what was asked for. Pure.

import type { BuilderRow } from "../domain/builder.ts";
import type { RefundTerms } from "../domain/refund.ts";

/** The terms on which the builder of `row` refunds when `percent` (0 to 100) is asked for; null: it pays none. */
export function refundTerms(row: BuilderRow, percent: number): RefundTerms | null {
	if (!row.refund || row.maxRefundPercent === 0) return null;
	return { percent: Math.min(percent, row.maxRefundPercent), refundGas: row.refundGas };
}
