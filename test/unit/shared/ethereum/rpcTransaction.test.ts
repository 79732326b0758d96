// Transactions as eth_getTransactionByHash shows them: every field is there for every type, and no signature is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { minedTransaction, pendingTransaction } from "../../../../shared/ethereum/rpcTransaction.ts";
import { signedTransaction } from "../../../support/txFactory.ts";

const HIDDEN = { gasPrice: "0x0", v: "0x0", r: "0x0", s: "0x0", yParity: "0x0" };
const NOWHERE = { blockHash: null, blockNumber: null, transactionIndex: null };

for (const type of [0, 1, 2, 3, 4] as const) {
	test(`a pending one of type ${type} has its fields, and neither blobs nor signatures`, () => {
		const accessList = type === 0 ? [] : [{ address: `0x${"ab".repeat(20)}`, storageKeys: [] }];
		const tx = signedTransaction({ type, nonce: 5, value: 3n, gasLimit: 90_000, data: "0x00ff", accessList });
		const price = (wei: bigint) => `0x${wei.toString(16)}`;
		assert.deepEqual(pendingTransaction(tx), {
			...NOWHERE,
			...{
				hash: tx.hash,
				type: `0x${type}`,
				chainId: price(tx.chainId),
				nonce: "0x5",
				from: tx.from,
				to: tx.to,
			},
			...{ value: "0x3", gas: "0x15f90", input: "0x00ff", accessList },
			maxFeePerGas: price(tx.maxFeePerGas),
			maxPriorityFeePerGas: price(tx.maxPriorityFeePerGas),
			...(type === 3
				? {
						maxFeePerBlobGas: price(tx.maxFeePerBlobGas ?? 0n),
						blobVersionedHashes: tx.blobVersionedHashes,
					}
				: {}),
			...HIDDEN,
		});
	});
}

test("a node's one is given the fields that older types lack, and loses its signature", () => {
	const node = {
		...NOWHERE,
		hash: "0x1",
		gasPrice: "0x7",
		v: "0x1b",
		r: "0x2",
		s: "0x3",
		blockNumber: "0x9",
	};
	assert.deepEqual(minedTransaction(node, 31_337n), {
		...node,
		...{ chainId: "0x7a69", maxFeePerGas: "0x7", maxPriorityFeePerGas: "0x7", accessList: [] },
		...HIDDEN,
	});
	const full = { chainId: "0x1", maxFeePerGas: "0x8", maxPriorityFeePerGas: "0x1", accessList: [{}] };
	assert.deepEqual(minedTransaction({ ...node, ...full }, 31_337n), { ...node, ...full, ...HIDDEN });
});
