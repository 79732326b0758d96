// The dialect of Flashbots Protect (https://github.com/flashbots/rpc-endpoint): its root keeps transactions from
// reverting, `/fast` does not; refund and origin are spelt in its way, and all else that our relay knows is dropped.

import { parseAddress } from "../../shared/ethereum/hex.ts";
import type { BoostPath } from "../domain/delivery.ts";
import type { Dialect } from "../domain/dialect.ts";
import { dropped, readParameters, targetOf } from "./query.ts";
import { phrase } from "./words.ts";

const PATHS: Readonly<Record<BoostPath, string>> = { fast: "/fast", noreverts: "/" };
/** Percent of a refund, as on our relay. Its own default on `/fast` is 50. */
const REFUND_PERCENT = 90;

/**
 * Its −32603 that are verdicts, with where they are in its sources: "invalid nonce" and "invalid target for large tx"
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

/** Flashbots Protect. Its status is told on another host: `hasStatusUrl` says whether that one is known. */
export function flashbots(options: { readonly hasStatusUrl: boolean }): Dialect {
	return {
		name: "flashbots",
		// Removed in 2022: an array is answered with 400 and nothing in it.
		batches: false,
		// Its pending nonce counts private transactions only where the sender signed the request.
		knowsPrivate: false,
		takesGaps: false,
		cancelMethod: null,
		softCancels: true,
		target: translated,
		statusPath: (hash) => (options.hasStatusUrl ? `/${hash}` : null),
		isVerdict: (message) => VERDICTS.test(message.slice(0, 256)),
	};
}

function translated(path: BoostPath, search: string): ReturnType<Dialect["target"]> {
	const names = new Set<string>();
	const kept = new Map<string, string>();
	for (const { name, value } of readParameters(search)) {
		// Of one that is repeated, the first: our relay would have refused it.
		const translation = parameter(name, value);
		if (translation === null || kept.has(translation[0])) names.add(name);
		else kept.set(...translation);
	}
	return { target: targetOf(PATHS[path], [...kept]), dropped: dropped(names) };
}

/** Null where it has no such thing, or would refuse the value. */
function parameter(name: string, value: string): [string, string] | null {
	if (name === "referrer" && value !== "") return ["originId", value];
	const address = name === "refundRecipient" ? parseAddress(value) : null;
	return address === null ? null : ["refund", `${address}:${REFUND_PERCENT}`];
}
