// Signatures and recoveries are the same with a thread and without one, come in the order of the
// questions, and none is lost with a thread that ends, throws or hangs.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { systemClock } from "../../../../shared/clock.ts";
import {
	type HashSignature,
	keyBytes,
	recoverAddress,
	signHash,
} from "../../../../shared/ethereum/signatures.ts";
import { SignatureWork } from "../../../../shared/ethereum/signatureWork.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { testAccount } from "../../../support/txFactory.ts";
import { until } from "../../../support/until.ts";

/** More than the thread has at a time. */
const COUNT = 300;

/**
 * One with a thread at hand, which ends with the test: the real one, or one that does `fault` with
 * its first batch. Its time is moved by hand.
 */
async function threaded(t: TestContext, fault?: string) {
	const clock = new ManualClock();
	const told: string[] = [];
	const tell = (message: string) => void told.push(message);
	const log: Logger = { ...silentLogger, info: tell, warn: tell, error: tell };
	const text = `
		import { parentPort } from "node:worker_threads";
		parentPort.postMessage("ready");
		parentPort.on("message", () => { ${fault} });`;
	const thread = new URL(`data:text/javascript,${encodeURIComponent(text)}`);
	const work = new SignatureWork(
		{ threaded: true, ...(fault === undefined ? {} : { thread }) },
		{ clock, log },
	);
	await work.start();
	t.after(() => work.stop());
	await until("the thread", () => told.length === 1);
	return { work, told, clock };
}

const accounts = Array.from({ length: 5 }, (_, i) => testAccount(i));

/** Asks for {@link COUNT} signatures, and as many recoveries of which each fifth has no signer. */
async function asked(work: Pick<SignatureWork, "recover" | "sign">) {
	const order: string[] = [];
	const answers = Array.from({ length: COUNT }, async (_, i) => {
		const { keyHex, address } = accounts[i % accounts.length] ?? testAccount(0);
		const secret = keyBytes(keyHex);
		const hash = Buffer.alloc(32, i + 1);
		const expected = signHash(hash, secret);
		const r = BigInt(`0x${Buffer.from(expected.signature.subarray(0, 32)).toString("hex")}`);
		const s = BigInt(`0x${Buffer.from(expected.signature.subarray(32)).toString("hex")}`);
		// 5 is the x of no point.
		const isNone = i % 5 === 4;
		const recid = expected.recid === 0 ? 0 : 1;
		const signed = Promise.resolve(work.sign(hash, secret)).finally(() => order.push(`sign ${i}`));
		const recovered = Promise.resolve(work.recover(hash, recid, isNone ? 5n : r, s)).finally(() =>
			order.push(`recover ${i}`),
		);
		const { signature } = await signed;
		assert.deepEqual(
			[Buffer.from(signature), (await signed).recid],
			[Buffer.from(expected.signature), expected.recid],
		);
		assert.equal(await recovered, isNone ? null : address.toLowerCase());
	});
	await Promise.all(answers);
	assert.deepEqual(order, Array.from({ length: COUNT }, (_, i) => [`sign ${i}`, `recover ${i}`]).flat());
}

test("without a thread all is done at once", async () => {
	const work = new SignatureWork({ threaded: false }, { clock: systemClock, log: silentLogger });
	await work.start();
	await asked(work);
	assert.equal(work.recover(randomBytes(32), 0, 5n, 1n), null);
	await work.stop();
});

test("the thread's answers are the same, in the order of the questions, many or few", async (t) => {
	const { work, told } = await threaded(t);
	await asked(work);
	const key = keyBytes(testAccount(1).keyHex);
	const hash = randomBytes(32);
	const signature = work.sign(hash, key);
	assert.ok(signature instanceof Promise);
	assert.deepEqual(await signature, signHash(hash, key));
	assert.equal(told.length, 1);
});

test("a thread with nothing to do is not given up, however fast it was", async (t) => {
	const { work, clock } = await threaded(t);
	const key = keyBytes(testAccount(1).keyHex);
	const ask = () => Promise.all(Array.from({ length: 9 }, () => work.sign(randomBytes(32), key)));
	const first = ask();
	await nextTurn();
	// Both batches are answered before the event loop comes to give the thread the second one.
	blockFor(50);
	const second = ask();
	await first.then(() => blockFor(50));
	await second;
	await nextTurn();
	assert.equal(clock.timers, 0);
});

/** Holds up the event loop for so many ms, while the thread works. */
function blockFor(ms: number): void {
	const end = performance.now() + ms;
	while (performance.now() < end);
}

for (const [what, asks, isThreads] of [
	["eight at once", [8], false],
	["nine at once", [9], true],
	["one in each turn", [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], false],
	["eight, and eight more in the next turn", [8, 8], false],
] as const) {
	test(`${what} ${isThreads ? "go to the thread" : "are done without it"}`, async (t) => {
		const { work, clock } = await threaded(t, "for (;;);");
		const key = keyBytes(testAccount(1).keyHex);
		const hash = randomBytes(32);
		const answers: (HashSignature | Promise<HashSignature>)[] = [];
		for (const count of asks) {
			for (let i = 0; i < count; i += 1) answers.push(work.sign(hash, key));
			await clock.advance(1);
		}
		// It is given up after a while, so a timer is set while it has any.
		assert.equal(clock.timers > 0, isThreads);
		if (isThreads) await clock.advance(2_000);
		for (const answer of await Promise.all(answers)) assert.deepEqual(answer, signHash(hash, key));
	});
}

for (const [how, fault] of [
	["ends", "process.exit(1)"],
	["throws", "throw new Error()"],
	["hangs", "for (;;);"],
] as const) {
	test(`a thread that ${how} loses nothing, and another one is started`, async (t) => {
		const { work, told, clock } = await threaded(t, fault);
		const answered = asked(work);
		if (how === "hangs") {
			await until("a batch is under way", () => clock.timers > 0);
			await clock.advance(2_000);
		}
		await answered;
		assert.equal(told.at(-1), "signature thread ended: signing without it for now");
		assert.equal(work.recover(randomBytes(32), 0, 5n, 1n), null);
		const before = told.length;
		await clock.advance(10_000);
		await until("another thread", () => told.length > before);
		assert.equal(told.at(-1), "signature thread started");
	});
}

test("what is asked while it stops is answered, and afterwards", async (t) => {
	const { work } = await threaded(t, "for (;;);");
	const answered = asked(work);
	await work.stop();
	await answered;
	assert.equal(recoverAddress(randomBytes(32), 0, 5n, 1n), await work.recover(randomBytes(32), 0, 5n, 1n));
});
