// Bids in the rate limit of a running relay: a bid whose simulation fails counts ten, others one,
// each for the client that sent it; and a bid on a hidden target counts as one on an unknown
// target.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import {
	type BiddingFixture,
	backrunBy,
	EMITTER,
	REVERTER,
	signedBy,
	startBidding,
} from "../../support/biddingFixture.ts";
import { StoppableClock } from "../../support/stoppableClock.ts";
import { until } from "../../support/until.ts";

const KEY = `0x${"d4".repeat(32)}`;
/** A second's worth; ten seconds' worth may be saved up. */
const RPS = 1;
const BURST = 10 * RPS;
const BIDS = 5;

/** It is stopped while a limit is used up: on a busy machine that would fill up again meanwhile. */
const clock = new StoppableClock();
let fixture: BiddingFixture;
let target: string;
before(async () => {
	fixture = await startBidding({
		clock,
		builders: [{ name: "dev", fullPrivacy: true }],
		env: { TRUST_PROXY: "1", RATE_LIMIT_RPS: String(RPS) },
	});
	target = await fixture.target(0);
});
afterEach(() => clock.goOn());
after(() => fixture.stop());

/** Sends `count` bids on `target` in one batch; their errors' codes. */
async function bids(
	on: string,
	raw: string,
	{ from, key, count = BIDS }: { readonly from: string; readonly key?: string; readonly count?: number },
): Promise<readonly unknown[]> {
	const call = { jsonrpc: "2.0", id: 1, method: "eth_sendBundle", params: [{ txs: [on, raw] }] };
	const body = JSON.stringify(Array(count).fill(call));
	const headers: Record<string, string> = { "content-type": "application/json", "x-forwarded-for": from };
	if (key !== undefined) headers["x-flashbots-signature"] = createBodySigner(key).sign(body);
	const response = await fetch(fixture.system.client.url, { method: "POST", headers, body });
	return ((await response.json()) as { error?: { code: number } }[]).map(({ error }) => error?.code);
}

async function statusOf(from: string, key?: string): Promise<number> {
	const options = { from, ...(key === undefined ? {} : { key }) };
	return (await fixture.ask("eth_cancelBundle", [{ replacementUuid: "u" }], options)).status;
}

/** A hash that nobody has ever seen. */
const UNKNOWN = `0x${"77".repeat(32)}`;
const failing = signedBy(1, { to: REVERTER }).raw;

test("bids that fail their simulation count ten in the rate limit", async () => {
	const from = "198.51.100.1";
	clock.stopAfter(0);
	assert.deepEqual(await bids(target, failing, { from }), Array(BIDS).fill(-32000));
	assert.equal(await statusOf(from), 429);
	assert.equal(await statusOf("198.51.100.2"), 200);
});

test("bids that are accepted, or refused without a simulation, count one", async () => {
	clock.stopAfter(0);
	assert.deepEqual(
		await bids(target, backrunBy(2, 5n).raw, { from: "198.51.100.3" }),
		Array(BIDS).fill(undefined),
	);
	assert.equal(await statusOf("198.51.100.3"), 200);
	assert.deepEqual(await bids(UNKNOWN, failing, { from: "198.51.100.4" }), Array(BIDS).fill(-32000));
	assert.equal(await statusOf("198.51.100.4"), 200);
});

test("failing bids count for their address, whatever key signs them: keys cost nothing", async () => {
	const from = "198.51.100.5";
	clock.stopAfter(0);
	assert.deepEqual(await bids(target, failing, { from, key: KEY }), Array(BIDS).fill(-32000));
	assert.equal(await statusOf(from, KEY), 429);
	assert.equal(await statusOf(from), 429);
	assert.equal(await statusOf("198.51.100.6", KEY), 200);
});

test("bids on hidden transactions use up a limit like bids on an unknown hash", async () => {
	const [hidden, unchecked] = [signedBy(3, { to: EMITTER }), signedBy(4, { to: EMITTER })];
	const { builder } = fixture.system;
	const users = { from: "198.51.100.200" };
	await fixture.call("eth_sendRawTransaction", [hidden.raw], { ...users, path: "/fullprivacy" });
	await fixture.call("eth_sendRawTransaction", [unchecked.raw], { ...users, path: "/nochecks" });
	await until("both are sent", () =>
		[hidden, unchecked].every(({ raw }) => JSON.stringify(builder.requests()).includes(raw)),
	);
	const { raw } = backrunBy(5, 1_000n);
	clock.stopAfter(0);
	for (const [i, hash] of [UNKNOWN, hidden.hash, unchecked.hash].entries()) {
		const codes = await bids(hash, raw, { from: `198.51.100.${100 + i}`, count: 3 * BURST });
		const count = (code: number) => codes.filter((one) => one === code).length;
		assert.deepEqual([count(-32_000), count(-32_005)], [BURST, 2 * BURST], codes.join());
	}
});
