// Whether a transaction may replace another one with its nonce.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";

/** Percentage by which each fee must grow, as in go-ethereum's pool. */
const PRICE_BUMP_PERCENT = 10n;
export const PAYS_TOO_LITTLE = `replacement transaction underpriced: expected ${PRICE_BUMP_PERCENT} % more on every fee`;

/**
 * Whether every fee of `replacement` is at least 10 % above that of `pooled`, and at least one wei;
 * the blob fee, if both have blobs. Fractions of a wei are dropped, as in go-ethereum
 * (core/txpool/legacypool/list.go) and wallets.
 */
export function mayReplace(replacement: DecodedTransaction, pooled: DecodedTransaction): boolean {
	return (
		isBumped(replacement.maxFeePerGas, pooled.maxFeePerGas) &&
		isBumped(replacement.maxPriorityFeePerGas, pooled.maxPriorityFeePerGas) &&
		(pooled.maxFeePerBlobGas === null ||
			replacement.maxFeePerBlobGas === null ||
			isBumped(replacement.maxFeePerBlobGas, pooled.maxFeePerBlobGas))
	);
}

function isBumped(fee: bigint, old: bigint): boolean {
	return fee > old && fee >= (old * (100n + PRICE_BUMP_PERCENT)) / 100n;
}
