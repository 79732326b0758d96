// Facts of a transaction alone: gas and cost, whether it is a self-transfer, its JSON, and the
// meaning of its stage for the user.

import assert from "node:assert/strict";
import { test } from "node:test";
import { feeProblem } from "../../../../relay/domain/blockProblems.ts";
import {
	blobGas,
	effectiveGasPrice,
	floorDataGas,
	intrinsicGas,
	transactionCost,
} from "../../../../shared/ethereum/intrinsicGas.ts";
import { pendingTransaction, withoutSignature } from "../../../../shared/ethereum/rpcObjects.ts";
import { stageReport } from "../../../../shared/ethereum/statusRecord.ts";
import { isSelfTransfer } from "../../../../shared/ethereum/transaction.ts";
import { NO_ACCESS } from "../../../../shared/ethereum/transactionFields.ts";
import { PRAGUE } from "../../../support/forks.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";

const TO = `0x${"11".repeat(20)}`;
const KEY = `0x${"22".repeat(32)}`;
const AUTHORIZATION = { chainId: 1n, address: TO, nonce: 0n, yParity: 0, r: 1n, s: 1n };
const CALL = {
	...{ from: KEY.slice(0, 42), to: TO as string | null, value: 0n },
	...{ data: Buffer.alloc(0), accessList: NO_ACCESS, authorizationList: [] },
};

const GAS: readonly [Partial<Parameters<typeof intrinsicGas>[0]>, gas: bigint, floor: bigint][] = [
	[{}, 21_000n, 21_000n],
	[{ data: Buffer.from([0, 1, 0, 2, 255, 0, 9, 128]) }, 21_092n, 21_230n],
	[{ to: null }, 53_000n, 21_000n],
	[{ to: null, data: Buffer.alloc(32, 1) }, 53_514n, 22_280n],
	[{ to: null, data: Buffer.alloc(33, 1) }, 53_532n, 22_320n],
	[{ to: null, data: Buffer.alloc(49_152, 1) }, 842_504n, 1_987_080n],
	[{ accessList: { ...NO_ACCESS, addresses: 2, keys: 2 } }, 29_600n, 21_000n],
	[{ authorizationList: [AUTHORIZATION, AUTHORIZATION] }, 71_000n, 21_000n],
];

test("intrinsic gas, floor gas and maximum cost", () => {
	for (const [fields, gas, floor] of GAS) {
		const filled = { ...CALL, ...fields };
		const tx = { ...filled, zeroBytes: filled.data.filter((byte) => byte === 0).length };
		assert.deepEqual([intrinsicGas(tx, PRAGUE), floorDataGas(tx, PRAGUE)], [gas, floor]);
	}
	const tx = { gasLimit: 21_000n, maxFeePerGas: 10n, value: 5n, maxFeePerBlobGas: null };
	assert.equal(transactionCost({ ...tx, blobVersionedHashes: [] }), 210_005n);
	const blob = { ...tx, maxFeePerBlobGas: 3n, blobVersionedHashes: [KEY, KEY] };
	assert.deepEqual([blobGas(blob), transactionCost(blob)], [262_144n, 210_005n + 786_432n]);
});

test("the gas price in a block", () => {
	// Fee cap, priority cap, base fee: price. A gas price is both caps.
	const rows: readonly [bigint, bigint, bigint, bigint][] = [
		[100n, 10n, 50n, 60n],
		[100n, 10n, 95n, 100n],
		[100n, 10n, 101n, 100n],
		[100n, 100n, 30n, 100n],
	];
	for (const [maxFeePerGas, maxPriorityFeePerGas, baseFee, price] of rows) {
		assert.equal(effectiveGasPrice({ maxFeePerGas, maxPriorityFeePerGas }, baseFee), price);
	}
});

const BY = testAccount(3);

test("a self-transfer has no data, blobs, authorizations or other receiver", () => {
	const own = { by: BY, to: BY.address };
	for (const type of [0, 1, 2] as const)
		assert.equal(isSelfTransfer(signedTransaction({ ...own, type })), true);
	const other = testAccount(4).address;
	const others = [
		{ data: "0x00" as const },
		{ type: 3 as const },
		{ type: 4 as const },
		{ to: null },
		{ to: other },
	];
	for (const one of others) assert.equal(isSelfTransfer(signedTransaction({ ...own, ...one })), false);
});

const HIDDEN = { gasPrice: "0x0", v: "0x0", r: "0x0", s: "0x0", yParity: "0x0" };
const NOWHERE = { blockHash: null, blockNumber: null, transactionIndex: null };

const HIDDEN_AUTHORIZATION = { yParity: "0x0", r: "0x0", s: "0x0" };

test("a pending transaction of each type is shown without blobs and signatures", () => {
	for (const type of [0, 1, 2, 3, 4] as const) {
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
			...(type === 4
				? {
						authorizationList: tx.authorizationList.map(({ address }) => ({
							...{ chainId: "0x7a69", address, nonce: "0x0" },
							...HIDDEN_AUTHORIZATION,
						})),
					}
				: {}),
			...HIDDEN,
		});
	}
});

