// When a transaction may take the place of another with the same sender and nonce: a pure rule.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";

/** By how many percent each fee must grow, as in go-ethereum's pool. */
export const PRICE_BUMP_PERCENT = 10n;

/**
 * Whether every fee of `fresh` is at least 10 % above that of `held`, fractions of a wei left out as go-ethereum does
 * (core/txpool/legacypool/list.go) and wallets reckon with; of a small fee, at least one wei.
 */
export function mayReplace(fresh: DecodedTransaction, held: DecodedTransaction): boolean {
	return (
		bumped(fresh.maxFeePerGas, held.maxFeePerGas) &&
		bumped(fresh.maxPriorityFeePerGas, held.maxPriorityFeePerGas) &&
		(held.maxFeePerBlobGas === null ||
			fresh.maxFeePerBlobGas === null ||
			bumped(fresh.maxFeePerBlobGas, held.maxFeePerBlobGas))
	);
}

function bumped(fresh: bigint, held: bigint): boolean {
	return fresh > held && fresh >= (held * (100n + PRICE_BUMP_PERCENT)) / 100n;
}
