// Transactions with the same sender and nonce, one after another and many at once: which of them
// counts, how builders are notified, and that the others never come back.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { WireAnswer } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import type { TxOptions } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";
import { CancelFixture } from "../../support/userFixtures.ts";

const STEPS = 8;
const BUMPED = { maxFeePerGas: 22n * GWEI, maxPriorityFeePerGas: (11n * GWEI) / 10n };

let system: TestSystem;
let fixture: CancelFixture;

before(async () => {
	system = await startSystem({
		builders: [
			{ name: "vault", fullPrivacy: true },
			{ name: "endpoint", cancel: "endpoint" },
			{ name: "empty", cancel: "empty", dialect: "mev-share" },
			{ name: "none", cancel: "none" },
		],
	});
	fixture = new CancelFixture(system);
});
after(() => system.stop());

const UNDERPRICED = /^-32000 replacement transaction underpriced/;

describe("the ten percent", () => {
	const HELD = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI };
	const ROWS: readonly {
		readonly name: string;
		readonly held: Omit<TxOptions, "by">;
		readonly refused: readonly Omit<TxOptions, "by">[];
		readonly taken: Omit<TxOptions, "by">;
	}[] = [
		{
			name: "both fees of type 2 must grow",
			held: HELD,
			refused: [
				{ ...HELD, value: 1n },
				{ ...BUMPED, maxFeePerGas: BUMPED.maxFeePerGas - 1n },
				{ ...BUMPED, maxPriorityFeePerGas: BUMPED.maxPriorityFeePerGas - 1n },
				{ ...BUMPED, maxPriorityFeePerGas: GWEI },
				{ maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: GWEI },
			],
			taken: BUMPED,
		},
		{
			name: "the gas price of type 0 must grow",
			held: { type: 0, gasPrice: 10n * GWEI },
			refused: [{ type: 0, gasPrice: 11n * GWEI - 1n }],
			taken: { type: 0, gasPrice: 11n * GWEI },
		},
		{
			name: "the gas price of type 1 must grow, in whole wei of no round number",
			held: { type: 1, gasPrice: 10_000_000_001n },
			refused: [{ type: 1, gasPrice: 11_000_000_000n }],
			taken: { type: 1, gasPrice: 11_000_000_001n },
		},
		{
			name: "type 2 in the place of type 0 must beat its price with both fees",
			held: { type: 0, gasPrice: 10n * GWEI },
			refused: [{ maxFeePerGas: 50n * GWEI, maxPriorityFeePerGas: 11n * GWEI - 1n }],
			taken: { maxFeePerGas: 11n * GWEI, maxPriorityFeePerGas: 11n * GWEI },
		},
	];
	for (const { name, held, refused, taken } of ROWS) {
		it(name, async () => {
			const actor = await fixture.actor();
			const first = actor.sign(held);
			await fixture.submit("/fast", first);
			for (const options of refused) {
				const tx = actor.sign(options);
				assert.match(await fixture.tried(tx), UNDERPRICED);
				assert.equal((await fixture.status(tx)).stage, undefined);
			}
			await fixture.reaches(first, "BROADCAST");
			const second = actor.sign({ ...taken, value: 7n });
			await fixture.submit("/fast", second);
			await fixture.reaches(first, "REPLACED");
			await fixture.reaches(second, "BROADCAST");
		});
	}
});

