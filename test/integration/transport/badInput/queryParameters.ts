// Bad query parameters of the submission paths, with their exact answers. They are reported before the transaction is
// read; unknown parameters are ignored, near misses of known ones are not.

import type { CallRow, WireError } from "./rows.ts";

const ADDRESS = `0x${"Ad".repeat(20)}`;

/** Not a transaction: where the query is taken, this is what is told. */
const TAKEN = { code: -32000, message: "rlp: empty input", data: { reason: "UNDECODABLE", detail: "rlp" } };

function row(path: string, error: WireError): CallRow {
	const taken = error === TAKEN ? " is taken" : "";
	return {
		name: `${path.slice(0, 90)}${taken}`,
		method: "eth_sendRawTransaction",
		params: ["0x"],
		path,
		...{ error },
	};
}

const taken = (path: string): CallRow => row(path, TAKEN);
const bad = (path: string, name: string, expected: string): CallRow =>
	row(path, { code: -32602, message: `invalid params: ${name}: expected ${expected}` });
const flag = (path: string, name = "softCancellations"): CallRow => bad(path, name, "true or false");
const recipient = (path: string): CallRow => bad(path, "refundRecipient", "an address of 20 bytes as 0x hex");
const long = (path: string): CallRow => bad(path, "referrer", "64 characters at most");

export const QUERY_ROWS: readonly CallRow[] = [
	flag("/noreverts?softCancellations=yes"),
	flag("/noreverts?softCancellations=TRUE"),
	flag("/noreverts?softCancellations=2"),
	flag("/noreverts?softCancellations="),
	flag("/noreverts?softCancellations"),
	flag("/noreverts?softCancellations=true%20"),
	flag("/noreverts?softCancellations=%00"),
	flag("/fullprivacy?softCancellations=on"),
	flag("/noreverts?softcancel=yes", "softcancel"),
	flag("/noreverts?softcancel=-1", "softcancel"),
	flag("/noreverts?softCancellations=true&softcancel=maybe", "softcancel"),
	flag("/fast?softCancellations=maybe"),
	flag("/?softCancellations=maybe"),
	flag("/nochecks?softcancel=maybe", "softcancel"),
	bad("/noreverts?softCancellations=true&softCancellations=true", "softCancellations", "once"),
	bad("/noreverts?softcancel=1&softcancel=0", "softcancel", "once"),
	recipient("/fast?refundRecipient="),
	recipient("/fast?refundRecipient"),
	recipient("/fast?refundRecipient=0x"),
	recipient(`/fast?refundRecipient=${ADDRESS.slice(2)}`),
	recipient(`/fast?refundRecipient=${ADDRESS.slice(0, -1)}`),
	recipient(`/fast?refundRecipient=${ADDRESS.slice(0, -2)}`),
	recipient(`/fast?refundRecipient=${ADDRESS}ad`),
	recipient(`/fast?refundRecipient=${ADDRESS.slice(0, -1)}g`),
	recipient(`/fast?refundRecipient=${ADDRESS}%20`),
	recipient(`/fast?refundRecipient=+${ADDRESS}`),
	recipient(`/fast?refundRecipient=${ADDRESS}%0a`),
	recipient("/fast?refundRecipient=vitalik.eth"),
	recipient("/fast?refundRecipient=null"),
	recipient("/fast?refundRecipient=%zz"),
	recipient("/fast?refundRecipient=%ff"),
	recipient(`/fast?refundRecipient=${ADDRESS},${ADDRESS}`),
	recipient(`/fast?refundRecipient=${"a".repeat(5_000)}`),
	bad(`/fast?refundRecipient=${ADDRESS}&refundRecipient=${ADDRESS}`, "refundRecipient", "once"),
	long(`/fast?referrer=${"a".repeat(65)}`),
	long(`/fast?referrer=${"a".repeat(10_000)}`),
	long(`/fast?referrer=${"%F0%9F%98%80".repeat(65)}`),
	long(`/fast?referrer=${"%20".repeat(65)}`),
	flag("/noreverts?SOFTCANCELLATIONS=maybe"),
	bad("/noreverts?soft_cancellations=true", "soft_cancellations", "the name softCancellations"),
	bad("/fast?refundrecipent=0x", "refundrecipent", "the name refundRecipient"),
	bad("/fast?referrer=a&referrer=a", "referrer", "once"),
	bad("/fast?referrer=&referrer=", "referrer", "once"),

	taken("/noreverts?softCancellations=true"),
	taken("/noreverts?softCancellations=false"),
	taken("/noreverts?softcancel=1&softCancellations=true"),
	taken("/fullprivacy?softcancel=0"),
	taken("/fast?softCancellations=true"),
	taken("/noreverts?cancelSoftly=maybe&x=%zz&=&&"),
	taken("/fast?__proto__=1&constructor=2&toString"),
	taken(`/fast?refundRecipient=${ADDRESS}`),
	taken(`/fast?refundRecipient=${ADDRESS.toUpperCase()}`),
	taken(`/fast?refundRecipient=${ADDRESS.replace("0x", "%30%78")}`),
	taken("/fast?referrer="),
	taken(`/fast?referrer=${"a".repeat(64)}`),
	taken(`/fast?referrer=${"%F0%9F%98%80".repeat(64)}`),
	taken("/fast?referrer=%00%ff%zz"),
	taken(`/?refundRecipient=${ADDRESS}&referrer=me&softCancellations=false`),
];
