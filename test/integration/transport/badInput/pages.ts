// Bad hashes and signatures on the status pages, and bad query parameters of the submission paths,
// with their exact answers.

import { type CallRow, failure, type HttpRow, invalid, refusal, type WireError } from "./fixture.ts";

const HASH = `0x${"aB".repeat(32)}`;
const NO_PATH = { error: "unknown path" };
const NO_HASH = { error: "expected a transaction hash of 32 bytes as 0x hex" };
const NEVER_SEEN = { error: "the relay has received no transaction with this hash" };
const NO_BUNDLE_HASH = { error: "expected a bundle hash of 32 bytes as 0x hex" };
/** Another client's bundle is answered like an unknown one. */
const NO_BUNDLE = { error: "the relay has received no bundle of yours with this hash" };

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

function get(path: string, status: number, answer: unknown, headers: Record<string, string> = {}): HttpRow {
	const named = Object.keys(headers).length === 0 ? "" : ` ${JSON.stringify(headers).slice(0, 60)}`;
	return { name: `GET ${path.slice(0, 90)}${named}`, send: { verb: "GET", path, headers }, status, answer };
}

const NO_HASHES: readonly string[] = [
	...["0x", "x", "null", HASH.slice(2), HASH.slice(0, -1), HASH.slice(0, -2), `${HASH}a`, `${HASH}aa`],
	...[`${HASH.slice(0, -1)}g`, `${HASH}%20`, `%20${HASH}`, `${HASH}%0a`, `${HASH}%00`, `${HASH}%2f`],
	...[`${HASH},${HASH}`, `0x${"%C4%B0".repeat(64)}`, `0x${"a".repeat(10_000)}`, "..%2f..%2fetc%2fpasswd"],
	"__proto__",
];

export const REST_ROWS: readonly HttpRow[] = [
	...NO_HASHES.flatMap((hash) => [`/tx/${hash}`, `/tx/${hash}/events`]).map((path) =>
		get(path, 400, NO_HASH),
	),
	get("/tx/events", 400, NO_HASH),
	...["/tx/%ff", "/tx/%", `/tx/x/${HASH}`, `/tx/${HASH}/x`, `/TX/${HASH}`, `/tx/${HASH}/events/1`].map(
		(path) => get(path, 404, NO_PATH),
	),
	get("/tx", 404, NO_PATH),
	get("/tx/", 404, NO_PATH),
	...[HASH, `${HASH}/`, `${HASH}?more=1`, `0X${HASH.slice(2)}`, HASH.replace("0x", "%30%78")].map((hash) =>
		get(`/tx/${hash}`, 200, BLANK),
	),
	get(`/tx/${HASH}/events`, 404, NEVER_SEEN),
	get(`/tx/${HASH}/events/`, 404, NEVER_SEEN),
];

function unverified(header: string, reason: string): HttpRow {
	const error = `X-Flashbots-Signature does not verify: ${reason}: expected a signature over the bundle's hash as lower-case hex`;
	return get(`/bundle/${HASH}`, 400, { error }, { "x-flashbots-signature": header });
}

const SIGNER = `0x${"11".repeat(20)}`;

export const BUNDLE_PAGE_ROWS: readonly HttpRow[] = [
	...NO_HASHES.map((hash) => get(`/bundle/${hash}`, 400, NO_BUNDLE_HASH)),
	...["/bundle", "/bundle/%ff", `/bundle/${HASH}/events`, `/BUNDLE/${HASH}`].map((path) =>
		get(path, 404, NO_PATH),
	),
	...[HASH, `${HASH}/`, `${HASH}?more=1`, `0X${HASH.slice(2)}`].map((hash) =>
		get(`/bundle/${hash}`, 404, NO_BUNDLE),
	),
	get(`/bundle/${HASH}`, 404, NO_BUNDLE, { origin: "https://app.example" }),
	unverified("", "malformed"),
	unverified("0x", "malformed"),
	unverified(SIGNER, "malformed"),
	unverified(`${SIGNER}:0x${"11".repeat(64)}`, "malformed"),
	unverified(`${SIGNER}:0x${"00".repeat(65)}`, "invalid"),
	...["POST", "PUT", "DELETE", "PATCH"].map((verb) => ({
		name: `${verb} /bundle/{hash}`,
		send: { verb, path: `/bundle/${HASH}`, body: "{}" },
		status: 405,
		answer: failure(null, -32600, "invalid request: expected one of GET, HEAD, OPTIONS"),
		headers: { allow: "GET, HEAD, OPTIONS" },
	})),
];

