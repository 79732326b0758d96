// Tests how long the worst bodies keep the event loops of relay and boost, which are processes of
// their own: 20 ms at most, or more on a machine that takes longer to parse one text of two
// megabytes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { rlpEncode } from "../../../shared/ethereum/rlp.ts";
import { BOOST_SECRET, boostEnv } from "../../faults/boostHere.ts";
import { RawConnection } from "../../support/clients.ts";
import { heldSoFar, metered, turnLimit } from "../../support/eventLoopTime.ts";
import { sized } from "../../support/length.ts";
import { type RelayProcess, startRelayProcess } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { rawTransaction, type TestAccount, testAccount } from "../../support/txFactory.ts";

const BYTES = 2 * 1024 * 1024 - 200;
const ROUNDS = 12;

const HASH = `0x${"ab".repeat(32)}`;
const ADDRESS = `0x${"ab".repeat(20)}`;
const list = (count: number, make: (i: number) => string) =>
	Array.from({ length: count }, (_, i) => make(i)).join(",");
const call = (method: string, params: string) =>
	`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`;
const batch = (count: number, entry: string) => `[${list(count, () => entry)}]`;
const members = (count: number, value = "1") => `{${list(count, (i) => `"k${i}":${value}`)}}`;
const shared = (body: string) => `[{"version":"v0.1","inclusion":{"block":"0x1"},"body":[${body}]}]`;

/** A contract's greatest code, which is the node's greatest answer about an account. */
const GREAT = `0x${"cd".repeat(20)}`;
const LARGE = `0x${"ca".repeat(20)}`;
const CODE = `0x${"00".repeat(24_576)}`;
const OVERRIDES = `{"${ADDRESS}":{"code":"0x${"00".repeat(BYTES / 2 - 300)}"}}`;

/**
 * A transaction with a signature that nobody has made, and lists of as many items as are asked for.
 */
function raw(type: 2 | 4, access: number, authorizations: number): string {
	const one = Buffer.from([1]);
	const account = Buffer.alloc(20, 1);
	const none = Buffer.alloc(0);
	const signature = [one, Buffer.alloc(32, 7), Buffer.alloc(32, 7)];
	const accessList = Array.from({ length: access }, () => [account, []]);
	const tuples = Array.from({ length: authorizations }, () => [none, account, none, none, none, none]);
	const fields = [one, one, one, one, one, account, none, none, accessList, ...(type === 4 ? [tuples] : [])];
	return `"0x0${type}${rlpEncode([...fields, ...signature]).toString("hex")}"`;
}

const small = raw(2, 0, 0);
const unsigned = `{"from":"${ADDRESS}","to":"${ADDRESS}","gas":"0x1","value":"0x1","data":"0x${"ab".repeat(4_000)}"}`;

/** A thousand calls, each with an id of its own. */
const thousand = (make: (i: number) => readonly [method: string, params: string]) =>
	`[${list(1_000, (i) => call(...make(i)).replace('"id":1', `"id":${i}`))}]`;
const submission = (by: TestAccount, nonce: number) =>
	["eth_sendRawTransaction", `["0x${rawTransaction({ by, nonce }).toString("hex")}"]`] as const;

