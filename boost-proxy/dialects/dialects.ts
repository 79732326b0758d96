// How each kind of fallback is spoken to, and the few error messages that mean something to us. One more kind is one more row
// here, under the name that FALLBACK_DIALECT takes.

import { parseAddress } from "../../shared/ethereum/hex.ts";
import type { Dialect, DialectName } from "../domain/ports.ts";
import type { BoostPath } from "../domain/request.ts";

/** What servers put before another's words: "INTERNAL_ERROR: existing tx with same hash" (Erigon). */
const PREFIXES =
	"(?:(?:[a-z_ ]{0,32}error|err|already_exists|call failed|transaction rejected|failed to (?:send|submit) (?:the )?(?:transaction|tx)): )*";
/** What may stand behind: nothing, a hash, or another sentence. Not one word more, which could change the meaning. */
const END = "(?=$|[.,:;!]| ?\\(| 0x)";
const POOL = "in (?:the )?(?:mem ?pool|tx ?pool|pool|cache)";
const TX = "(?:the |this )?(?:transaction|tx)";

/**
 * go-ethereum, Erigon, Reth, Nethermind: "already known" (older ones "AlreadyKnown"); older go-ethereum, Besu: "known
 * transaction[: hash]"; anvil: "transaction already imported"; OpenEthereum: "Transaction with the same hash was already
 * imported."; Erigon: "existing tx with same hash"; others: "already in mempool", "already exists".
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

/** go-ethereum and most; older Nethermind: "OldNonce"; OpenEthereum: "Transaction nonce is too low. Try …". */
const NONCE_TOO_LOW = ["nonce too low", `(?:${TX} )?nonce is too low`, "oldnonce"];

const alreadyKnown = phrase(ALREADY_KNOWN, END);
/** Numbers of all kinds stand behind it. */
const nonceTooLow = phrase(NONCE_TOO_LOW, "(?![a-z])");

/**
 * Whether it says of the transaction that was sent that it is there already. "unknown transaction", "block already
 * known" or "a transaction with the same nonce already exists" don't.
 */
export function isAlreadyKnown(message: string): boolean {
	return alreadyKnown.test(start(message));
}

/** Whether it says that the transaction's nonce was used: by itself perhaps, which then has to be asked for. */
export function isNonceTooLow(message: string): boolean {
	return nonceTooLow.test(start(message));
}

/** Whether it says that there is no room. */
export function isPoolFull(message: string): boolean {
	return /^txpool is full\b/i.test(start(message));
}

/** A phrase at the start of a message, whatever its case. */
function phrase(words: readonly string[], end: string): RegExp {
	return new RegExp(`^${PREFIXES}(?:${words.join("|")})${end}`, "i");
}

/** The phrases stand at the start: a message may be as long as an answer. */
function start(message: string): string {
	return message.slice(0, 256).trimStart();
}

const FLASHBOTS_PATHS: Readonly<Record<BoostPath, string>> = { fast: "/fast", noreverts: "/" };
/** Percent of a refund, as on our relay. Flashbots' own default on `/fast` is 50. */
const REFUND_PERCENT = 90;

/**
 * Flashbots' −32603 that are verdicts, with where they are in its sources: "invalid nonce" and "invalid target for large tx"
 * (sendTxToRelay), "tx not found", "tx was already cancelled", "tx has already expired" (the relay's words that
 * handleCancelTx passes on), and what it keeps of a hash that it blocks (GetBlockedTxHash), which are a node's words. Its
 * "internal error" is all that it says where the relay behind it refused or failed: a fault.
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

/** Names of dropped parameters beyond these say nothing more to whoever reads the header that they end in. */
const MAX_NAMES = 16;
const MAX_NAME_LENGTH = 64;

/**
 * The fallback's way of speaking. `hasStatusUrl`: statuses are told at an address of their own, to which the hash alone is
 * added.
 */
export function dialectOf(name: DialectName, { hasStatusUrl } = { hasStatusUrl: false }): Dialect {
	switch (name) {
		// MEV Blocker, or a second relay of ours: https://docs.cow.fi/mevblocker/orderflow-originators/endpoints
		case "mevblocker":
			return {
				...{ name, batches: true, knowsPrivate: true, takesGaps: true, softCancels: true },
				cancelMethod: "eth_cancelTransaction",
				target: (path, search) => ({
					target: search === "" ? `/${path}` : `/${path}?${search}`,
					dropped: [],
				}),
				statusPath: (hash) => (hasStatusUrl ? `/${hash}` : `/tx/${hash}`),
				isVerdict: () => false,
			};
		// Flashbots Protect (https://github.com/flashbots/rpc-endpoint). It answers an array with 400 and nothing in it, and
		// counts private transactions in the pending nonce only where the sender signed the request.
		case "flashbots":
			return {
				...{ name, batches: false, knowsPrivate: false, takesGaps: false, softCancels: true },
				cancelMethod: null,
				target: flashbotsTarget,
				statusPath: (hash) => (hasStatusUrl ? `/${hash}` : null),
				isVerdict: (message) => VERDICTS.test(message.slice(0, 256)),
			};
		// Any node or endpoint that takes raw transactions: one address, no paths, no parameters. Many take arrays; none has to.
		case "plain":
			return {
				...{ name, batches: false, knowsPrivate: false, takesGaps: true, softCancels: false },
				cancelMethod: null,
				target: (_, search) => ({ target: "", dropped: named(new URLSearchParams(search).keys()) }),
				statusPath: () => null,
				isVerdict: () => false,
			};
	}
}

/** Its root keeps transactions from reverting, `/fast` does not; refund and origin are spelt in its way, the rest is dropped. */
function flashbotsTarget(path: BoostPath, search: string): ReturnType<Dialect["target"]> {
	const dropped = new Set<string>();
	const kept = new Map<string, string>();
	for (const [name, value] of new URLSearchParams(search)) {
		const own = flashbotsParameter(name, value);
		// Of one that is repeated, the first: our relay would have refused it.
		if (own === null || kept.has(own[0])) dropped.add(name);
		else kept.set(...own);
	}
	const query = [...kept].map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
	const target = FLASHBOTS_PATHS[path];
	return { target: query === "" ? target : `${target}?${query}`, dropped: named(dropped) };
}

/** Null where it has no such thing, or would refuse the value. */
function flashbotsParameter(name: string, value: string): [string, string] | null {
	if (name === "referrer" && value !== "") return ["originId", value];
	const address = name === "refundRecipient" ? parseAddress(value) : null;
	return address === null ? null : ["refund", `${address}:${REFUND_PERCENT}`];
}

/** What was dropped: each name once, percent-encoded so that a header can carry it, and cut where it is long. */
function named(names: Iterable<string>): readonly string[] {
	const told = new Set<string>();
	for (const name of names) {
		if (told.size === MAX_NAMES) break;
		told.add(encodeURIComponent([...name].slice(0, MAX_NAME_LENGTH).join("")));
	}
	return [...told];
}
