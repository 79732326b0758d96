// Tests when canaries are sent and ended, on a manual clock with a pipeline that only records.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Transaction } from "ethers";
import { Canaries } from "../../../relay/canaries.ts";
import type { NextBlock } from "../../../relay/domain/chain.ts";
import type { Submission } from "../../../relay/domain/transaction.ts";
import { Background } from "../../../shared/background.ts";
import { FORKS } from "../../../shared/ethereum/forks.ts";
import { type Logger, silentLogger } from "../../../shared/log.ts";
import { ManualClock } from "../../support/manualClock.ts";
import { testAccount } from "../../support/txFactory.ts";

const { keyHex: key, address } = testAccount(1);
const SLOT_MS = 12_000;
const HEADS_A_DAY = 7_200;
const GWEI = 1_000_000_000n;

let clock: ManualClock;
let background: Background;
let draws: number[];
let sent: Submission[];
let cancelled: string[];
let pending: string[];
let isRefused: boolean;
let logged: string[];
let canaries: Canaries;

beforeEach(() => {
	[draws, sent, cancelled, pending, isRefused, logged] = [[], [], [], [], false, []];
	clock = new ManualClock();
	const log: Logger = { ...silentLogger, warn: (message) => logged.push(message) };
	background = new Background({}, { log });
	canaries = made();
});

/** As another process makes them. */
function made(): Canaries {
	const log: Logger = { ...silentLogger, warn: (message) => logged.push(message) };
	const next = { baseFee: GWEI, fork: FORKS[0] } as unknown as NextBlock;
	return new Canaries(
		{ key, address, perDay: 24, chainId: 1n, builders: ["a", "b"], slot: { ms: SLOT_MS } },
		{
			pipeline: {
				async submit(submission) {
					sent.push(submission);
					if (isRefused) return { outcome: "rejected", rejection: { code: "INSUFFICIENT_FUNDS" } } as never;
					const hash = hashOf(submission);
					pending.push(hash);
					return { outcome: "accepted", hash };
				},
				async cancel({ hash, signer }) {
					assert.equal(signer, address);
					cancelled.push(hash);
					pending = pending.filter((one) => one !== hash);
					return "cancelled";
				},
			},
			pool: {
				transactionsOf: () => ({
					ready: pending.map((hash) => ({ transaction: { tx: { hash } } })) as never,
					waiting: [],
				}),
			},
			accounts: { get: async () => ({ address, block: 1, nonce: 7n, balance: 1n, code: "none" }) },
			tip: { head: () => null, next: () => next },
			random: () => draws.shift() ?? 0,
			...{ background, clock, log },
		},
	);
}

function hashOf({ raw }: Submission): string {
	return Transaction.from(`0x${Buffer.from(raw).toString("hex")}`).hash ?? "";
}

async function head(...drawn: readonly number[]): Promise<void> {
	draws = [...drawn];
	canaries.headCame();
	await background.join();
}

test("it is a transfer of nothing to itself, for one builder alone, and never disclosed", async () => {
	await head(0, 0.6, 0.5);
	const [submission] = sent;
	assert.deepEqual([submission?.builders, submission?.isHidden, submission?.address], [["b"], true, null]);
	const tx = Transaction.from(`0x${Buffer.from(submission?.raw ?? []).toString("hex")}`);
	assert.deepEqual([tx.from?.toLowerCase(), tx.to?.toLowerCase()], [address, address]);
	assert.deepEqual([tx.value, tx.nonce, tx.gasLimit, tx.chainId], [0n, 7, 21_000n, 1n]);
	assert.deepEqual([tx.maxPriorityFeePerGas, tx.maxFeePerGas], [20_000_000n, 2n * GWEI + 20_000_000n]);
});

test("two of one nonce have different bytes", async () => {
	await head(0, 0, 0.1);
	pending = [];
	await head(0, 0, 0.2);
	assert.notEqual(...(sent.map(hashOf) as [string, string]));
});

test("a head sends one with the probability of its slot", async () => {
	const chance = 24 / HEADS_A_DAY;
	await head(chance);
	assert.equal(sent.length, 0);
	await head(chance - 1e-9);
	assert.equal(sent.length, 1);
});

test("it is cancelled in the middle of its slot", async () => {
	await head(0);
	await clock.advance(SLOT_MS / 2 - 1);
	assert.equal(cancelled.length, 0);
	await clock.advance(1);
	await background.join();
	assert.deepEqual(cancelled, sent.map(hashOf));
});

test("another core finds it pending, ends it, and sends none beside it", async () => {
	await head(0);
	canaries.stop();
	canaries = made();
	await head(0);
	assert.deepEqual([sent.length, cancelled], [1, sent.map(hashOf)]);
	await head(0);
	assert.equal(sent.length, 2);
});

test("after a stop nothing is sent or cancelled", async () => {
	await head(0);
	canaries.stop();
	await head(0);
	await clock.advance(SLOT_MS);
	await background.join();
	assert.deepEqual([sent.length, cancelled], [1, []]);
});

test("a refusal is logged once, and a failure is no fault of the relay", async () => {
	isRefused = true;
	await head(0);
	await head(0);
	assert.deepEqual(logged, ["canary refused"]);
	assert.equal(pending.length, 0);
});
