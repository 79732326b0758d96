// Requests of Flashbots' searcher libraries, as they are on the wire, against a running relay:
// bids, simulations and cancels, with every key that they send along. Python's and TypeScript's
// were recorded from a run; Go's and Rust's are by their source.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { type BiddingFixture, backrunBy, signedBy, startBidding } from "../../support/biddingFixture.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { bundleHashOf } from "../../support/secretFixture.ts";

const UUID = "10000000-0000-4000-8000-000000000000";
const SIGNER = createBodySigner(`0x${"5e".repeat(32)}`);

let fixture: BiddingFixture;
let accounts = 0;
before(async () => {
	fixture = await startBidding({ chain: { slotSeconds: 12 } });
});
after(() => fixture.stop());

/** A library's request as it leaves it: the text, signed as such. */
async function send(text: string): Promise<WireAnswer> {
	const headers = { "content-type": "application/json", "x-flashbots-signature": SIGNER.sign(text) };
	const response = await fetch(fixture.system.client.url, { method: "POST", headers, body: text });
	assert.equal(response.status, 200);
	return (await response.json()) as WireAnswer;
}

const typescript = (method: string, bundle: object) =>
	JSON.stringify({ method, params: [bundle], id: 1, jsonrpc: "2.0" });
const go = (method: string, bundle: object) =>
	JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [bundle] });
/** With a space behind each colon and comma. */
const python = (method: string, bundle: object) =>
	`{"jsonrpc": "2.0", "method": "${method}", "params": [${JSON.stringify(bundle, null, 1).replaceAll(/\n */g, " ")}], "id": 0}`;

interface Sent {
	readonly txs: readonly string[];
	/** The next block. */
	readonly blockNumber: string;
	/** The block before it. */
	readonly head: string;
	/** When the next block is, in seconds. */
	readonly time: number;
}
type Library = readonly [name: string, text: typeof go, bundle: (sent: Sent) => object];

const BIDS: readonly Library[] = [
	[
		"flashbots 2.0.0 of Python",
		python,
		({ txs, blockNumber }) => ({
			...{ txs, blockNumber, minTimestamp: 0, maxTimestamp: 0 },
			...{ revertingTxHashes: [], replacementUuid: null },
		}),
	],
	[
		"flashbots 2.0.0 of Python, with a uuid",
		python,
		({ txs, blockNumber }) => ({
			...{ txs, blockNumber, minTimestamp: 0, maxTimestamp: 0 },
			...{ revertingTxHashes: [], replacementUuid: UUID },
		}),
	],
	[
		"ethers-provider-bundle 0.6.2 and 1.0.0",
		typescript,
		({ txs, blockNumber }) => ({
			...{ txs, blockNumber, minTimestamp: 0, maxTimestamp: 0, revertingTxHashes: [] },
		}),
	],
	[
		"metachris/flashbotsrpc of Go, its optional values zero",
		go,
		({ txs, blockNumber }) => ({
			...{ txs, blockNumber, minTimestamp: 0, maxTimestamp: 0, revertingTxHashes: [] },
		}),
	],
	[
		"lmittmann/flashbots of Go",
		go,
		({ txs, blockNumber }) => ({ txs, blockNumber, minTimestamp: "0x0", maxTimestamp: "0x0" }),
	],
	[
		"ethers-flashbots 0.15.0 of Rust, a bundle that was simulated before",
		go,
		({ txs, blockNumber, head, time }) => ({
			...{ txs, blockNumber, replacementUuid: UUID, stateBlockNumber: head, timestamp: time },
		}),
	],
	[
		"a client with every key of the builders' eth_sendBundle, none of them set",
		go,
		({ txs, blockNumber }) => ({
			...{ txs, blockNumber, revertingTxHashes: [], droppingTxHashes: [], replacementUuid: "", uuid: "" },
			...{ refundPercent: null, refundRecipient: null, refundTxHashes: [], builders: [], minTimestamp: null },
			...{ delayedRefund: false, signingAddress: null, replacementNonce: null },
		}),
	],
];

for (const [name, text, bundle] of BIDS) {
	test(`a bid by ${name} is taken`, async () => {
		const { target, backrun, sent } = await pair();
		const { result, error } = await send(text("eth_sendBundle", bundle(sent)));
		assert.deepEqual([result, error], [bundleHashOf(target, backrun.hash), undefined]);
		const timed = await send(text("eth_sendBundle", { ...bundle(sent), minTimestamp: sent.time }));
		assert.equal(timed.result, result);
	});
}

const SIMULATIONS: readonly Library[] = [
	[
		"flashbots 2.0.0 of Python",
		python,
		({ txs, blockNumber, head, time }) => ({ txs, blockNumber, stateBlockNumber: head, timestamp: time }),
	],
	[
		"ethers-provider-bundle 1.0.0, of a bundle without a time",
		typescript,
		({ txs, blockNumber }) => ({ txs, blockNumber, stateBlockNumber: "latest", timestamp: 0 }),
	],
	[
		"lmittmann/flashbots of Go",
		go,
		({ txs, blockNumber }) => ({ txs, blockNumber, stateBlockNumber: "latest", timestamp: null }),
	],
	[
		"ethers-flashbots 0.15.0 of Rust, which sends the whole bundle",
		go,
		({ txs, blockNumber, head, time }) => ({
			...{ txs, revertingTxHashes: [txs[0]], blockNumber, replacementUuid: UUID },
			...{ stateBlockNumber: head, timestamp: time },
		}),
	],
];

