// Parsers for pieces of a node's JSON. The node is the operator's own, so a value that does not fit is an
// UpstreamError.

import { parseAddress, parseHash, readQuantity } from "../../shared/ethereum/hex.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** The fields of an object; null for anything else. */
export function fieldsOf(value: unknown): Fields | null {
	return typeof value === "object" && value !== null ? (value as Fields) : null;
}

/** The fields of an object. Throws an UpstreamError for anything else. */
export function record(value: unknown): Fields {
	return known(fieldsOf(value));
}

/** Not as strict as with clients: some nodes pad with zeros. Throws an UpstreamError. */
export function quantity(value: unknown): bigint {
	return known(readQuantity(value));
}

/** Lower case. Throws an UpstreamError. */
export function hash(value: unknown): string {
	return known(typeof value === "string" ? parseHash(value) : null);
}

/** Lower case. Throws an UpstreamError. */
export function address(value: unknown): string {
	return known(typeof value === "string" ? parseAddress(value) : null);
}

function known<T>(value: T | null): T {
	if (value === null) throw new UpstreamError("notJsonRpc");
	return value;
}
