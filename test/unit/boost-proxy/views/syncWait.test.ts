// Waits for receipts behind boost, on a clock that is moved by hand: when it is asked, what ends a wait, and in which
// words.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { createSyncWaits, type SyncRequest } from "../../../../boost-proxy/views/syncWait.ts";
import { ClientLife } from "../../../../shared/http/callContext.ts";
import type { SyncWaits, WaitingRoomLimits } from "../../../../shared/http/syncWaits.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { ViewFixture } from "./viewFixture.ts";

const HASH = `0x${"ab".repeat(32)}`;
const RECEIPT = { transactionHash: HASH };
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

	constructor(options: Partial<WaitingRoomLimits> = {}) {
		this.clock = this.#views.clock;
		const note = (what: string, ms: number) => void this.asked.push([what, this.clock.monotonic(), ms]);
		this.waits = createSyncWaits(options, {
			clock: this.clock,
			readReceipt: async (_hash, _state, ms) => {
				note("receipt", ms);
				return this.receipt();
			},
			whyNotSoon: async (_hash, ms) => {
				note("why", ms);
				return this.why();
			},
		});
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

test("it asks after a quarter of a second, then later and later, and answers the receipt", async () => {
	fixture = new Fixture();
	const outcome = fixture.wait(20_000);
	await fixture.clock.advance(4_000);
	assert.deepEqual(
		fixture.asked.filter(([what]) => what === "receipt").map(([, at]) => at),
		[250, 625, 1_187.5, 2_031.25, 3_031.25],
	);
	assert.deepEqual(
		fixture.asked.filter(([what]) => what === "why").map(([, at]) => at),
		[625, 2_031.25],
		"why there is none is not asked at once: it has just come",
	);
	assert.equal(outcome.ended, undefined);
	fixture.receipt = () => RECEIPT;
	await fixture.clock.advance(1_000);
	assert.equal(outcome.ended, RECEIPT);
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
	fixture.wait(2_000);
	await fixture.clock.advance(2_000);
	assert.deepEqual(
		fixture.asked.map(([what, , ms]) => [what, ms]),
		[
			["receipt", 1_750],
			["receipt", 1_375],
			["why", 1_375],
			["receipt", 812.5],
		],
	);
	fixture.asked.length = 0;
	fixture.wait(20_000);
	await fixture.clock.advance(250);
	assert.deepEqual(fixture.asked[0]?.[2], 3_000);
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
		fixture.receipt = () => RECEIPT;
		return null;
	};
	const outcome = fixture.wait(20_000);
	await fixture.clock.advance(1_200);
	assert.equal(outcome.ended, RECEIPT);
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

test("who comes when there is no room is told at once; who goes makes room", async () => {
	fixture = new Fixture({ maxWaits: 2, maxPerClient: 1 });
	const life = new ClientLife(0);
	const first = fixture.wait(20_000, { life });
	const same = fixture.wait(20_000);
	const other = fixture.wait(20_000, { client: "192.0.2.2" });
	const third = fixture.wait(20_000, { client: "192.0.2.3" });
	await fixture.clock.advance(0);
	const refused = [4, `${NOT_PROCESSED} in 0s: too many calls wait already, ask for its receipt.`, HASH];
	assert.deepEqual(
		[first.ended, same.ended, other.ended, third.ended],
		[undefined, refused, undefined, refused],
	);
	life.end();
	assert.equal(fixture.wait(20_000).ended, undefined);
	await fixture.clock.advance(0);
	assert.equal(fixture.waits.size, 2);
});
