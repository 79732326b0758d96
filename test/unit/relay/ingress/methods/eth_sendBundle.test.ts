// eth_sendBundle before a market that remembers what it was asked: bids, cancels, refusals, and their order in a batch.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BUNDLE_REFUSALS } from "../../../../../relay/domain/bundle.ts";
import { keccak256 } from "../../../../../shared/ethereum/signatures.ts";
import { ADDRESS, HASH, SIGNER, startBundleMethods } from "../bundleFixture.ts";

const TARGET = `0x${"Ab".repeat(32)}`;
const RAW = `0x02${"Cd".repeat(99)}`;
const BACKRUN = Buffer.from(RAW.slice(2), "hex");
const BID = { txs: [TARGET, RAW] };
const NO_BUNDLE = `0x${keccak256(Buffer.alloc(0)).toString("hex")}`;
const PAGE = "https://app.example";

test("a bid on the next block", async () => {
	const { market, charges, result } = startBundleMethods();
	assert.equal(await result("eth_sendBundle", [BID]), HASH);
	assert.deepEqual(market.bids, [
		{
			owner: ADDRESS,
			network: ADDRESS,
			blocks: { first: null, last: null },
			uuid: null,
			builders: null,
			target: TARGET.toLowerCase(),
			backrun: BACKRUN,
		},
	]);
	assert.deepEqual([market.asked, charges], [1, []]);
});

test("a bid on a block, under a uuid that is none, signed and over a websocket", async () => {
	const { market, result } = startBundleMethods();
	const bid = { ...BID, blockNumber: "0x1F", replacementUuid: "the cheap one" };
	await result("eth_sendBundle", [bid], { signer: SIGNER });
	await result("eth_sendBundle", [bid], { websocket: true });
	const asked = market.bids.map(({ owner, blocks, uuid }) => ({ owner, blocks, uuid }));
	const blocks = { first: 31n, last: null };
	assert.deepEqual(asked, [
		{ owner: SIGNER, blocks, uuid: "the cheap one" },
		{ owner: ADDRESS, blocks, uuid: "the cheap one" },
	]);
});

test("uuids of 1 to 256 characters are taken as they are", async () => {
	const { market, result } = startBundleMethods();
	const uuids = ["0", " ", "u".repeat(256), "\u{1f600}".repeat(256), "__proto__", "null", "\0", "É"];
	for (const replacementUuid of uuids) await result("eth_sendBundle", [{ ...BID, replacementUuid }]);
	assert.deepEqual(
		market.bids.map(({ uuid }) => uuid),
		uuids,
	);
});

test("null counts as absent, and what is not known is refused by its name", async () => {
	const { market, result } = startBundleMethods();
	await result("eth_sendBundle", [{ ...BID, blockNumber: null, replacementUuid: null }]);
	const [bid] = market.bids;
	assert.deepEqual([bid?.blocks, bid?.uuid, bid?.builders], [{ first: null, last: null }, null, null]);
	for (const key of ["minTimestamp", "revertingTxHashes", "refundPercent", "builders", "blocknumber"]) {
		await assert.rejects(
			result("eth_sendBundle", [{ ...BID, [key]: null }]),
			new RegExp(`invalid params: bundle.${key}: unknown key`),
		);
	}
});

test("an empty txs cancels, and the answer is the hash of no bundle", async () => {
	const { market, result } = startBundleMethods();
	for (const [caller, owner] of [
		[{}, ADDRESS],
		[{ signer: SIGNER }, SIGNER],
		[{ signer: SIGNER, origin: PAGE }, SIGNER],
		[{ websocket: true }, ADDRESS],
		[{ origin: "moz-extension://0" }, ADDRESS],
	] as const) {
		const cancel = { txs: [], replacementUuid: "mine", blockNumber: "0x1" };
		assert.equal(await result("eth_sendBundle", [cancel], caller), NO_BUNDLE);
		assert.deepEqual(market.cancels.splice(0), [[owner, "mine"]]);
	}
	assert.equal(NO_BUNDLE, "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
});

test("a web page that cancels without a signature is answered the same, and nothing happens", async () => {
	const { market, result } = startBundleMethods();
	for (const origin of [PAGE, "http://127.0.0.1:3000", "null"]) {
		for (const websocket of [true, false]) {
			const cancel = { txs: [], replacementUuid: "mine" };
			assert.equal(await result("eth_sendBundle", [cancel], { origin, websocket }), NO_BUNDLE);
		}
	}
	assert.equal(market.asked, 0);
});

test("a web page's bid is not in the visitor's name, so it can't replace what the visitor has sent", async () => {
	const { market, result } = startBundleMethods();
	await result("eth_sendBundle", [{ ...BID, replacementUuid: "mine" }], { origin: PAGE });
	assert.deepEqual(
		market.bids.map(({ owner, uuid }) => [owner, uuid]),
		[[`web ${ADDRESS}`, "mine"]],
	);
});

for (const code of BUNDLE_REFUSALS) {
	for (const simulated of [true, false]) {
		test(`refused for ${code}, ${simulated ? "simulated" : "before a simulation"}`, async () => {
			const { market, charges, call } = startBundleMethods();
			market.outcome = { outcome: "refused", code, message: `words for ${code}`, simulated };
			for (const caller of [{}, { signer: SIGNER }]) {
				const { error } = await call("eth_sendBundle", [BID], caller);
				const number = code === "LIMIT" ? -32005 : -32000;
				assert.deepEqual(error, { code: number, message: `words for ${code}`, data: { reason: code } });
			}
			const client = { address: ADDRESS, signer: null, vouched: false };
			const charged = [
				[client, 9],
				[{ ...client, signer: SIGNER }, 9],
			];
			assert.deepEqual(charges, simulated ? charged : []);
		});
	}
}

test("in a batch bids, replacements and cancels stay in their order", async () => {
	const { market, send } = startBundleMethods();
	const order: string[] = [];
	market.bid = async (request) => {
		order.push(`bid ${request.blocks.first}`);
		await Promise.resolve();
		order.push(`bid ${request.blocks.first} done`);
		return { outcome: "accepted", hash: HASH };
	};
	market.cancel = (_owner, uuid) => void order.push(`cancel ${uuid}`);
	const answers = await send([
		{ id: 1, method: "eth_sendBundle", params: [{ ...BID, blockNumber: "0x1", replacementUuid: "a" }] },
		{ id: 2, method: "eth_cancelBundle", params: [{ replacementUuid: "a" }] },
		{ id: 3, method: "eth_sendBundle", params: [{ ...BID, blockNumber: "0x2", replacementUuid: "a" }] },
		{ id: 4, method: "eth_sendBundle", params: [{ txs: [], replacementUuid: "a" }] },
	]);
	assert.deepEqual(
		answers.map((answer: { result: unknown }) => answer.result),
		[HASH, 200, HASH, NO_BUNDLE],
	);
	assert.deepEqual(order, ["bid 1", "bid 1 done", "cancel a", "bid 2", "bid 2 done", "cancel a"]);
});
