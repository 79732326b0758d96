// Malformed bundles, bids and cancels, with their exact answers. Input that is wrong only beside a
// pending transaction or a chain is tested elsewhere.

import { type CallRow, invalid, refusedCalls } from "./fixture.ts";

/** The hash of no transaction. */
const TARGET = `0x${"ab".repeat(32)}`;
/** Bytes that are hex, and no transaction. */
const TX = `0x02${"cd".repeat(99)}`;
const PAIR = [TARGET, TX];
/** An account that is never used. */
const SOMEBODY = `0x${"5a".repeat(20)}`;

const OBJECT = "bundle: expected an object";
const ENTRIES = "expected two entries, the target's hash and a signed backrun, or none to cancel";
const FIRST = "bundle.txs[0]: expected the target's hash first: 32 bytes as 0x hex";
const SECOND = "bundle.txs[1]: expected a signed transaction as 0x hex after the target's hash";
const QUANTITY = "expected a 0x hex number without leading zeros";
const UUID = "bundle.replacementUuid: expected a text of 1 to 256 characters";
const EMPTY = `${UUID}: an empty txs cancels by it`;

/** A bundle whose transaction is not looked at. */
const SIMULATED = { version: "v0.1", inclusion: { block: "0x1" }, body: [{ tx: TX, canRevert: false }] };

/** Values by the names of their rows. */
type Named = Readonly<Record<string, unknown>>;

/** Refused calls of a method, whose params `made` puts together from each value. */
function refused(method: string, made: (value: unknown) => readonly unknown[]) {
	return (what: string, values: Named): CallRow[] => {
		const params = Object.entries(values).map(([name, value]) => [name, made(value)] as const);
		return refusedCalls(method, invalid(what), Object.fromEntries(params));
	};
}

const send = refused("eth_sendBundle", (params) => params as unknown[]);
const txs = refused("eth_sendBundle", (value) => [{ txs: value }]);
const block = refused("eth_sendBundle", (blockNumber) => [{ txs: PAIR, blockNumber }]);
const uuid = refused("eth_sendBundle", (replacementUuid) => [{ txs: PAIR, replacementUuid }]);

const SEND: readonly CallRow[] = [
	...send(OBJECT, { nothing: [], null: [null], "a text": ["x"], "a number": [1], "an array": [PAIR] }),
	...send("expected at most 1 (bundle)", {
		two: [{ txs: PAIR }, {}],
		"null behind it": [{ txs: PAIR }, null],
	}),
	...send(`bundle.txs: ${ENTRIES}`, { "an empty object": [{}] }),
	...txs(`bundle.txs: ${ENTRIES}`, {
		null: null,
		"a text": TARGET,
		"an object": { 0: TARGET, 1: TX, length: 2 },
		"one, a hash": [TARGET],
		"one, a transaction": [TX],
		three: [TARGET, TX, TX],
		"two thousand": Array(2_000).fill("0x"),
		"two thousand of another kind": Array(2_000).fill({}),
	}),
	...send("bundle.tx: unknown key", { "tx for txs": [{ tx: PAIR }] }),
	...send("bundle.Txs: unknown key: did you mean txs?", { "a misspelt txs": [{ Txs: PAIR }] }),
	...send(EMPTY, {
		"nothing in it and no uuid": [{ txs: [] }],
		"nothing in it and null for the uuid": [{ txs: [], replacementUuid: null }],
		"nothing in it and an empty uuid": [{ txs: [], replacementUuid: "" }],
	}),
	...txs(`bundle.txs[0]: ${ENTRIES}`, { "null first": [null, TX], "a number first": [1, TX] }),
	...txs(`bundle.txs[1]: ${ENTRIES}`, {
		"null second": [TARGET, null],
		"an object second": [TARGET, { tx: TX }],
	}),
	...txs(FIRST, {
		"the other way round": [TX, TARGET],
		"two transactions": [TX, TX],
		"a hash of 31 bytes": [TARGET.slice(0, -2), TX],
		"a hash of 33 bytes": [`${TARGET}ab`, TX],
		"a hash without 0x": [TARGET.slice(2), TX],
		"a hash with a digit that is none": [`${TARGET.slice(0, -1)}g`, TX],
		"an empty hash": ["", TX],
		"a hash with a space": [` ${TARGET.slice(0, -1)}`, TX],
	}),
	...txs(SECOND, {
		"two hashes": [TARGET, TARGET],
		"an empty backrun": [TARGET, ""],
		"a backrun without 0x": [TARGET, TX.slice(2)],
		"a backrun with half a byte": [TARGET, TX.slice(0, -1)],
		"a backrun with a digit that is none": [TARGET, `${TX.slice(0, -1)}g`],
	}),
	...block(`bundle.blockNumber: ${QUANTITY}`, {
		"a number for the block": 7,
		"a decimal block": "7",
		"a tag for the block": "latest",
		"a block with leading zeros": "0x07",
		"0x for the block": "0x",
		"a block of 257 bits": `0x1${"0".repeat(64)}`,
		"a block below zero": "-0x1",
		"an object for the block": {},
	}),
	...uuid(UUID, {
		"a number for the uuid": 1,
		"an object for the uuid": {},
		"an array for the uuid": ["a"],
		"a uuid of 257 characters": "u".repeat(257),
		"a uuid of 257 characters of two units": "\u{1f600}".repeat(257),
		"a uuid of 300,000 characters": "u".repeat(300_000),
	}),
	...uuid("params: expected well-formed Unicode", { "half a surrogate pair for the uuid": "\ud800" }),
];

