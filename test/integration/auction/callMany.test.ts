// eth_callMany on a real node. Generated bundles, of signed transactions and of unsigned calls, are
// simulated and then really put into a block of the same chain; what its receipts and traces say is
// what the answer must have said. Behind them are cases that the generator does not reach; the
// others are in test/contract/callManyGethRules.test.ts.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { hexToBytes } from "../../../shared/ethereum/hex.ts";
import { decodeTransaction } from "../../../shared/ethereum/transaction.ts";
import { drawCallCase, drawSignedBundle } from "../../support/callManyCases.ts";
import {
	askMethod,
	type CallManyFixture,
	type GethHead,
	readHead,
	SLOT_SECONDS,
	startCallManyFixture,
} from "../../support/callManyFixture.ts";
import {
	buildInOrder,
	checkEntry,
	kindOf,
	mineBlocks,
	type RealBlock,
	readOutcomes,
} from "../../support/callManyReal.ts";
import { PLACES, word } from "../../support/contracts.ts";
import { sized } from "../../support/length.ts";
import { SeededRandom } from "../../support/seededRandom.ts";
import { rawTransaction, type TestAccount, type TxOptions } from "../../support/txFactory.ts";

/** The signed bundles' seed; the calls' is the next one. */
const SEED = Number(process.env.CALL_MANY_SEED ?? 20_260_901);
const CASES = sized(20, 200);

let fixture: CallManyFixture;
let head: GethHead;
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

async function noncesOf(): Promise<Map<string, number>> {
	const addresses = fixture.rich.map(({ address }) => address);
	const counts = await fixture.chain.batch(
		addresses.map((address) => ({ method: "eth_getTransactionCount", params: [address, "latest"] })),
	);
	return new Map(
		addresses.map((address, i) => [address, Number(counts[i]?.ok === true ? counts[i].result : 0)]),
	);
}

/** A block of some transactions, so that the chain's state and base fee move on between cases. */
async function moveOn(random: SeededRandom): Promise<void> {
	const head = await readHead(fixture.chain);
	const { txs } = drawSignedBundle(random, fixture.rich, await noncesOf(), head.nextBaseFee, head.number);
	const block = { number: head.number + 1, timestamp: head.timestamp + 5, baseFee: head.nextBaseFee };
	await mineBlocks(fixture.chain, [{ ...block, sends: txs }]);
}

test(`generated bundles of signed transactions have the results of a real block (seed ${SEED})`, async () => {
	const tally = { passed: 0, reverted: 0, halted: 0, notRun: 0 };
	for (let index = 0; index < CASES; index++) {
		const random = new SeededRandom(SEED + index);
		if (index % 10 === 9) await moveOn(random);
		const label = `seed ${SEED + index}`;
		const head = await readHead(fixture.chain);
		const bundle = drawSignedBundle(random, fixture.rich, await noncesOf(), head.nextBaseFee, head.number);
		const snapshot = await fixture.chain.snapshot();
		for (const { account, balance } of bundle.poor) {
			await fixture.chain.rpc("anvil_setBalance", [account.address, `0x${balance.toString(16)}`]);
		}
		const above = random.oneIn(3) ? 2 + random.below(29) : 1;
		const timestamp = random.oneIn(3) ? head.timestamp + 100 + random.below(1000) : undefined;
		const block = {
			number: head.number + above,
			timestamp: timestamp ?? head.timestamp + SLOT_SECONDS * above,
			baseFee: head.nextBaseFee,
			sends: bundle.txs,
		};
		const real = await buildInOrder(fixture.chain, block, bundle.keys);
		const txs = bundle.txs.map((raw) => (random.oneIn(5) ? share(raw) : raw));
		const params = {
			txs,
			blockNumber: `0x${(head.number + above).toString(16)}`,
			stateBlockNumber: random.oneIn(2) ? "latest" : `0x${head.number.toString(16)}`,
			...(timestamp === undefined ? {} : { timestamp }),
		};
		const answer = await fixture.ask([params]);
		assert.deepEqual([answer.length, answer[0]?.length], [1, txs.length], label);
		const told = `${label}: ${JSON.stringify(answer).slice(0, 2000)}`;
		for (const [i, outcome] of real.entries()) checkEntry(answer[0]?.[i], outcome, `${i} of ${told}`);
		for (const outcome of real) tally[kindOf(outcome)] += 1;
		await fixture.chain.revert(snapshot);
	}
	// The generator is worth something only if there is enough of everything.
	for (const [what, count] of Object.entries(tally)) assert.ok(count >= CASES / 10, `${count} ${what}`);
});

/** Shares it with searchers; its hash. */
function share(raw: string): string {
	const decoded = decodeTransaction(hexToBytes(raw) ?? Buffer.alloc(0));
	assert.ok(decoded.ok);
	fixture.shared.set(decoded.tx.hash, decoded.tx);
	return decoded.tx.hash;
}

