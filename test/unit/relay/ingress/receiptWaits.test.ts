// Waits for receipts: what each waiting client is told, and when, as the transaction moves, the node answers, clients go and
// the relay stops.

import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import type { Following, RecordReader } from "../../../../relay/domain/ports.ts";
import { newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { createReceiptWaits } from "../../../../relay/ingress/receiptWaits.ts";
import { Followers } from "../../../../relay/status/announcer.ts";
import { TransactionRecords } from "../../../../relay/transactions/records.ts";
import { ClientLife } from "../../../../shared/http/callContext.ts";
import type { SyncCall, SyncWaits } from "../../../../shared/http/syncWaits.ts";
import { ForeignRpcError, RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const transaction = privateTransaction();
const HASH = transaction.tx.hash;
const RECEIPT = { transactionHash: HASH, status: "0x1" };
const NOT_PROCESSED = "The transaction was added to the mempool but wasn't processed";

/** How a wait ended: its receipt, or the error as the client reads it; undefined while it waits. */
interface Outcome {
	ended?: unknown;
}

/** What an event says beside its type; `at` and `block` where it has them need not be said. */
type Happening = { readonly type: TxEvent["type"] } & Readonly<Record<string, unknown>>;

class ReceiptFixture {
	readonly clock = new ManualClock();
	readonly records = new TransactionRecords({ log: silentLogger });
	readonly #followers = new Followers({ log: silentLogger });
	readonly waits: SyncWaits;
	/** What the node answers: a value, or an error that it throws. */
	answer: unknown = null;
	/** Hashes that the node was asked for. */
	readonly asked: string[] = [];
	/** Records of transactions that are settled. */
	readonly settled = new Map<string, TransactionRecord>();
	/** Who follows the transaction now. */
	follows = 0;
	#gate: Promise<void> = Promise.resolve();

	constructor() {
		this.records.subscribe((record, _before, event) => this.#followers.notify(record, "QUEUED", event));
		this.waits = createReceiptWaits({
			following: { follow: (hash, listener) => this.#follow(hash, listener) },
			records: this.reader,
			node: { receipt: (hash) => this.#receipt(hash) },
			clock: this.clock,
		});
	}

	readonly reader: RecordReader = {
		record: async (hash) => this.records.get(hash)?.record ?? this.settled.get(hash) ?? null,
	};

	/** The relay has taken it, and each of these has happened to it. */
	take(...happenings: readonly Happening[]): this {
		this.records.open({ transaction, record: newRecord(transaction) });
		this.happens({ type: "received" }, ...happenings);
		return this;
	}

	happens(...happenings: readonly Happening[]): void {
		for (const one of happenings) {
			this.records.emit(HASH, { at: this.clock.now(), block: 7, builders: [], ...one } as TxEvent);
		}
	}

	/** Waits for so many ms, from now on unless said. */
	wait(ms: number, request: Partial<SyncCall> = {}): Outcome {
		const begun = this.clock.monotonic();
		const outcome: Outcome = {};
		const life = new ClientLife(0);
		this.waits.wait({ hash: HASH, client: "192.0.2.1", life, begun, until: begun + ms, ...request }).then(
			(receipt) => {
				outcome.ended = receipt;
			},
			(thrown: unknown) => {
				outcome.ended = thrown instanceof RpcError ? [thrown.code, thrown.message, thrown.data] : thrown;
			},
		);
		return outcome;
	}

	/** The node's answers wait until what is answered is called. */
	hold(): () => void {
		let release = (): void => {};
		this.#gate = new Promise((resolve) => {
			release = resolve;
		});
		return release;
	}

	#follow(...[hash, listener]: Parameters<Following["follow"]>): () => void {
		const end = this.#followers.follow(hash, listener);
		this.follows++;
		return () => {
			this.follows--;
			end();
		};
	}

	async #receipt(hash: string): Promise<unknown> {
		this.asked.push(hash);
		const { answer } = this;
		await this.#gate;
		if (answer instanceof Error) throw answer;
		return answer;
	}
}

/** It is in a block. */
function included(reverted = false): Happening {
	return { type: "included", blockHash: `0x${"b1".repeat(32)}`, index: 0, reverted };
}

function failed(code: string, message: string): Happening {
	return { type: "simulationFailed", error: { code, message } };
}

function queued(reason: string): Happening {
	return { type: "queued", reason };
}

const SENT: readonly Happening[] = [{ type: "ready" }, { type: "broadcast" }];
const GAP = "a missing nonce: it goes out when the gap before it closes";
const timedOut = (seconds: string) => [4, `${NOT_PROCESSED} in ${seconds}`, HASH];
const notSoon = (why: string) => [5, `${NOT_PROCESSED} due to ${why}`, HASH];

let fixture = new ReceiptFixture();
function start(...past: readonly Happening[]): ReceiptFixture {
	fixture = new ReceiptFixture().take(...past);
	return fixture;
}
const endings = (outcomes: readonly Outcome[]) => outcomes.map(({ ended }) => ended);
/** Whatever a test has done, nothing is left of what has ended. */
afterEach(async () => {
	await fixture.clock.advance(30_000);
	assert.deepEqual([fixture.waits.size, fixture.clock.timers, fixture.follows], [0, 0, 0]);
});

describe("mined", () => {
	test("a node that has no receipt yet, or does not answer, is asked again", async () => {
		const { clock } = start(included());
		const outcome = fixture.wait(20_000);
		for (const answer of [null, undefined, new RpcError("internal", "x"), new ForeignRpcError(-32000, "x")]) {
			fixture.answer = answer;
			await clock.advance(1_000);
			assert.equal(outcome.ended, undefined);
		}
		fixture.answer = RECEIPT;
		await clock.advance(1_000);
		assert.equal(outcome.ended, RECEIPT);
	});

	test("a node without a receipt, or one that hangs, holds nobody longer than asked for; a late answer changes nothing", async () => {
		const { clock } = start(included());
		const early = fixture.wait(1_000);
		await clock.advance(999);
		assert.equal(early.ended, undefined);
		const release = fixture.hold();
		const outcome = fixture.wait(2_500);
		await clock.advance(1);
		assert.deepEqual(early.ended, timedOut("1s."));
		await clock.advance(2_499);
		fixture.answer = RECEIPT;
		release();
		await clock.advance(1);
		assert.deepEqual(outcome.ended, timedOut("2.5s."));
	});

	test("a receipt of a block that went meanwhile is none; that of the next block counts", async () => {
		const { clock } = start(...SENT);
		const outcome = fixture.wait(20_000);
		fixture.answer = RECEIPT;
		const release = fixture.hold();
		fixture.happens(included());
		await clock.advance(10);
		fixture.happens({ type: "reorged" });
		release();
		await clock.advance(5_000);
		assert.deepEqual([outcome.ended, fixture.asked.length], [undefined, 1], "it waits, and asks for nothing");
		const next = { ...RECEIPT, blockNumber: "0x8" };
		fixture.answer = next;
		fixture.happens(included());
		await clock.advance(0);
		assert.equal(outcome.ended, next);
	});
});

describe("not soon", () => {
	const ROWS: Readonly<Record<string, readonly [readonly Happening[], Happening, string]>> = {
		"nonce gap": [[], queued("nonceGap"), GAP],
		"behind one that is held": [[], queued("behindHeld"), "one before it that is held"],
		"its simulation fails": [
			[],
			failed("EXECUTION_REVERTED", "execution reverted: no"),
			"a failing simulation: execution reverted: no",
		],
		"it passed, and fails now": [SENT, failed("FEE_CAP_TOO_LOW", "too low"), "a failing simulation: too low"],
		cancelled: [SENT, { type: "cancelled" }, "its cancellation"],
	};
	for (const [name, [past, now, why]] of Object.entries(ROWS)) {
		test(`${name}: at once while somebody waits, and to whoever asks then`, async () => {
			const { clock } = start(...past);
			const outcome = fixture.wait(20_000);
			await clock.advance(3_000);
			assert.equal(outcome.ended, undefined);
			fixture.happens(now);
			await clock.advance(0);
			const second = fixture.wait(20_000);
			await clock.advance(0);
			assert.deepEqual(endings([outcome, second]), [notSoon(why), notSoon(why)]);
			assert.deepEqual(fixture.asked, []);
		});
	}

	for (const [name, now] of [
		["behind one that goes out unchecked", [queued("nonceGap"), queued("behindUnchecked")]],
		["a node that could not tell", [failed("NODE_UNAVAILABLE", "the node does not answer")]],
	] as const satisfies readonly (readonly [string, readonly Happening[]])[]) {
		test(`${name}: it may be mined in the next block or so, and is waited for`, async () => {
			const { clock } = start(...now);
			const outcome = fixture.wait(5_000);
			await clock.advance(4_999);
			assert.equal(outcome.ended, undefined);
			await clock.advance(1);
			assert.deepEqual(outcome.ended, timedOut("5s."));
		});
	}
});
