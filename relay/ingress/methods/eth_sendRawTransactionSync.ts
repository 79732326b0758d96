// eth_sendRawTransactionSync: a signed transaction comes in, its receipt goes out once it is mined. What takes too long
// or can't be mined soon is answered with the hash beside the error. https://eips.ethereum.org/EIPS/eip-7966

import { z } from "zod";
import { parseQuantity } from "../../../shared/ethereum/hex.ts";
import { networkOf } from "../../../shared/http/clientIdentity.ts";
import { AnswerLater } from "../../../shared/jsonrpc/method.ts";
import { rawBytes } from "../../../shared/jsonrpc/schemas.ts";
import { relayMethod } from "../needs.ts";
import { submitRaw } from "../rawSubmission.ts";
import { notSoon } from "../receiptWaits.ts";

/** One block of Ethereum's and the time until the node has its receipt. */
const DEFAULT_MS = 20_000;
/** Routers give a request 30 s, and the dispatcher 28: an answer of ours must come before theirs. */
const MAX_MS = 25_000;

const EXPECTED = "expected milliseconds, 1 or more, as a number or as 0x hex";
/**
 * The EIP's table says QUANTITY, its examples and clients give a number: both are taken. Clients reckon with three slots,
 * 36 s on mainnet: who would wait longer than is possible waits as long as is possible.
 */
const timeoutMs = z
	.union([z.number(), z.string()], { error: EXPECTED })
	.transform((value, context): number => {
		const ms = typeof value === "number" ? value : Number(parseQuantity(value) ?? 0);
		if (Number.isSafeInteger(ms) && ms >= 1) return Math.min(ms, MAX_MS);
		context.issues.push({ code: "custom", message: EXPECTED, input: value });
		return z.NEVER;
	})
	.optional()
	.describe(`how long to wait for the receipt, in ms: ${DEFAULT_MS} unless said, ${MAX_MS} at most`);

export const eth_sendRawTransactionSync = relayMethod({
	name: "eth_sendRawTransactionSync",
	summary:
		"As eth_sendRawTransaction, but answers the receipt (EIP-7966); error 4 with the hash when the time is up, 5 when it cannot be mined soon.",
	params: [
		{ name: "raw", schema: rawBytes("a signed transaction as 0x hex") },
		{ name: "timeoutMs", schema: timeoutMs },
	],
	result: z.record(z.string(), z.unknown()).describe("the receipt as eth_getTransactionReceipt gives it"),
	// The submission is, the wait is not: in a batch all wait at the same time, once each was submitted in its turn.
	ordered: true,
	async handle([raw, timeout = DEFAULT_MS], context, { submitter, receipts, clock }) {
		const begun = clock.monotonic();
		const { hash, outcome } = await submitRaw(raw, context, submitter);
		if (outcome === "cancels") throw notSoon(hash, "being a soft cancel, which is never mined itself");
		const client = networkOf(context.client.address);
		return new AnswerLater((leftMs) => {
			const until = Math.min(begun + timeout, clock.monotonic() + leftMs);
			return receipts.wait({ hash, client, life: context.life, begun, until });
		});
	},
});
