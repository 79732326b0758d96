// Bundles of mev_sendBundle whose form is wrong, as rows with their exact answers.

import { BUNDLE_TARGET as TARGET, BUNDLE_RAW as TX } from "./bundleSamples.ts";
import type { CallRow } from "./rows.ts";

const OBJECT = "bundle: expected an object";
const ENTRIES = "bundle.body: expected 1 to 100 entries {tx, canRevert}, or {hash} and one of them behind it";
const ENTRY = "expected {tx, canRevert}, or {hash} as the first one";
const RAW = "bundle.body[0].tx: expected a signed transaction as 0x hex";
const QUANTITY = "expected a 0x hex number without leading zeros";
const RANGE = "bundle.inclusion.maxBlock: expected block to block + 30";
const PERCENT = "expected a whole number from 0 to 100";
const INDEX = "expected the index of an entry of the body";
const SUM = "expected percents of 100 in all at most";
const HINTS =
	"expected names of hints: calldata, contract_address, function_selector, logs, default_logs, special_logs, hash, tx_hash, full";
const BUILDERS = "expected names of builders, one at least";
const UUID = "bundle.replacementUuid: expected a text of 1 to 256 characters";

/** An account that is never used. */
const SOMEBODY = `0x${"5a".repeat(20)}`;
const plain = { version: "v0.1", inclusion: { block: "0x1" }, body: [{ tx: TX, canRevert: false }] };
const three = { ...plain, body: [{ tx: TX }, { tx: TX }, { tx: TX }] };
const bid = { ...plain, body: [{ hash: TARGET }, { tx: TX, canRevert: false }] };

function whole(name: string, params: readonly unknown[], what: string): CallRow {
	const error = { code: -32602, message: `invalid params: ${what}` };
	return { name, method: "mev_sendBundle", params, error };
}

const share = (name: string, keys: object, what: string) => whole(name, [{ ...plain, ...keys }], what);
const range = (name: string, inclusion: unknown, what: string) => share(name, { inclusion }, what);
const body = (name: string, entries: unknown, what: string) => share(name, { body: entries }, what);
const refund = (name: string, refunds: unknown, what: string) =>
	whole(name, [{ ...three, validity: { refund: refunds } }], what);
const config = (name: string, refundConfig: unknown, what: string) =>
	share(name, { validity: { refund: [{ bodyIdx: 0, percent: 50 }], refundConfig } }, what);
const bidRefund = (name: string, refunds: unknown, what: string) =>
	whole(name, [{ ...bid, validity: { refund: refunds } }], what);
const privacy = (name: string, value: unknown, what: string) => share(name, { privacy: value }, what);

const FORM: readonly CallRow[] = [
	whole("nothing", [], OBJECT),
	whole("null", [null], OBJECT),
	whole("a text", ["v0.1"], OBJECT),
	whole("an array", [[plain]], OBJECT),
	whole("two", [plain, plain], "expected at most 1 (bundle)"),
	whole("an empty object", [{}], "bundle.version: expected v0.1"),
	share("another version", { version: "v0.2" }, "bundle.version: expected v0.1"),
	share("the version as a number", { version: 0.1 }, "bundle.version: expected v0.1"),
	share("the first version", { version: "beta-1" }, "bundle.version: expected v0.1"),
	share("a misspelt privacy", { privcy: { builders: ["x"] } }, "bundle.privcy: unknown key"),
	share("__proto__", JSON.parse('{"__proto__":{"x":1}}'), "bundle.__proto__: unknown key"),
	share("an empty uuid", { replacementUuid: "" }, UUID),
	share("a number for the uuid", { replacementUuid: 7 }, UUID),
	share("a uuid of 257 characters", { replacementUuid: "u".repeat(257) }, UUID),
	share("metadata that is a text", { metadata: "x" }, "bundle.metadata: expected {originId}"),
	share("an unknown key of metadata", { metadata: { origin: "x" } }, "bundle.metadata.origin: unknown key"),
	share("a number for originId", { metadata: { originId: 7 } }, "bundle.metadata.originId: expected a text"),
];

const INCLUSION: readonly CallRow[] = [
	range("null", null, "bundle.inclusion: expected {block, maxBlock}"),
	range("a block by itself", "0x1", "bundle.inclusion: expected {block, maxBlock}"),
	range("no block", {}, `bundle.inclusion.block: ${QUANTITY}`),
	range("null for the block", { block: null }, `bundle.inclusion.block: ${QUANTITY}`),
	range("a number for the block", { block: 1 }, `bundle.inclusion.block: ${QUANTITY}`),
	range("a tag for the block", { block: "latest" }, `bundle.inclusion.block: ${QUANTITY}`),
	range("a decimal block", { block: "1" }, `bundle.inclusion.block: ${QUANTITY}`),
	range("a block with leading zeros", { block: "0x01" }, `bundle.inclusion.block: ${QUANTITY}`),
	range("a number for the last", { block: "0x1", maxBlock: 2 }, `bundle.inclusion.maxBlock: ${QUANTITY}`),
	range("a misspelt last", { block: "0x1", maxblock: "0x2" }, "bundle.inclusion.maxblock: unknown key"),
	range("a last below the first", { block: "0x2", maxBlock: "0x1" }, RANGE),
	range("a last 31 above the first", { block: "0x1", maxBlock: "0x20" }, RANGE),
	range("a last of 256 bits", { block: "0x1", maxBlock: `0x${"f".repeat(64)}` }, RANGE),
];