test("a node's transaction gets the fields that older types lack, and loses its signature", () => {
	const node = {
		...{ ...NOWHERE, hash: "0x1", gasPrice: "0x7", blockNumber: "0x9" },
		...{ v: "0x1b", r: "0x2", s: "0x3" },
	};
	assert.deepEqual(withoutSignature(node, 31_337n), {
		...node,
		...{ chainId: "0x7a69", maxFeePerGas: "0x7", maxPriorityFeePerGas: "0x7", accessList: [] },
		...HIDDEN,
	});
	const full = { chainId: "0x1", maxFeePerGas: "0x8", maxPriorityFeePerGas: "0x1", accessList: [{}] };
	assert.deepEqual(withoutSignature({ ...node, ...full }, 31_337n), { ...node, ...full, ...HIDDEN });
	const unsigned = { chainId: "0x1", address: `0x${"ab".repeat(20)}`, nonce: "0x2" };
	const signed = { ...unsigned, yParity: "0x1", r: "0x5", s: "0x6", v: "0x1" };
	const authorized = { ...node, ...full, type: "0x4", authorizationList: [signed] };
	assert.deepEqual(withoutSignature(authorized, 31_337n), { ...authorized, ...HIDDEN }, "mined: public");
	const hidden = { authorizationList: [{ ...unsigned, ...HIDDEN_AUTHORIZATION }] };
	const lists: readonly [given: unknown, shown: object][] = [
		[[signed], hidden],
		[[unsigned], hidden],
		[undefined, { authorizationList: [] }],
		[null, { authorizationList: [] }],
	];
	for (const [authorizationList, shown] of lists) {
		const found = { ...authorized, blockNumber: null, authorizationList };
		assert.deepEqual(withoutSignature(found, 31_337n), { ...found, ...shown, ...HIDDEN }, "perhaps private");
	}
});

test("a failing transaction has a reason and a next step", () => {
	const rows: [code: string, message: string, nextStep: RegExp][] = [
		["EXECUTION_REVERTED", "execution reverted: no luck", /tried again with each block, or cancel it/],
		["INSUFFICIENT_FUNDS", "insufficient funds", /add Ether to the sender's account/],
		["OUT_OF_GAS", "out of gas", /higher gas limit/],
		["GAS_LIMIT_TOO_HIGH", "exceeds block gas limit", /lower gas limit/],
		["BLOB_FEE_CAP_TOO_LOW", "max fee per blob gas less", /fee cap for blobs/],
		["FORK_RULES", "insufficient gas for floor data gas cost", /sign it again/],
		["NODE_UNAVAILABLE", "node unavailable", /no verdict now/],
		["A_NEW_CODE", "of another relay", /or cancel it/],
	];
	for (const [code, message, nextStep] of rows) {
		const report = stageReport("SIMULATION_FAILED", { error: { code, message } });
		assert.equal(report.reason, message);
		assert.match(report.nextStep ?? "", nextStep, code);
	}
});

test("an expired transaction whose last simulation failed says so, and what helps", () => {
	const low = "max fee per gas less than block base fee: max fee 1, base fee 10500000000";
	const rows: [code: string, message: string, nextStep: RegExp][] = [
		[
			"EXECUTION_REVERTED",
			"execution reverted: no luck",
			/^its call failed whenever it was simulated: change it/,
		],
		["FEE_CAP_TOO_LOW", low, /^send it again with a fee cap of 12 gwei or more$/],
		["BLOB_FEE_CAP_TOO_LOW", "max fee per blob gas less", /^send it again with a higher fee cap for blobs$/],
		["INSUFFICIENT_FUNDS", "insufficient funds", /add Ether .* and send it again$/],
		["OUT_OF_GAS", "out of gas", /^send it again with a higher gas limit$/],
		["GAS_LIMIT_TOO_HIGH", "exceeds block gas limit", /^send it again with a lower gas limit$/],
	];
	for (const [code, message, nextStep] of rows) {
		const report = stageReport("EXPIRED", { error: { code, message } });
		assert.deepEqual([report.state, report.reason], ["expired", message]);
		assert.match(report.nextStep ?? "", nextStep, code);
		assert.doesNotMatch(report.nextStep ?? "", /priority fee/);
	}
	const { reason, nextStep } = stageReport("EXPIRED");
	assert.deepEqual(
		[reason, nextStep],
		["no block included it in time", "send it again, with a higher priority fee"],
	);
});

test("for a fee cap below the base fee, one that suffices for the next block too is proposed", () => {
	const rows = [
		[10_500_000_000n, "12"],
		[50_000_000n, "0.056"],
		[7n, "0.000000007"],
		[1_234_000_000_000n, "1400"],
	] as const;
	for (const [baseFee, gwei] of rows) {
		const error = feeProblem({ maxFeePerGas: 1n, maxFeePerBlobGas: null }, { baseFee, blobBaseFee: 1n });
		assert.equal(
			stageReport("SIMULATION_FAILED", { error }).nextStep,
			`raise the fee cap to ${gwei} gwei, or wait until the base fee falls`,
		);
	}
});
