// Waits for receipts behind boost: when it is asked, what ends a wait, and in which words; and what waits ask, the receipt
// of whoever has it and why there will be none soon. How many may wait is the relay's rule as well: see receiptWaits.test.ts.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import {
	createSyncReads,
	createSyncWaits,
	type SyncRequest,
} from "../../../../boost-proxy/views/syncWait.ts";
import { unknownStatus } from "../../../../shared/ethereum/statusRecord.ts";
import { ClientLife } from "../../../../shared/http/callContext.ts";
import type { SyncWaits } from "../../../../shared/http/syncWaits.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { refusal, result, ViewFixture } from "./viewFixture.ts";

const HASH = `0x${"ab".repeat(32)}`;
const FOUND = { transactionHash: HASH };
const NOT_PROCESSED = "The transaction was added to the mempool but wasn't processed";

/** Waits whose questions are remembered with their time. */
class Fixture {
	readonly clock;
	readonly waits: SyncWaits<SyncRequest>;
	/** What is answered: a receipt or null, and why there will be none. */
	receipt: () => unknown = () => null;
	why: () => string | null | Promise<string | null> = () => null;
	readonly asked: [string, number, number][] = [];
	readonly #views = new ViewFixture();

	constructor() {
		this.clock = this.#views.clock;
		const note = (what: string, ms: number) => void this.asked.push([what, this.clock.monotonic(), ms]);
		this.waits = createSyncWaits(
			{},
			{
				clock: this.clock,
				readReceipt: async (_hash, _state, ms) => {
					note("receipt", ms);
					return this.receipt();
				},
				whyNotSoon: async (_hash, ms) => {
					note("why", ms);
					return this.why();
				},
			},
		);
	}

	/** A wait of so many ms; what it came to is filled in. */
	wait(ms: number, more: Partial<SyncRequest> = {}): { ended?: unknown } {
		const begun = this.clock.monotonic();
		const outcome: { ended?: unknown } = {};
		const request = { hash: HASH, client: "192.0.2.1", life: new ClientLife(0), begun, until: begun + ms };
		this.waits.wait({ ...request, state: this.#views.state(), ...more }).then(
			(receipt) => {
				outcome.ended = receipt;
			},
			(thrown: unknown) => {
				outcome.ended = thrown instanceof RpcError ? [thrown.code, thrown.message, thrown.data] : thrown;
			},
		);
		return outcome;
	}
}

let fixture = new Fixture();
/** Whatever a test has done, nothing is left of what has ended. */
afterEach(async () => {
	await fixture.clock.advance(30_000);
	assert.equal(fixture.waits.size, 0, "waits");
	assert.equal(fixture.clock.timers, 0, "timers");
});

test("it asks for the receipt every second at most, and now and then why there is none, not at first", async () => {
	fixture = new Fixture();
	const outcome = fixture.wait(20_000);
	await fixture.clock.advance(200);
	assert.equal(fixture.asked.length, 0, "it has just come");
	await fixture.clock.advance(3_800);
	const receipts = fixture.asked.filter(([what]) => what === "receipt").map(([, at]) => at);
	for (const [i, at] of receipts.slice(1).entries()) {
		const ms = at - Number(receipts[i]);
		assert.ok(ms >= 250 && ms <= 1_000, `${ms} ms between two`);
	}
	assert.ok(receipts.length <= 6, `${receipts.length} times`);
	assert.deepEqual(
		fixture.asked.slice(0, 3).map(([what]) => what),
		["receipt", "receipt", "why"],
	);
	assert.equal(outcome.ended, undefined);
	fixture.receipt = () => FOUND;
	await fixture.clock.advance(1_000);
	assert.equal(outcome.ended, FOUND);
});

test("when the time is up: code 4 with the hash, whatever is being asked", async () => {
	fixture = new Fixture();
	const outcome = fixture.wait(1_500);
	fixture.receipt = () => new Promise(() => {});
	await fixture.clock.advance(1_499);
	assert.equal(outcome.ended, undefined);
	await fixture.clock.advance(1);
	assert.deepEqual(outcome.ended, [4, `${NOT_PROCESSED} in 1.5s.`, HASH]);
});

test("no question goes beyond the wait, and none takes all of it", async () => {
	fixture = new Fixture();
	fixture.wait(6_000);
	await fixture.clock.advance(6_000);
	assert.ok(fixture.asked.length > 5);
	for (const [what, at, ms] of fixture.asked) {
		assert.ok(ms <= 3_000 && at + ms <= 6_000, `${what} at ${at} for ${ms} ms`);
	}
});

test("what can't be mined soon: code 5 with the hash and the words", async () => {
	fixture = new Fixture();
	fixture.why = () => "a missing nonce";
	const outcome = fixture.wait(20_000);
	await fixture.clock.advance(625);
	assert.deepEqual(outcome.ended, [5, `${NOT_PROCESSED} due to a missing nonce`, HASH]);
});

test("a receipt that comes while it is asked why is answered at the next question; a fault ends the wait", async () => {
	fixture = new Fixture();
	fixture.why = () => {
		fixture.receipt = () => FOUND;
		return null;
	};
	const outcome = fixture.wait(20_000);
	await fixture.clock.advance(1_200);
	assert.equal(outcome.ended, FOUND);
	const fault = new TypeError("a fault of ours");
	fixture.receipt = () => {
		throw fault;
	};
	const other = fixture.wait(20_000);
	await fixture.clock.advance(250);
	assert.equal(other.ended, fault);
});

test("it ends when its client goes, and all end when boost stops", async () => {
	fixture = new Fixture();
	const life = new ClientLife(0);
	const gone = fixture.wait(20_000, { life });
	const stays = fixture.wait(20_000);
	await fixture.clock.advance(500);
	life.end();
	await fixture.clock.advance(0);
	assert.deepEqual(gone.ended, [4, `${NOT_PROCESSED} in 0.5s: its client has gone.`, HASH]);
	assert.equal(fixture.waits.size, 1);
	fixture.waits.close();
	const late = fixture.wait(20_000);
	await fixture.clock.advance(0);
	const why = "boost is shutting down, and the transaction is kept";
	assert.deepEqual(stays.ended, [4, `${NOT_PROCESSED} in 0.5s: ${why}.`, HASH]);
	assert.deepEqual(late.ended, [4, `${NOT_PROCESSED} in 0s: ${why}.`, HASH]);
});

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
