// The conventions of each kind of fallback, by the values of FALLBACK_DIALECT, and the few error
// messages that boost interprets.

import { parseAddress } from "../../shared/ethereum/hex.ts";
import { hasFlashbots, keptQuery, submissionQuery } from "../../shared/submissionQuery.ts";
import type { Dialect, DialectName } from "../domain/ports.ts";
import type { BoostPath } from "../domain/request.ts";

/**
 * Prefixes that servers add to another's message: "INTERNAL_ERROR: existing tx with same hash"
 * (Erigon).
 */
const PREFIXES =
	"(?:(?:[a-z_ ]{0,32}error|err|already_exists|call failed|transaction rejected|failed to (?:send|submit) (?:the )?(?:transaction|tx)): )*";
/**
 * Allowed after a match: nothing, a hash, or another sentence. A further word could change the
 * meaning.
 */
const END = "(?=$|[.,:;!]| ?\\(| 0x)";
const POOL = "in (?:the )?(?:mem ?pool|tx ?pool|pool|cache)";
const TX = "(?:the |this )?(?:transaction|tx)";

/**
 * go-ethereum, Erigon, Reth, Nethermind: "already known" (older ones "AlreadyKnown"); older
 * go-ethereum, Besu: "known transaction[: hash]"; anvil: "transaction already imported";
 * OpenEthereum: "Transaction with the same hash was already imported."; Erigon: "existing tx with
 * same hash"; others: "already in mempool", "already exists".
 */
const ALREADY_KNOWN = [
	"already ?known",
	"known transaction",
	"already (?:imported|exists)",
	`already (?:exists )?${POOL}`,
	`${TX} (?:is |was )?already (?:known|imported|exists)`,
	`${TX} (?:is |was )?already (?:exists )?${POOL}`,
	`${TX} with the same hash (?:is |was |has been )?already (?:known|imported|exists|${POOL})`,
	"existing (?:transaction|tx) with (?:the )?same hash",
];

/**
 * go-ethereum and most; older Nethermind: "OldNonce"; OpenEthereum: "Transaction nonce is too low.
 * Try …".
 */
const NONCE_TOO_LOW = ["nonce too low", `(?:${TX} )?nonce is too low`, "oldnonce"];

const alreadyKnown = phrase(ALREADY_KNOWN, END);
/** Numbers in various forms may follow. */
const nonceTooLow = phrase(NONCE_TOO_LOW, "(?![a-z])");

/**
 * Whether it means that the upstream has the transaction already. "unknown transaction", "block
 * already known" or "a transaction with the same nonce already exists" do not.
 */
export function isAlreadyKnown(message: string): boolean {
	return alreadyKnown.test(start(message));
}

/** Whether it means that the transaction's nonce is used, perhaps by the transaction itself. */
export function isNonceTooLow(message: string): boolean {
	return nonceTooLow.test(start(message));
}

export function isPoolFull(message: string): boolean {
	return /^txpool is full\b/i.test(start(message));
}

/** A provider's limit on its client's requests, by number or price. */
const RATE =
	/\b(?:rate|requests?|calls?|credits?|capacity|quota|throughput|compute units?|throttl\w*|per (?:second|minute|day)|upgrade)\b/i;
/** Limits on the range of one read. */
const LESS =
	/\b(?:blocks? ranges?|ranges?|results?|too many (?:blocks|logs|events)|(?:log )?response size|logs matched|fewer blocks|query timeout)\b/i;

/**
 * Whether a −32005 asks for a smaller read ("query returned more than 10000 results. Try with this
 * block range [0x1, 0x2]."). False if it limits how often the upstream may be queried ("daily
 * request count exceeded, request rate limited").
 */
export function asksForLess(message: string): boolean {
	const words = start(message).replace(/\beth_getLogs requests\b/i, "eth_getLogs");
	return LESS.test(words) && !RATE.test(words.replace(/\[0x[^\]]*\]/g, ""));
}

