// What the sender asked for by path and query of a submission endpoint. A parameter that has no effect on its path is
// ignored.

import { readSubmissionQuery } from "../../shared/http/submissionQuery.ts";
import { DEFAULT_PATH, isSubmissionPath, policyOf, type SubmissionPath } from "../domain/endpoints.ts";
import type { SubmissionOptions } from "../domain/transaction.ts";

/** Paths on which JSON-RPC is taken; `/` and `/ws` are `/fast`. */
export const RPC_PATHS: readonly string[] = [
	"/",
	"/ws",
	"/fast",
	"/noreverts",
	"/fullprivacy",
	"/maxbackruns",
	"/nochecks",
];

/** The treatment that a path stands for. */
export function submissionPath(path: string): SubmissionPath {
	const name = path.slice(1);
	return isSubmissionPath(name) ? name : DEFAULT_PATH;
}

/** Reads what was asked for. Throws RpcError `invalidParams` naming the parameter and what was expected. */
export function submissionOptions(path: string, query: URLSearchParams): SubmissionOptions {
	const name = submissionPath(path);
	const { softCancellations, refundRecipient, referrer } = readSubmissionQuery(query);
	return {
		path: name,
		softCancellations: softCancellations && policyOf(name).softCancellations,
		refundRecipient,
		referrer,
	};
}
