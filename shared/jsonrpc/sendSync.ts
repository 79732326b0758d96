// The parameter and the errors of eth_sendRawTransactionSync, which relay and boost both serve.
// https://eips.ethereum.org/EIPS/eip-7966

import { z } from "zod";
import { parseQuantity } from "../ethereum/hex.ts";
import { RpcError } from "./errors.ts";

/** One block of Ethereum's and the time until a node has its receipt. */
export const SYNC_DEFAULT_MS = 20_000;
/** Routers give a request 30 s, and the dispatcher 28: an answer of ours must come before theirs. */
const MAX_MS = 25_000;

const EXPECTED = "expected milliseconds, 1 or more, as a number or as 0x hex";
/**
 * How long to wait, to ms; undefined where it was left out. The EIP's table says QUANTITY, its examples and clients give
 * a number: both are taken. Clients reckon with three slots, 36 s on mainnet: who would wait longer than is possible
 * waits as long as is possible.
 */
export const syncTimeoutMs = z
	.union([z.number(), z.string()], { error: EXPECTED })
	.transform((value, context): number => {
		const ms = typeof value === "number" ? value : Number(parseQuantity(value) ?? 0);
		if (Number.isSafeInteger(ms) && ms >= 1) return Math.min(ms, MAX_MS);
		context.issues.push({ code: "custom", message: EXPECTED, input: value });
		return z.NEVER;
	})
	.optional()
	.describe(`how long to wait for the receipt, in ms: ${SYNC_DEFAULT_MS} unless said, ${MAX_MS} at most`);

/** As EIP-7966 words it: clients look for the beginning. */
const NOT_PROCESSED = "The transaction was added to the mempool but wasn't processed";

/** The error where the time, `ms` so far, is up, or waiting has ended because of `why`. */
export function timedOut(hash: string, ms: number, why?: string): RpcError {
	const tail = why === undefined ? "." : `: ${why}.`;
	return new RpcError("timedOut", `${NOT_PROCESSED} in ${Math.round(ms) / 1000}s${tail}`, hash);
}

/** The error for a transaction that can't be mined soon. */
export function notSoon(hash: string, why: string): RpcError {
	return new RpcError("notSoon", `${NOT_PROCESSED} due to ${why}`, hash);
}

/** Why a transaction can't be mined soon, for {@link notSoon}. */
export const WHY_NOT_SOON = {
	nonceGap: "a missing nonce: it goes out when the gap before it closes",
	behindHeld: "one before it that is held",
	/** By the stage in which it ended. */
	ended: {
		REPLACED: "its replacement",
		CANCELLED: "its cancellation",
		EXPIRED: "its expiry",
		DROPPED: "another one that used its nonce",
	} as Readonly<Record<string, string | undefined>>,
} as const;

/** As {@link WHY_NOT_SOON}, of one whose simulation fails with `message`. */
export function failingSimulation(message: string): string {
	return `a failing simulation: ${message}`;
}

/** The error for a soft cancel: it has taken back the one before it, and is never mined itself. */
export function neverMined(hash: string): RpcError {
	return notSoon(hash, "being a soft cancel, which is never mined itself");
}