for (const [name, text, bundle] of SIMULATIONS) {
	test(`a simulation by ${name} tells what the bundle pays`, async () => {
		const { sent } = await pair();
		const { result, error } = await send(text("eth_callBundle", bundle(sent)));
		assert.equal(error, undefined, JSON.stringify(error));
		const { results, ethSentToCoinbase } = result as { results: unknown[]; ethSentToCoinbase: string };
		assert.deepEqual([results.length, ethSentToCoinbase], [2, "5000"]);
	});
}

test("a creation goes to 0x, since libraries with types read a text there", async () => {
	accounts += 1;
	const { raw } = signedBy(accounts, { to: null, data: "0x00" });
	const blockNumber = `0x${((await fixture.head()) + 1).toString(16)}`;
	const { result } = await send(go("eth_callBundle", { txs: [raw], blockNumber, minTimestamp: 1 }));
	assert.equal((result as { results: { toAddress: string }[] }).results[0]?.toAddress, "0x");
});

test("cancels are 200", async () => {
	for (const text of [python, typescript, go])
		assert.equal((await send(text("eth_cancelBundle", { replacementUuid: UUID }))).result, 200);
});

test("statistics are returned however a library asks; a missing or wrong parameter is named", async () => {
	const bundleHash = `0x${"77".repeat(32)}`;
	const inBlock = { bundleHash, blockNumber: "0x1" };
	for (const text of [python, typescript, go]) {
		for (const version of ["", "V2"]) {
			const { result } = await send(text(`flashbots_getBundleStats${version}`, inBlock));
			const { isSimulated, isHighPriority, consideredByBuildersAt } = result as Record<string, unknown>;
			assert.deepEqual([isSimulated, isHighPriority, consideredByBuildersAt], [false, false, []]);
			const user = await send(text(`flashbots_getUserStats${version}`, { blockNumber: "0x1" }));
			assert.equal(Object.keys(user.result as object).length, 7);
		}
		const { error } = await send(text("flashbots_getBundleStatsV2", { bundleHash }));
		assert.match(error?.message ?? "", /^invalid params: bundle\.blockNumber: expected a 0x hex number/);
		const wrong = await send(text("flashbots_getUserStatsV2", { blockNumber: "latest" }));
		assert.match(wrong.error?.message ?? "", /^invalid params: block: expected {blockNumber} or nothing/);
	}
	// The number alone: ethers-provider-bundle's getUserStats, and flashbotsrpc of Go.
	const bare = JSON.stringify({ method: "flashbots_getUserStats", params: ["0x1"], id: 1, jsonrpc: "2.0" });
	assert.equal((await send(bare)).error, undefined);
	assert.equal((await send(go("flashbots_getSbundleStats", inBlock))).error?.code, -32601);
});

test("mev_sendBundle takes what says nothing, and refuses by name what says something", async () => {
	const { sent } = await pair();
	const [hash, tx] = sent.txs;
	const bid = {
		version: "v0.1",
		inclusion: { block: sent.blockNumber, maxBlock: null },
		body: [
			{ hash, tx: null, canRevert: false, bundle: null },
			{ tx, canRevert: false, hash: null },
		],
	};
	const silent = {
		validity: { refund: [{ bodyIdx: 0, percent: 90, address: null }], refundConfig: null },
		privacy: { hints: [], builders: [] },
		...{
			metadata: { originId: "" },
			replacementUuid: "",
			uuid: null,
			minTimestamp: 0,
			revertingTxHashes: [],
		},
	};
	const { result, error } = await send(go("mev_sendBundle", { ...bid, ...silent }));
	assert.ok(
		(result as { bundleHash: string } | undefined)?.bundleHash.startsWith("0x"),
		JSON.stringify(error),
	);
	const past = await send(go("mev_sendBundle", { ...bid, maxTimestamp: 1 }));
	assert.equal(past.error?.message, "bundle maxTimestamp 1 is in the past");
	const refused = await send(go("mev_sendBundle", { ...bid, droppingTxHashes: [hash] }));
	assert.match(
		refused.error?.message ?? "",
		/bundle\.droppingTxHashes: expected none, or \[\]: a bundle is mined whole/,
	);
});

/** A target, a backrun, and what a library puts into its bundle of both. */
async function pair() {
	accounts += 2;
	const target = await fixture.target(accounts);
	const backrun = backrunBy(accounts + 1, 5_000n);
	const head = await fixture.head();
	const block = await fixture.system.chain.rpc("eth_getBlockByNumber", ["latest", false]);
	const sent: Sent = {
		txs: [target, backrun.raw],
		blockNumber: `0x${(head + 1).toString(16)}`,
		head: `0x${head.toString(16)}`,
		time: Number((block as { timestamp: string }).timestamp) + 12,
	};
	return { target, backrun, sent };
}
