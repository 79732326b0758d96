// Tests eth_callMany on a real node in cases that the generator does not reach, or the chain's own pool can't put
// into one block. Expected results are written here, or read from the block that was mined.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { PLACES, word } from "../../support/callManyContracts.ts";
import {
	type CallManyFixture,
	COINBASE,
	SLOT_SECONDS,
	startCallManyFixture,
} from "../../support/callManyFixture.ts";
import { buildInOrder, checkEntry, mineBlocks, type RealHead, readHead } from "../../support/callManyReal.ts";
import { ETHER, GWEI } from "../../support/simulationFixture.ts";
import { rawTransaction, type TestAccount, type TxOptions, testAccount } from "../../support/txFactory.ts";

let fixture: CallManyFixture;
let head: RealHead;
let snapshot: string;
before(async () => {
	fixture = await startCallManyFixture();
});
after(() => fixture.stop());
beforeEach(async () => {
	snapshot = await fixture.chain.snapshot();
	head = await readHead(fixture.chain);
});
afterEach(() => fixture.chain.revert(snapshot));

function raw(options: TxOptions): string {
	return `0x${rawTransaction(options).toString("hex")}`;
}

function rich(index: number): TestAccount {
	const account = fixture.rich[index];
	assert.ok(account !== undefined);
	return account;
}

function hex(value: number | bigint): string {
	return `0x${value.toString(16)}`;
}

/** The answer to `txs` in the next block. */
async function askSigned(txs: readonly string[]) {
	const params = [{ txs, blockNumber: hex(head.number + 1), stateBlockNumber: "latest" }];
	return fixture.ask(params);
}

test("what does not fit into the block's gas can't run, and what is behind it can", async () => {
	const burn = (index: number) => ({ by: rich(index), to: PLACES.loop, gasLimit: 12_000_000 });
	const txs = [
		raw({ ...burn(0), nonce: 0 }),
		raw({ ...burn(1), nonce: 0 }),
		raw({ ...burn(2), nonce: 0 }),
		raw({ by: rich(3), to: PLACES.counter, gasLimit: 6_000_000, nonce: 0 }),
		raw({ by: rich(4), to: PLACES.counter, gasLimit: 6_000_000, nonce: 0 }),
	];
	const block = {
		number: head.number + 1,
		timestamp: head.timestamp + SLOT_SECONDS,
		baseFee: head.nextBaseFee,
		sends: txs,
	};
	const real = await buildInOrder(fixture.chain, block, txs);
	assert.deepEqual(
		real.map((outcome) => outcome?.ok ?? null),
		[false, false, null, true, null],
	);
	const answers = await askSigned(txs);
	for (const answer of answers) {
		for (const [i, outcome] of real.entries()) checkEntry(answer[i], outcome, JSON.stringify(answer));
		assert.equal(answer[2]?.error, "gas limit reached: gas limit 12000000, left in the block 6000000");
	}
});

test("gas that a revert gives back is left to those behind it", async () => {
	const txs = [
		raw({ by: rich(0), to: PLACES.revert, gasLimit: 25_000_000, nonce: 0 }),
		raw({ by: rich(1), to: PLACES.counter, gasLimit: 29_900_000, nonce: 0 }),
	];
	for (const answer of await askSigned(txs)) {
		assert.deepEqual(answer, [{ value: "", error: "execution reverted" }, { value: word(1) }]);
	}
});

test("an authorization of the sender's own takes a nonce", async () => {
	const by = rich(0);
	const authorizations = [{ by, address: PLACES.counter, nonce: 1n }];
	const txs = [
		raw({ by, type: 4, to: by.address, authorizations, nonce: 0, gasLimit: 200_000 }),
		raw({ by, to: PLACES.counter, nonce: 1 }),
		raw({ by, to: PLACES.counter, nonce: 2 }),
		raw({ by: rich(1), to: by.address, nonce: 0 }),
	];
	const answers = await askSigned(txs);
	for (const answer of answers) {
		assert.deepEqual(answer, [
			{ value: word(1) },
			{ value: "", error: "nonce too low: next nonce 2, tx nonce 1" },
			{ value: word(1) },
			{ value: word(2) },
		]);
	}
});

