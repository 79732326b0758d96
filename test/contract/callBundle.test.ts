// Contract of eth_callBundle on anvil and on go-ethereum: what it says each transaction uses and pays is what the real block
// then shows. Without GETH go-ethereum's answers are recorded ones.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CallMany } from "../../relay/domain/callMany.ts";
import { eth_callBundle } from "../../relay/ingress/methods/eth_callBundle.ts";
import { keccak256 } from "../../shared/ethereum/signatures.ts";
import { askMethod, COINBASE, startCallManyFixture, startGethFixture } from "../support/callManyFixture.ts";
import { PLACES } from "../support/contracts.ts";
import { GWEI } from "../support/relayFixture.ts";
import { signedTransaction, type TestAccount, type TxOptions } from "../support/txFactory.ts";

interface Chain {
	readonly callMany: CallMany;
	readonly rich: readonly TestAccount[];
	rpc(method: string, params: readonly unknown[]): Promise<unknown>;
	/** A block of these, in this order. */
	mine(txs: readonly string[]): Promise<unknown>;
	stop(): Promise<void>;
}

const CHAINS: Readonly<Record<string, () => Promise<Chain>>> = {
	async anvil() {
		const fixture = await startCallManyFixture();
		const { chain } = fixture;
		return {
			...fixture,
			rpc: (method, params) => chain.rpc(method, params),
			async mine(txs) {
				for (const raw of txs) await chain.rpc("eth_sendRawTransaction", [raw]);
				await chain.rpc("evm_mine");
			},
		};
	},
	async "go-ethereum"() {
		const fixture = await startGethFixture("callBundle");
		const { geth } = fixture;
		return {
			...fixture,
			rpc: (method, params) => geth.rpc(method, params),
			mine: (txs) => geth.mine({ txs, coinbase: COINBASE }),
		};
	},
};

type Fields = Readonly<Record<string, string | number>>;

const PAYMENT = 10n ** 16n;

for (const [name, start] of Object.entries(CHAINS)) {
	describe(`on ${name}`, () => {
		it("tells what each uses, pays by fees and pays by transfers, and the sums of it", async (t) => {
			const chain = await start();
			t.after(() => chain.stop());
			const ask = async (bundle: object) =>
				(await askMethod(chain.callMany, [bundle], eth_callBundle)) as Fields & {
					results: readonly Fields[];
				};
			const by = (index: number, options: TxOptions) => {
				const account = chain.rich[index];
				assert.ok(account);
				const tx = signedTransaction({ by: account, nonce: 0, ...options });
				return { ...tx, hex: `0x${Buffer.from(tx.raw).toString("hex")}` };
			};
			const txs = [
				by(0, { to: PLACES.echo, data: "0x1234", maxPriorityFeePerGas: 2n * GWEI }),
				by(1, { to: COINBASE, value: PAYMENT }),
				by(2, { to: PLACES.revert, data: "0xdeadbeef" }),
				by(3, { nonce: 5 }),
			] as const;
			const balance = async () => BigInt(String(await chain.rpc("eth_getBalance", [COINBASE, "latest"])));
			const head = Number(await chain.rpc("eth_blockNumber", []));
			const before = await balance();
			const asked = {
				txs: txs.map(({ hex }) => hex),
				...{ blockNumber: `0x${(head + 1).toString(16)}`, stateBlockNumber: "latest" },
			};
			const answer = await ask(asked);
			const mined = txs.slice(0, 3);
			await chain.mine(mined.map(({ hex }) => hex));
			const [block, ...receipts] = (await Promise.all([
				chain.rpc("eth_getBlockByNumber", ["latest", false]),
				...mined.map(({ hash }) => chain.rpc("eth_getTransactionReceipt", [hash])),
			])) as Record<string, string>[];
			const baseFee = BigInt(block?.baseFeePerGas ?? 0);
			const real = receipts.map((receipt) => ({
				gasUsed: BigInt(receipt.gasUsed ?? 0),
				fees: BigInt(receipt.gasUsed ?? 0) * (BigInt(receipt.effectiveGasPrice ?? 0) - baseFee),
			}));
			const paid = [0n, PAYMENT, 0n];
			const results = [
				{ value: "0x1234" },
				{ value: "0x" },
				{ error: "execution reverted: custom error 0xdeadbeef", revert: "0xdeadbeef" },
			].map((ended, i) => {
				const { gasUsed = 0n, fees = 0n } = real[i] ?? {};
				const diff = fees + (paid[i] ?? 0n);
				return {
					...{ txHash: txs[i]?.hash, fromAddress: txs[i]?.from, toAddress: txs[i]?.to },
					...{ gasUsed: Number(gasUsed), gasPrice: String(diff / gasUsed) },
					...{ coinbaseDiff: String(diff), gasFees: String(fees), ethSentToCoinbase: String(paid[i]) },
					...ended,
				};
			});
			const [notRun] = answer.results.slice(3);
			assert.match(String(notRun?.error), /nonce too high/);
			assert.deepEqual([notRun?.gasUsed, notRun?.coinbaseDiff], [0, "0"]);
			assert.deepEqual(answer.results.slice(0, 3), results);
			const gained = (await balance()) - before;
			const gasUsed = real.reduce((sum, one) => sum + one.gasUsed, 0n);
			const { results: _, ...sums } = answer;
			assert.deepEqual(sums, {
				bundleHash: `0x${Buffer.from(keccak256(Buffer.concat(txs.map(({ hash }) => Buffer.from(hash.slice(2), "hex"))))).toString("hex")}`,
				bundleGasPrice: String(gained / gasUsed),
				...{
					coinbaseDiff: String(gained),
					gasFees: String(gained - PAYMENT),
					ethSentToCoinbase: String(PAYMENT),
				},
				...{ stateBlockNumber: head, totalGasUsed: Number(gasUsed) },
			});
			await assert.rejects(ask({ ...asked, coinbase: COINBASE }), /coinbase/);
			await assert.rejects(ask({ ...asked, blockNumber: "0xff" }), /blockNumber/);
		});
	});
}