describe("a transaction that is replaced", () => {
	it("is REPLACED and FAILED, its builders are notified, the new one goes out and is mined", async () => {
		const actor = await fixture.actor();
		const [old, fresh] = [actor.sign(), actor.sign({ ...BUMPED, value: 1n })];
		await fixture.submit("/fast", old);
		await fixture.waitUntilSent(old);
		assert.notEqual(await fixture.byHash(old), null);
		await fixture.submit("/fast", fresh);
		await fixture.waitUntilSent(fresh);
		const record = await fixture.reaches(old, "REPLACED");
		assert.deepEqual(
			[record.status, record.transaction.nonce, record.simulationError],
			["FAILED", "0", null],
		);
		assert.equal((await fixture.event(old, "replaced")).by, fresh.hash);
		assert.deepEqual([await fixture.byHash(old), (await fixture.byHash(fresh))?.blockHash], [null, null]);
		assert.equal(await fixture.pendingNonce(actor), 1);
		await assertCancelled(old);
		for (const builder of system.builders) {
			const [before, now] = [old, fresh].map((tx) => fixture.deliveries(builder, tx)[0]?.uuid);
			assert.notEqual(before, now);
			assert.deepEqual(fixture.cancels(builder, fresh), []);
		}
		const block = await system.nextBlock();
		await fixture.reaches(fresh, "INCLUDED");
		assert.deepEqual([await fixture.receipt(old), (await fixture.receipt(fresh))?.block], [null, block]);
		assert.equal((await fixture.status(old)).stage, "REPLACED");
		assert.deepEqual(fixture.blocks(system.builder, old), [block], "it is not sent again");
	});

	it("that only one builder has received is cancelled at that builder only", async () => {
		const actor = await fixture.actor();
		const hidden = actor.sign({ nonce: 0 });
		const behind = actor.sign({ nonce: 1 });
		await fixture.submit("/fullprivacy", hidden);
		await fixture.submit("/nochecks", behind);
		await fixture.waitUntilSent(behind, { builders: ["vault"] });
		await fixture.submit("/nochecks", actor.sign({ nonce: 1, ...BUMPED }));
		await until("the cancel", () => fixture.cancels(fixture.builder("vault"), behind).length === 1);
		await fixture.fence();
		// The hash alone would tell a builder that may not know of it.
		for (const name of ["endpoint", "empty"]) {
			const requests = fixture.builder(name).requests();
			assert.equal(JSON.stringify(requests).includes(behind.hash.slice(2)), false, name);
		}
		await fixture.submit("/fast", actor.sign({ nonce: 0, ...BUMPED }));
		await until("the cancel", () => fixture.cancels(fixture.builder("vault"), hidden).length === 2);
	});
});

describe("the bytes of a replaced transaction", () => {
	it("sent again return the hash and have no effect, also after a restart, until the nonce is used", async () => {
		const actor = await fixture.actor();
		const [old, fresh] = await replaced(actor);
		const before = await fixture.life(old);
		await fixture.submit("/fast", old);
		await fixture.submit("/nochecks", old);
		await assertDead(old, fresh, before);
		await system.restart();
		await assertDead(old, fresh, before);
		await fixture.submit("/fast", old);
		await fixture.submit("/maxbackruns", old);
		await fixture.fence();
		await assertDead(old, fresh, before);
		const block = await system.nextBlock();
		await fixture.reaches(fresh, "INCLUDED");
		assert.deepEqual([await fixture.receipt(old), (await fixture.receipt(fresh))?.block], [null, block]);
		assert.match(await fixture.tried(old), /^-32000 nonce too low: next nonce 1, tx nonce 0/);
		assert.equal((await fixture.status(old)).stage, "REPLACED");
	});

	async function replaced(actor: Actor): Promise<readonly [Signed, Signed]> {
		const [old, fresh] = [actor.sign(), actor.sign({ ...BUMPED, value: 1n })];
		await fixture.submit("/fast", old);
		await fixture.waitUntilSent(old);
		await fixture.submit("/fast", fresh);
		await fixture.waitUntilSent(fresh);
		await fixture.reaches(old, "REPLACED");
		return [old, fresh];
	}

	async function assertDead(old: Signed, fresh: Signed, life: readonly string[]): Promise<void> {
		const block = (await fixture.head()) + 1;
		assert.deepEqual(await fixture.life(old), life);
		assert.equal(await fixture.byHash(old), null);
		assert.equal((await fixture.byHash(fresh))?.hash, fresh.hash);
		for (const builder of system.builders) assert.deepEqual(fixture.blocks(builder, old), [block]);
	}
});

