// A bidder's record at a builder: what its landed bids have left there, by the chain as it stands,
// also after a restart.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PAYMENTS } from "../../../../relay/domain/storeKeys.ts";
import { withTarget } from "./auctionFixture.ts";

const SIGNER = `0x${"5".repeat(40)}`;
const CLIENT = "192.0.2.1";

/**
 * A bid that has landed in 101 and paid 1,000 wei there, of the signer unless `owner` says
 * otherwise.
 */
async function landed(builders: readonly string[] = ["a"], owner = SIGNER) {
	const { fixture, target } = await withTarget({ slots: 4 });
	fixture.builders.coinbases.set("0xminer", builders);
	await fixture.accepted("A", target, 1_000n, { owner, client: CLIENT });
	const [, backrun] = fixture.builders.sent.at(-1)?.transactions ?? [];
	const tx = backrun?.tx ?? assert.fail();
	fixture.transfers.set(tx.hash, 1_000n);
	const block = await fixture.block([target, { tx }]);
	const { ledger } = fixture.market;
	const record = (builder = "a", bidder = SIGNER) => ledger.recordOf(builder, bidder);
	return { fixture, target, tx, block, ledger, record };
}

describe("what a landed bid has left", () => {
	test("counts for its signer at the block's builder, without the user's share", async () => {
		const { record, ledger } = await landed();
		assert.deepEqual([record(), record("b"), ledger.size], [100n, 0n, 1]);
		assert.deepEqual([ledger.hasRecord(SIGNER), ledger.hasRecord("another")], [true, false]);
		assert.equal(ledger.hasUnsignedRecord(CLIENT), false);
	});

	test("counts for the client of an unsigned bid, while its block stands", async () => {
		const { fixture, ledger } = await landed(["a"], CLIENT);
		const seen = () => [CLIENT, "192.0.2.2", ""].map((client) => ledger.hasUnsignedRecord(client));
		assert.deepEqual(seen(), [true, false, false]);
		const gone = fixture.chain.unmake(1);
		await fixture.came({ applied: [fixture.chain.make([], "b")], reverted: gone });
		assert.deepEqual(seen(), [false, false, false]);
	});

	test("counts at nobody whose coinbase it is not", async () => {
		const { record, ledger } = await landed([]);
		assert.deepEqual([record(), ledger.size], [0n, 0]);
	});

	test("goes with its block, and comes back with it", async () => {
		const { fixture, record, block } = await landed();
		const gone = fixture.chain.unmake(1);
		await fixture.came({ applied: [fixture.chain.make([], "b")], reverted: gone });
		assert.equal(record(), 0n);
		const other = fixture.chain.unmake(1);
		fixture.chain.put(block);
		await fixture.came({ applied: [block], reverted: other });
		assert.equal(record(), 100n);
	});

	test("is on disk: a relay that starts knows it, also what left the chain while it was down", async () => {
		const { fixture } = await landed();
		assert.equal((await fixture.restartedLedger()).recordOf("a", SIGNER), 100n);
		fixture.chain.unmake(1);
		fixture.chain.make([], "b");
		assert.equal((await fixture.restartedLedger()).recordOf("a", SIGNER), 0n);
	});

	test("counts for 7,200 blocks, and is then not on disk any more", async () => {
		const { fixture, record, ledger } = await landed();
		const at = (number: number) => ({ ...fixture.head, number });
		ledger.onChainUpdate({ head: at(101 + 7_199), applied: [], reverted: [], gap: false });
		assert.equal(record(), 100n);
		ledger.onChainUpdate({ head: at(101 + 7_200), applied: [], reverted: [], gap: false });
		await fixture.turn();
		const left = [...fixture.disk.map.keys()].filter((key) => key.startsWith(PAYMENTS));
		assert.deepEqual([record(), left], [0n, []]);
	});
});

test("without a signature the record is the sender's at its client", async () => {
	const { fixture, target } = await withTarget({ slots: 4 });
	fixture.builders.coinbases.set("0xminer", ["a"]);
	await fixture.accepted("A", target, 1_000n, { owner: "192.0.2.1", client: "192.0.2.1" });
	const { tx } = fixture.builders.sent.at(-1)?.transactions[1] ?? assert.fail();
	fixture.transfers.set(tx.hash, 1_000n);
	await fixture.block([target, { tx }]);
	const { ledger } = fixture.market;
	assert.equal(ledger.recordOf("a", `${tx.from} 192.0.2.1`), 100n);
	for (const other of ["192.0.2.1", tx.from, `${tx.from} 192.0.2.2`])
		assert.equal(ledger.recordOf("a", other), 0n);
});

test("of two bidders with the same backrun, the first to be accepted has the record, though the other's went out first", async () => {
	const { fixture, target } = await withTarget({ slots: 4 });
	fixture.builders.coinbases.set("0xminer", ["a"]);
	const copier = `0x${"6".repeat(40)}`;
	await fixture.accepted("A", target, 1_000n, { owner: SIGNER, times: { from: 1_224, until: 1_224 } });
	await fixture.accepted("A", target, 1_000n, { owner: copier });
	await fixture.missSlots(1);
	await fixture.clock.advance(1_000);
	await fixture.turn();
	const times = fixture.builders.sent.map((bundle) => bundle.times?.from);
	assert.deepEqual(times, [undefined, 1_224]);
	const { tx } = fixture.builders.sent.at(-1)?.transactions[1] ?? assert.fail();
	fixture.transfers.set(tx.hash, 1_000n);
	await fixture.block([target, { tx }]);
	const { ledger } = fixture.market;
	assert.deepEqual([ledger.recordOf("a", SIGNER), ledger.recordOf("a", copier)], [100n, 0n]);
});

test("what the node can't trace is no record, whatever was claimed", async () => {
	const { fixture, target } = await withTarget({ slots: 4 });
	fixture.builders.coinbases.set("0xminer", ["a"]);
	await fixture.accepted("A", target, 10n ** 18n, { owner: SIGNER });
	const { tx } = fixture.builders.sent.at(-1)?.transactions[1] ?? assert.fail();
	await fixture.block([target, { tx }]);
	assert.equal(fixture.market.ledger.size, 0);
});

test("a damaged entry is left out, not the others", async () => {
	const { fixture } = await landed();
	fixture.disk.map.set(`${PAYMENTS}000000000100/0x100`, Buffer.from('[{"left":"much"}]'));
	assert.equal((await fixture.restartedLedger()).size, 1);
});
