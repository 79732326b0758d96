// Questions for balances between simulated transactions: what is asked comes in, calls of a contract that does not
// exist go out; and what its answers come to. It knows nothing of how the calls are run.

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import { PROBE_ADDRESS, PROBE_CALLER } from "./callObject.ts";
import type { StateOverrides } from "./engine.ts";
import type { CallResult } from "./simulateResults.ts";

/** Gas of one question; it uses 30,000. */
export const PROBE_GAS = 100_000n;
/** Answers the balances of the two accounts in the calldata: twice CALLDATALOAD BALANCE MSTORE, then RETURN. */
const BALANCES_CODE = "0x5f35315f526020353160205260405ff3";

/** One question. */
export interface BalanceProbe {
	/** Whose balance is asked for, beside the fee recipient's. */
	readonly account: string;
	/** Wei per gas that it pays; null: nothing. */
	readonly price: bigint | null;
}

/** The question as a call. */
export function probeCall({ account, price }: BalanceProbe, feeRecipient: string): Record<string, string> {
	return {
		from: PROBE_CALLER,
		to: PROBE_ADDRESS,
		gas: toQuantity(PROBE_GAS),
		input: `0x${word(account)}${word(feeRecipient)}`,
		...(price === null ? {} : { gasPrice: toQuantity(price) }),
	};
}

function word(address: string): string {
	return address.slice(2).padStart(64, "0");
}

/** What must be assumed of the state for `probes` to be answered. */
export function probeOverrides(probes: readonly BalanceProbe[]): StateOverrides {
	if (probes.length === 0) return {};
	const dearest = probes.reduce((most, { price }) => (price !== null && price > most ? price : most), 0n);
	return {
		[PROBE_ADDRESS]: { code: BALANCES_CODE },
		...(dearest === 0n ? {} : { [PROBE_CALLER]: { balance: toQuantity(dearest * PROBE_GAS) } }),
	};
}

/** The account's balance in wei, or null where the question was not answered. */
export function accountBalance(answer: CallResult | undefined): bigint | null {
	return readWord(answer, 0);
}

/** What was asked around a transaction: a question at its own gas price, a free one, the transaction, a free one. */
export interface Measuring {
	readonly priced: CallResult | undefined;
	readonly before: CallResult | undefined;
	readonly tx: CallResult;
	readonly after: CallResult | undefined;
}

/**
 * Wei that the fee recipient got in the transaction by transfers, never below zero; null where it can't be told. It
 * is what its balance rose by, less the fees. What a node credits for gas without validation differs (with the base
 * fee or without it): the priced question shows it. Unlike transfer logs, balances can't be forged.
 */
export function measuredGain({ priced, before, tx, after }: Measuring): bigint | null {
	const [first, second, third] = [readWord(priced, 1), readWord(before, 1), readWord(after, 1)];
	if (priced === undefined || priced.gasUsed === 0n) return null;
	if (first === null || second === null || third === null) return null;
	const fees = ((second - first) * tx.gasUsed) / priced.gasUsed;
	const gain = third - second - fees;
	return gain > 0n ? gain : 0n;
}

function readWord(answer: CallResult | undefined, index: 0 | 1): bigint | null {
	if (answer?.success !== true || answer.returnData.length !== 2 + 2 * 64) return null;
	return BigInt(`0x${answer.returnData.slice(2 + 64 * index, 66 + 64 * index)}`);
}