/** Asserts that every builder was sent the cancels of `tx` that it knows, and accepted them. */
async function assertCancelled(tx: Signed): Promise<void> {
	const block = `0x${((await fixture.head()) + 1).toString(16)}`;
	const ways = { vault: ["endpoint", "empty"], endpoint: ["endpoint"], empty: ["empty"], none: [] };
	for (const [name, forms] of Object.entries(ways)) {
		const replacementUuid = fixture.deliveries(fixture.builder(name), tx)[0]?.uuid;
		const calls = {
			endpoint: ["eth_cancelBundle", [{ replacementUuid }]],
			empty: ["eth_sendBundle", [{ txs: [], blockNumber: block, replacementUuid }]],
		};
		const expected = forms.map((form) => (form === "empty" ? calls.empty : calls.endpoint));
		await until("the cancels", () => fixture.cancels(fixture.builder(name), tx).length === expected.length);
		const found = fixture.cancels(fixture.builder(name), tx).map(({ method, params }) => [method, params]);
		assert.deepEqual(new Set(found.map(String)), new Set(expected.map(String)));
		for (const call of expected) assert.ok(found.some((one) => JSON.stringify(one) === JSON.stringify(call)));
		const taken = async () =>
			(await fixture.events(tx)).filter(
				({ type, kind, builder, answer }) =>
					type === "delivered" && kind === "cancel" && builder === name && answer === "accepted",
			).length;
		await until("the acknowledgements", async () => (await taken()) === expected.length);
	}
}

function submitAll(transactions: readonly Signed[], path = "/fast"): Promise<WireAnswer[]> {
	return Promise.all(transactions.map(({ raw }) => system.client.ask("eth_sendRawTransaction", [raw], path)));
}

describe("at the same time", () => {
	it("the same bytes submitted thirty times get the same answer, and are sent to builders once", async () => {
		const tx = (await fixture.actor()).sign();
		const answers = await submitAll(Array.from({ length: 30 }, () => tx));
		assert.deepEqual(new Set(answers.map(({ result }) => result)), new Set([tx.hash]));
		await fixture.waitUntilSent(tx);
		const block = await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		const received = (await fixture.life(tx)).filter((event) => event.startsWith("received"));
		assert.equal(received.length, 1);
		for (const builder of system.builders) assert.deepEqual(fixture.blocks(builder, tx), [block]);
	});

	it("of many replacements with rising fees one wins, in any order of arrival; the others are REPLACED or refused", async () => {
		for (const ascending of [true, false]) {
			const actor = await fixture.actor();
			const ladder = Array.from({ length: STEPS }, (_, i) =>
				actor.sign({
					maxFeePerGas: 20n * GWEI * 2n ** BigInt(i),
					maxPriorityFeePerGas: GWEI * 2n ** BigInt(i),
				}),
			);
			const highest = ladder[STEPS - 1];
			assert.ok(highest);
			const order = ascending ? ladder : [...ladder].reverse();
			const answers = await submitAll(order);
			for (const [i, { result, error }] of answers.entries()) {
				const tx = order[i];
				assert.ok(tx);
				if (error === undefined) {
					assert.equal(result, tx.hash);
					if (tx !== highest) await fixture.reaches(tx, "REPLACED");
				} else {
					assert.match(error.message, /^replacement transaction underpriced/);
					assert.equal((await fixture.status(tx)).stage, undefined);
				}
			}
			await fixture.waitUntilSent(highest);
			for (const tx of ladder.filter((one) => one !== highest)) {
				for (const builder of system.builders.filter(({ name }) => name !== "none")) {
					await until(`${builder.name} has forgotten it`, () => fixture.liveOrders(builder, tx) === 0);
				}
			}
			const block = await system.nextBlock();
			await fixture.reaches(highest, "INCLUDED");
			assert.equal((await fixture.receipt(highest))?.block, block);
			assert.equal(await fixture.pendingNonce(actor), 1);
		}
	});
});