const foreign = (keys: readonly string[], value: unknown) =>
	Object.fromEntries(keys.map((key) => [`${key} ${JSON.stringify(value)}`, [{ txs: PAIR, [key]: value }]]));
const TIME = "whole seconds since the epoch";
const FOREIGN: readonly CallRow[] = [
	...["soon", "1700000000", "0x01", -1, 1.5, 2 ** 53, {}].flatMap((time) =>
		send(`bundle.minTimestamp: expected ${TIME}`, foreign(["minTimestamp"], time)),
	),
	...send(`bundle.maxTimestamp: expected ${TIME}`, foreign(["maxTimestamp"], true)),
	...send("bundle.maxTimestamp: expected minTimestamp or later, or 0 for no limit", {
		"times of which the last is before the first": [{ txs: PAIR, minTimestamp: 2, maxTimestamp: "0x1" }],
	}),
	...send(
		"bundle.revertingTxHashes: expected none, or []: no backrun may revert; in a plain bundle say canRevert, by mev_sendBundle",
		foreign(["revertingTxHashes"], [TARGET]),
	),
	...send("bundle.uuid: expected none: a bundle is named by its replacementUuid", foreign(["uuid"], "mine")),
	...send(
		"bundle.replacementUUID: unknown key: did you mean replacementUuid?",
		foreign(["replacementUUID"], ""),
	),
	...send("bundle.revertingTxHash: unknown key", foreign(["revertingTxHash"], [])),
	...refused("eth_callBundle", (baseFee) => [{ txs: [TX], blockNumber: "0x1", baseFee }])(
		"bundle.baseFee: expected none: the simulated block follows from stateBlockNumber, blockNumber and timestamp",
		{ "a base fee of its own": 7 },
	),
	...refused("mev_simBundle", (given) => [SIMULATED, given])(
		"options.coinbase: expected none: the simulated block follows from stateBlockNumber, blockNumber and timestamp",
		{ "a coinbase of its own": { coinbase: SOMEBODY } },
	),
	...refused("mev_simBundle", (given) => [SIMULATED, given])("options.parent: unknown key", {
		"a misspelt parent": { parent: "latest" },
	}),
	...refused("mev_simBundle", (given) => [SIMULATED, given])(`options.blockNumber: ${QUANTITY}`, {
		"a block as a number": { blockNumber: 17 },
	}),
	...refused("mev_simBundle", (body) => [{ ...SIMULATED, body }])(
		"bundle.body[0]: expected {tx, canRevert}, or {hash} as the first one",
		{ "an empty entry of a simulation": [{}] },
	),
];

const cancel = refused("eth_cancelBundle", (params) => params as unknown[]);
const mine = { replacementUuid: "mine" };

