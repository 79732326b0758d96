// The signed statements about a transaction, for its owners: the network addresses that submitted
// it, and its sender by X-Leeward-Signature. For all others the answer, its cost and the reads of
// the store are the same whether the relay has the transaction or not.

import { z } from "zod";
import type { CallContext } from "../../../shared/http/callContext.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import { hash } from "../../../shared/jsonrpc/method.ts";
import { isOwnedBy } from "../../../shared/ownership.ts";
import { type CoreNeeds, coreMethod, readerOf } from "../methodDependencies.ts";

const NOT_FOUND = new RpcError(
	"rejected",
	"transaction not found; if you sent it from another network or a web page, sign the read with the sender's key (X-Leeward-Signature, scope receipts)",
);

const wei = z.string().describe("wei as decimal text");
const time = z.string().describe("ISO 8601");
const signature = z.string().describe("the relay's, 65 bytes as 0x hex");
const common = {
	chainId: z.number(),
	signer: z.string().describe("receiptSigner of GET /info"),
	transaction: z.string(),
};
const accepted = z.object({
	...common,
	acceptedAt: time,
	path: z.string().describe("the strictest that an owner requested"),
	mayBeDisclosed: z.boolean().describe("whether searchers may see it"),
	refundPercent: z.number(),
	refundRecipient: z.string(),
	builders: z.array(z.string()).describe("names of those that may have it"),
});
const ended = z.object({
	...common,
	stage: z.string(),
	block: z.number().describe("the block that contains it, or the head when it ended"),
	blockHash: z.string().describe("zeros if it is in no block"),
	refundRecipient: z.string(),
	owed: wei,
	paid: wei,
	cancels: z
		.array(
			z.object({
				at: time,
				block: z.number().describe("the head at that time"),
				by: z.enum(["sender", "address", "anyone", "replacement"]),
				builders: z.array(z.string()).describe("those that had it and receive a cancel"),
			}),
		)
		.describe("acknowledged cancels and replacements"),
});

export const service_receipt = coreMethod({
	name: "service_receipt",
	summary:
		"For a transaction's owners: the relay's signed statements about its terms and, after its end, about how it ended and which refund was paid.",
	params: [{ name: "hash", schema: hash }],
	result: z.object({
		accepted: z.object({ statement: accepted, signature }),
		ended: z.object({ statement: ended, signature }).nullable().describe("null until its end"),
	}),
	weight: 10,
	async handle([wanted], context, { receiptOf, verifyRead }) {
		const signer = readSigner(context, verifyRead);
		const address = readerOf(context);
		const receipt = await receiptOf(
			wanted,
			({ from, owners }) => from === signer || isOwnedBy(owners, address),
		);
		if (receipt === null) throw NOT_FOUND;
		return receipt;
	},
});

/** The signer of the request's X-Leeward-Signature; null without one. Throws for a bad one. */
function readSigner({ transport, client }: CallContext, verifyRead: CoreNeeds["verifyRead"]): string | null {
	if (transport !== "http" || client.readSignature === undefined) return null;
	const checked = verifyRead(client.readSignature, "receipts");
	if ("signer" in checked) return checked.signer;
	throw new RpcError("invalidRequest", `invalid request: ${checked.error}`);
}
