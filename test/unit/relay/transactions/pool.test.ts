// Tests the pool's rules as tables: replacements, shares, parked transactions, and which of two
// account states counts.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AccountState } from "../../../../relay/domain/chain.ts";
import type { PrivateTransaction } from "../../../../relay/domain/transaction.ts";
import {
	type AddOutcome,
	Pool,
	type PoolEntry,
	type PoolOptions,
} from "../../../../relay/transactions/pool.ts";
import { PRAGUE } from "../../../support/forks.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../../support/txFactory.ts";

const SENDER = testAccount(0).address;
const GWEI = 1_000_000_000;
const MIB = 1024 * 1024;

function account(nonce: number, block = 100, address = SENDER): AccountState {
	return { address, block, nonce: BigInt(nonce), balance: 10n ** 20n, code: "none" };
}

function tx(nonce: number, options: TxOptions = {}): PrivateTransaction {
	return privateTransaction({ nonce, ...options });
}

/** The same nonce with `percent` more on both fees. */
function raised(nonce: number, percent: number): PrivateTransaction {
	const fees = { maxFeePerGas: GWEI * (200 + 2 * percent), maxPriorityFeePerGas: GWEI * (100 + percent) };
	return tx(nonce, fees);
}

function entryOf(outcome: AddOutcome): PoolEntry {
	assert.ok(outcome.outcome !== "rejected");
	return outcome.entry;
}

/** A pool with durable transactions of these nonces. */
function poolOf(
	nonces: readonly number[],
	at: AccountState = account(0),
	options?: Partial<PoolOptions>,
): Pool {
	const pool = new Pool({ maxBytes: 256 * MIB, ...options });
	for (const nonce of nonces) pool.markDurable(entryOf(pool.add(raised(nonce, 0), at)));
	return pool;
}

function nonces(entries: readonly PoolEntry[]): number[] {
	return entries.map((entry) => Number(entry.transaction.tx.nonce));
}

function split(pool: Pool): [number[], number[]] {
	const { ready, waiting } = pool.transactionsOf(SENDER);
	return [nonces(ready), nonces(waiting)];
}

interface Made {
	readonly client: string;
	/** As the pool counts it. */
	readonly bytes: number;
	/** 0 unless said, of an account of its own at nonce 0. */
	readonly nonce?: number;
	readonly from?: string;
	readonly fee?: bigint;
	readonly blobFee?: bigint;
}

const NEW = account(0, 100, "0xnew");
let senders = 0;

/** One of a size, whose bytes nobody reads. */
function made({ client, bytes, nonce = 0, from, fee = 1_000n, blobFee }: Made): PrivateTransaction {
	senders += 1;
	const fields = {
		...{ from: from ?? `0x${senders}`, hash: `0xhash${senders}`, nonce: BigInt(nonce), size: bytes - 512 },
		...{ maxFeePerGas: fee, maxPriorityFeePerGas: fee, maxFeePerBlobGas: blobFee ?? null },
	};
	const transaction = tx(0, {});
	return { ...transaction, submitterAddress: client, tx: { ...transaction.tx, ...fields } };
}

/** Adds it; answers what came of that. */
function add(pool: Pool, one: Made): string {
	const transaction = made(one);
	const outcome = pool.add(transaction, { ...NEW, address: transaction.tx.from });
	return outcome.outcome === "rejected" ? outcome.rejection.code : outcome.outcome;
}

const NEXT = {
	...{ number: 101, timestamp: 0, baseFee: 100n, blobBaseFee: 10n, gasLimit: 30_000_000n },
	fork: PRAGUE,
};
/**
 * A client has 4 MiB that can't be in the next block. Then one more byte that can or can't be in
 * it, and the pool's answer.
 */
const PARKED: readonly (readonly [string, Partial<Made>, string])[] = [
	["goes out", {}, "added"],
	["is behind a gap", { nonce: 1 }, "CLIENT_FULL"],
	["has a fee cap under the base fee", { fee: 99n }, "CLIENT_FULL"],
	["has a fee cap at the base fee", { fee: 100n }, "added"],
	["has a blob fee cap under the blob base fee", { blobFee: 9n }, "CLIENT_FULL"],
	["is behind one that waits for its fee", { from: "0xdear", nonce: 1 }, "CLIENT_FULL"],
	["is behind one that goes out", { from: "0xgood", nonce: 1 }, "added"],
];

