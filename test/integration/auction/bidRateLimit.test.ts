// What bids weigh in the rate limit of a running relay: one that fails its simulation ten, others one, each on the
// account of the client that sent it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import {
	type BiddingFixture,
	backrunBy,
	REVERTER,
	signedBy,
	startBidding,
} from "../../support/biddingFixture.ts";

const KEY = `0x${"d4".repeat(32)}`;
/** A second's worth; ten may be saved up. */
const RPS = 1;
const BIDS = 5;

let fixture: BiddingFixture;
let target: string;
before(async () => {
	fixture = await startBidding({ env: { TRUST_PROXY: "1", RATE_LIMIT_RPS: String(RPS) } });
	target = await fixture.target(0);
});
after(() => fixture.stop());

/** Sends bids on `target` in one batch; their errors' codes. */
async function bids(on: string, raw: string, from: string, key?: string): Promise<readonly unknown[]> {
	const call = { jsonrpc: "2.0", id: 1, method: "eth_sendBundle", params: [{ txs: [on, raw] }] };
	const body = JSON.stringify(Array(BIDS).fill(call));
	const headers: Record<string, string> = { "content-type": "application/json", "x-forwarded-for": from };
	if (key !== undefined) headers["x-flashbots-signature"] = createBodySigner(key).sign(body);
	const response = await fetch(fixture.system.client.url, { method: "POST", headers, body });
	return ((await response.json()) as { error?: { code: number } }[]).map(({ error }) => error?.code);
}

async function statusOf(from: string, key?: string): Promise<number> {
	const options = { from, ...(key === undefined ? {} : { key }) };
	return (await fixture.ask("eth_cancelBundle", [{ replacementUuid: "u" }], options)).status;
}

const failing = signedBy(1, { to: REVERTER }).raw;

test("bids that fail their simulation weigh ten: the client has to wait", async () => {
	const from = "198.51.100.1";
	assert.deepEqual(await bids(target, failing, from), Array(BIDS).fill(-32000));
	assert.equal(await statusOf(from), 429);
	assert.equal(await statusOf("198.51.100.2"), 200);
});

test("bids that are taken, or refused without a simulation, weigh one", async () => {
	assert.deepEqual(await bids(target, backrunBy(2, 5n).raw, "198.51.100.3"), Array(BIDS).fill(undefined));
	assert.equal(await statusOf("198.51.100.3"), 200);
	const unknown = `0x${"77".repeat(32)}`;
	assert.deepEqual(await bids(unknown, failing, "198.51.100.4"), Array(BIDS).fill(-32000));
	assert.equal(await statusOf("198.51.100.4"), 200);
});

test("failing bids are on their address's account, whatever key signs them: keys cost nothing", async () => {
	const from = "198.51.100.5";
	assert.deepEqual(await bids(target, failing, from, KEY), Array(BIDS).fill(-32000));
	assert.equal(await statusOf(from, KEY), 429);
	assert.equal(await statusOf(from), 429);
	assert.equal(await statusOf("198.51.100.6", KEY), 200);
});
