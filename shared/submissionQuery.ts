// Reads the query parameters of submissions, ours and Flashbots', with names in any case. Unknown
// parameters are ignored. A misspelt name is an error, so that no user wrongly believes a
// protection to be on.

import { parseAddress, parseHash } from "./ethereum/hex.ts";
import { RpcError } from "./jsonrpc/errors.ts";
import { nearest } from "./nearest.ts";

export interface SubmissionQuery {
	/** Has no effect on some paths. */
	readonly softCancellations: boolean;
	/** Lower-case address for the refund, or null. */
	readonly refundRecipient: string | null;
	readonly referrer: string | null;
	/** Whether searchers may see nothing of it, whatever the path. */
	readonly isHidden: boolean;
	/** Names of the allowed builders, in any case; null: all that the path allows. */
	readonly builders: readonly string[] | null;
	/** Requested percentage of the refund. Null if none was requested. */
	readonly refundPercent: number | null;
	/** Requested lifetime in blocks. Null if none was requested. */
	readonly blockRange: number | null;
	/**
	 * Lower-case hash of a transaction to submit again although another owner has cancelled it.
	 * Null if there is none.
	 */
	readonly again: string | null;
}

/** The values for a request without a query. */
export const NO_QUERY: SubmissionQuery = {
	...{ softCancellations: false, refundRecipient: null, referrer: null },
	...{ isHidden: false, builders: null, refundPercent: null, blockRange: null, again: null },
};

/** In characters. */
export const MAX_REFERRER_LENGTH = 64;
/** Two names of one flag. */
const SOFT_CANCEL = ["softCancellations", "softcancel"] as const;
/** Flashbots Protect's parameters. https://docs.flashbots.net/flashbots-protect/settings-guide */
const FLASHBOTS = ["hint", "builder", "refund", "originId", "useMempool", "blockRange"] as const;
/** For our relay alone. */
const AGAIN = "again";
const NAMES: readonly string[] = [...SOFT_CANCEL, "refundRecipient", "referrer", AGAIN, ...FLASHBOTS];
/**
 * Hints with which the feed may show a transaction. The other hints would need a feed that shows
 * less.
 */
const SHOWN: readonly string[] = ["calldata", "full"];
const HINTS = [
	...SHOWN,
	...["logs", "hash", "tx_hash", "contract_address", "function_selector", "default_logs", "special_logs"],
];
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

/** Whether the query has one of Flashbots' parameters. */
export function hasFlashbots(search: string): boolean {
	const names = new Set(Array.from(new URLSearchParams(search).keys(), (name) => name.toLowerCase()));
	return FLASHBOTS.some((name) => names.has(name.toLowerCase()));
}

/** The values of a stored query. Null if it can't be read. */
export function keptQuery(search: string): SubmissionQuery | null {
	if (search === "") return NO_QUERY;
	try {
		return readSubmissionQuery(new URLSearchParams(search));
	} catch {
		return null;
	}
}

/** Throws RpcError `invalidParams` naming the parameter and what was expected. */
export function readSubmissionQuery(given: URLSearchParams): SubmissionQuery {
	const query = new URLSearchParams();
	for (const [name, value] of given) {
		const meant = name.length <= MAX_NAME_LENGTH ? nearest(name, NAMES) : null;
		if (meant === null) continue;
		if (meant.toLowerCase() !== name.toLowerCase()) throw badParameter(name, `the name ${meant}`);
		query.append(meant, value);
	}
	return {
		softCancellations: SOFT_CANCEL.map((parameter) => flag(query, parameter)).includes(true),
		...refund(query),
		referrer: referrer(query),
		again: again(query),
		...flashbotsOnly(query),
	};
}

/** The query with these values, without "?". {@link readSubmissionQuery} reads it back. */
export function submissionQuery({
	softCancellations,
	refundRecipient,
	referrer,
	isHidden,
	builders,
}: Omit<SubmissionQuery, "refundPercent" | "blockRange" | "again">): string {
	const query = new URLSearchParams();
	if (softCancellations) query.set("softCancellations", "true");
	if (refundRecipient !== null) query.set("refundRecipient", refundRecipient);
	if (referrer !== null) query.set("referrer", referrer);
	if (isHidden || builders !== null) query.set("hint", isHidden ? "hash" : "calldata");
	for (const name of builders ?? []) query.append("builder", name);
	return query.toString();
}

