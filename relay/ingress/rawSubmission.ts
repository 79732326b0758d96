// The submission that all sending methods share. A refusal becomes the error text that clients know.

import type { CallContext } from "../../shared/http/callContext.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { Submitter } from "../domain/ports.ts";
import type { SubmitOutcome } from "../domain/submission.ts";
import { submissionOptions } from "./submissionOptions.ts";

/** What became of a transaction that was not refused. */
export type Taken = Exclude<SubmitOutcome, { readonly outcome: "refused" }>;

/**
 * Submits `raw` as the path and query of its request say; resolves once it is on disk. Throws RpcError `rejected` for a
 * refusal, `limit` where its client holds its share of the pool, `invalidParams` for a bad query, and whatever the
 * submitter throws.
 */
export async function submitRaw(raw: Uint8Array, context: CallContext, submitter: Submitter): Promise<Taken> {
	const options = submissionOptions(context.path, context.query);
	const outcome = await submitter.submit({ raw, origin: context.client.address, ...options });
	if (outcome.outcome !== "refused") return outcome;
	const { code, message, data } = outcome.rejection;
	// The words are go-ethereum's; the data is for those who would rather not match words.
	throw new RpcError(code === "CLIENT_FULL" ? "limit" : "rejected", message, { reason: code, ...data });
}
