// The coinbase that blocks are simulated with, and what it holds. Nobody knows the real one beforehand, so both are drawn
// at random each time, unless all builders share one: a backrun that knew it could pay in simulations alone.

import { randomBytes, randomInt } from "node:crypto";

/** Wei of the least and of the most that a drawn coinbase holds: builders' real ones hold some ether. */
const LEAST_WEI = 10n ** 16n;
const SPAN_MILLI_ETHER = 100_000;
const MILLI_ETHER_WEI = 10n ** 15n;

/** Answers `fixed`, or a fresh random address for each question. */
export function feeRecipients(fixed: string | undefined): () => string {
	return () => fixed ?? `0x${randomBytes(20).toString("hex")}`;
}

/** Wei that a drawn coinbase holds: never nothing, since the first transfer to an empty account is dearer (EIP-161). */
export function drawnBalance(): bigint {
	return LEAST_WEI + BigInt(randomInt(SPAN_MILLI_ETHER)) * MILLI_ETHER_WEI + BigInt(randomInt(2 ** 47));
}
