// eth_sendRawTransactionSync (EIP-7966): answers with the receipt once the transaction is mined; where that takes too
// long, with an error that has the hash. https://eips.ethereum.org/EIPS/eip-7966

import { z } from "zod";
import { clientOf } from "../../../shared/http/callContext.ts";
import { AnswerLater, RAW_PARAMS_SIZE, rawBytes } from "../../../shared/jsonrpc/method.ts";
import { neverMined, SYNC_DEFAULT_MS, syncTimeoutMs } from "../../../shared/jsonrpc/sendSync.ts";
import { relayMethod } from "../methodDependencies.ts";
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
