// The tests' own transactions: the factory's bytes mean to ethers what they mean to the relay.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Transaction } from "ethers";
import {
	privateTransaction,
	rawTransaction,
	signedTransaction,
	testAccount,
} from "../../../support/txFactory.ts";

const BY = testAccount(7);
const ACCESS_LIST = [{ address: `0x${"ab".repeat(20)}`, storageKeys: [`0x${"cd".repeat(32)}`] }];

for (const type of [0, 1, 2, 3, 4] as const) {
	test(`the factory's transactions of type ${type} are ethers' too`, () => {
		const accessList = type === 0 ? [] : ACCESS_LIST;
		const options = { type, by: BY, nonce: 5, value: 3n, gasLimit: 200_000, data: "0x00ff", accessList };
		const theirs = Transaction.from(`0x${rawTransaction(options).toString("hex")}`);
		const ours = signedTransaction(options);
		assert.equal(ours.hash, theirs.hash);
		assert.equal(ours.from, theirs.from?.toLowerCase());
		assert.equal(ours.from, BY.address);
		assert.deepEqual([ours.nonce, ours.value, ours.gasLimit], [5n, 3n, 200_000n]);
		assert.deepEqual([theirs.nonce, theirs.value, theirs.gasLimit], [5, 3n, 200_000n]);
		assert.equal(theirs.type, type);
		assert.equal(theirs.authorizationList?.length ?? 0, ours.authorizationList.length);
		assert.equal(theirs.blobVersionedHashes?.length ?? 0, ours.blobVersionedHashes.length);
	});
}

test("six blobs with cell proofs are made, and creations", () => {
	const blobs = signedTransaction({ type: 3, blobs: 6 });
	assert.deepEqual(blobs.sidecar, { version: 1, blobCount: 6 });
	assert.deepEqual(signedTransaction({ type: 3, sidecarVersion: 0 }).sidecar, { version: 0, blobCount: 1 });
	assert.equal(signedTransaction({ to: null }).to, null);
});

test("the same options make the same transaction, another nonce another one", () => {
	assert.equal(signedTransaction().hash, signedTransaction().hash);
	assert.notEqual(signedTransaction().hash, signedTransaction({ nonce: 1 }).hash);
	assert.equal(privateTransaction().path, "fast");
});
