// Damaged transactions by the ten thousand: whatever the bytes, the decoder answers, and what it takes is canonical.
// A timing of the undamaged path is printed, and not judged: machines differ.

import assert from "node:assert/strict";
import { test } from "node:test";
import { rlpEncode } from "../../../../shared/ethereum/rlp.ts";
import { decodeTransaction } from "../../../../shared/ethereum/transaction.ts";
import { bareBlobBytes, transactionBytes } from "./baseTransactions.ts";
import { encodeDecoded, randomKey, randomTransaction, signedBytes } from "./randomTransactions.ts";
import { type SeededRandom, seededRandom } from "./seededRandom.ts";

const REASONS = new Set([
	...["rlp", "unsupportedType", "invalidSignature"],
	...["notReplayProtected", "missingBlobSidecar", "invalidSidecar"],
]);

/** One to three damages: bits, bytes put in, taken out or repeated, ends cut off, rubbish behind. */
function damage(raw: Buffer, random: SeededRandom): Buffer {
	let bytes = Buffer.from(raw);
	for (let times = 1 + random.below(3); times > 0; times--) {
		// The headers are at the front, so most damage is done there.
		const at = random.below(random.below(2) === 0 ? Math.min(bytes.length, 24) + 1 : bytes.length + 1);
		const before = bytes.subarray(0, at);
		const after = bytes.subarray(at);
		const kinds = [
			() => Buffer.concat([before, random.bytes(1), after.subarray(1)]),
			() => Buffer.concat([before, random.bytes(1 + random.below(4)), after]),
			() => Buffer.concat([before, after.subarray(1 + random.below(4))]),
			() => before,
			() => Buffer.concat([bytes, random.bytes(1 + random.below(9))]),
			() => Buffer.concat([before, after.subarray(0, 8), after]),
			() =>
				Buffer.concat([
					before,
					Buffer.from([random.pick([0, 0x80, 0xb8, 0xbf, 0xc0, 0xf8, 0xff])]),
					after.subarray(1),
				]),
		];
		bytes = Buffer.from(random.pick(kinds)());
	}
	return bytes;
}

test("answers 24,000 damaged transactions without throwing", () => {
	const random = seededRandom(0xdead10cc);
	const seen = new Map<string, number>();
	for (let round = 0; round < 24_000; round++) {
		const tx = randomTransaction(random, random.pick([0, 1, 2, 4]));
		const whole =
			round % 8 === 0 ? bareBlobBytes() : signedBytes({ ...tx, data: tx.data.slice(0, 202) as "0x" }, KEY);
		const raw = damage(whole, random);
		const result = decodeTransaction(raw);
		const outcome = result.ok ? "taken" : result.reason;
		seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
		if (result.ok) {
			assert.match(result.tx.from, /^0x[0-9a-f]{40}$/);
			assert.deepEqual(encodeDecoded(result.tx), raw);
		} else {
			assert.ok(REASONS.has(result.reason));
			assert.ok(result.message.length < 120);
		}
	}
	for (const outcome of ["taken", "rlp", "unsupportedType", "invalidSignature", "missingBlobSidecar"]) {
		assert.ok((seen.get(outcome) ?? 0) > 0, `no damage led to ${outcome}`);
	}
});

const KEY = randomKey(seededRandom(77));

test("answers damaged blob transactions and random bytes without throwing", () => {
	const random = seededRandom(0xb10b);
	const blob = transactionBytes(3);
	for (let round = 0; round < 150; round++) decodeTransaction(damage(blob, random));
	for (let round = 0; round < 10_000; round++) {
		const bytes = random.bytes(random.below(80));
		const first = random.pick([0x01, 0x02, 0x03, 0x04, 0xc8, 0xf8, 0xf9]);
		const result = decodeTransaction(Buffer.concat([Buffer.from([first]), bytes]));
		assert.equal(result.ok, false);
	}
});

test("every cut of a transaction is refused", () => {
	for (const type of [0, 1, 2, 4] as const) {
		const raw = transactionBytes(type);
		for (let length = 0; length < raw.length; length++) {
			const result = decodeTransaction(raw.subarray(0, length));
			assert.ok(!result.ok && result.reason === "rlp", `type ${type} cut to ${length} bytes`);
		}
	}
});

test("takes a plain Uint8Array inside a larger buffer", () => {
	const raw = transactionBytes(2);
	const larger = new Uint8Array(raw.length + 20).fill(0xee);
	larger.set(raw, 7);
	const fromView = decodeTransaction(larger.subarray(7, 7 + raw.length));
	const fromBuffer = decodeTransaction(raw);
	assert.ok(fromView.ok && fromBuffer.ok);
	assert.deepEqual({ ...fromView.tx, data: 0, raw: 0 }, { ...fromBuffer.tx, data: 0, raw: 0 });
	assert.deepEqual(Buffer.from(fromView.tx.data), fromBuffer.tx.data);
	assert.equal(fromView.tx.raw.buffer, larger.buffer);
});

test("a list nested 100,000 deep is refused without a stack of that depth", () => {
	const nested = Buffer.alloc(100_000, 0xc0);
	assert.equal(decodeTransaction(nested).ok, false);
	const access = Buffer.concat([Buffer.from([0x01]), rlpEncode([Buffer.from([1]), nested])]);
	assert.equal(decodeTransaction(access).ok, false);
});

test("time for a transaction of 200 bytes", (context) => {
	const random = seededRandom(3);
	const shape = randomTransaction(random, 2);
	const data = `0x${"ab".repeat(75)}` as const;
	const raws = Array.from({ length: 300 }, (_, nonce) =>
		signedBytes({ ...shape, nonce: BigInt(nonce), to: `0x${"22".repeat(20)}`, data, accessList: [] }, KEY),
	);
	let best = Infinity;
	for (let round = 0; round < 5; round++) {
		const start = performance.now();
		for (const raw of raws) assert.equal(decodeTransaction(raw).ok, true);
		best = Math.min(best, ((performance.now() - start) * 1_000) / raws.length);
	}
	context.diagnostic(`decode, hash and recover of ${raws[0]?.length} bytes: ${best.toFixed(1)} µs`);
});