const CANCEL: readonly CallRow[] = [
	...cancel(OBJECT, { nothing: [], null: [null], "a uuid by itself": ["mine"], "an array": [[mine]] }),
	...cancel("expected at most 1 (bundle)", { two: [mine, mine] }),
	...cancel(UUID, {
		"an empty object": [{}],
		"null for the uuid": [{ replacementUuid: null }],
		"an empty uuid": [{ replacementUuid: "" }],
		"a number for the uuid": [{ replacementUuid: 7 }],
		"true for the uuid": [{ replacementUuid: true }],
		"a list of uuids": [{ replacementUuid: ["mine"] }],
		"a uuid of 257 characters": [{ replacementUuid: "u".repeat(257) }],
	}),
	...cancel("bundle.uuid: expected none: a bundle is named by its replacementUuid", {
		"another name": [{ uuid: "mine" }],
	}),
	...cancel("bundle.replacementUUID: unknown key: did you mean replacementUuid?", {
		"a misspelt name": [{ replacementUUID: "mine" }],
		"a misspelt name beside the right one": [{ ...mine, replacementUUID: "other" }],
	}),
	...cancel("bundle.bundleHash: unknown key", { "an unknown key": [{ ...mine, bundleHash: TARGET }] }),
];

const STATS: readonly CallRow[] = [
	...refused("flashbots_getBundleStatsV2", (bundle) => [bundle])(
		"bundle.bundlehash: unknown key: did you mean bundleHash?",
		{ "a misspelt hash": { bundlehash: TARGET, blockNumber: "0x1" } },
	),
	...refused("flashbots_getUserStatsV2", (block) => [block])(
		"block.blocknumber: unknown key: did you mean blockNumber?",
		{ "a misspelt block": { blocknumber: "0x1" } },
	),
	...refused("flashbots_getUserStatsV2", (block) => [block])("block: expected {blockNumber} or nothing", {
		"a tag for the block": { blockNumber: "latest" },
	}),
];

const plain = { version: "v0.1", inclusion: { block: "0x1" }, body: [{ tx: TX, canRevert: false }] };
const three = { ...plain, body: [{ tx: TX }, { tx: TX }, { tx: TX }] };
const bid = { ...plain, body: [{ hash: TARGET }, { tx: TX, canRevert: false }] };

const whole = refused("mev_sendBundle", (params) => params as unknown[]);
/** A good bundle but for these keys. */
const share = refused("mev_sendBundle", (keys) => [{ ...plain, ...(keys as object) }]);
/** A good bundle but for one key, whose name begins the error. */
const having = (key: string) => {
	const rows = refused("mev_sendBundle", (value) => [{ ...plain, [key]: value }]);
	return (what: string, values: Named) => rows(`bundle.${key}${what}`, values);
};

const FORM: readonly CallRow[] = [
	...whole(OBJECT, { nothing: [], null: [null], "a text": ["v0.1"], "an array": [[plain]] }),
	...whole("expected at most 1 (bundle)", { two: [plain, plain] }),
	...whole("bundle.version: expected v0.1", { "an empty object": [{}] }),
	...having("version")(": expected v0.1", {
		"another version": "v0.2",
		"the version as a number": 0.1,
		"the first version": "beta-1",
	}),
	...share("bundle.privcy: unknown key: did you mean privacy?", {
		"a misspelt privacy": { privcy: { builders: ["x"] } },
	}),
	...whole("bundle.inclusions: unknown key: did you mean inclusion?", {
		"a misspelt inclusion": [{ version: "v0.1", inclusions: plain.inclusion, body: plain.body }],
	}),
	...share("bundle.__proto__: unknown key", { "a key __proto__": JSON.parse('{"__proto__":{"x":1}}') }),
	...share(UUID, {
		"a number for the uuid": { replacementUuid: 7 },
		"a uuid of 257 characters": { replacementUuid: "u".repeat(257) },
	}),
	...having("metadata")(": expected {originId}", { "metadata that is a text": "x" }),
	...having("metadata")(".origin: unknown key", { "an unknown key of metadata": { origin: "x" } }),
	...having("metadata")(".originId: expected a text", { "a number for originId": { originId: 7 } }),
];

const range = having("inclusion");
const INCLUSION: readonly CallRow[] = [
	...range(": expected {block, maxBlock}", { "no range": null, "a block by itself": "0x1" }),
	...range(`.block: ${QUANTITY}`, {
		"no block": {},
		"null for the block": { block: null },
		"a number for the block": { block: 1 },
		"a tag for the block": { block: "latest" },
		"a decimal block": { block: "1" },
		"a block with leading zeros": { block: "0x01" },
	}),
	...range(`.maxBlock: ${QUANTITY}`, { "a number for the last": { block: "0x1", maxBlock: 2 } }),
	...range(".maxblock: unknown key: did you mean maxBlock?", {
		"a misspelt last": { block: "0x1", maxblock: "0x2" },
	}),
	...range(".Block: unknown key: did you mean block?", { "a misspelt block": { Block: "0x1" } }),
	...range(".maxBlock: expected block to block + 30", {
		"a last below the first": { block: "0x2", maxBlock: "0x1" },
		"a last 31 above the first": { block: "0x1", maxBlock: "0x20" },
		"a last of 256 bits": { block: "0x1", maxBlock: `0x${"f".repeat(64)}` },
	}),
];

