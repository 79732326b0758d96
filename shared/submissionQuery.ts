// Reads the query parameters of submissions, with names in any case. Unknown ones are ignored, but a misspelt name is an error,
// so that no user wrongly believes a protection to be on.

import { parseAddress } from "./ethereum/hex.ts";
import { RpcError } from "./jsonrpc/errors.ts";
import { nearest } from "./nearest.ts";

interface SubmissionQuery {
	/** Has no effect on some paths. */
	readonly softCancellations: boolean;
	/** Lower-case address for the refund, or null. */
	readonly refundRecipient: string | null;
	readonly referrer: string | null;
}

/** In characters. */
export const MAX_REFERRER_LENGTH = 64;
/** Two names of one flag. */
const SOFT_CANCEL = ["softCancellations", "softcancel"] as const;
const NAMES: readonly string[] = [...SOFT_CANCEL, "refundRecipient", "referrer"];
const MAX_QUERY_LENGTH = 1_024;
/** Longer names are not compared with the known ones. */
const MAX_NAME_LENGTH = 24;

/** The query unchanged, or only its known parameters if it is too long to keep. */
export function boundedQuery(search: string): string {
	if (search.length <= MAX_QUERY_LENGTH) return search;
	const kept = new URLSearchParams();
	for (const [name, value] of new URLSearchParams(search)) {
		if (name.length <= MAX_NAME_LENGTH && nearest(name, NAMES) !== null && kept.size <= NAMES.length)
			kept.append(name, value.slice(0, MAX_QUERY_LENGTH / 8));
	}
	return kept.toString();
}

/** Throws RpcError `invalidParams` naming the parameter and what was expected. */
export function readSubmissionQuery(given: URLSearchParams): SubmissionQuery {
	const query = new URLSearchParams();
	for (const [name, value] of given) {
		const meant = name.length <= MAX_NAME_LENGTH ? nearest(name, NAMES) : null;
		if (meant === null) continue;
		if (meant.toLowerCase() !== name.toLowerCase()) throw bad(name, `the name ${meant}`);
		query.append(meant, value);
	}
	return {
		softCancellations: SOFT_CANCEL.map((parameter) => flag(query, parameter)).includes(true),
		refundRecipient: address(query, "refundRecipient"),
		referrer: referrer(query),
	};
}

/** The query that asks for this, without "?"; what {@link readSubmissionQuery} reads back. */
export function submissionQuery({ softCancellations, refundRecipient, referrer }: SubmissionQuery): string {
	const query = new URLSearchParams();
	if (softCancellations) query.set("softCancellations", "true");
	if (refundRecipient !== null) query.set("refundRecipient", refundRecipient);
	if (referrer !== null) query.set("referrer", referrer);
	return query.toString();
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
