// What waits for receipts ask: the receipt of whoever has it, and why there will be none soon, in the relay's words.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createSyncReads } from "../../../../boost-proxy/views/syncWait.ts";
import { unknownStatus } from "../../../../shared/ethereum/statusRecord.ts";
import { refusal, result, ViewFixture } from "./viewFixture.ts";

const RECEIPT = "eth_getTransactionReceipt";
const MS = 1_000;

const why = (fixture: ViewFixture, hash: string) =>
	createSyncReads(fixture.dependencies).whyNotSoon(hash, MS);

test("the receipt is the relay's while that is well, else the chain's", async () => {
	const fixture = new ViewFixture();
	const { hash } = fixture.holds(5, ["relay"]);
	const read = () => createSyncReads(fixture.dependencies).readReceipt(hash, fixture.state(), MS);
	fixture.chainRows.set(RECEIPT, () => result({ of: "the chain" }));
	fixture.relay.answers(RECEIPT, null);
	assert.equal(await read(), null);
	assert.deepEqual(fixture.chainAsked, []);
	fixture.relay.answers(RECEIPT, { of: "the relay" });
	assert.deepEqual(await read(), { of: "the relay" });
	fixture.relay.rows.set(RECEIPT, () => refusal(-32005, "limit exceeded"));
	assert.deepEqual(await read(), { of: "the chain" });
	fixture.relay.rows.clear();
	assert.deepEqual(await read(), { of: "the chain" });
	fixture.relay.isUnavailable = true;
	assert.deepEqual(await read(), { of: "the chain" });
	fixture.isChainUp = false;
	assert.equal(await read(), null);
});

test("what has ended is told in the relay's words, and what was mined is not", async () => {
	const fixture = new ViewFixture();
	const words = {
		...{ replaced: "its replacement", cancelled: "its cancellation", expired: "its expiry" },
		...{ dropped: "another one that used its nonce", mined: null },
	} as const;
	for (const ending of ["replaced", "cancelled", "expired", "dropped", "mined"] as const) {
		assert.equal(await why(fixture, fixture.ended(5, ending).hash), words[ending], ending);
	}
});

test("the relay's stage counts where it alone holds it", async () => {
	const error = { code: "EXECUTION_REVERTED", message: "execution reverted: no" };
	const rows: [object, string | null][] = [
		[{ stage: "BROADCAST" }, null],
		[{ stage: "INCLUDED", status: "INCLUDED" }, null],
		[{ stage: "CANCELLED" }, "its cancellation"],
		[{ stage: "DROPPED" }, "another one that used its nonce"],
		[{ stage: "SIMULATION_FAILED", simulationError: error }, "a failing simulation: execution reverted: no"],
		[{ stage: "SIMULATION_FAILED", simulationError: { code: "NODE_UNAVAILABLE", message: "" } }, null],
		[{ stage: "SIMULATION_FAILED", simulationError: null }, null],
		[{}, null],
	];
	for (const [page, expected] of rows) {
		const fixture = new ViewFixture();
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

test("queued: for a nonce that is missing, or behind one that is held", async () => {
	const rows: [string, string | null, string | null][] = [
		["0x0", null, "a missing nonce: it goes out when the gap before it closes"],
		["0x6", "SIMULATION_FAILED", "one before it that is held"],
		["0x6", "BROADCAST", null],
		["0x6", null, null],
	];
	for (const [count, stage, expected] of rows) {
		const fixture = new ViewFixture();
		const { hash } = fixture.holds(5, ["relay"]);
		fixture.relay.pages.set(hash, { ...unknownStatus(hash), stage: "QUEUED" });
		fixture.relay.answers("eth_getTransactionCount", count);
		if (stage !== null) {
			fixture.holds(4, ["relay"]);
			fixture.relay.answers("service_transactionStatuses", [{ hash, status: "FAILED", stage }]);
		}
		assert.equal(await why(fixture, hash), expected, `${count} ${stage}`);
		fixture.holds(3, ["fallback"]);
		assert.equal(await why(fixture, hash), null, "what stands before it is mined elsewhere");
	}
	const fixture = new ViewFixture();
	const { hash } = fixture.holds(5, ["relay"]);
	fixture.relay.pages.set(hash, { ...unknownStatus(hash), stage: "QUEUED" });
	assert.equal(await why(fixture, hash), null, "nobody tells");
});
