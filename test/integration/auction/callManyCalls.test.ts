// eth_callMany, unsigned calls: each of a generated set of bundles is simulated in a block of the chain, behind some or
// all of its transactions, and then really made there, by impersonated senders in a block of the same number, time and
// fee; what the receipts and traces of that block say is what the answer must have said.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawCallCase } from "../../support/callManyCallCases.ts";
import { drawSignedBundle } from "../../support/callManyCases.ts";
import { type CallManyFixture, startCallManyFixture } from "../../support/callManyFixture.ts";
import {
	buildInOrder,
	checkEntry,
	kindOf,
	mineBlocks,
	type RealBlock,
	readHead,
	readOutcomes,
} from "../../support/callManyReal.ts";
import { SeededRandom } from "../../support/seededRandom.ts";

const SEED = Number(process.env.CALL_MANY_SEED ?? 20_260_902);
const CASES = Number(process.env.CALL_MANY_CASES ?? 120);

let fixture: CallManyFixture;
before(async () => {
	fixture = await startCallManyFixture();
});
after(() => fixture.stop());

test(`generated bundles of calls fare as in a real block (seed ${SEED})`, async () => {
	const tally = { passed: 0, reverted: 0, halted: 0, notRun: 0, within: 0, behind: 0 };
	const { chain } = fixture;
	for (let index = 0; index < CASES; index++) {
		const random = new SeededRandom(SEED + index);
		const label = `seed ${SEED + index}`;
		const head = await readHead(chain);
		const snapshot = await chain.snapshot();
		const within = {
			number: head.number + 1,
			timestamp: head.timestamp + 1 + random.below(30),
			baseFee: random.once(2) ? 0n : head.nextBaseFee,
		};
		const own = await drawOwn(random, within);
		const drawn = drawCallCase(random, fixture.rich, within);
		const count = random.below(own.length + 1);
		const before = random.once(3) ? own.length : count;
		const real = await reallyDo(within, own.slice(0, before), drawn.blocks);
		await chain.revert(snapshot);
		// The snapshot is used up.
		const again = await chain.snapshot();
		await mineBlocks(chain, [{ ...within, sends: own }]);
		const above = random.below(3);
		for (let i = 0; i < above; i++) await chain.rpc("evm_mine");
		const named = above === 0 && random.once(2) ? "latest" : `0x${within.number.toString(16)}`;
		const all = before === own.length && random.once(2);
		const context = {
			blockNumber: named,
			...(all && random.once(2) ? {} : { transactionIndex: all ? -1 : before }),
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
	const nonces = new Map<string, number>();
	for (const { address } of rich) {
		nonces.set(address, Number(await chain.rpc("eth_getTransactionCount", [address, "latest"])));
	}
	const baseFee = within.baseFee === 0n ? 1n : within.baseFee;
	const { txs, keys } = drawSignedBundle(random, rich, nonces, baseFee, within.number - 1);
	const outcomes = await buildInOrder(chain, { ...within, sends: txs }, keys);
	return txs.filter((_, i) => outcomes[i] !== null);
}

/** What becomes of the calls of `blocks` behind `own` in the block `within`, and behind that block. */
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