const BODY: readonly CallRow[] = [
	body("null", null, ENTRIES),
	body("an object", { tx: TX }, ENTRIES),
	body("no entries", [], "bundle.body: expected 1 to 100 entries"),
	body("101 entries", Array(101).fill({ tx: TX }), ENTRIES),
	body("two thousand entries", Array(2_000).fill({}), ENTRIES),
	body("null in it", [null], `bundle.body[0]: ${ENTRY}`),
	body("a transaction by itself", [TX], `bundle.body[0]: ${ENTRY}`),
	body("an empty entry", [{}], `bundle.body[0]: ${ENTRY}`),
	body("canRevert alone", [{ canRevert: true }], `bundle.body[0]: ${ENTRY}`),
	body("null for the transaction", [{ tx: null }], RAW),
	body("a transaction without 0x", [{ tx: TX.slice(2) }], RAW),
	body("half a byte", [{ tx: TX.slice(0, -1) }], RAW),
	body(
		"a text for canRevert",
		[{ tx: TX, canRevert: "no" }],
		"bundle.body[0].canRevert: expected true or false",
	),
	body("a misspelt canRevert", [{ tx: TX, canrevert: true }], "bundle.body[0].canrevert: unknown key"),
	body("revertMode", [{ tx: TX, revertMode: "drop" }], "bundle.body[0].revertMode: unknown key"),
	body(
		"a nested bundle",
		[{ bundle: plain }],
		"bundle.body[0].bundle: expected none: nested bundles are not taken",
	),
	body("a hash alone", [{ hash: TARGET }], "bundle.body: expected exactly one {tx, canRevert} behind a hash"),
	body(
		"two behind a hash",
		[{ hash: TARGET }, { tx: TX }, { tx: TX }],
		"bundle.body: expected exactly one {tx, canRevert} behind a hash",
	),
	body(
		"a hash second",
		[{ tx: TX }, { hash: TARGET }],
		"bundle.body[1]: expected {tx, canRevert}: a hash may only be first",
	),
	body(
		"two hashes",
		[{ hash: TARGET }, { hash: TARGET }],
		"bundle.body[1]: expected {tx, canRevert}: a hash may only be first",
	),
	body(
		"a hash beside a transaction",
		[{ hash: TARGET, tx: TX }],
		"bundle.body[0].tx: expected none beside hash",
	),
	body(
		"a hash with canRevert",
		[{ hash: TARGET, canRevert: false }, { tx: TX }],
		"bundle.body[0].canRevert: expected none beside hash",
	),
	body(
		"a hash of 31 bytes",
		[{ hash: TARGET.slice(0, -2) }, { tx: TX }],
		"bundle.body[0].hash: expected a hash of 32 bytes as 0x hex",
	),
];