const ADDRESS = `0x${"Ad".repeat(20)}`;

/** They are reported before the transaction is read, and the one of these rows is none. */
function query(path: string, error: WireError, name = path.slice(0, 90)): CallRow {
	return { name, method: "eth_sendRawTransaction", params: ["0x"], path, error };
}

const bad = (name: string, expected: string, ...paths: readonly string[]): CallRow[] =>
	paths.map((path) => query(path, invalid(`${name}: expected ${expected}`)));

/** Unknown parameters are ignored, near misses of known ones are not. */
export const QUERY_ROWS: readonly CallRow[] = [
	...bad(
		"softCancellations",
		"true or false",
		...["yes", "TRUE", "2", "", "true%20", "%00"].map((flag) => `/noreverts?softCancellations=${flag}`),
		"/noreverts?softCancellations",
		"/fullprivacy?softCancellations=on",
		"/fast?softCancellations=maybe",
		"/?softCancellations=maybe",
		"/noreverts?SOFTCANCELLATIONS=maybe",
	),
	...bad(
		"softcancel",
		"true or false",
		"/noreverts?softcancel=yes",
		"/noreverts?softcancel=-1",
		"/noreverts?softCancellations=true&softcancel=maybe",
		"/nochecks?softcancel=maybe",
	),
	...bad("softCancellations", "once", "/noreverts?softCancellations=true&softCancellations=true"),
	...bad("softcancel", "once", "/noreverts?softcancel=1&softcancel=0"),
	...bad("soft_cancellations", "the name softCancellations", "/noreverts?soft_cancellations=true"),
	...bad(
		"refundRecipient",
		"an address of 20 bytes as 0x hex",
		"/fast?refundRecipient",
		...[
			...["", "0x", ADDRESS.slice(2), ADDRESS.slice(0, -1), ADDRESS.slice(0, -2), `${ADDRESS}ad`],
			...[`${ADDRESS.slice(0, -1)}g`, `${ADDRESS}%20`, `+${ADDRESS}`, `${ADDRESS}%0a`, "vitalik.eth"],
			...["null", "%zz", "%ff", `${ADDRESS},${ADDRESS}`, "a".repeat(5_000)],
		].map((address) => `/fast?refundRecipient=${address}`),
	),
	...bad("refundRecipient", "once", `/fast?refundRecipient=${ADDRESS}&refundRecipient=${ADDRESS}`),
	...bad("refundrecipent", "the name refundRecipient", "/fast?refundrecipent=0x"),
	...bad(
		"referrer",
		"64 characters at most",
		...["a".repeat(65), "a".repeat(10_000), "%F0%9F%98%80".repeat(65), "%20".repeat(65)].map(
			(name) => `/fast?referrer=${name}`,
		),
	),
	...bad("referrer", "once", "/fast?referrer=a&referrer=a", "/fast?referrer=&referrer="),
	...[
		"/noreverts?softCancellations=true",
		"/noreverts?softCancellations=false",
		"/noreverts?softcancel=1&softCancellations=true",
		"/fullprivacy?softcancel=0",
		"/fast?softCancellations=true",
		"/noreverts?cancelSoftly=maybe&x=%zz&=&&",
		"/fast?__proto__=1&constructor=2&toString",
		`/fast?refundRecipient=${ADDRESS}`,
		`/fast?refundRecipient=${ADDRESS.toUpperCase()}`,
		`/fast?refundRecipient=${ADDRESS.replace("0x", "%30%78")}`,
		"/fast?referrer=",
		`/fast?referrer=${"a".repeat(64)}`,
		`/fast?referrer=${"%F0%9F%98%80".repeat(64)}`,
		"/fast?referrer=%00%ff%zz",
		`/?refundRecipient=${ADDRESS}&referrer=me&softCancellations=false`,
	].map((path) =>
		query(
			path,
			refusal("UNDECODABLE", "rlp: empty input", { detail: "rlp" }),
			`${path.slice(0, 90)} is taken`,
		),
	),
];
