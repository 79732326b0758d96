// Bad requests for a bundle's status, with their exact answers. Another client's bundle is answered like an unknown
// one.

import type { HttpRow } from "./rows.ts";

const HASH = `0x${"aB".repeat(32)}`;
const NO_HASH = { error: "expected a bundle hash of 32 bytes as 0x hex" };
const NOT_FOUND = { error: "no bundle of yours with this hash was seen here" };
const NO_PATH = { error: "unknown path" };

function get(path: string, status: number, answer: unknown, headers: Record<string, string> = {}): HttpRow {
	const name = `GET ${path.slice(0, 90)}${Object.keys(headers).length === 0 ? "" : ` ${JSON.stringify(headers).slice(0, 60)}`}`;
	return { name, send: { verb: "GET", path, headers }, status, answer };
}

function unverified(header: string, reason: string): HttpRow {
	const error = `X-Flashbots-Signature does not verify: ${reason}: expected a signature over the bundle's hash as lower-case hex`;
	return get(`/bundle/${HASH}`, 400, { error }, { "x-flashbots-signature": header });
}

const bad = (hash: string): HttpRow => get(`/bundle/${hash}`, 400, NO_HASH);

export const BUNDLE_PAGE_ROWS: readonly HttpRow[] = [
	bad("0x"),
	bad("x"),
	bad("null"),
	bad(HASH.slice(2)),
	bad(HASH.slice(0, -1)),
	bad(HASH.slice(0, -2)),
	bad(`${HASH}a`),
	bad(`${HASH.slice(0, -1)}g`),
	bad(`${HASH}%20`),
	bad(`${HASH}%0a`),
	bad(`${HASH}%00`),
	bad(`0x${"a".repeat(10_000)}`),
	bad("..%2f..%2fetc%2fpasswd"),
	bad("__proto__"),
	get("/bundle", 404, NO_PATH),
	get("/bundle/%ff", 404, NO_PATH),
	get(`/bundle/${HASH}/events`, 404, NO_PATH),
	get(`/BUNDLE/${HASH}`, 404, NO_PATH),
	get(`/bundle/${HASH}`, 404, NOT_FOUND),
	get(`/bundle/${HASH}/`, 404, NOT_FOUND),
	get(`/bundle/${HASH}?more=1`, 404, NOT_FOUND),
	get(`/bundle/0X${HASH.slice(2)}`, 404, NOT_FOUND),
	get(`/bundle/${HASH}`, 404, NOT_FOUND, { origin: "https://app.example" }),
	unverified("", "malformed"),
	unverified("0x", "malformed"),
	unverified(`0x${"11".repeat(20)}`, "malformed"),
	unverified(`0x${"11".repeat(20)}:0x${"11".repeat(64)}`, "malformed"),
	unverified(`0x${"11".repeat(20)}:0x${"00".repeat(65)}`, "invalid"),
	...["POST", "PUT", "DELETE", "PATCH"].map((verb) => ({
		name: `${verb} /bundle/{hash}`,
		send: { verb, path: `/bundle/${HASH}`, body: "{}" },
		status: 405,
		answer: { error: "expected one of GET, HEAD, OPTIONS" },
		headers: { allow: "GET, HEAD, OPTIONS" },
	})),
];
