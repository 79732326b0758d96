// Tests that a packed transaction says what it said as it was decoded, and that its bytes stand
// densely and apart from those it came in.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { withoutBytes } from "../../../../relay/domain/transaction.ts";
import { TransactionPacker } from "../../../../relay/transactions/packedTransaction.ts";
import {
	type DecodedTransaction,
	decodeTransaction,
	senderOfAuthorization,
} from "../../../../shared/ethereum/transaction.ts";
import { NO_ACCESS } from "../../../../shared/ethereum/transactionFields.ts";
import {
	privateTransaction,
	signedTransaction,
	type TxOptions,
	testAccount,
} from "../../../support/txFactory.ts";

const ENTRY = { address: `0x${"11".repeat(20)}`, storageKeys: [`0x${"22".repeat(32)}`] };
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Bytes of the heap and of buffers, without garbage. */
function liveBytes(): number {
	collect();
	const { heapUsed, external } = process.memoryUsage();
	return heapUsed + external;
}

const DATA = Buffer.from("60006001", "hex");

const SHAPES: Readonly<Record<string, DecodedTransaction>> = {
	legacy: signedTransaction({ type: 0, data: DATA }),
	"with an access list": signedTransaction({ type: 1, accessList: [ENTRY] }),
	"a creation": signedTransaction({ type: 2, to: null, data: DATA }),
	"with a blob": signedTransaction({ type: 3 }),
	"with an authorization": signedTransaction({ type: 4, data: DATA }),
	"of another chain": signedTransaction({ chainId: 1n, nonce: 2n ** 64n - 2n }),
	"of much data": signedTransaction({ data: Buffer.alloc(5_000, 7) }),
	"of more than a block": signedTransaction({ data: Buffer.alloc(20_000, 7) }),
};

test("a packed transaction has every field that it had", () => {
	const packer = new TransactionPacker();
	const packed = Object.values(SHAPES).map((tx, i, all) => packer.pack(tx, all[i - 1]));
	for (const [i, [name, tx]] of Object.entries(SHAPES).entries()) {
		const own = packed[i] as DecodedTransaction;
		for (const field of Object.keys(tx) as (keyof DecodedTransaction)[])
			assert.deepEqual(own[field], tx[field], `${name}: ${field}`);
		assert.deepEqual(packer.pack(own, tx).raw, tx.raw, name);
	}
});

test("small ones stand in common blocks, large ones alone, and none in the memory that it came in", () => {
	const packer = new TransactionPacker();
	const small = Array.from({ length: 200 }, (_, nonce) => signedTransaction({ nonce, data: DATA }));
	const packed = small.map((tx, i, all) => packer.pack(tx, all[i - 1]));
	const blocks = new Set(packed.map(({ raw }) => raw.buffer));
	const bytes = small.reduce((sum, { size }) => sum + size, 0);
	const held = [...blocks].reduce((sum, { byteLength }) => sum + byteLength, 0);
	assert.ok(blocks.size > 1 && held < bytes + 2 * 8_192, `${held} bytes are kept for ${bytes}`);
	for (const [i, { raw }] of packed.entries()) {
		assert.notEqual(raw.buffer, small[i]?.raw.buffer);
		assert.deepEqual(raw, small[i]?.raw);
	}
	const { raw } = signedTransaction({ data: Buffer.alloc(9_000, 7) });
	const decoded = decodeTransaction(Buffer.concat([Buffer.alloc(50_000), raw]).subarray(50_000));
	assert.ok(decoded.ok);
	const large = packer.pack(decoded.tx, undefined);
	assert.deepEqual(large.data, Buffer.alloc(9_000, 7));
	assert.equal(large.raw.buffer.byteLength, large.size);
});

test("the signer of an authorization is recovered once, whatever was decoded meanwhile", () => {
	const packer = new TransactionPacker();
	const [one, other] = [0, 1].map((nonce) => signedTransaction({ type: 4, nonce, data: DATA }));
	assert.ok(one !== undefined && other !== undefined);
	const [signer] = one.authorizationList.map(senderOfAuthorization);
	const known = packer.pack(one, undefined);
	assert.equal(known.authorizationList[0]?.authority, signer, "as it was before it was packed");
	const fresh = decodeTransaction(one.raw);
	assert.ok(fresh.ok);
	const packed = packer.pack(fresh.tx, undefined);
	assert.equal(packed.authorizationList[0]?.authority, undefined);
	assert.deepEqual(packed.authorizationList.map(senderOfAuthorization), [signer]);
	assert.equal(packer.pack(other, undefined).authorizationList.length, 1);
	assert.equal(packed.authorizationList[0]?.authority, signer);
	assert.deepEqual(
		Object.keys(packed.authorizationList[0] ?? {}),
		Object.keys(one.authorizationList[0] ?? {}),
	);
});

test("a transaction full of access lists or authorizations takes little more than its bytes", () => {
	const address = (i: number) => `0x${i.toString(16).padStart(40, "0")}`;
	const entries = Array.from({ length: 5_000 }, (_, i) => ({ address: address(i), storageKeys: [] }));
	const authorization = { by: testAccount(1), address: address(1) };
	for (const shape of [
		{ type: 1, accessList: entries },
		{
			type: 4,
			authorizations: Array.from({ length: 1_000 }, (_, nonce) => ({
				...authorization,
				nonce: BigInt(nonce),
			})),
		},
	] satisfies readonly TxOptions[]) {
		const { raw } = signedTransaction(shape);
		const packer = new TransactionPacker();
		const kept: DecodedTransaction[] = [];
		const before = liveBytes();
		for (let i = 0; i < 60; i += 1) {
			const decoded = decodeTransaction(Buffer.from(raw));
			assert.ok(decoded.ok);
			kept.push(packer.pack(decoded.tx, undefined));
		}
		const each = (liveBytes() - before) / kept.length;
		// Decoded, each takes more than four times its bytes. Other tests of the process allocate, too.
		assert.ok(each < 1.5 * raw.length, `${each} bytes for ${raw.length}`);
	}
});

test("what is never sent again keeps neither bytes nor signature", () => {
	const transaction = privateTransaction({ type: 4, data: DATA });
	const { tx, ...rest } = withoutBytes({
		...transaction,
		tx: new TransactionPacker().pack(transaction.tx, undefined),
	});
	const { tx: whole, ...others } = transaction;
	assert.deepEqual(rest, others);
	const empty = { raw: Buffer.alloc(0), data: Buffer.alloc(0), accessList: NO_ACCESS, authorizationList: [] };
	assert.deepEqual(tx, { ...whole, ...empty, v: 0n, yParity: 0, r: 0n, s: 0n });
});
