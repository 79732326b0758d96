// The query parameters of submissions. Unknown ones are ignored, bad ones refused: nobody shall believe that
// a misspelt protection is on.

import { parseAddress } from "../ethereum/hex.ts";
import { RpcError } from "../jsonrpc/errors.ts";

/** What a submission's query says. */
interface SubmissionQuery {
	/** Whether soft cancellations are asked for; on some paths that has no effect. */
	readonly softCancellations: boolean;
	/** Lower-case address that gets the rebate, or null. */
	readonly refundRecipient: string | null;
	readonly referrer: string | null;
}

/** Characters of a referrer at most. */
export const MAX_REFERRER_LENGTH = 64;
/** Both spellings of the flag. */
const SOFT_CANCEL = ["softCancellations", "softcancel"] as const;
/** A longer query holds nothing of use beside the known parameters. */
const MAX_QUERY_LENGTH = 1_024;

/** The query as it came; of one that is too long the known parameters alone. */
export function boundedQuery(search: string): string {
	if (search.length <= MAX_QUERY_LENGTH) return search;
	const known: readonly string[] = [...SOFT_CANCEL, "refundRecipient", "referrer"];
	const kept = new URLSearchParams();
	for (const [name, value] of new URLSearchParams(search)) {
		if (known.includes(name) && kept.size <= known.length)
			kept.append(name, value.slice(0, MAX_QUERY_LENGTH / 8));
	}
	return kept.toString();
}

/** Reads it. Throws RpcError `invalidParams` naming the parameter and what was expected. */
export function readSubmissionQuery(query: URLSearchParams): SubmissionQuery {
	return {
		softCancellations: SOFT_CANCEL.map((parameter) => flag(query, parameter)).includes(true),
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