/**
 * Flashbots shows searchers the fields that the hints name. Our feed shows everything but the
 * signature, or nothing. So a transaction with any of these parameters is hidden, unless a hint
 * names its call data.
 */
function flashbotsOnly(
	query: URLSearchParams,
): Pick<SubmissionQuery, "isHidden" | "builders" | "blockRange"> {
	const hints = query.getAll("hint");
	if (hints.some((hint) => !HINTS.includes(hint))) throw badParameter("hint", `one of ${HINTS.join(", ")}`);
	const isShown = hints.some((hint) => SHOWN.includes(hint));
	if (!isShown && hints.includes("logs"))
		throw badParameter("hint", "calldata with logs: searchers see everything but the signature, or nothing");
	if (flag(query, "useMempool"))
		throw badParameter("useMempool", "false: nothing goes to the public mempool");
	const builders = query.getAll("builder");
	const blockRange = single(query, "blockRange");
	if (blockRange !== null && !/^\d{1,4}$/.test(blockRange))
		throw badParameter("blockRange", "a number of blocks");
	return {
		isHidden: !isShown && FLASHBOTS.some((name) => query.has(name)),
		builders: builders.length === 0 ? null : [...new Set(builders)],
		blockRange: blockRange === null ? null : Number(blockRange),
	};
}

/**
 * The recipient of the refund: the address in our parameter, or the one in Flashbots'
 * `address:percent`.
 */
function refund(query: URLSearchParams): Pick<SubmissionQuery, "refundRecipient" | "refundPercent"> {
	const own = address(query, "refundRecipient");
	const values = query.getAll("refund");
	if (values.length === 0) return { refundRecipient: own, refundPercent: null };
	if (values.length > 1) throw badParameter("refund", "one recipient");
	if (own !== null) throw badParameter("refund", "no refundRecipient with it");
	const [, recipient, percent] = /^(0x[0-9a-f]{40}):(\d{1,3})$/i.exec(values[0] ?? "") ?? [];
	const refundRecipient = parseAddress(recipient ?? "");
	if (refundRecipient === null) throw badParameter("refund", "an address and a percent: 0x…:90");
	return { refundRecipient, refundPercent: Number(percent) };
}

function single(query: URLSearchParams, name: string): string | null {
	const values = query.getAll(name);
	if (values.length > 1) throw badParameter(name, "once");
	return values[0] ?? null;
}

function flag(query: URLSearchParams, name: string): boolean {
	const value = single(query, name);
	if (value === null || value === "false" || value === "0") return false;
	if (value === "true" || value === "1") return true;
	throw badParameter(name, "true or false");
}

function address(query: URLSearchParams, name: string): string | null {
	const value = single(query, name);
	if (value === null) return null;
	const parsed = parseAddress(value);
	if (parsed === null) throw badParameter(name, "an address of 20 bytes as 0x hex");
	return parsed;
}

function again(query: URLSearchParams): string | null {
	const value = single(query, AGAIN);
	const hash = value === null ? null : parseHash(value);
	if (value !== null && hash === null)
		throw badParameter(AGAIN, "the transaction's hash, 32 bytes as 0x hex");
	return hash;
}

/** The query with which our relay accepts a transaction again although others have ended it. */
export function withAgain(search: string, hash: string): string {
	const query = new URLSearchParams(withoutAgain(search));
	query.set(AGAIN, hash);
	return query.toString();
}

/** The query without the parameters that only our relay may receive. */
export function withoutAgain(search: string): string {
	const query = new URLSearchParams(search);
	const names = [...query.keys()].filter((name) => name.toLowerCase() === AGAIN);
	if (names.length === 0) return search;
	for (const name of names) query.delete(name);
	return query.toString();
}

function referrer(query: URLSearchParams): string | null {
	const [own, origin] = [single(query, "referrer"), single(query, "originId")];
	if (own !== null && origin !== null) throw badParameter("originId", "no referrer with it");
	const value = own ?? origin;
	if (value === null || value === "") return null;
	if ([...value].length > MAX_REFERRER_LENGTH) {
		throw badParameter(own === null ? "originId" : "referrer", `${MAX_REFERRER_LENGTH} characters at most`);
	}
	return value;
}

/** The error of a parameter that is not as expected. */
export function badParameter(name: string, expected: string): RpcError {
	return new RpcError("invalidParams", `invalid params: ${name}: expected ${expected}`);
}