const body = having("body");
const BODY: readonly CallRow[] = [
	...body(": expected 1 to 100 entries {tx, canRevert}, or {hash} and one of them behind it", {
		"no body": null,
		"a body that is an object": { tx: TX },
		"101 entries": Array(101).fill({ tx: TX }),
		"two thousand entries": Array(2_000).fill({}),
	}),
	...body(": expected 1 to 100 entries", { "no entries": [] }),
	...body("[0]: expected {tx, canRevert}, or {hash} as the first one", {
		"null in it": [null],
		"a transaction by itself": [TX],
		"an empty entry": [{}],
		"canRevert alone": [{ canRevert: true }],
		"null for the transaction": [{ tx: null }],
	}),
	...body("[0].tx: expected a signed transaction as 0x hex", {
		"a transaction without 0x": [{ tx: TX.slice(2) }],
		"half a byte": [{ tx: TX.slice(0, -1) }],
	}),
	...body("[0].canRevert: expected true or false", { "a text for canRevert": [{ tx: TX, canRevert: "no" }] }),
	...body("[0].canrevert: unknown key: did you mean canRevert?", {
		"a misspelt canRevert": [{ tx: TX, canrevert: true }],
	}),
	...body("[0].revertMode: unknown key", { revertMode: [{ tx: TX, revertMode: "drop" }] }),
	...body("[0].bundle: expected none: nested bundles are not supported", {
		"a nested bundle": [{ bundle: plain }],
	}),
	...body(": expected exactly one {tx, canRevert} behind a hash", {
		"a hash alone": [{ hash: TARGET }],
		"two behind a hash": [{ hash: TARGET }, { tx: TX }, { tx: TX }],
	}),
	...body("[1]: expected {tx, canRevert}: a hash may only be first", {
		"a hash second": [{ tx: TX }, { hash: TARGET }],
		"two hashes": [{ hash: TARGET }, { hash: TARGET }],
	}),
	...body("[0].tx: expected none with hash", { "a hash beside a transaction": [{ hash: TARGET, tx: TX }] }),
	...body("[0].canRevert: expected none with hash", {
		"a hash with canRevert": [{ hash: TARGET, canRevert: true }, { tx: TX }],
	}),
	...body("[0].hash: expected a hash of 32 bytes as 0x hex", {
		"a hash of 31 bytes": [{ hash: TARGET.slice(0, -2) }, { tx: TX }],
	}),
];

const validity = having("validity");
/** Refunds of a good bundle of three, and of a good bid; errors are at `bundle.validity.refund`. */
const refunds = (bundle: object) => {
	const rows = refused("mev_sendBundle", (refund) => [{ ...bundle, validity: { refund } }]);
	return (what: string, values: Named) => rows(`bundle.validity.refund${what}`, values);
};
const refund = refunds(three);
const bidRefund = refunds(bid);
const config = (what: string, values: Named): CallRow[] =>
	refused("mev_sendBundle", (refundConfig) => [
		{ ...plain, validity: { refund: [{ bodyIdx: 0, percent: 50 }], refundConfig } },
	])(`bundle.validity.refundConfig${what}`, values);

const INDEX = "expected the index of a body entry";
const PERCENT = "expected a whole number from 0 to 100";
const SUM = "expected percents that add up to at most 100";
const part = (bodyIdx: unknown, percent: unknown) => ({ bodyIdx, percent });
const paying = (percent: unknown) => ({ address: SOMEBODY, percent });

