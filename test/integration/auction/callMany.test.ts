// eth_callMany, signed transactions: each of a generated set of bundles is simulated, and then really put into a block
// of the same chain; what the receipts and traces of that block say is what the answer must have said.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { hexToBytes } from "../../../shared/ethereum/hex.ts";
import { decodeTransaction } from "../../../shared/ethereum/transaction.ts";
import { drawSignedBundle } from "../../support/callManyCases.ts";
import { type CallManyFixture, SLOT_SECONDS, startCallManyFixture } from "../../support/callManyFixture.ts";
import { buildInOrder, checkEntry, kindOf, mineBlocks, readHead } from "../../support/callManyReal.ts";
import { SeededRandom } from "../../support/seededRandom.ts";

const SEED = Number(process.env.CALL_MANY_SEED ?? 20_260_901);
const CASES = Number(process.env.CALL_MANY_CASES ?? 120);

let fixture: CallManyFixture;
before(async () => {
	fixture = await startCallManyFixture();
});
after(() => fixture.stop());

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

test(`generated bundles of signed transactions fare as in a real block (seed ${SEED})`, async () => {
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
		const above = random.once(3) ? 2 + random.below(29) : 1;
		const timestamp = random.once(3) ? head.timestamp + 100 + random.below(1000) : undefined;
		const block = {
			number: head.number + above,
			timestamp: timestamp ?? head.timestamp + SLOT_SECONDS * above,
			baseFee: head.nextBaseFee,
			sends: bundle.txs,
		};
		const real = await buildInOrder(fixture.chain, block, bundle.keys);
		const txs = bundle.txs.map((raw) => (random.once(5) ? share(raw) : raw));
		const params = {
			txs,
			blockNumber: `0x${(head.number + above).toString(16)}`,
			stateBlockNumber: random.once(2) ? "latest" : `0x${head.number.toString(16)}`,
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
