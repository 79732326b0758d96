// Tests the relay's own rules on both sides of each limit, with exact codes and messages.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Wallet } from "ethers";
import { fundsProblem } from "../../../../relay/domain/blockProblems.ts";
import { checkTransactions } from "../../../../relay/simulation/checks.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import type { Authorization } from "../../../../shared/ethereum/transactionFields.ts";
import { fakeRequest, fakeTransaction, SENDER } from "../../../support/simulationFakes.ts";

describe("what a block takes", () => {
	const rows = [
		[{ nonce: 5n }, null],
		[{ nonce: 4n }, ["NONCE_TOO_LOW", "nonce too low: next nonce 5, tx nonce 4"]],
		[{ nonce: 6n }, ["NONCE_GAP", "nonce too high: next nonce 5, tx nonce 6"]],
		[{ nonce: 5n, gasLimit: 30_000_000n }, null],
		[
			{ nonce: 5n, gasLimit: 30_000_001n },
			["GAS_LIMIT_TOO_HIGH", "exceeds block gas limit: gas limit 30000001, block gas limit 30000000"],
		],
		[
			{ nonce: 5n, maxFeePerGas: 9n },
			["FEE_CAP_TOO_LOW", "max fee per gas less than block base fee: max fee 9, base fee 10"],
		],
	] as const;
	for (const [fields, expected] of rows) {
		const title = Object.entries(fields).map(([name, value]) => `${name} ${value}`);
		it(`${title.join(", ")}: ${expected?.[0] ?? "taken"}`, () => {
			const accounts = new Map([[SENDER, { nonce: 5n, balance: 10n ** 18n }]]);
			const request = fakeRequest({ transactions: [fakeTransaction(fields)], accounts });
			const found = checkTransactions(request).problem;
			assert.deepEqual(found, expected === null ? null : { code: expected[0], message: expected[1] });
		});
	}
});

describe("what a sender must hold", () => {
	it("is gas at the cap, the value and the blobs at their cap", () => {
		const tx = fakeTransaction({
			gasLimit: 30_000n,
			value: 7n,
			maxFeePerBlobGas: 4n,
			blobVersionedHashes: ["0x01", "0x01"],
		});
		const cost = 30_000n * 20n + 7n + 2n * 131_072n * 4n;
		assert.equal(fundsProblem(tx, cost), null);
		assert.deepEqual(fundsProblem(tx, cost - 1n), {
			code: "INSUFFICIENT_FUNDS",
			message: `insufficient funds for gas * price + value: balance ${cost - 1n}, tx cost ${cost}, overshot 1`,
		});
	});
});

describe("a chain", () => {
	const holding = (nonce: bigint, balance: bigint) => new Map([[SENDER, { nonce, balance }]]);
	const nonces = (...list: number[]) => list.map((nonce) => fakeTransaction({ nonce: BigInt(nonce) }));

	it("may run as a whole, or up to the first that may not", () => {
		assert.deepEqual(checkTransactions(fakeRequest({ transactions: nonces(0, 1, 2) })), {
			runnable: 3,
			problem: null,
		});
		const gap = checkTransactions(fakeRequest({ transactions: nonces(0, 2, 3) }));
		assert.equal(gap.runnable, 1);
		assert.equal(gap.problem?.code, "NONCE_GAP");
		assert.deepEqual(checkTransactions(fakeRequest({ transactions: [] })), { runnable: 0, problem: null });
	});

	it("is checked for funds at its front alone", () => {
		assert.equal(
			checkTransactions(fakeRequest({ accounts: holding(0n, 1_999_999n) })).problem?.code,
			"INSUFFICIENT_FUNDS",
		);
		const request = fakeRequest({ transactions: nonces(0, 1), accounts: holding(0n, 2_000_000n) });
		assert.deepEqual(checkTransactions(request), { runnable: 2, problem: null });
	});

	describe("with a backrun behind it", () => {
		const stranger = "0x0000000000000000000000000000000000000b1d";
		const check = (tx: Partial<DecodedTransaction>, nonce: bigint, balance = 0n) =>
			checkTransactions(
				fakeRequest({
					transactions: [...nonces(0, 1), fakeTransaction(tx)],
					accounts: new Map([...holding(0n, 1_000_000_000n), [stranger, { nonce, balance }]]),
				}),
			);

		it("takes its sender's own nonce, and its funds for what the chain may bring", () => {
			assert.deepEqual(check({ from: stranger, nonce: 7n }, 7n), { runnable: 3, problem: null });
			const low = check({ from: stranger, nonce: 6n }, 7n);
			assert.deepEqual(low, {
				runnable: 2,
				problem: { code: "NONCE_TOO_LOW", message: "nonce too low: next nonce 7, tx nonce 6" },
			});
			assert.equal(check({ from: stranger, nonce: 8n }, 7n).problem?.code, "NONCE_GAP");
		});

		it("goes on with the chain's nonces where its sender is the same", () => {
			assert.deepEqual(check({ nonce: 2n }, 0n), { runnable: 3, problem: null });
			assert.equal(check({ nonce: 0n }, 0n).problem?.message, "nonce too low: next nonce 2, tx nonce 0");
		});
	});

	describe("with EIP-7702 authorizations", () => {
		const wallet = new Wallet(`0x${"11".repeat(32)}`);
		const from = wallet.address.toLowerCase();
		const stranger = new Wallet(`0x${"22".repeat(32)}`);
		const sign = (signer: Wallet, nonce: number, chainId: number): Authorization => {
			const address = `0x${"ab".repeat(20)}`;
			const { signature } = signer.authorizeSync({ address, nonce, chainId });
			const { yParity, r, s } = signature;
			return {
				chainId: BigInt(chainId),
				address,
				nonce: BigInt(nonce),
				yParity,
				r: BigInt(r),
				s: BigInt(s),
			};
		};
		const rows: readonly (readonly [title: string, list: readonly Authorization[], next: bigint])[] = [
			["none", [], 8n],
			["one of the sender", [sign(wallet, 8, 1)], 9n],
			["one of the sender for another chain", [sign(wallet, 8, 5)], 8n],
			["one of the sender with the transaction's own nonce", [sign(wallet, 7, 1)], 8n],
			["two of the sender in the wrong order", [sign(wallet, 9, 1), sign(wallet, 8, 1)], 9n],
			["one of somebody else", [sign(stranger, 8, 1)], 8n],
			["one that nobody signed", [{ ...sign(wallet, 8, 1), yParity: 7 }], 8n],
		];
		for (const [title, authorizationList, next] of rows) {
			it(`${title}: the next nonce is ${next}`, () => {
				const first = fakeTransaction({ type: 4, from, nonce: 7n, authorizationList });
				const second = fakeTransaction({ from, nonce: 100n });
				const accounts = new Map([[from, { nonce: 7n, balance: 1_000_000_000n }]]);
				const { problem } = checkTransactions(fakeRequest({ transactions: [first, second], accounts }));
				assert.equal(problem?.message, `nonce too high: next nonce ${next}, tx nonce 100`);
			});
		}
	});
});
