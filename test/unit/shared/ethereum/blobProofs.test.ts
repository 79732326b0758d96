// Blobs with content before they are acknowledged: one proof a blob becomes cell proofs where the chain needs them, what proves
// nothing is refused, and no client's blobs hold up another's.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { BlobProofs, type BlobVerdict } from "../../../../shared/ethereum/blobProofs.ts";
import { sidecarOf } from "../../../../shared/ethereum/sidecar.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FAULTY_TITLES, faultySidecar, realBlobs } from "../../../support/realBlobs.ts";
import { signedTransaction, type TestSidecar } from "../../../support/txFactory.ts";

const CLIENT = "192.0.2.1";
const INVALID = { code: "BLOBS", message: "KZG verification error: can't verify opening proof" };

const real = realBlobs();
/** Moved by hand, so that a slow machine exceeds no deadline. */
const clock = new ManualClock();
const proofs = new BlobProofs({}, { clock });
after(() => proofs.stop());

const of = (sidecarVersion: 0 | 1, sidecar: TestSidecar) =>
	signedTransaction({ type: 3, sidecarVersion, sidecar });

function accepted(verdict: BlobVerdict) {
	if (!verdict.ok) assert.fail(verdict.rejection.message);
	return verdict.tx;
}

test("one proof a blob becomes cell proofs: those of the blobs, behind the same hash, sender and fields", async () => {
	const given = of(0, real.v0);
	const tx = accepted(await proofs.ready(given, 1, CLIENT));
	assert.deepEqual(tx.raw, of(1, real.v1).raw);
	const { raw, size, sidecar, ...same } = tx;
	assert.equal(size, raw.length);
	assert.deepEqual(sidecar, { version: 1, blobCount: 2 });
	const { raw: _, size: __, sidecar: ___, ...before } = given;
	assert.deepEqual(same, before);
});

test("cell proofs stay as they are, and so does one proof a blob before Osaka", async () => {
	for (const [tx, version] of [
		[of(1, real.v1), 1],
		[of(0, real.v0), 0],
	] as const)
		assert.equal(accepted(await proofs.ready(tx, version, CLIENT)), tx);
	const zeros = signedTransaction({ type: 3, blobs: 6, sidecarVersion: 0 });
	const tx = accepted(await proofs.ready(zeros, 1, CLIENT));
	assert.deepEqual(tx.raw, signedTransaction({ type: 3, blobs: 6, sidecarVersion: 1 }).raw);
	const plain = signedTransaction();
	assert.equal(accepted(await proofs.ready(plain, 1, CLIENT)), plain);
});

for (const title of FAULTY_TITLES) {
	test(`refused: ${title}`, async () => {
		const [version, sidecar] = faultySidecar(title, real);
		assert.deepEqual(await proofs.ready(of(version, sidecar), 1, CLIENT), { ok: false, rejection: INVALID });
	});
}

test("without the library what needs cell proofs is refused, and what has them passes", async () => {
	const without = new BlobProofs({ library: "@crate-crypto/not-for-this-machine" }, { clock });
	assert.equal(await without.load(), false);
	const given = signedTransaction({ type: 3, sidecarVersion: 0 });
	for (let i = 0; i < 2; i += 1) {
		const verdict = await without.ready(given, 1, CLIENT);
		assert.ok(!verdict.ok);
		assert.equal(verdict.rejection.code, "BLOBS");
		assert.match(verdict.rejection.message, /^blob sidecar has no cell proofs: /);
	}
	for (const [tx, version] of [
		[given, 0],
		[signedTransaction({ type: 3 }), 1],
	] as const)
		assert.equal(accepted(await without.ready(tx, version, CLIENT)), tx);
	await without.stop();
});

test("a client's blobs wait behind its own: another's come in between, and too many are refused at once", async () => {
	const many = signedTransaction({ type: 3, blobs: 2, sidecarVersion: 0 });
	const ended: string[] = [];
	const ask = (client: string, tx = many) =>
		proofs.ready(tx, 1, client).then((verdict) => {
			ended.push(client);
			return verdict;
		});
	const greedy = Array.from({ length: 20 }, () => ask("192.0.2.66"));
	const honest = ask("192.0.2.7", of(1, real.v1));
	accepted(await honest);
	assert.ok(ended.filter((client) => client === "192.0.2.66").length >= 14, "what is too much does not wait");
	const verdicts = await Promise.all(greedy);
	const busy = verdicts.flatMap((verdict) => (verdict.ok ? [] : [verdict.rejection]));
	assert.equal(busy.length, 14, "four seconds of work are six transactions of two blobs");
	for (const rejection of busy) {
		assert.deepEqual(rejection, {
			code: "CLIENT_FULL",
			message: "too many blobs from this client are being verified, try again",
			data: { scope: "client" },
		});
	}
	const before = ended.indexOf("192.0.2.7");
	assert.ok(before <= 14 + 2, `${before} were served before`);
	assert.equal(sidecarOf(accepted(await ask("192.0.2.66")).raw).proofs.length, 256, "later there is room");
});

test("what waits too long is refused with a reason, and its client may try again", async () => {
	const library = fileURLToPath(new URL("../../../support/waitingKzg.cjs", import.meta.url));
	const own = new BlobProofs({ library }, { clock });
	assert.equal(await own.load(), true);
	const waiting = own.ready(of(1, real.v1), 1, CLIENT);
	await clock.advance(20_000);
	const rejection = {
		code: "POOL_FULL",
		message: "txpool is full: too many blobs are being verified",
		data: { scope: "pool" },
	};
	assert.deepEqual(await waiting, { ok: false, rejection });
	const channel = new BroadcastChannel("waitingKzg");
	channel.postMessage("answer");
	channel.close();
	accepted(await own.ready(of(1, real.v1), 1, CLIENT));
	await own.stop();
});

test("a thread that ends fails who waits for it, and the next blob has a new one; when stopped there is none", async () => {
	const library = fileURLToPath(new URL("../../../support/endingKzg.cjs", import.meta.url));
	const own = new BlobProofs({ library }, { clock });
	const tx = signedTransaction({ type: 3, sidecarVersion: 0, blobs: 2 });
	for (let i = 0; i < 2; i += 1) {
		assert.equal(await own.load(), true);
		await assert.rejects(own.ready(tx, 1, CLIENT), /the thread that verifies blobs has ended/);
	}
	await own.stop();
	await assert.rejects(own.ready(tx, 1, CLIENT));
	assert.equal(await own.load(), false);
});