/** Matches one of `patterns` at the start of a message, in any case. */
function phrase(patterns: readonly string[], end: string): RegExp {
	return new RegExp(`^${PREFIXES}(?:${patterns.join("|")})${end}`, "i");
}

/** Only the start is matched, since a message may be very long. */
function start(message: string): string {
	return message.slice(0, 256).trimStart();
}

const FLASHBOTS_PATHS: Readonly<Record<BoostPath, string>> = { fast: "/fast", noreverts: "/" };
/** Refund in percent, as on our relay. Flashbots' default on `/fast` is 50. */
const REFUND_PERCENT = 90;

/**
 * Flashbots' −32603 messages that are verdicts, with their places in its sources: "invalid nonce"
 * and "invalid target for large tx" (sendTxToRelay), "tx not found", "tx was already cancelled",
 * "tx has already expired" (handleCancelTx), and a node's messages for a blocked hash
 * (GetBlockedTxHash). "internal error" means that the relay behind it failed: a fault.
 */
const VERDICTS = phrase(
	[
		"invalid nonce",
		"nonce too (?:low|high)",
		"invalid target for large tx",
		"(?:tx|transaction) not found",
		"(?:tx|transaction) (?:was |is )?already cancell?ed",
		"(?:tx|transaction) (?:has |is )?already expired",
		"insufficient funds",
		"intrinsic gas too low",
		"(?:replacement )?transaction underpriced",
	],
	"(?![a-z])",
);

/** Its parameters that may be repeated. */
const MANY: ReadonlySet<string> = new Set(["hint", "builder"]);

/** Bounds of the header that lists dropped parameters. */
const MAX_NAMES = 16;
const MAX_NAME_LENGTH = 64;

/**
 * The dialect of that name, with all differences between kinds of fallback. `hasStatusUrl`: status
 * pages have a URL of their own, to which only the hash is appended.
 */
export function dialectOf(name: DialectName, { hasStatusUrl } = { hasStatusUrl: false }): Dialect {
	switch (name) {
		// MEV Blocker, or a second relay of ours:
		// https://docs.cow.fi/mevblocker/orderflow-originators/endpoints
		case "mevblocker":
			return {
				name,
				batches: true,
				knowsPrivate: true,
				acceptsNonceGaps: true,
				softCancels: true,
				cancelMethod: "eth_cancelTransaction",
				isPrivate: true,
				isRevertProtected: true,
				pages: "ours",
				target: ownTarget,
				whyUnfit: ({ search }) => beyondOwn(search),
				statusPath: (hash) => (hasStatusUrl ? `/${hash}` : `/tx/${hash}`),
				isVerdict: () => false,
			};
		// Flashbots Protect (https://github.com/flashbots/rpc-endpoint). It answers arrays with an
		// empty 400, and counts private transactions in the pending nonce only if the sender signed the
		// request.
		case "flashbots":
			return {
				name,
				batches: false,
				knowsPrivate: false,
				acceptsNonceGaps: false,
				softCancels: true,
				cancelMethod: null,
				isPrivate: true,
				isRevertProtected: true,
				pages: "protect",
				target: flashbotsTarget,
				// Its `/fast` shows searchers in TEEs all but the signature, whatever the hints, and sends
				// to all builders.
				whyUnfit: ({ path, search }) => (path === "fast" ? beyondOwn(search) : null),
				statusPath: (hash) => (hasStatusUrl ? `/${hash}` : null),
				isVerdict: (message) => VERDICTS.test(message.slice(0, 256)),
			};
		// Any node or endpoint that accepts raw transactions: one URL, no paths, no parameters. It need
		// not support arrays.
		case "plain":
			return {
				name,
				batches: false,
				knowsPrivate: false,
				acceptsNonceGaps: true,
				softCancels: false,
				cancelMethod: null,
				isPrivate: false,
				isRevertProtected: false,
				pages: null,
				target: (_, search) => ({ target: "", dropped: named(new URLSearchParams(search).keys()) }),
				whyUnfit: ({ search }) => beyondOwn(search),
				statusPath: () => null,
				isVerdict: () => false,
			};
	}
}

