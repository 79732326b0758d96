// Waits for receipts behind boost: when it is asked and whom, what ends a wait, and in which words.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createSyncWaits } from "../../../../boost-proxy/views/syncWait.ts";
import { unknownStatus } from "../../../../shared/ethereum/statusRecord.ts";
import { ClientLife } from "../../../../shared/http/callContext.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { type Reply, refusal, result, type ViewFixture, viewFixtures } from "./viewFixture.ts";

const viewFixture = viewFixtures();

const HASH = `0x${"ab".repeat(32)}`;
const RECEIPT = "eth_getTransactionReceipt";
const NOT_PROCESSED = "The transaction was added to the mempool but wasn't processed";

/**
 * A wait of so many ms over the views' fixture; its result is filled in, a refusal as code, message
 * and data.
 */
function wait(fixture: ViewFixture, ms = 20_000, hash = HASH, life = new ClientLife(0)) {
	const waits = createSyncWaits(fixture.dependencies);
	const begun = fixture.clock.monotonic();
	const outcome: { ended?: unknown } = {};
	const state = fixture.state();
	waits.wait({ hash, client: "192.0.2.1", life, begun, until: begun + ms, state }).then(
		(receipt) => {
			outcome.ended = receipt;
		},
		(thrown: unknown) => {
			outcome.ended = thrown instanceof RpcError ? [thrown.code, thrown.message, thrown.data] : thrown;
		},
	);
	return { waits, outcome };
}

/** The reason that a wait for `hash` is given; null where it goes on for two questions. */
async function why(fixture: ViewFixture, hash: string): Promise<string | null> {
	const { outcome, waits } = wait(fixture, 20_000, hash);
	await fixture.clock.advance(1_700);
	waits.close();
	if (outcome.ended === undefined) return null;
	const [code, message, data] = outcome.ended as [number, string, string];
	assert.deepEqual([code, data], [5, hash]);
	return message.slice(`${NOT_PROCESSED} due to `.length);
}

test("a wait ends when its client goes, and all end when boost stops", async () => {
	const fixture = await viewFixture();
	const life = new ClientLife(0);
	const gone = wait(fixture, 20_000, HASH, life);
	const stays = wait(fixture);
	await fixture.clock.advance(500);
	life.end();
	stays.waits.close();
	await fixture.clock.advance(0);
	assert.deepEqual(gone.outcome.ended, [4, `${NOT_PROCESSED} in 0.5s: its client disconnected.`, HASH]);
	const stopping = "boost is shutting down, and the transaction is kept";
	assert.deepEqual(stays.outcome.ended, [4, `${NOT_PROCESSED} in 0.5s: ${stopping}.`, HASH]);
	await fixture.clock.advance(1_000);
	assert.equal(fixture.clock.timers, 0);
});

/**
 * The relay's answer, whether it is unavailable, whether the chain is available, and the result.
 */
const RECEIPTS: readonly (readonly [string, Reply | null, boolean, boolean, unknown])[] = [
	["the relay's", () => result({ of: "the relay" }), false, true, { of: "the relay" }],
	["none, by the relay", () => result(null), false, true, undefined],
	["the chain's, where the relay refuses", () => refusal(-32005, "limit"), false, true, { of: "the chain" }],
	["the chain's, where the relay gives no answer", null, false, true, { of: "the chain" }],
	["the chain's, where the relay is down", null, true, true, { of: "the chain" }],
	["none, where nobody answers", null, true, false, undefined],
];
for (const [name, reply, isOut, isChainUp, expected] of RECEIPTS) {
	test(`the receipt that counts: ${name}`, async () => {
		const fixture = await viewFixture();
		fixture.chainRows.set(RECEIPT, () => result({ of: "the chain" }));
		fixture.isChainUp = isChainUp;
		fixture.relay.isUnavailable = isOut;
		if (reply !== null) fixture.relay.rows.set(RECEIPT, reply);
		const { outcome, waits } = wait(fixture);
		await fixture.clock.advance(300);
		assert.deepEqual(outcome.ended, expected);
		waits.close();
	});
}

test("a wait ends early with the reason if the row has ended, but not if it was mined", async () => {
	const fixture = await viewFixture();
	for (const [ending, words] of [
		["replaced", "its replacement"],
		["cancelled", "its cancellation"],
		["expired", "its expiry"],
		["dropped", "another transaction with its nonce"],
		["mined", null],
	] as const) {
		assert.equal(await why(fixture, fixture.ended(5, ending).hash), words, ending);
	}
});

test("a wait ends early by the relay's stage if only the relay holds the transaction", async () => {
	const error = { code: "EXECUTION_REVERTED", message: "execution reverted: no" };
	const rows: [object, string | null][] = [
		[{ stage: "BROADCAST" }, null],
		[{ stage: "PENDING", reason: null }, null],
		[{ stage: "PENDING", reason: "base fee 9" }, "a failing simulation: base fee 9"],
		[{ stage: "INCLUDED", status: "INCLUDED" }, null],
		[{ stage: "CANCELLED" }, "its cancellation"],
		[{ stage: "SIMULATION_FAILED", simulationError: error }, "a failing simulation: execution reverted: no"],
		[{ stage: "SIMULATION_FAILED", simulationError: { code: "NODE_UNAVAILABLE", message: "" } }, null],
		[{ stage: "SIMULATION_FAILED", simulationError: null }, null],
		[{}, null],
	];
	for (const [page, expected] of rows) {
		const fixture = await viewFixture();
		const { hash } = fixture.holds(5, ["relay"]);
		fixture.relay.pages.set(hash, { ...unknownStatus(hash), ...page });
		assert.equal(await why(fixture, hash), expected, JSON.stringify(page));
		fixture.relay.isUnavailable = true;
		assert.equal(await why(fixture, hash), null, "out");
		fixture.relay.isUnavailable = false;
		fixture.holds(5, ["relay", "fallback"]);
		assert.equal(await why(fixture, hash), null, "another one holds it too");
	}
});

test("a wait ends early if an earlier nonce is missing or held", async () => {
	const rows: [string | null, string | null, string | null, boolean?][] = [
		["0x0", null, "a missing nonce: it is sent when the gap closes"],
		["0x6", "SIMULATION_FAILED", "an earlier transaction that is not sent", true],
		// It waits for the base fee to fall.
		["0x6", "PENDING", "an earlier transaction that is not sent", true],
		["0x6", "PENDING", null],
		["0x6", "BROADCAST", null],
		["0x6", null, null],
		[null, null, null],
	];
	for (const [count, stage, expected, held] of rows) {
		const fixture = await viewFixture();
		const { hash } = fixture.holds(5, ["relay"]);
		fixture.relay.pages.set(hash, { ...unknownStatus(hash), stage: "QUEUED" });
		if (count !== null) fixture.relay.answers("eth_getTransactionCount", count);
		if (stage !== null) {
			fixture.holds(4, ["relay"]);
			fixture.relay.answers("service_transactionStatuses", [{ hash, status: "FAILED", stage, held }]);
		}
		assert.equal(await why(fixture, hash), expected, `${count} ${stage}`);
		fixture.holds(3, ["fallback"]);
		assert.equal(await why(fixture, hash), null, "what stands before it is mined elsewhere");
	}
});
