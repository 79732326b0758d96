// Blobs with one proof each, as wallets make them, through boost: the fallback gets the very bytes
// that the relay holds, with cell proofs, while the relay is down and when what it holds is handed
// over; what proves nothing goes nowhere.

import assert from "node:assert/strict";
import { after, before, beforeEach, it } from "node:test";
import {
	type BoostClient,
	type BoostFixture,
	type Reply,
	startBoostFixture,
} from "../../support/boostFixture.ts";
import { realBlobs } from "../../support/realBlobs.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import { verifiesBlobs } from "../../support/systems.ts";
import { until } from "../../support/until.ts";
import { type RecordingFallback, startRecordingFallback } from "../../support/upstreams.ts";

/** The most that cell proofs may take on a busy machine. */
const BUSY_MS = 120_000;
/** The error code for a client that has waited for cell proofs as long as is allowed. */
const TRY_AGAIN = -32603;

const real = realBlobs();
let fixture: BoostFixture;
let recorder: RecordingFallback;
let boost: BoostClient;

/** How much the recorder was given before the test. */
let earlier = 0;

before(async () => {
	fixture = await startBoostFixture();
	recorder = await startRecordingFallback();
	// Cell proofs take seconds on a busy machine, and so does each process that loads what computes
	// them.
	boost = await fixture.startBoost({ env: { FALLBACK_URL: recorder.url, REQUEST_BUDGET_MS: "60000" } });
	await verifiesBlobs(fixture.system.client, forms(await fixture.users.actor()).v0.raw);
});
after(async () => {
	await recorder?.stop();
	await fixture?.stop();
});
beforeEach(async () => {
	await fixture.recovers(boost);
	earlier = recorder.posts.length;
});

/** The raw transactions that the recorder received in this test. */
function given(): readonly unknown[] {
	return recorder.posts
		.slice(earlier)
		.flatMap(({ calls }) =>
			calls.flatMap(({ method, params }) => (method === "eth_sendRawTransaction" ? [params[0]] : [])),
		);
}

/** Blobs of zeros in both forms; the hash is the same. */
function forms(actor: Actor): { readonly v0: Signed; readonly v1: Signed } {
	return {
		v0: actor.sign({ type: 3, sidecarVersion: 0, blobs: 2 }),
		v1: actor.sign({ type: 3, sidecarVersion: 1, blobs: 2 }),
	};
}

/** Boost's answer, once it is another one than to try again. */
function sent({ raw }: Signed): Promise<Reply> {
	return until(
		"it is answered",
		async () => {
			const reply = await boost.call("eth_sendRawTransaction", [raw]);
			return (reply.json as WireAnswer).error?.code !== TRY_AGAIN && reply;
		},
		BUSY_MS,
	);
}

it("while the relay is down the fallback gets them with cell proofs", async () => {
	await fixture.fails(undefined, boost);
	const { v0, v1 } = forms(await fixture.users.actor());
	const { json, headers } = await sent(v0);
	assert.deepEqual(json, { jsonrpc: "2.0", id: 1, result: v1.hash });
	assert.equal(headers["x-boost-upstream"], "fallback");
	assert.deepEqual(given(), [v1.raw]);
});

it("fails over the relay's pending transactions in the form that its builders have", async () => {
	const { v0, v1 } = forms(await fixture.users.actor());
	const { json, headers } = await sent(v0);
	assert.deepEqual(json, { jsonrpc: "2.0", id: 1, result: v1.hash });
	assert.equal(headers["x-boost-upstream"], "relay");
	await fixture.users.waitUntilSent(v1);
	assert.deepEqual(given(), []);
	await fixture.fails(undefined, boost);
	await until("it is forwarded", () => given().length > 0);
	assert.deepEqual(given(), [v1.raw]);
});

it("while the relay is down, a proof of another blob is refused, and the fallback gets nothing", async () => {
	await fixture.fails(undefined, boost);
	const actor = await fixture.users.actor();
	for (const [sidecarVersion, sidecar] of [
		[0, { ...real.v0, proofs: [...real.v0.proofs].reverse() }],
		[1, { ...real.v1, proofs: [...real.v1.proofs].reverse() }],
	] as const) {
		const { raw } = actor.sign({ type: 3, sidecarVersion, sidecar });
		const { json } = await boost.call("eth_sendRawTransaction", [raw]);
		assert.deepEqual((json as { error?: unknown }).error, {
			code: -32000,
			message: "KZG verification error: can't verify opening proof",
			data: { reason: "BLOBS" },
		});
	}
	assert.deepEqual(given(), []);
});
