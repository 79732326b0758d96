// The query parameters of the submission endpoints: a path and a query come in, what the sender asked for goes out.
// Unknown parameters are ignored, bad ones refused: nobody shall believe that a misspelt protection is on.

import { parseAddress } from "../../shared/ethereum/hex.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
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

/** Characters of a referrer at most. */
export const MAX_REFERRER_LENGTH = 64;
/** Both spellings of the flag. */
const SOFT_CANCEL = ["softCancellations", "softcancel"] as const;

/** The treatment that a path stands for. */
export function submissionPath(path: string): SubmissionPath {
	const name = path.slice(1);
	return isSubmissionPath(name) ? name : DEFAULT_PATH;
}

/** Reads what was asked for. Throws RpcError `invalidParams` naming the parameter and what was expected. */
export function submissionOptions(path: string, query: URLSearchParams): SubmissionOptions {
	const name = submissionPath(path);
	const asked = SOFT_CANCEL.map((parameter) => flag(query, parameter)).includes(true);
	return {
		path: name,
		softCancellations: asked && policyOf(name).softCancellations,
		refundRecipient: address(query, "refundRecipient"),
		referrer: referrer(query),
	};
}

function single(query: URLSearchParams, name: string): string | null {
	const values = query.getAll(name);
	if (values.length > 1) throw bad(name, "once");
	return values[0] ?? null;
}

function flag(query: URLSearchParams, name: string): boolean {
	const value = single(query, name);
	if (value === null || value === "false" || value === "0") return false;
	if (value === "true" || value === "1") return true;
	throw bad(name, "true or false");
}

function address(query: URLSearchParams, name: string): string | null {
	const value = single(query, name);
	if (value === null) return null;
	const parsed = parseAddress(value);
	if (parsed === null) throw bad(name, "an address of 20 bytes as 0x hex");
	return parsed;
}

function referrer(query: URLSearchParams): string | null {
	const value = single(query, "referrer");
	if (value === null || value === "") return null;
	if ([...value].length > MAX_REFERRER_LENGTH) {
		throw bad("referrer", `${MAX_REFERRER_LENGTH} characters at most`);
	}
	return value;
}

function bad(name: string, expected: string): RpcError {
	return new RpcError("invalidParams", `invalid params: ${name}: expected ${expected}`);
}
