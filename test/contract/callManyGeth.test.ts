// Contract of eth_callMany on go-ethereum, generated cases, and of eth_callBundle there and on
// anvil: what they answer is what the real block then shows. Without GETH go-ethereum's answers are
// recorded ones: see recordedGeth.ts.

import assert from "node:assert/strict";
import { after, before, describe, it, test } from "node:test";
import type { CallMany } from "../../relay/domain/callMany.ts";
import { eth_callBundle } from "../../relay/ingress/methods/eth_callBundle.ts";
import { keccak256 } from "../../shared/ethereum/signatures.ts";
import { drawDeed, drawSignedBundle } from "../support/callManyCases.ts";
import {
	askMethod,
	COINBASE,
	type GethFixture,
	type GethHead,
	startCallManyFixture,
	startGethFixture,
} from "../support/callManyFixture.ts";
import { checkEntry, kindOf } from "../support/callManyReal.ts";
import { PLACES } from "../support/contracts.ts";
import { GWEI } from "../support/relayFixture.ts";
import { SeededRandom } from "../support/seededRandom.ts";
import { rawTransaction, signedTransaction, type TestAccount, type TxOptions } from "../support/txFactory.ts";

const SEED = 20_261_122;
const CASES = 6;

let fixture: GethFixture;
before(async () => {
	fixture = await startGethFixture("callManyGenerated");
});
after(() => fixture.stop());

const hex = (value: number | bigint) => `0x${value.toString(16)}`;
const raw = (options: TxOptions) => `0x${rawTransaction(options).toString("hex")}`;

async function noncesOf(): Promise<Map<string, number>> {
	const nonces = new Map<string, number>();
	for (const { address } of fixture.rich.slice(0, 3)) {
		nonces.set(address, Number(await fixture.geth.rpc("eth_getTransactionCount", [address, "latest"])));
	}
	return nonces;
}

async function fund(poor: readonly { account: { address: string }; balance: bigint }[]): Promise<void> {
	const by = fixture.rich[9];
	assert.ok(by !== undefined);
	const nonce = Number(await fixture.geth.rpc("eth_getTransactionCount", [by.address, "latest"]));
	const txs = poor.map(({ account, balance }, i) =>
		raw({ by, to: account.address, value: balance, nonce: nonce + i, gasLimit: 21_000 }),
	);
	await fixture.geth.mine({ txs, coinbase: COINBASE });
}

test(`signed transactions fare as geth mines them (seed ${SEED})`, async () => {
	const tally = { passed: 0, reverted: 0, halted: 0, notRun: 0 };
	for (let index = 0; index < CASES; index++) {
		const random = new SeededRandom(SEED + index);
		const label = `seed ${SEED + index}`;
		// The base fee of the block behind the funding one: what it will be is not known before, so the
		// bundle is drawn twice.
		const first = await fixture.head();
		const draft = drawSignedBundle(
			random,
			fixture.rich,
			await noncesOf(),
			first.nextBaseFee,
			first.number + 1,
		);
		await fund(draft.poor);
		const head: GethHead = await fixture.head();
		const bundle = drawSignedBundle(
			new SeededRandom(SEED + index),
			fixture.rich,
			await noncesOf(),
			head.nextBaseFee,
			head.number,
		);
		const timestamp = head.timestamp + 1 + random.below(40);
		const params = {
			txs: bundle.txs,
			blockNumber: hex(head.number + 1),
			stateBlockNumber: random.oneIn(2) ? "latest" : hex(head.number),
			timestamp,
		};
		const [answer = []] = await fixture.ask([params]);
		const real = await fixture.geth.mineInOrder({ txs: bundle.txs, timestamp, coinbase: COINBASE });
		const told = `${label}: ${JSON.stringify(answer).slice(0, 2_000)}`;
		for (const [i, outcome] of real.entries()) checkEntry(answer[i], outcome, `${i} of ${told}`);
		assert.equal(answer.length, real.length, told);
		for (const outcome of real) tally[kindOf(outcome)] += 1;
	}
	for (const [what, count] of Object.entries(tally)) assert.ok(count > 0, `none ${what}`);
});

test(`unsigned calls fare as if geth had mined them there (seed ${SEED})`, async () => {
	const tally = { passed: 0, failed: 0, within: 0, behind: 0 };
	const { geth, rich } = fixture;
	for (let index = 0; index < CASES; index++) {
		const random = new SeededRandom(SEED + 1000 + index);
		const head = await fixture.head();
		const block = { timestamp: head.timestamp + 1 + random.below(40), coinbase: COINBASE };
		const nonces = await noncesOf();
		const drawn = drawSignedBundle(random, rich, nonces, head.nextBaseFee, head.number);
		const taken = await geth.mineInOrder({ ...block, txs: drawn.txs });
		const own = drawn.txs.filter((_, i) => taken[i] !== null);
		const senders = drawn.keys.filter((_, i) => taken[i] !== null).map((key) => key.split(" ")[0] ?? "");
		await geth.revert(head.number);
		const count = random.oneIn(2) ? own.length : random.below(own.length + 1);
		const next = new Map(nonces);
		for (const from of senders.slice(0, count)) next.set(from, (next.get(from) ?? 0) + 1);
		const calls = Array.from({ length: 1 + random.below(4) }, () => {
			const by = random.pick(rich.slice(0, 3));
			const { to, data, value, gas } = drawDeed(
				random,
				rich.map(({ address }) => address),
				head.number,
			);
			const price = head.nextBaseFee + BigInt(random.below(3));
			const nonce = next.get(by.address) ?? 0;
			next.set(by.address, nonce + 1);
			const fees = { maxFeePerGas: price, maxPriorityFeePerGas: 1n };
			const tx = raw({ by, to, data, value, nonce, gasLimit: gas, ...fees });
			const asked = {
				from: by.address,
				...(to === null ? {} : { to }),
				data,
				value: hex(value),
				gas: hex(gas),
			};
			return { tx, asked: { ...asked, maxFeePerGas: hex(price), maxPriorityFeePerGas: "0x1" } };
		});
		const real = await geth.mineInOrder({
			...block,
			txs: [...own.slice(0, count), ...calls.map(({ tx }) => tx)],
		});
		await geth.revert(head.number);
		await geth.mine({ ...block, txs: own });
		const all = count === own.length && random.oneIn(2);
		const where = { blockNumber: hex(head.number + 1), ...(all ? {} : { transactionIndex: count }) };
		const [answer = []] = await fixture.ask([[{ transactions: calls.map(({ asked }) => asked) }], where]);
		const told = `seed ${SEED + 1000 + index}: ${JSON.stringify([answer, count]).slice(0, 2_000)}`;
		assert.equal(answer.length, calls.length, told);
		for (const [i, outcome] of real.slice(count).entries()) {
			checkEntry(answer[i], outcome, `${i} of ${told}`);
			tally[outcome?.ok === true ? "passed" : "failed"] += 1;
		}
		tally[count < own.length ? "within" : "behind"] += 1;
	}
	for (const [what, times] of Object.entries(tally)) assert.ok(times > 0, `none ${what}`);
});

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
	describe(`eth_callBundle on ${name}`, () => {
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