/** Made only for the tests that run. In some each round must be new to the relay. */
const BODIES: Readonly<Record<string, (round: number) => string>> = {
	"690,000 empty calls": () => call("eth_callMany", `[[{"transactions":[${list(690_000, () => "{}")}]}]]`),
	"a block of 150,000 keys": () => call("eth_getTransactionCount", `["${ADDRESS}",${members(150_000)}]`),
	"a call of 4,900 keys": () => call("eth_callMany", `[[{"transactions":[${members(4_900)}]}]]`),
	"a bundle of 4,900 keys": () => call("mev_sendBundle", `[${members(4_900)}]`),
	"long keys": () => call("mev_sendBundle", `[{${list(4_900, (i) => `"${"k".repeat(400)}${i}":1`)}}]`),
	"numbers as keys": () => call("eth_call", `[{${list(2_400, (i) => `"${4_294_967_290 - i * 9_973}":{}`)}}]`),
	"objects of different kinds": () => call("eth_call", `[${list(1_600, (i) => `{"k${i}":{"z${i}":1}}`)}]`),
	"one key again and again": () => call("eth_call", `[{${list(2_400, () => '"a":{}')}}]`),
	"4,900 levels": () => call("eth_call", "[".repeat(4_900) + "]".repeat(4_900)),
	"a million levels": () => "[".repeat(1_000_000),
	"a million commas": () => ",".repeat(BYTES),
	"a million quotes": () => '"'.repeat(BYTES),
	"a million spaces": () => call("nope", `[${" ".repeat(BYTES)}]`),
	"a great text": () => call("nope", `["${"a".repeat(BYTES)}"]`),
	escapes: () => call("nope", `["${'\\"'.repeat(BYTES / 2)}"]`),
	"characters of four bytes": () => call("nope", `["${"😀".repeat(BYTES / 4)}"]`),
	"characters of two bytes": () => call("nope", `["${"é".repeat(BYTES / 2)}"]`),
	"a number of two million digits": () => call("nope", `[${"1".repeat(BYTES)}]`),
	"an id of halves of pairs": () => `{"id":"${"\\ud800".repeat(BYTES / 6)}","method":"nope"}`,
	"a million bytes that are no transaction": () =>
		call("eth_sendRawTransaction", `["0x02${"ab".repeat(BYTES / 2 - 10)}"]`),
	"45,000 accounts of an access list": () => call("eth_sendRawTransaction", `[${raw(2, 45_000, 0)}]`),
	"38,000 authorizations": () => call("eth_sendRawTransaction", `[${raw(4, 0, 38_000)}]`),
	"100 unsigned calls": () => call("eth_callMany", `[[{"transactions":[${list(100, () => unsigned)}]}]]`),
	"access lists of 4,000 keys": () =>
		call(
			"eth_callMany",
			`[[{"transactions":[${list(4, () => `{"accessList":[{"address":"${ADDRESS}","storageKeys":[${list(1_000, () => `"${HASH}"`)}]}]}`)}]}]]`,
		),
	"100 signed calls": () =>
		call(
			"eth_callMany",
			`[{"txs":[${list(100, () => small)}],"blockNumber":"0x1","stateBlockNumber":"latest"}]`,
		),
	"100 texts that are no transactions": () =>
		call("mev_sendBundle", shared(list(100, () => `{"tx":"0x02${"ab".repeat(10_000)}"}`))),
	"a thousand bad hashes": () => call("service_transactionStatuses", `[[${list(1_000, () => '"0x"')}]]`),
	"a million addresses": () => call("eth_getLogs", `[{"address":[${list(45_000, () => `"${ADDRESS}"`)}]}]`),
	"a great read": () => call("eth_call", `[{"data":"0x${"00".repeat(BYTES / 2 - 100)}"}]`),
	"100 great calls": () => batch(100, call("nope", `["${"a".repeat(20_000)}"]`)),
	"100 documents": () => batch(100, call("rpc.discover", "[]")),
	"100 submissions": () => batch(100, call("eth_sendRawTransaction", `[${small}]`)),
	"1,000 great calls": () => batch(1_000, call("nope", `["${"a".repeat(2_000)}"]`)),
	"1,000 reads of logs": () =>
		batch(
			1_000,
			call("eth_getLogs", `[{"address":[${list(30, () => `"${ADDRESS}"`)}],"topics":["${HASH}"]}]`),
		),
	"1,000 entries of 600 empty objects": () => batch(1_000, call("nope", `[${list(600, () => "{}")}]`)),
	"1,000 objects of different kinds": () =>
		`[${list(1_000, (i) => call("eth_call", `[{},"latest",{${list(45, (j) => `"k${i}_${j}":{"z${i}_${j}":1}`)}}]`))}]`,
	"20 entries of 4,900 keys": () => batch(20, call("mev_sendBundle", `[${members(4_900)}]`)),
	"300 entries with too many values": () => batch(300, call("nope", `[${list(3_400, () => "0")}]`)),
	"1,000 ids of a great many digits": () =>
		`[${list(1_000, (i) => `{"id":${i}${"1".repeat(2_000)},"method":"nope"}`)}]`,
	"a million spaces around an id": () =>
		`{"id" ${" ".repeat(BYTES / 2)}:${" ".repeat(BYTES / 2 - 100)}1.0,"method":"nope"}`,
	"keys that are nearly ids": () => `{${list(90_000, () => '"\\u0069\\u0065":1')},"id":1}`,
	"half a million entries": () => `[${list(500_000, () => "{}")}]`,
	"1,000 transactions of one sender": (round) => thousand((i) => submission(testAccount(round), i)),
	"1,000 transactions of a sender each": (round) =>
		thousand((i) => submission(testAccount(1_000 * (round + 1) + i), 0)),
	"1,000 great answers": () => thousand(() => ["eth_getCode", `["${ADDRESS}","latest"]`]),
	"1,000 great answers and a receipt": () =>
		thousand((i) =>
			i === 0 ? ["eth_getTransactionReceipt", `["${HASH}"]`] : ["eth_getCode", `["${ADDRESS}","latest"]`],
		),
	"an answer of eight megabytes": () => call("eth_getCode", `["${GREAT}","latest"]`),
	"a megabyte of overrides": () => call("eth_call", `[{"to":"${ADDRESS}"},"latest",${OVERRIDES}]`),
	"100 bundles of calls": () =>
		batch(100, call("eth_callMany", `[[{"transactions":[${list(20, () => '{"from":"x"}')}]}]]`)),
};

let system: ProcessSystem;
let processes: readonly RelayProcess[];

