// eth_sendRawTransaction: a signed transaction comes in, its hash goes out once it is on disk.

import { z } from "zod";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import { rawBytes } from "../../../shared/jsonrpc/schemas.ts";
import { relayMethod } from "../needs.ts";
import { submissionOptions } from "../submissionOptions.ts";

export const eth_sendRawTransaction = relayMethod({
	name: "eth_sendRawTransaction",
	summary:
		"Takes a signed transaction privately, treated as the path says; answers its hash once it is durable.",
	params: [{ name: "raw", schema: rawBytes("a signed transaction as 0x hex") }],
	result: z.string().describe("the transaction's hash"),
	ordered: true,
	async handle([raw], context, { submitter }) {
		const options = submissionOptions(context.path, context.query);
		const outcome = await submitter.submit({ ...options, raw, origin: context.client.address });
		if (outcome.outcome !== "refused") return outcome.hash;
		const { code, message, data } = outcome.rejection;
		// The words are go-ethereum's; the data is for those who would rather not match words.
		throw new RpcError("rejected", message, { reason: code, ...data });
	},
});
