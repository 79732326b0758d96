// Blobs with content before they are acknowledged: one proof a blob becomes cell proofs where the
// chain needs them, and what proves nothing is refused. The pool of go-ethereum with Osaka (see
// test/support/recordedGeth.ts) takes what the relay holds, and refuses what the relay refuses
// before it, in the same words.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "../../shared/clock.ts";
import { BlobProofs, type BlobVerdict } from "../../shared/ethereum/blobProofs.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import { sized } from "../support/length.ts";
import { FAULTY_TITLES, faultySidecar, realBlobs } from "../support/realBlobs.ts";
import { type RecordedGeth, startRecordedGeth } from "../support/recordedGeth.ts";
import { accountOf, signedTransaction, type TestAccount, type TestSidecar } from "../support/txFactory.ts";

const CLIENT = "192.0.2.1";
const INVALID = { code: "BLOBS", message: "KZG verification error: can't verify opening proof" };

let geth: RecordedGeth;
let proofs: BlobProofs;
const real = realBlobs();
before(async () => {
	geth = await startRecordedGeth("blobs");
	proofs = new BlobProofs({}, { clock: systemClock });
	// On a busy machine it takes longer than a transaction waits for it.
	await proofs.load();
});
after(async () => {
	await proofs?.stop();
	await geth?.stop();
});

function account(index: number): TestAccount {
	const found = geth.accounts[index];
	assert.ok(found);
	return accountOf(found.privateKey);
}

const signed = (by: TestAccount, sidecarVersion: 0 | 1, sidecar: TestSidecar) =>
	signedTransaction({ by, type: 3, sidecarVersion, sidecar });

function accepted(verdict: BlobVerdict) {
	if (!verdict.ok) assert.fail(verdict.rejection.message);
	return verdict.tx;
}

const send = (raw: Buffer) => geth.node.call({ method: "eth_sendRawTransaction", params: [bytesToHex(raw)] });

test("its pool takes what came with one proof a blob and has cell proofs now, and what came with them", async () => {
	const [bare, proven] = [signed(account(0), 0, real.v0), signed(account(1), 1, real.v1)];
	const converted = accepted(await proofs.ready(bare, 1, CLIENT));
	assert.deepEqual(converted.raw, signed(account(0), 1, real.v1).raw);
	const { raw, size, sidecar, ...same } = converted;
	assert.equal(size, raw.length);
	assert.deepEqual(sidecar, { version: 1, blobCount: 2 });
	const { raw: _, size: __, sidecar: ___, ...before } = bare;
	assert.deepEqual(same, before, "the same hash, sender and fields");
	assert.equal(accepted(await proofs.ready(proven, 1, CLIENT)), proven);
	for (const tx of [converted, proven]) assert.deepEqual(await send(tx.raw), { ok: true, result: tx.hash });
	const status = await geth.rpc("txpool_status");
	assert.deepEqual(status, { pending: "0x2", queued: "0x0" });
});

test("one proof a blob stays before Osaka; six blobs of zeros become those with cell proofs", async () => {
	const bare = signed(account(0), 0, real.v0);
	assert.equal(accepted(await proofs.ready(bare, 0, CLIENT)), bare);
	const zeros = signedTransaction({ type: 3, blobs: 6, sidecarVersion: 0 });
	const converted = accepted(await proofs.ready(zeros, 1, CLIENT));
	assert.deepEqual(converted.raw, signedTransaction({ type: 3, blobs: 6, sidecarVersion: 1 }).raw);
});

/** go-ethereum's RPC computes cell proofs without a look at the one proof that came. */
const ONLY_PROOFS = ["the proofs of two blobs, swapped", "a proof that is no point"];
/** The more specific errors of go-ethereum, for invalid encodings. */
const NO_ENCODING =
	/^(KZG verification error: invalid point encoding|blob sidecar conversion failed: scalar is not canonical .*)$/;

const BOTH = FAULTY_TITLES.filter((one) => !ONLY_PROOFS.includes(one));
/** Those that go-ethereum is asked for: one for each part of a sidecar. */
const SHORT = [
	"two blobs, swapped",
	"a blob with a word that is no number of the field",
	"a commitment that is no point",
	"the proofs of two cells, swapped",
];

const ASKED = sized(SHORT, BOTH);

for (const title of FAULTY_TITLES) {
	test(`refused${ASKED.includes(title) ? " by both" : ""}: ${title}`, async () => {
		const [version, sidecar] = faultySidecar(title, real);
		const tx = signed(account(2), version, sidecar);
		assert.deepEqual(await proofs.ready(tx, 1, CLIENT), { ok: false, rejection: INVALID });
		if (!ASKED.includes(title)) return;
		const answer = await send(tx.raw);
		assert.ok(!answer.ok);
		if (!NO_ENCODING.test(answer.error.message)) assert.equal(answer.error.message, INVALID.message);
	});
}
