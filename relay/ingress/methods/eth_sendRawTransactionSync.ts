// eth_sendRawTransactionSync: a signed transaction comes in, its receipt goes out once it is mined. What takes too long
// or can't be mined soon is answered with the hash beside the error. https://eips.ethereum.org/EIPS/eip-7966

import { z } from "zod";
import { clientOf } from "../../../shared/http/clientIdentity.ts";
import { AnswerLater, RAW_PARAMS_SIZE } from "../../../shared/jsonrpc/method.ts";
import { rawBytes } from "../../../shared/jsonrpc/schemas.ts";
import { neverMined, SYNC_DEFAULT_MS, syncTimeoutMs } from "../../../shared/jsonrpc/sendSync.ts";
import { relayMethod } from "../needs.ts";
import { submitRaw } from "../rawSubmission.ts";

export const eth_sendRawTransactionSync = relayMethod({
	name: "eth_sendRawTransactionSync",
	summary:
		"As eth_sendRawTransaction, but answers the receipt (EIP-7966); error 4 with the hash when the time is up, 5 when it cannot be mined soon.",
	params: [
		{ name: "raw", schema: rawBytes("a signed transaction as 0x hex") },
		{ name: "timeoutMs", schema: syncTimeoutMs },
	],
	maxParamsSize: RAW_PARAMS_SIZE,
	result: z.record(z.string(), z.unknown()).describe("the receipt as eth_getTransactionReceipt gives it"),
	// The submission is, the wait is not: in a batch all wait at the same time, once each was submitted in its turn.
	ordered: true,
	async handle([raw, timeout = SYNC_DEFAULT_MS], context, { submitter, receipts, clock }) {
		const begun = clock.monotonic();
		const { hash, outcome } = await submitRaw(raw, context, submitter);
		if (outcome === "cancels") throw neverMined(hash);
		const client = clientOf(context.client.address);
		return new AnswerLater((leftMs) => {
			const until = Math.min(begun + timeout, clock.monotonic() + leftMs);
			return receipts.wait({ hash, client, life: context.life, begun, until });
		});
	},
});