test(`generated bundles of calls have the results of a real block (seed ${SEED + 1})`, async () => {
	const tally = { passed: 0, reverted: 0, halted: 0, notRun: 0, within: 0, behind: 0 };
	const { chain } = fixture;
	for (let index = 0; index < CASES; index++) {
		const random = new SeededRandom(SEED + 1 + index);
		const label = `seed ${SEED + 1 + index}`;
		const head = await readHead(chain);
		const snapshot = await chain.snapshot();
		const within = {
			number: head.number + 1,
			timestamp: head.timestamp + 1 + random.below(30),
			baseFee: random.oneIn(2) ? 0n : head.nextBaseFee,
		};
		const own = await drawOwn(random, within);
		const drawn = drawCallCase(random, fixture.rich, within);
		const count = random.below(own.length + 1);
		const before = random.oneIn(3) ? own.length : count;
		const real = await reallyDo(within, own.slice(0, before), drawn.blocks);
		await chain.revert(snapshot);
		// The snapshot is used up.
		const again = await chain.snapshot();
		await mineBlocks(chain, [{ ...within, sends: own }]);
		const above = random.below(3);
		for (let i = 0; i < above; i++) await chain.rpc("evm_mine");
		const named = above === 0 && random.oneIn(2) ? "latest" : `0x${within.number.toString(16)}`;
		const all = before === own.length && random.oneIn(2);
		const context = {
			blockNumber: named,
			...(all && random.oneIn(2) ? {} : { transactionIndex: all ? -1 : before }),
		};
		const params = [drawn.bundles, context];
		const answer = await fixture.ask(params);
		assert.deepEqual(
			answer.map((inner) => inner.length),
			drawn.counts,
			label,
		);
		const told = `${label}: ${JSON.stringify([answer, params]).slice(0, 2000)}`;
		for (const [i, outcome] of real.entries()) checkEntry(answer.flat()[i], outcome, `${i} of ${told}`);
		for (const outcome of real) tally[kindOf(outcome)] += 1;
		tally[before < own.length ? "within" : "behind"] += 1;
		await chain.revert(again);
		// Now and then the chain goes on.
		if (index % 10 === 9) await mineBlocks(chain, [{ ...within, baseFee: head.nextBaseFee, sends: own }]);
	}
	// The generator is worth something only if there is enough of everything.
	for (const [what, count] of Object.entries(tally)) assert.ok(count >= CASES / 15, `${count} ${what}`);
});

/** Signed transactions that a block like that one takes, all of them. */
async function drawOwn(random: SeededRandom, within: Omit<RealBlock, "sends">): Promise<readonly string[]> {
	const { chain, rich } = fixture;
	const baseFee = within.baseFee === 0n ? 1n : within.baseFee;
	const { txs, keys } = drawSignedBundle(random, rich, await noncesOf(), baseFee, within.number - 1);
	const outcomes = await buildInOrder(chain, { ...within, sends: txs }, keys);
	return txs.filter((_, i) => outcomes[i] !== null);
}

/**
 * The real outcomes of the calls of `blocks` behind `own` in the block `within`, and behind that
 * block.
 */
async function reallyDo(
	within: Omit<RealBlock, "sends">,
	own: readonly string[],
	blocks: readonly RealBlock[],
): Promise<ReturnType<typeof readOutcomes>> {
	const [first, ...rest] = blocks;
	assert.ok(first !== undefined);
	const isThere = first.number === within.number;
	const whole = isThere
		? [{ ...first, sends: [...own, ...first.sends] }, ...rest]
		: [{ ...within, sends: own }, ...blocks];
	const hashes = (await mineBlocks(fixture.chain, whole)).flat().slice(own.length);
	return readOutcomes(fixture.chain, hashes);
}

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

test("gas that a reverted call did not use is left for later calls", async () => {
	const txs = [
		raw({ by: rich(0), to: PLACES.revert, gasLimit: 25_000_000, nonce: 0 }),
		raw({ by: rich(1), to: PLACES.counter, gasLimit: 29_900_000, nonce: 0 }),
	];
	for (const answer of await askSigned(txs)) {
		assert.deepEqual(answer, [{ value: "", error: "execution reverted" }, { value: word(1) }]);
	}
});

test("signed transactions are one atomic bundle: if one fails, every entry has an error, and its value where it ran", async () => {
	const passes = (index: number) => raw({ by: rich(index), to: PLACES.counter, nonce: 0 });
	const reverts = raw({ by: rich(0), to: PLACES.revert, nonce: 0 });
	const notRun = raw({ by: rich(0), to: PLACES.counter, nonce: 9 });
	const high = "nonce too high: next nonce 0, tx nonce 9";
	const failed = (index: number) => `bundle failed at transaction ${index}`;
	for (const [txs, expected] of [
		[
			[passes(1), passes(2)],
			[{ value: word(1) }, { value: word(2) }],
		],
		[
			[passes(1), reverts, passes(2)],
			[
				{ value: word(1), error: failed(1) },
				{ value: "", error: "execution reverted" },
				{ value: "", error: failed(1) },
			],
		],
		[
			[notRun, passes(1), reverts],
			[
				{ value: "", error: high },
				{ value: "", error: failed(0) },
				{ value: "", error: failed(0) },
			],
		],
	] as const) {
		const params = [{ txs, blockNumber: hex(head.number + 1), stateBlockNumber: "latest" }];
		assert.deepEqual(await askMethod(fixture.callMany, params), [expected]);
	}
	const calls = [PLACES.revert, PLACES.counter].map((to) => ({ from: rich(1).address, to }));
	assert.deepEqual(
		await askMethod(fixture.callMany, [[{ transactions: calls }]]),
		[[{ value: "", error: "execution reverted" }, { value: word(1) }]],
		"calls fail one by one",
	);
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

test("the result reveals nothing of a private transaction except what it returns", async () => {
	const tx = raw({ by: rich(0), to: PLACES.echo, data: "0x1234", nonce: 0 });
	const signature = tx.slice(-130);
	const answers = await askSigned([tx, tx, raw({ by: rich(0), chainId: 5n })]);
	for (const answer of answers) {
		assert.equal(answer[0]?.value, "1234");
		assert.ok(!JSON.stringify(answer).includes(signature.slice(2, 40)));
	}
});