const VALIDITY: readonly CallRow[] = [
	...validity(": expected {refund, refundConfig}", { "validity that is an array": [] }),
	...validity(".refunds: unknown key: did you mean refund?", { "a misspelt refund": { refunds: [] } }),
	...validity(".refundconfig: unknown key: did you mean refundConfig?", {
		"a misspelt refundConfig": { refund: [], refundconfig: [] },
	}),
	...refund(": expected at most one {bodyIdx, percent} for each entry of the body", {
		"a refund that is an object": part(0, 9),
	}),
	...refund("[0]: expected {bodyIdx, percent}", { "null in the refund": [null] }),
	...refund(`[0].bodyIdx: ${INDEX}`, {
		"no index": [{ percent: 9 }],
		"an index in hex": [part("0x0", 9)],
		"half an index": [part(0.5, 9)],
		"an index below zero": [part(-1, 9)],
		"an index behind the last": [part(3, 9)],
		"an index of a million": [part(1e6, 9)],
	}),
	...refund("[1].bodyIdx: expected each index at most once", { "an index twice": [part(1, 9), part(1, 9)] }),
	...refund(`[0].percent: ${PERCENT}`, {
		"no percent": [{ bodyIdx: 0 }],
		"101 percent": [part(0, 101)],
		"below zero": [part(0, -1)],
		"half a percent": [part(0, 0.5)],
		"a percent as a text": [part(0, "9")],
	}),
	...refund("[0].bodyIdX: unknown key: did you mean bodyIdx?", {
		"a misspelt index": [{ bodyIdX: 0, percent: 9 }],
	}),
	...refund("[0].to: unknown key", { "an unknown key": [{ ...part(0, 9), to: SOMEBODY }] }),
	...refund(`: ${SUM}`, { "101 percent in all": [part(0, 51), part(1, 50)] }),
	...refund(": expected at most one", { two: [part(0, 5), part(1, 5)] }),
	...config(": expected a list of {address, percent}", { "a config that is a text": SOMEBODY }),
	...config("[0].address: expected an address of 20 bytes as 0x hex", { "no address": [{ percent: 100 }] }),
	...config(`[0].percent: ${PERCENT}`, { "no percent of an address": [{ address: SOMEBODY }] }),
	...config("[0].x: unknown key", { "an unknown key of a config": [{ ...paying(9), x: 1 }] }),
	...config(`: ${SUM}`, { "101 percent of addresses": [paying(99), paying(2)] }),
	...config(": expected at most one", { "two addresses": [paying(50), paying(50)] }),
	...bidRefund("[0].percent: expected 90 at least", { "less than the user's, of a bid": [part(0, 89)] }),
	...bidRefund("[0].bodyIdx: expected 0, the target", { "of the backrun, of a bid": [part(1, 90)] }),
	...bidRefund(": expected at most one with a hash in the body", {
		"two, of a bid": [part(0, 90), part(1, 1)],
	}),
	...bidRefund(`[0].bodyIdx: ${INDEX}`, { "behind the last, of a bid": [part(2, 90)] }),
];

const privacy = having("privacy");
const HINTS =
	"expected names of hints: calldata, contract_address, function_selector, logs, default_logs, special_logs, hash, tx_hash, full";
const BUILDERS = "expected names of builders";

const PRIVACY: readonly CallRow[] = [
	...privacy(": expected {hints, builders}", {
		"privacy that is a text": "full",
		"privacy that is an array": [],
	}),
	...privacy(".hint: unknown key: did you mean hints?", { "a misspelt hints": { hint: [] } }),
	...privacy(".builder: unknown key: did you mean builders?", { "a misspelt builders": { builder: ["x"] } }),
	...privacy(".wantRefund: unknown key", { wantRefund: { hints: [], wantRefund: 90 } }),
	...privacy(`.hints: ${HINTS}`, {
		"hints as an object": { hints: { calldata: false } },
		"hints as a number": { hints: 3 },
		"a hundred and one hints": { hints: Array(101).fill("hash") },
	}),
	...privacy(`.hints[1]: ${HINTS}`, { "an unknown hint": { hints: ["hash", "everything"] } }),
	...privacy(`.hints[0]: ${HINTS}`, { "a hint in another case": { hints: ["CALLDATA"] } }),
	...privacy(`.builders: ${BUILDERS}`, {
		"one builder by itself": { builders: "x" },
	}),
	...privacy(`.builders[0]: ${BUILDERS}`, { "null among the builders": { builders: [null] } }),
	...privacy(".builders[0]: expected the name of a builder of this relay", {
		"a builder that is none of ours": { builders: ["nobody"] },
		"a builder __proto__": { builders: ["__proto__"] },
	}),
];

export const BUNDLE_ROWS: readonly CallRow[] = [
	...[...SEND, ...FOREIGN, ...CANCEL, ...STATS],
	...[...FORM, ...INCLUSION, ...BODY, ...VALIDITY, ...PRIVACY],
];