/** Flashbots Protect's status pages, used only with a Flashbots fallback. */
const PROTECT_STATUS_URL = "https://protect.flashbots.net/tx/";
const PROTECT_HOST = /(^|\.)flashbots\.net$/;

/**
 * The URL of the status pages of a fallback at `url` unless a setting gives one; null: on its own
 * base, if at all.
 */
export function usualStatusUrl(name: DialectName, url: string): string | null {
	return name === "flashbots" && PROTECT_HOST.test(new URL(url).hostname) ? PROTECT_STATUS_URL : null;
}

/**
 * Keeps the path, and translates Flashbots' parameters to their names there. {@link beyondOwn}
 * refuses parameters without such a name.
 */
function ownTarget(path: BoostPath, search: string): ReturnType<Dialect["target"]> {
	const query = hasFlashbots(search) ? keptQuery(search) : null;
	const own = query === null ? search : submissionQuery(query);
	return { target: own === "" ? `/${path}` : `/${path}?${own}`, dropped: [] };
}

/**
 * Why a fallback without hints and names of builders must not get the transaction; null if it may.
 */
function beyondOwn(search: string): string | null {
	const query = keptQuery(search);
	if (query === null || query.isHidden) return "the fallback may show it to searchers";
	if (query.builders !== null) return "the fallback may send it to other builders";
	if (query.refundPercent !== null && query.refundPercent !== REFUND_PERCENT)
		return `the fallback refunds ${REFUND_PERCENT} percent`;
	return query.blockRange === null ? null : "the fallback may keep it for another number of blocks";
}

/**
 * Its root protects from reverts, `/fast` does not. Refund and origin have other names there. Other
 * parameters are dropped.
 */
function flashbotsTarget(path: BoostPath, search: string): ReturnType<Dialect["target"]> {
	const dropped = new Set<string>();
	const kept: [string, string][] = [];
	for (const [name, value] of new URLSearchParams(search)) {
		const own = flashbotsParameter(name.toLowerCase(), value);
		const isRepeated = kept.some(([other]) => other === own?.[0]) && !MANY.has(own?.[0] ?? "");
		// A repeated parameter: only the first counts.
		if (own === null || isRepeated) dropped.add(name);
		else kept.push(own);
	}
	// Without a hint it would disclose what it chooses.
	const isHidden = hasFlashbots(search) && keptQuery(search)?.isHidden !== false;
	if (isHidden && !kept.some(([name]) => name === "hint")) kept.push(["hint", "hash"]);
	const query = kept.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
	const target = FLASHBOTS_PATHS[path];
	return { target: query === "" ? target : `${target}?${query}`, dropped: named(dropped) };
}

/** Names of parameters in lower case, their names at Flashbots, and the values it accepts. */
const OF_FLASHBOTS: ReadonlyMap<string, readonly [string, RegExp]> = new Map([
	["referrer", ["originId", /./]],
	["originid", ["originId", /./]],
	["refund", ["refund", /^0x[0-9a-f]{40}:\d{1,2}$/i]],
	["hint", ["hint", /^[a-z_]+$/]],
	["builder", ["builder", /./]],
	["blockrange", ["blockRange", /^\d+$/]],
]);

/** Null if it has no such parameter, or would reject the value. */
function flashbotsParameter(name: string, value: string): [string, string] | null {
	const address = name === "refundrecipient" ? parseAddress(value) : null;
	if (address !== null) return ["refund", `${address}:${REFUND_PERCENT}`];
	const [own, pattern] = OF_FLASHBOTS.get(name) ?? [];
	return own !== undefined && pattern?.test(value) ? [own, value] : null;
}

/** Names of dropped parameters, each once, percent-encoded for a header and shortened. */
function named(names: Iterable<string>): readonly string[] {
	const encoded = new Set<string>();
	for (const name of names) {
		if (encoded.size === MAX_NAMES) break;
		encoded.add(encodeURIComponent([...name].slice(0, MAX_NAME_LENGTH).join("")));
	}
	return [...encoded];
}
