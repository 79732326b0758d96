// Detects requests that boost sent and that come back to it. A setting may lead to boost itself, or
// two boost instances may lead to each other. Each instance adds an entry to `Via`
// (https://www.rfc-editor.org/rfc/rfc9110#field.via) and refuses requests that carry its own.

import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { ClientAddress, ReadAddress } from "../../shared/client.ts";
import { type HttpAnswer, rpcErrorAnswer } from "../../shared/http/messages.ts";

/**
 * The status of the answer to a request that has come back, and the header by which other instances
 * recognize that answer.
 */
export const LOOP_STATUS = 508;
export const LOOP_HEADER = "x-boost-loop";
/**
 * Matches boost's own entries. Other proxies' entries may reveal the client, and are not forwarded.
 */
const ENTRY = /(?:^|,)\s*(1\.1 boost-[0-9a-f]{16})\s*(?=,|$)/g;
/**
 * A request that passed this many boost instances is in a loop, even if its first entries were
 * lost.
 */
const MAX_BOOSTS = 8;
const MESSAGE =
	"no relay available: the request came back to boost, expected RELAY_URL and FALLBACK_URL to point elsewhere";

/** The entry of one boost process in `Via`. It is random, so that it reveals nothing. */
export function newVia(): string {
	return `1.1 boost-${randomBytes(8).toString("hex")}`;
}

/** `readAddress`, extended by the boost instances that a request passed. */
export function withVia(readAddress: ReadAddress): ReadAddress {
	return (headers, socketAddress) => {
		const from = readAddress(headers, socketAddress);
		return headers.via === undefined ? from : { ...from, via: boostsOf(headers) };
	};
}

function boostsOf({ via = "" }: IncomingHttpHeaders): string | undefined {
	const entries = [...via.matchAll(ENTRY)].map(([, entry]) => entry);
	return entries.length === 0 ? undefined : entries.join(", ");
}

/**
 * The answer to a request that has come back to the instance whose entry is `own`; null for any
 * other.
 */
export function loopAnswer({ via }: ClientAddress, own: string): HttpAnswer | null {
	if (via === undefined) return null;
	const entries = via.split(", ");
	if (!entries.includes(own) && entries.length <= MAX_BOOSTS) return null;
	return rpcErrorAnswer("unavailable", MESSAGE, { [LOOP_HEADER]: "1" }, LOOP_STATUS);
}

/** `Via` of a request that is forwarded for a client. */
export function viaFor(via: string | null | undefined, own: string): string {
	return via == null ? own : `${via}, ${own}`;
}
