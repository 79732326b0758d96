// Bad hashes on the status pages: rows of a GET and its exact answer, and beside them what a hash that was never seen
// is answered.

import type { HttpRow } from "./rows.ts";

const HASH = `0x${"aB".repeat(32)}`;
const NO_HASH = { error: "expected a transaction hash of 32 bytes as 0x hex" };
const NEVER_SEEN = { error: "no transaction with this hash was seen here" };
const NO_PATH = { error: "unknown path" };

/** The interface's blank record, and not a field more. */
const BLANK = {
	status: "UNKNOWN",
	hash: HASH.toLowerCase(),
	rpc_timestamp: null,
	transaction: { from: "", to: "", gas: "", nonce: "", value: "" },
	fastMode: false,
	shared: false,
	simulationError: null,
	backruns: 0,
	referrer: null,
	refundRecipient: null,
	refund: 0,
};

function get(path: string, status: number, answer: unknown): HttpRow {
	return { name: `GET ${path.slice(0, 90)}`, send: { verb: "GET", path }, status, answer };
}

const bad = (hash: string): readonly HttpRow[] => [
	get(`/tx/${hash}`, 400, NO_HASH),
	get(`/tx/${hash}/events`, 400, NO_HASH),
];

export const REST_ROWS: readonly HttpRow[] = [
	...bad("0x"),
	...bad("x"),
	...bad("null"),
	...bad(HASH.slice(2)),
	...bad(HASH.slice(0, -1)),
	...bad(HASH.slice(0, -2)),
	...bad(`${HASH}a`),
	...bad(`${HASH}aa`),
	...bad(`${HASH.slice(0, -1)}g`),
	...bad(`${HASH}%20`),
	...bad(`%20${HASH}`),
	...bad(`${HASH}%0a`),
	...bad(`${HASH}%00`),
	...bad(`${HASH}%2f`),
	...bad(`${HASH},${HASH}`),
	...bad(`0x${"%C4%B0".repeat(64)}`),
	...bad(`0x${"a".repeat(10_000)}`),
	...bad("..%2f..%2fetc%2fpasswd"),
	...bad("__proto__"),
	get("/tx/%ff", 404, NO_PATH),
	get("/tx/%", 404, NO_PATH),
	get(`/tx//${HASH}`, 404, NO_PATH),
	get(`/tx/${HASH}/x`, 404, NO_PATH),
	get(`/TX/${HASH}`, 404, NO_PATH),
	get(`/tx/${HASH}/events/1`, 404, NO_PATH),
	get("/tx", 404, NO_PATH),
	get("/tx/", 404, NO_PATH),
	get("/tx/events", 400, NO_HASH),
	get(`/tx/${HASH}`, 200, BLANK),
	get(`/tx/${HASH}/`, 200, BLANK),
	get(`/tx/${HASH}?more=1`, 200, BLANK),
	get(`/tx/0X${HASH.slice(2)}`, 200, BLANK),
	get(`/tx/${HASH.replace("0x", "%30%78")}`, 200, BLANK),
	get(`/tx/${HASH}/events`, 404, NEVER_SEEN),
	get(`/tx/${HASH}/events/`, 404, NEVER_SEEN),
];
