// How each kind of fallback is spoken to. One more kind is one more row here, under the name that FALLBACK_DIALECT takes.

import { parseAddress } from "../../shared/ethereum/hex.ts";
import type { BoostPath } from "../domain/delivery.ts";
import type { Dialect, DialectName } from "../domain/ports.ts";
import { phrase } from "./errorPatterns.ts";

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
