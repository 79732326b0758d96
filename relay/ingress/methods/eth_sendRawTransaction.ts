// eth_sendRawTransaction: answers with the hash once the transaction is on disk.

import { z } from "zod";
import { RAW_PARAMS_SIZE, rawBytes } from "../../../shared/jsonrpc/method.ts";
import { relayMethod } from "../methodDependencies.ts";
import { submitRaw } from "../rawSubmission.ts";

export const eth_sendRawTransaction = relayMethod({
	name: "eth_sendRawTransaction",
	summary:
		"Takes a signed transaction privately, treated as the path says; answers its hash once it is durable.",
	params: [{ name: "raw", schema: rawBytes("a signed transaction as 0x hex") }],
	maxParamsSize: RAW_PARAMS_SIZE,
	result: z.string().describe("the transaction's hash"),
	ordered: true,
	async handle([raw], context, { submitter }) {
		const { hash } = await submitRaw(raw, context, submitter);
		return hash;
	},
});