const VALIDITY: readonly CallRow[] = [
	share("validity that is an array", { validity: [] }, "bundle.validity: expected {refund, refundConfig}"),
	share("a misspelt refund", { validity: { refunds: [] } }, "bundle.validity.refunds: unknown key"),
	share(
		"a misspelt refundConfig",
		{ validity: { refund: [], refundconfig: [] } },
		"bundle.validity.refundconfig: unknown key",
	),
	refund(
		"an object",
		{ bodyIdx: 0, percent: 9 },
		"bundle.validity.refund: expected at most one {bodyIdx, percent} for each entry of the body",
	),
	refund("null in it", [null], "bundle.validity.refund[0]: expected {bodyIdx, percent}"),
	refund("no index", [{ percent: 9 }], `bundle.validity.refund[0].bodyIdx: ${INDEX}`),
	refund("an index in hex", [{ bodyIdx: "0x0", percent: 9 }], `bundle.validity.refund[0].bodyIdx: ${INDEX}`),
	refund("half an index", [{ bodyIdx: 0.5, percent: 9 }], `bundle.validity.refund[0].bodyIdx: ${INDEX}`),
	refund("an index below zero", [{ bodyIdx: -1, percent: 9 }], `bundle.validity.refund[0].bodyIdx: ${INDEX}`),
	refund(
		"an index behind the last",
		[{ bodyIdx: 3, percent: 9 }],
		`bundle.validity.refund[0].bodyIdx: ${INDEX}`,
	),
	refund(
		"an index of a million",
		[{ bodyIdx: 1e6, percent: 9 }],
		`bundle.validity.refund[0].bodyIdx: ${INDEX}`,
	),
	refund(
		"an index twice",
		[
			{ bodyIdx: 1, percent: 9 },
			{ bodyIdx: 1, percent: 9 },
		],
		"bundle.validity.refund[1].bodyIdx: expected each index once",
	),
	refund("no percent", [{ bodyIdx: 0 }], `bundle.validity.refund[0].percent: ${PERCENT}`),
	refund("101 percent", [{ bodyIdx: 0, percent: 101 }], `bundle.validity.refund[0].percent: ${PERCENT}`),
	refund("below zero", [{ bodyIdx: 0, percent: -1 }], `bundle.validity.refund[0].percent: ${PERCENT}`),
	refund("half a percent", [{ bodyIdx: 0, percent: 0.5 }], `bundle.validity.refund[0].percent: ${PERCENT}`),
	refund(
		"a percent as a text",
		[{ bodyIdx: 0, percent: "9" }],
		`bundle.validity.refund[0].percent: ${PERCENT}`,
	),
	refund(
		"an unknown key",
		[{ bodyIdx: 0, percent: 9, to: SOMEBODY }],
		"bundle.validity.refund[0].to: unknown key",
	),
	refund(
		"101 percent in all",
		[
			{ bodyIdx: 0, percent: 51 },
			{ bodyIdx: 1, percent: 50 },
		],
		`bundle.validity.refund: ${SUM}`,
	),
	refund(
		"two",
		[
			{ bodyIdx: 0, percent: 5 },
			{ bodyIdx: 1, percent: 5 },
		],
		"bundle.validity.refund: expected at most one",
	),
	config("a text", SOMEBODY, "bundle.validity.refundConfig: expected a list of {address, percent}"),
	config(
		"no address",
		[{ percent: 100 }],
		"bundle.validity.refundConfig[0].address: expected an address of 20 bytes as 0x hex",
	),
	config("no percent", [{ address: SOMEBODY }], `bundle.validity.refundConfig[0].percent: ${PERCENT}`),
	config(
		"an unknown key",
		[{ address: SOMEBODY, percent: 9, x: 1 }],
		"bundle.validity.refundConfig[0].x: unknown key",
	),
	config(
		"101 percent in all",
		[
			{ address: SOMEBODY, percent: 99 },
			{ address: SOMEBODY, percent: 2 },
		],
		`bundle.validity.refundConfig: ${SUM}`,
	),
	config(
		"two",
		[
			{ address: SOMEBODY, percent: 50 },
			{ address: SOMEBODY, percent: 50 },
		],
		"bundle.validity.refundConfig: expected at most one",
	),
	bidRefund(
		"less than the user's, of a bid",
		[{ bodyIdx: 0, percent: 89 }],
		"bundle.validity.refund[0].percent: expected 90 at least",
	),
	bidRefund(
		"of the backrun, of a bid",
		[{ bodyIdx: 1, percent: 90 }],
		"bundle.validity.refund[0].bodyIdx: expected 0, the target",
	),
	bidRefund(
		"two, of a bid",
		[
			{ bodyIdx: 0, percent: 90 },
			{ bodyIdx: 1, percent: 1 },
		],
		"bundle.validity.refund: expected at most one with a hash in the body",
	),
	bidRefund(
		"behind the last, of a bid",
		[{ bodyIdx: 2, percent: 90 }],
		`bundle.validity.refund[0].bodyIdx: ${INDEX}`,
	),
];

const PRIVACY: readonly CallRow[] = [
	privacy("a text", "full", "bundle.privacy: expected {hints, builders}"),
	privacy("an array", [], "bundle.privacy: expected {hints, builders}"),
	privacy("a misspelt hints", { hint: [] }, "bundle.privacy.hint: unknown key"),
	privacy("a misspelt builders", { builder: ["x"] }, "bundle.privacy.builder: unknown key"),
	privacy("wantRefund", { hints: [], wantRefund: 90 }, "bundle.privacy.wantRefund: unknown key"),
	privacy("hints as an object", { hints: { calldata: false } }, `bundle.privacy.hints: ${HINTS}`),
	privacy("hints as a number", { hints: 3 }, `bundle.privacy.hints: ${HINTS}`),
	privacy("an unknown hint", { hints: ["hash", "everything"] }, `bundle.privacy.hints[1]: ${HINTS}`),
	privacy("a hint in another case", { hints: ["CALLDATA"] }, `bundle.privacy.hints[0]: ${HINTS}`),
	privacy("a hundred and one hints", { hints: Array(101).fill("hash") }, `bundle.privacy.hints: ${HINTS}`),
	privacy("one builder by itself", { builders: "x" }, `bundle.privacy.builders: ${BUILDERS}`),
	privacy("no builders", { builders: [] }, `bundle.privacy.builders: ${BUILDERS}`),
	privacy("null among the builders", { builders: [null] }, `bundle.privacy.builders[0]: ${BUILDERS}`),
	privacy(
		"a builder that is none of ours",
		{ builders: ["nobody"] },
		"bundle.privacy.builders[0]: expected the name of a builder of this relay",
	),
	privacy(
		"__proto__ for a builder",
		{ builders: ["__proto__"] },
		"bundle.privacy.builders[0]: expected the name of a builder of this relay",
	),
];

export const SHARE_BUNDLE_ROWS: readonly CallRow[] = [
	...FORM,
	...INCLUSION,
	...BODY,
	...VALIDITY,
	...PRIVACY,
];
