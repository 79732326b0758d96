// Requests that boost sent and that come back to it, since a setting leads to boost itself or two boosts lead to each other.
// Each boost adds an entry to `Via` (https://www.rfc-editor.org/rfc/rfc9110#field.via), and refuses what has its own.

import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { ClientAddress, ReadAddress } from "../../shared/client.ts";
import { type HttpAnswer, rpcErrorAnswer } from "../../shared/http/messages.ts";

/** What a boost answers to a request that has come back to it, and the header by which another boost knows that. */
export const LOOP_STATUS = 508;
export const LOOP_HEADER = "x-boost-loop";
/** Other proxies' entries may tell of the client, and are not passed on. */
const ENTRY = /(?:^|,)\s*(1\.1 boost-[0-9a-f]{16})\s*(?=,|$)/g;
/** A request that came through so many boosts goes in circles, whoever has lost its first entries. */
const MAX_BOOSTS = 8;
const MESSAGE =
	"no relay available: the request has come back, expected RELAY_URL and FALLBACK_URL to lead elsewhere";

/** The entry of one boost process in `Via`: random, so that it tells nothing. */
export function newVia(): string {
	return `1.1 boost-${randomBytes(8).toString("hex")}`;
}

/** `readAddress`, with the boosts that a request came through. */
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

/** The answer to a request that has come back to the boost whose entry is `own`; null for any other request. */
export function loopAnswer({ via }: ClientAddress, own: string): HttpAnswer | null {
	if (via === undefined) return null;
	const entries = via.split(", ");
	if (!entries.includes(own) && entries.length <= MAX_BOOSTS) return null;
	return rpcErrorAnswer("unavailable", MESSAGE, { [LOOP_HEADER]: "1" }, LOOP_STATUS);
}

/** `Via` of a request that is sent on for a client. */
export function viaFor(via: string | null | undefined, own: string): string {
	return via == null ? own : `${via}, ${own}`;
}
