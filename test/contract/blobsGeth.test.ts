// Blobs with content on go-ethereum with Osaka (see test/support/recordedGeth.ts): its pool takes what the relay holds, and what it
// refuses is refused by the relay before, in its words.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "../../shared/clock.ts";
import { BlobProofs } from "../../shared/ethereum/blobProofs.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import { sized } from "../support/length.ts";
import { FAULTY_TITLES, faultySidecar, realBlobs } from "../support/realBlobs.ts";
import { type RecordedGeth, startRecordedGeth } from "../support/recordedGeth.ts";
import { accountOf, signedTransaction, type TestAccount, type TestSidecar } from "../support/txFactory.ts";

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

const send = (raw: Buffer) => geth.node.call({ method: "eth_sendRawTransaction", params: [bytesToHex(raw)] });

test("its pool takes what came with one proof a blob and has cell proofs now, and what came with them", async () => {
	for (const [i, given] of [signed(account(0), 0, real.v0), signed(account(1), 1, real.v1)].entries()) {
		const verdict = await proofs.ready(given, 1, "192.0.2.1");
		assert.ok(verdict.ok);
		assert.equal(verdict.tx.sidecar?.version, 1);
		assert.deepEqual(await send(verdict.tx.raw), { ok: true, result: given.hash }, String(i));
	}
	const status = await geth.rpc("txpool_status");
	assert.deepEqual(status, { pending: "0x2", queued: "0x0" });
});

/** go-ethereum's RPC computes cell proofs without a look at the one proof that came. */
const ONLY_PROOFS = ["the proofs of two blobs, swapped", "a proof that is no point"];
/** Of these it says more. */
const NO_ENCODING =
	/^(KZG verification error: invalid point encoding|blob sidecar conversion failed: scalar is not canonical .*)$/;

const BOTH = FAULTY_TITLES.filter((one) => !ONLY_PROOFS.includes(one));
/** One for each part of a sidecar; blobProofs.test.ts has all of them without go-ethereum. */
const SHORT = [
	"two blobs, swapped",
	"a blob with a word that is no number of the field",
	"a commitment that is no point",
	"the proofs of two cells, swapped",
];

for (const title of sized(SHORT, BOTH)) {
	test(`refused by both: ${title}`, async () => {
		const [version, sidecar] = faultySidecar(title, real);
		const tx = signed(account(2), version, sidecar);
		const verdict = await proofs.ready(tx, 1, "192.0.2.1");
		assert.ok(!verdict.ok);
		const answer = await send(tx.raw);
		assert.ok(!answer.ok);
		if (!NO_ENCODING.test(answer.error.message))
			assert.equal(answer.error.message, verdict.rejection.message);
	});
}
