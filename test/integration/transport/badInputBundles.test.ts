// Bad bundles, bids and cancels against a running relay: each row gets its exact answer, over HTTP,
// in batches and over a websocket, and the relay is healthy behind them all.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BiddingFixture, backrunBy, bidder, prepareBidding, signedBy } from "../../support/biddingFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { until } from "../../support/until.ts";
import { BID_ROWS, COINBASE, HEAD, HIDDEN, SECOND, SHARED } from "./badInput/bids.ts";
import { BUNDLE_ROWS } from "./badInput/bundles.ts";
import {
	type BadInputFixture,
	type CallRow,
	expectedAnswer,
	requestOf,
	startFixture,
	testBatches,
	testCallRows,
	testHttpRows,
} from "./badInput/fixture.ts";
import { BUNDLE_PAGE_ROWS } from "./badInput/pages.ts";

const ROWS: readonly CallRow[] = [...BUNDLE_ROWS, ...BID_ROWS];

let fixture: BadInputFixture;
let bidding: BiddingFixture;
before(async () => {
	fixture = await startFixture({ env: { FEE_RECIPIENT: COINBASE } });
	const { system } = fixture;
	bidding = new BiddingFixture(system);
	await prepareBidding(system);
	// One transaction of the second target's sender is in a block before.
	const before = signedBy(1, { value: 1n }).raw;
	await system.client.send(before, "/fast");
	await system.builder.waitForRequest(({ params }) => JSON.stringify(params).includes(before));
	for (let block = 0; block < HEAD; block++) await system.nextBlock();
	await until(
		"a used nonce",
		async () => (await system.client.call("eth_getTransactionCount", [bidder(1).address])) === "0x1",
	);
	for (const [path, { raw }] of Object.values(HIDDEN)) await system.client.send(raw, path);
	for (const { raw, hash } of [SHARED, SECOND]) {
		await system.client.send(raw, "/maxbackruns");
		await until("the target shared", async () => (await system.client.status(hash)).shared);
	}
	for (const [path, { hash }] of Object.values(HIDDEN)) {
		if (path === "/maxbackruns") continue;
		await until("the hidden one out", async () => (await system.client.stage(hash)) === "BROADCAST");
	}
});
after(() => fixture.stop());

testCallRows(ROWS, () => fixture);
testHttpRows(BUNDLE_PAGE_ROWS, () => fixture);
testBatches(ROWS, 40, () => fixture);

test("each is answered over a websocket as over HTTP, on every path", async () => {
	for (const path of ["/", "/ws", "/fullprivacy"]) {
		const client = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}${path}`);
		for (const row of ROWS) {
			client.send(requestOf(row));
			assert.deepEqual(await client.next(), expectedAnswer(row), row.name);
		}
		client.terminate();
	}
	fixture.checkLog();
});

test("a signature that does not verify is refused, never ignored", async () => {
	const body = JSON.stringify(
		requestOf({ name: "x", method: "eth_cancelBundle", params: [{ replacementUuid: "u" }] }),
	);
	for (const [header, reason] of [
		["", "malformed"],
		["0x", "malformed"],
		[`0x${"11".repeat(20)}:0x${"00".repeat(65)}`, "invalid"],
	] as const) {
		const answer = await fixture.wire.send({ body, headers: { "x-flashbots-signature": header } });
		const message = `invalid request: X-Flashbots-Signature does not verify: ${reason}`;
		assert.deepEqual([answer.status, JSON.parse(answer.body).error], [200, { code: -32600, message }]);
	}
});

test("the error for a backrun whose fee cap is below the next block's base fee names both", async () => {
	const history = await fixture.system.chain.rpc("eth_feeHistory", ["0x1", "latest", []]);
	const baseFee = BigInt((history as { baseFeePerGas: string[] }).baseFeePerGas[1] ?? "");
	const { raw } = backrunBy(19, 5n, { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n });
	const { error } = await bidding.ask("eth_sendBundle", [{ txs: [SHARED.hash, raw] }]);
	const message = `max fee per gas less than block base fee: max fee 1, base fee ${baseFee}`;
	assert.deepEqual(error, { code: -32000, message, data: { reason: "BACKRUN_INVALID" } });
});

test("no bundle was sent, and none is known", async () => {
	const bundles = fixture.system.builder
		.requests("eth_sendBundle")
		.map(({ params }) => params as [{ txs?: unknown[] }]);
	assert.ok(bundles.length > 0);
	assert.ok(bundles.every(([{ txs }]) => Array.isArray(txs) && txs.length <= 1));
	assert.equal((await fixture.system.client.status(SHARED.hash)).backruns, 0);
	assert.equal(await bidding.head(), HEAD);
});

test("the relay still works after all this", () => fixture.stillWell());
