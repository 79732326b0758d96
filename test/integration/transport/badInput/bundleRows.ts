// Malformed bundles, bids and cancels, with their exact answers. What is wrong only beside a pending transaction or a
// chain is tested elsewhere.

import { BUNDLE_TARGET as TARGET, BUNDLE_RAW as TX } from "./bundleSamples.ts";
import type { CallRow } from "./rows.ts";
import { SHARE_BUNDLE_ROWS } from "./shareBundleRows.ts";

const OBJECT = "bundle: expected an object";
const TXS = "bundle.txs: expected two entries, the target's hash and a signed backrun, or none to cancel";
const ENTRY = "expected two entries, the target's hash and a signed backrun, or none to cancel";
const FIRST = "bundle.txs[0]: expected the target's hash first: 32 bytes as 0x hex";
const SECOND = "bundle.txs[1]: expected a signed transaction as 0x hex behind the target's hash";
const BLOCK = "bundle.blockNumber: expected a 0x hex number without leading zeros";
const UUID = "bundle.replacementUuid: expected a text of 1 to 256 characters";
const EMPTY = `${UUID}: an empty txs cancels by it`;
const PAIR = [TARGET, TX];

function refused(method: string, name: string, params: readonly unknown[], what: string): CallRow {
	return { name, method, params, error: { code: -32602, message: `invalid params: ${what}` } };
}

const send = (name: string, params: readonly unknown[], what: string) =>
	refused("eth_sendBundle", name, params, what);
/** With these `txs`. */
const txs = (name: string, value: unknown, what: string) => send(name, [{ txs: value }], what);
/** With a good pair. */
const more = (name: string, keys: object, what: string) => send(name, [{ txs: PAIR, ...keys }], what);

const SEND: readonly CallRow[] = [
	send("nothing", [], OBJECT),
	send("null", [null], OBJECT),
	send("a text", ["x"], OBJECT),
	send("a number", [1], OBJECT),
	send("an array", [PAIR], OBJECT),
	send("two", [{ txs: PAIR }, {}], "expected at most 1 (bundle)"),
	send("null behind it", [{ txs: PAIR }, null], "expected at most 1 (bundle)"),
	send("an empty object", [{}], TXS),
	txs("null", null, TXS),
	txs("a text", TARGET, TXS),
	txs("an object", { 0: TARGET, 1: TX, length: 2 }, TXS),
	txs("nothing in it and no uuid", [], EMPTY),
	send("nothing in it and null for the uuid", [{ txs: [], replacementUuid: null }], EMPTY),
	send("nothing in it and an empty uuid", [{ txs: [], replacementUuid: "" }], UUID),
	txs("one, a hash", [TARGET], TXS),
	txs("one, a transaction", [TX], TXS),
	txs("three", [TARGET, TX, TX], TXS),
	txs("two thousand", Array(2_000).fill("0x"), TXS),
	txs("two thousand of another kind", Array(2_000).fill({}), TXS),
	txs("null first", [null, TX], `bundle.txs[0]: ${ENTRY}`),
	txs("a number first", [1, TX], `bundle.txs[0]: ${ENTRY}`),
	txs("null second", [TARGET, null], `bundle.txs[1]: ${ENTRY}`),
	txs("an object second", [TARGET, { tx: TX }], `bundle.txs[1]: ${ENTRY}`),
	txs("the other way round", [TX, TARGET], FIRST),
	txs("two transactions", [TX, TX], FIRST),
	txs("two hashes", [TARGET, TARGET], SECOND),
	txs("a hash of 31 bytes", [TARGET.slice(0, -2), TX], FIRST),
	txs("a hash of 33 bytes", [`${TARGET}ab`, TX], FIRST),
	txs("a hash without 0x", [TARGET.slice(2), TX], FIRST),
	txs("a hash with a digit that is none", [`${TARGET.slice(0, -1)}g`, TX], FIRST),
	txs("an empty hash", ["", TX], FIRST),
	txs("a hash with a space", [` ${TARGET.slice(0, -1)}`, TX], FIRST),
	txs("an empty backrun", [TARGET, ""], SECOND),
	txs("a backrun without 0x", [TARGET, TX.slice(2)], SECOND),
	txs("a backrun with half a byte", [TARGET, TX.slice(0, -1)], SECOND),
	txs("a backrun with a digit that is none", [TARGET, `${TX.slice(0, -1)}g`], SECOND),
	more("a number for the block", { blockNumber: 7 }, BLOCK),
	more("a decimal block", { blockNumber: "7" }, BLOCK),
	more("a tag for the block", { blockNumber: "latest" }, BLOCK),
	more("a block with leading zeros", { blockNumber: "0x07" }, BLOCK),
	more("0x for the block", { blockNumber: "0x" }, BLOCK),
	more("a block of 257 bits", { blockNumber: `0x1${"0".repeat(64)}` }, BLOCK),
	more("a block below zero", { blockNumber: "-0x1" }, BLOCK),
	more("an object for the block", { blockNumber: {} }, BLOCK),
	more("an empty uuid", { replacementUuid: "" }, UUID),
	more("a number for the uuid", { replacementUuid: 1 }, UUID),
	more("an object for the uuid", { replacementUuid: {} }, UUID),
	more("an array for the uuid", { replacementUuid: ["a"] }, UUID),
	more("a uuid of 257 characters", { replacementUuid: "u".repeat(257) }, UUID),
	more("a uuid of 257 characters of two units", { replacementUuid: "\u{1f600}".repeat(257) }, UUID),
	more("a uuid of 300,000 characters", { replacementUuid: "u".repeat(300_000) }, UUID),
	more(
		"half a surrogate pair for the uuid",
		{ replacementUuid: "\ud800" },
		"params: expected well-formed Unicode",
	),
];

const cancel = (name: string, params: readonly unknown[], what = UUID) =>
	refused("eth_cancelBundle", name, params, what);

const CANCEL: readonly CallRow[] = [
	cancel("nothing", [], OBJECT),
	cancel("null", [null], OBJECT),
	cancel("a uuid by itself", ["mine"], OBJECT),
	cancel("an array", [[{ replacementUuid: "mine" }]], OBJECT),
	cancel("two", [{ replacementUuid: "mine" }, { replacementUuid: "mine" }], "expected at most 1 (bundle)"),
	cancel("an empty object", [{}]),
	cancel("another name", [{ uuid: "mine" }]),
	cancel("null for the uuid", [{ replacementUuid: null }]),
	cancel("an empty uuid", [{ replacementUuid: "" }]),
	cancel("a number for the uuid", [{ replacementUuid: 7 }]),
	cancel("true for the uuid", [{ replacementUuid: true }]),
	cancel("a list of uuids", [{ replacementUuid: ["mine"] }]),
	cancel("a uuid of 257 characters", [{ replacementUuid: "u".repeat(257) }]),
];

export const BUNDLE_ROWS: readonly CallRow[] = [...SEND, ...CANCEL, ...SHARE_BUNDLE_ROWS];
