// Contract of eth_callMany on go-ethereum, generated cases: what it answers is what geth then really mines. Without GETH
// on recorded answers: see recordedGeth.ts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawDeed, drawSignedBundle } from "../support/callManyCases.ts";
import { COINBASE, type GethFixture, type GethHead, startGethFixture } from "../support/callManyFixture.ts";
import { checkEntry, kindOf } from "../support/callManyReal.ts";
import { SeededRandom } from "../support/seededRandom.ts";
import { rawTransaction, type TxOptions } from "../support/txFactory.ts";

const SEED = 20_261_122;
const CASES = 12;

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
		// The base fee of the block behind the funding one: what it will be is not known before, so the bundle is drawn twice.
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
			stateBlockNumber: random.once(2) ? "latest" : hex(head.number),
			timestamp,
		};
		const [answer = []] = await fixture.ask([params]);
		const real = await fixture.geth.mineInOrder({ txs: bundle.txs, timestamp, coinbase: COINBASE });
		const told = `${label}: ${JSON.stringify(answer).slice(0, 2_000)}`;
		for (const [i, outcome] of real.entries()) checkEntry(answer[i], outcome, `${i} of ${told}`);
		assert.equal(answer.length, real.length, told);
		for (const outcome of real) tally[kindOf(outcome)] += 1;
	}
	for (const [what, count] of Object.entries(tally)) assert.ok(count >= CASES / 8, `${count} ${what}`);
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
		const count = random.once(2) ? own.length : random.below(own.length + 1);
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
		const all = count === own.length && random.once(2);
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
	for (const [what, times] of Object.entries(tally)) assert.ok(times >= CASES / 8, `${times} ${what}`);
});