for (const [name, one, expected] of PARKED) {
	test(`with 4 MiB of a client parked, one more that ${name} is ${expected}`, () => {
		const pool = poolOf([], account(0), { maxBytes: 256 * MIB });
		pool.setNext(NEXT);
		const client = "10.0.0.1";
		assert.equal(add(pool, { client, bytes: 4 * MIB - 1_000, nonce: 7 }), "added");
		assert.equal(add(pool, { client, bytes: 1_000, from: "0xdear", fee: 99n }), "added");
		assert.equal(add(pool, { client, bytes: 1_000, from: "0xgood" }), "added");
		assert.equal(add(pool, { client, bytes: 513, ...one }), expected);
		assert.equal(add(pool, { client: "10.0.0.2", bytes: 513, nonce: 9 }), "added");
	});
}

test("at most half of the pool is parked", () => {
	const pool = poolOf([], account(0), { maxBytes: 128 * MIB });
	for (let client = 0; client < 16; client += 1) {
		assert.equal(add(pool, { client: `10.0.0.${client}`, bytes: 4 * MIB, nonce: 1 }), "added");
	}
	assert.equal(add(pool, { client: "10.0.1.1", bytes: 513, nonce: 1 }), "POOL_FULL");
	assert.equal(add(pool, { client: "10.0.1.1", bytes: 513 }), "added");
});

test("a closed gap or a used nonce frees the parked share", () => {
	const pool = poolOf([], account(0), { maxBytes: 256 * MIB });
	const client = "10.0.0.1";
	for (const nonce of [1, 2]) {
		assert.equal(add(pool, { client, bytes: 2 * MIB, from: "0xgap", nonce }), "added");
	}
	const waits = { client, bytes: 513, nonce: 5 };
	assert.equal(add(pool, waits), "CLIENT_FULL");
	pool.markNonceUsed("0xgap", 0n, 101);
	assert.equal(add(pool, waits), "added");
	pool.setAccount(account(0, 102, "0xgap"));
	assert.equal(add(pool, waits), "CLIENT_FULL");
	assert.equal(add(pool, { client, bytes: 513, from: "0xgap", nonce: 0 }), "added");
	assert.equal(add(pool, waits), "added");
});

test("an older account state is ignored, until a reorganisation", () => {
	const pool = poolOf([3, 4], account(3));
	pool.setAccount(account(4, 105));
	assert.deepEqual(nonces(pool.setAccount(account(3, 104))), [3]);
	assert.deepEqual(split(pool), [[4], []]);
	pool.rewind(104);
	assert.deepEqual(nonces(pool.setAccount(account(3, 104))), []);
	assert.deepEqual(split(pool), [[3, 4], []]);
});

test("the pending nonce ignores a node that lags behind, unless blocks were reorganised", () => {
	const pool = poolOf([3, 4, 6], account(3, 100));
	assert.deepEqual([pool.pendingNonce(SENDER, 2n), pool.pendingNonce(SENDER, 9n)], [5n, 9n]);
	pool.rewind(99);
	assert.equal(pool.pendingNonce(SENDER, 2n), 2n);
});

test("queues an entry once for each builder and block, and interns equal lists", () => {
	const pool = poolOf([0, 1, 2]);
	const [a, b, c] = [0n, 1n, 2n].map((nonce) => pool.at(SENDER, nonce) as PoolEntry) as [
		PoolEntry,
		PoolEntry,
		PoolEntry,
	];
	const BOTH = ["one", "two"];
	for (const entry of [a, b, c]) assert.deepEqual(pool.give(entry, 101, BOTH), BOTH);
	assert.equal(a.given, b.given, "one object for all");
	assert.deepEqual(pool.give(a, 101, BOTH), [], "it was given for that block");

	assert.deepEqual(pool.give(b, 102, ["one"]), ["one"]);
	assert.deepEqual(pool.give(b, 102, BOTH), ["two"]);
	assert.deepEqual(pool.givenFor(b, 102), BOTH);
	pool.ungive(c);
	assert.deepEqual(pool.givenFor(c, 101), []);
	assert.deepEqual(pool.give(c, 101, BOTH), BOTH);
	assert.deepEqual([pool.givenFor(a, 101), pool.givenFor(a, 102)], [BOTH, []]);
});