before(async () => {
	system = await startProcessSystem({ env: { BOOST_SECRET } });
	await system.chain.fund(Array.from({ length: 2 * ROUNDS }, (_, i) => testAccount(i)));
	await system.chain.rpc("anvil_setCode", [ADDRESS, CODE]);
	await system.chain.rpc("anvil_setCode", [LARGE, `0x${"00".repeat(2 * 1024 * 1024)}`]);
	await system.chain.rpc("anvil_setCode", [GREAT, `0x${"00".repeat(4 * 1024 * 1024 - 100)}`]);
	const relay = await startRelayProcess({ ...metered("relay/main.ts"), env: system.env });
	const places = { relayUrl: relay.url, fallbackUrl: relay.url, folder: system.folder };
	const env = { ...boostEnv(places), LOG_LEVEL: "info" };
	processes = [relay, await startRelayProcess({ ...metered("boost-proxy/main.ts"), env })];
});
after(async () => {
	for (const one of processes ?? []) await one.kill();
	await system?.stop();
});

/**
 * How long `one` has blocked its event loop since it was asked last, as a share of what this
 * machine may take at this moment: 1 at most.
 */
async function heldShare(one: RelayProcess): Promise<number> {
	return (await heldSoFar(one)) / turnLimit();
}

/** The share that `text` causes, the least of some rounds; stops after one that is short enough. */
async function held(
	one: RelayProcess,
	text: (round: number) => string | Buffer,
	requests = 1,
): Promise<number> {
	let best = Number.POSITIVE_INFINITY;
	for (let round = 0; round < ROUNDS && best >= 1; round++) {
		const body = text(round);
		await heldSoFar(one);
		const headers = { "content-type": "application/json" };
		const ask = async () => {
			const answer = await fetch(`${one.url}/fast`, { method: "POST", headers, body });
			assert.ok((await answer.arrayBuffer()).byteLength > 0);
		};
		await Promise.all(Array.from({ length: requests }, ask));
		best = Math.min(best, await heldShare(one));
	}
	return best;
}

/**
 * One of each kind: a deep or wide value, a long text, a transaction, a batch, an answer. The
 * nightly run tries all.
 */
const SOME: readonly string[] = [
	"a block of 150,000 keys",
	"a great text",
	"45,000 accounts of an access list",
	"100 submissions",
	"20 entries of 4,900 keys",
	"half a million entries",
	"an answer of eight megabytes",
];

for (const [name, made] of Object.entries(BODIES)) {
	if (!sized(SOME, Object.keys(BODIES)).includes(name)) continue;
	const first = made(0);
	const text = (round: number) => (made.length === 0 || round === 0 ? first : made(round));
	test(`${name} (${first.length} characters) stop nobody`, async () => {
		assert.ok(Buffer.byteLength(first) <= 2 * 1024 * 1024);
		for (const [i, one] of processes.entries()) {
			// Texts that the relay has received are no longer new to it.
			const share = await held(one, (round) => text(round + ROUNDS * i));
			const who = i === 0 ? "relay" : "boost";
			assert.ok(share < 1, `${who}: ${share.toFixed(2)} of what it may`);
		}
	});
}

test("nor do many requests for one and the same answer of four megabytes", async () => {
	for (const one of processes) {
		const share = await held(one, () => call("eth_getCode", `["${LARGE}","latest"]`), sized(6, 12));
		assert.ok(share < 1, `${share.toFixed(2)} of what it may`);
	}
});

test("nor do 200 bodies of which two bytes come, and two megabytes are declared", async () => {
	const head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json";
	for (const one of processes) {
		let best = Number.POSITIVE_INFINITY;
		for (let round = 0; round < ROUNDS && best >= 1; round++) {
			const open = await Promise.all(Array.from({ length: 200 }, () => RawConnection.open(one.port)));
			for (const connection of open) connection.write(`${head}\r\ncontent-length: ${BYTES}\r\n\r\n[`);
			// Each has been read when a later request is answered.
			await fetch(`${one.url}/livez`);
			await heldSoFar(one);
			for (const connection of open) connection.write("[");
			await fetch(`${one.url}/livez`);
			best = Math.min(best, await heldShare(one));
			for (const connection of open) connection.destroy();
		}
		assert.ok(best < 1, `${best.toFixed(2)} of what it may`);
	}
});

test("nor does anything that combines these", async () => {
	const piece = fc.constantFrom(
		"{}",
		"[]",
		'""',
		'"\\\\"',
		"1",
		"1e9",
		"null",
		",",
		":",
		"[",
		"{",
		'"k":',
		"é",
		"\\u0000",
		" ",
	);
	const made = fc.array(fc.tuple(piece, fc.integer({ min: 1, max: 200_000 })), {
		minLength: 1,
		maxLength: 6,
	});
	await fc.assert(
		fc.asyncProperty(made, async (parts) => {
			const text = parts.map(([part, times]) => part.repeat(times)).join("");
			const body = Buffer.from(call("eth_callMany", `[${text}]`)).subarray(0, BYTES);
			const share = await held(processes[0] as RelayProcess, () => body);
			assert.ok(share < 1, `${share.toFixed(2)} of what it may`);
		}),
		{ numRuns: sized(4, 60) },
	);
});
