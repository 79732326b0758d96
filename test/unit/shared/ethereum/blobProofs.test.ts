// Blobs before they are acknowledged, with fakes in place of the library: no client's blobs hold up
// another's, and none waits for ever for a library or a thread that is gone.
// test/contract/blobsGeth.test.ts has the verdicts of the library itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { nextTurn } from "../../../../shared/clock.ts";
import { BlobProofs, type BlobVerdict } from "../../../../shared/ethereum/blobProofs.ts";
import { sidecarOf } from "../../../../shared/ethereum/sidecar.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { signedTransaction } from "../../../support/txFactory.ts";

const CLIENT = "192.0.2.1";
/** It answers nothing before {@link release}. */
const WAITING = fileURLToPath(new URL("../../../support/waitingKzg.cjs", import.meta.url));

/** Moved by hand, so that a slow machine exceeds no deadline. */
const clock = new ManualClock();

function release(): void {
	const channel = new BroadcastChannel("waitingKzg");
	channel.postMessage("answer");
	channel.close();
}

function accepted(verdict: BlobVerdict) {
	if (!verdict.ok) assert.fail(verdict.rejection.message);
	return verdict.tx;
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
		[signedTransaction(), 1],
	] as const)
		assert.equal(accepted(await without.ready(tx, version, CLIENT)), tx);
	await without.stop();
});

test("a client's blobs wait behind its own: another's come in between, and too many are refused at once", async () => {
	const own = new BlobProofs({ library: WAITING }, { clock });
	assert.equal(await own.load(), true);
	const many = signedTransaction({ type: 3, blobs: 2, sidecarVersion: 0 });
	const ended: string[] = [];
	const ask = (client: string, tx = many) =>
		own.ready(tx, 1, client).then((verdict) => {
			ended.push(client);
			return verdict;
		});
	const greedy = Array.from({ length: 20 }, () => ask("192.0.2.66"));
	const honest = ask("192.0.2.7", signedTransaction({ type: 3, blobs: 2 }));
	await nextTurn();
	assert.deepEqual(ended, Array(14).fill("192.0.2.66"), "what is too much does not wait");
	release();
	accepted(await honest);
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
	await own.stop();
});

test("what waits too long is refused with a reason, and its client may try again", async () => {
	const own = new BlobProofs({ library: WAITING }, { clock });
	assert.equal(await own.load(), true);
	const tx = signedTransaction({ type: 3 });
	const waiting = own.ready(tx, 1, CLIENT);
	await clock.advance(20_000);
	const rejection = {
		code: "POOL_FULL",
		message: "txpool is full: too many blobs are being verified",
		data: { scope: "pool" },
	};
	assert.deepEqual(await waiting, { ok: false, rejection });
	release();
	accepted(await own.ready(tx, 1, CLIENT));
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