test("a delegated account that creates has moved its own nonce", async () => {
	const by = rich(0);
	const authorizations = [{ by, address: PLACES.factory, nonce: 1n }];
	const txs = [
		raw({ by, type: 4, to: testAccount(77).address, authorizations, nonce: 0, gasLimit: 200_000 }),
		raw({ by: rich(1), to: by.address, data: "0x00", nonce: 0, gasLimit: 200_000 }),
		raw({ by, to: PLACES.counter, nonce: 2 }),
		raw({ by, to: PLACES.counter, nonce: 3 }),
	];
	for (const [, created, low, counted] of await askSigned(txs)) {
		assert.match(created?.value ?? "", /^0{24}[0-9a-f]{40}$/);
		assert.equal(low?.error, "nonce too low: next nonce 3, tx nonce 2");
		assert.deepEqual(counted, { value: word(1) });
	}
});

test("a contract sends nothing", async () => {
	const by = testAccount(88);
	await fixture.chain.rpc("anvil_setCode", [by.address, "0x00"]);
	await fixture.chain.rpc("anvil_setBalance", [by.address, hex(ETHER)]);
	await fixture.chain.rpc("evm_mine");
	head = await readHead(fixture.chain);
	const error = `sender not an eoa: address ${by.address} has code`;
	for (const answer of await askSigned([raw({ by, nonce: 0 })]))
		assert.deepEqual(answer, [{ value: "", error }]);
});

test("what must be there is the most that it can cost, though it costs less", async () => {
	const by = testAccount(89);
	const tx = { by, nonce: 0, gasLimit: 100_000, maxFeePerGas: 100n * GWEI, value: 1n };
	const cost = 100_000n * 100n * GWEI + 1n;
	for (const [balance, error] of [
		[cost, undefined],
		[
			cost - 1n,
			`insufficient funds for gas * price + value: balance ${cost - 1n}, tx cost ${cost}, overshot 1`,
		],
	] as const) {
		await fixture.chain.rpc("anvil_setBalance", [by.address, hex(balance)]);
		await fixture.chain.rpc("evm_mine");
		head = await readHead(fixture.chain);
		for (const [entry] of await askSigned([raw(tx)])) assert.equal(entry?.error, error);
	}
});

test("a call in the middle of a block sees what the block saw", async () => {
	const within = { number: head.number + 1, timestamp: head.timestamp + 7, baseFee: GWEI };
	const sends = [0, 1, 2].map((i) => raw({ by: rich(i), to: PLACES.counter, nonce: 0 }));
	await mineBlocks(fixture.chain, [{ ...within, sends }]);
	const mined = (await fixture.chain.rpc("eth_getBlockByNumber", [hex(within.number), false])) as {
		mixHash: string;
	};
	await fixture.chain.rpc("evm_mine");
	const transactions = [{ to: PLACES.randao }, { to: PLACES.surroundings }, { to: PLACES.counter }];
	for (const transactionIndex of [0, 1, 2, 3, -1]) {
		const context = { blockNumber: hex(within.number), transactionIndex };
		const [inner] = await fixture.ask([[{ transactions }], context]);
		const count = transactionIndex === -1 ? 3 : transactionIndex;
		const [randao, surroundings, counter] = inner ?? [];
		assert.deepEqual([randao?.value, counter?.value], [mined.mixHash.slice(2), word(count + 1)]);
		const [coinbase, timestamp, number] = surroundings?.value.match(/.{64}/g) ?? [];
		assert.deepEqual(
			[coinbase, timestamp, number],
			[word(COINBASE), word(within.timestamp), word(within.number)],
		);
	}
});

test("nothing of a private transaction but what it returns comes out", async () => {
	const tx = raw({ by: rich(0), to: PLACES.echo, data: "0x1234", nonce: 0 });
	const signature = tx.slice(-130);
	const answers = await askSigned([tx, tx, raw({ by: rich(0), chainId: 5n })]);
	for (const answer of answers) {
		assert.equal(answer[0]?.value, "1234");
		assert.ok(!JSON.stringify(answer).includes(signature.slice(2, 40)));
	}
});
