// Tests a second transaction with the same sender and nonce: which of the two counts, what builders are told, and
// that the first never comes back.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Actor, GWEI, RelayScene, type Signed } from "../support/relayScene.ts";
import { startSystem, type TestSystem } from "../support/startSystem.ts";
import type { TxOptions } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const BUMPED = { maxFeePerGas: 22n * GWEI, maxPriorityFeePerGas: (11n * GWEI) / 10n };

let system: TestSystem;
let scene: RelayScene;

before(async () => {
	system = await startSystem({
		builders: [
			{ name: "vault", fullPrivacy: true },
			{ name: "endpoint", cancel: "endpoint" },
			{ name: "empty", cancel: "empty", dialect: "mev-share" },
			{ name: "none", cancel: "none" },
		],
	});
	scene = new RelayScene(system);
});
after(() => system.stop());

async function refusal(tx: Signed, path = "/fast"): Promise<string> {
	const { error } = await system.client.ask("eth_sendRawTransaction", [tx.raw], path);
	return `${error?.code} ${error?.message}`;
}

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
			const actor = await scene.actor();
			const first = actor.sign(held);
			await scene.submit("/fast", first);
			for (const options of refused) {
				const tx = actor.sign(options);
				assert.match(await refusal(tx), UNDERPRICED);
				assert.equal((await scene.status(tx)).stage, undefined);
			}
			await scene.reaches(first, "BROADCAST");
			const second = actor.sign({ ...taken, value: 7n });
			await scene.submit("/fast", second);
			await scene.reaches(first, "REPLACED");
			await scene.reaches(second, "BROADCAST");
		});
	}
});

describe("a transaction that is replaced", () => {
	it("is REPLACED and FAILED, its builders are told, the new one goes out and is mined", async () => {
		const actor = await scene.actor();
		const [old, fresh] = [actor.sign(), actor.sign({ ...BUMPED, value: 1n })];
		await scene.submit("/fast", old);
		await scene.sent(old);
		assert.notEqual(await scene.byHash(old), null);
		await scene.submit("/fast", fresh);
		await scene.sent(fresh);
		const record = await scene.reaches(old, "REPLACED");
		assert.deepEqual(
			[record.status, record.transaction.nonce, record.simulationError],
			["FAILED", "0", null],
		);
		assert.equal((await scene.event(old, "replaced")).by, fresh.hash);
		assert.deepEqual([await scene.byHash(old), (await scene.byHash(fresh))?.blockHash], [null, null]);
		assert.equal(await scene.pendingNonce(actor), 1);
		await assertCancelled(old);
		for (const builder of system.builders) {
			const [before, now] = [old, fresh].map((tx) => scene.deliveries(builder, tx)[0]?.uuid);
			assert.notEqual(before, now);
			assert.deepEqual(scene.cancels(builder, fresh), []);
		}
		const block = await system.nextBlock();
		await scene.reaches(fresh, "INCLUDED");
		assert.deepEqual([await scene.receipt(old), (await scene.receipt(fresh))?.block], [null, block]);
		assert.equal((await scene.status(old)).stage, "REPLACED");
		assert.deepEqual(scene.blocks(system.builder, old), [block], "it is not sent again");
	});

	it("on /nochecks is told to builders by its hash", async () => {
		const actor = await scene.actor();
		const [old, fresh] = [actor.sign(), actor.sign({ ...BUMPED, value: 1n })];
		await scene.submit("/nochecks", old);
		await scene.sent(old);
		await scene.submit("/nochecks", fresh);
		await scene.sent(fresh);
		for (const builder of system.builders) {
			const call = ["eth_cancelPrivateTransaction", [{ txHash: old.hash }]];
			const expected = builder.name === "none" ? [] : [call];
			await until("the cancel", () => scene.cancels(builder, old).length === expected.length);
			assert.deepEqual(
				scene.cancels(builder, old).map(({ method, params }) => [method, params]),
				expected,
			);
		}
		await system.nextBlock();
		await scene.reaches(fresh, "INCLUDED");
	});

	it("and was out to one builder alone is cancelled there alone", async () => {
		const actor = await scene.actor();
		const hidden = actor.sign({ nonce: 0 });
		const behind = actor.sign({ nonce: 1 });
		await scene.submit("/fullprivacy", hidden);
		await scene.submit("/nochecks", behind);
		await scene.sent(behind, { builders: ["vault"] });
		await scene.submit("/nochecks", actor.sign({ nonce: 1, ...BUMPED }));
		await until("the cancel", () => scene.cancels(scene.builder("vault"), behind).length === 1);
		await fence();
		// The hash alone would tell a builder that may not know of it.
		for (const name of ["endpoint", "empty"]) {
			const requests = scene.builder(name).requests();
			assert.equal(JSON.stringify(requests).includes(behind.hash.slice(2)), false, name);
		}
		await scene.submit("/fast", actor.sign({ nonce: 0, ...BUMPED }));
		await until("the cancel", () => scene.cancels(scene.builder("vault"), hidden).length === 2);
	});

	it("and was never out is told to nobody", async () => {
		const actor = await scene.actor();
		const [old, fresh] = [actor.sign({ nonce: 1 }), actor.sign({ nonce: 1, ...BUMPED })];
		await scene.submit("/nochecks", old);
		await scene.reaches(old, "QUEUED");
		await scene.submit("/nochecks", fresh);
		await scene.reaches(old, "REPLACED");
		await scene.reaches(fresh, "QUEUED");
		await fence();
		for (const builder of system.builders) {
			assert.equal(JSON.stringify(builder.requests()).includes(old.hash.slice(2)), false);
		}
	});

	it("does not come out of a slow builder's queue any more", async () => {
		const slow = scene.builder("endpoint");
		slow.setFaults({ slow: 400 });
		const crowd: Signed[] = [];
		for (let i = 0; i < 8; i += 1) crowd.push((await scene.actor()).sign());
		await scene.submit("/fast", ...crowd);
		// All connections to it are taken now: what comes next waits.
		for (const tx of crowd) await scene.sent(tx, { builders: [slow.name] });
		const actor = await scene.actor();
		const [old, fresh] = [actor.sign(), actor.sign({ ...BUMPED, value: 1n })];
		await scene.submit("/fast", old);
		await scene.sent(old, { builders: ["vault"] });
		await scene.submit("/fast", fresh);
		slow.setFaults({});
		await scene.sent(fresh);
		await fence();
		const sent = scene.deliveries(slow, old);
		await until("the cancel, where it is needed", () => sent.length === 0 || scene.cancels(slow, old)[0]);
		const cancelled = scene.cancels(slow, old)[0]?.seq ?? 0;
		for (const { seq } of sent) assert.ok(seq < cancelled, "it was sent behind its cancel");
	});
});

describe("the bytes of a replaced transaction", () => {
	it("sent again answer the hash, and nothing happens: across a restart, and until its nonce is used", async () => {
		const actor = await scene.actor();
		const [old, fresh] = await replaced(actor);
		const before = await scene.life(old);
		await scene.submit("/fast", old);
		await scene.submit("/nochecks", old);
		await assertDead(old, fresh, before);
		await system.restart();
		await assertDead(old, fresh, before);
		await scene.submit("/fast", old);
		await scene.submit("/maxbackruns", old);
		await fence();
		await assertDead(old, fresh, before);
		const block = await system.nextBlock();
		await scene.reaches(fresh, "INCLUDED");
		assert.deepEqual([await scene.receipt(old), (await scene.receipt(fresh))?.block], [null, block]);
		assert.match(await refusal(old), /^-32000 nonce too low: next nonce 1, tx nonce 0/);
		assert.equal((await scene.status(old)).stage, "REPLACED");
	});

	it("of the winner sent again answer its hash while it is pending and after it was mined", async () => {
		const actor = await scene.actor();
		const [, fresh] = await replaced(actor);
		await scene.submit("/fast", fresh);
		await system.nextBlock();
		await scene.reaches(fresh, "INCLUDED");
		await scene.submit("/noreverts", fresh);
		assert.equal((await scene.status(fresh)).stage, "INCLUDED");
	});

	async function replaced(actor: Actor): Promise<readonly [Signed, Signed]> {
		const [old, fresh] = [actor.sign(), actor.sign({ ...BUMPED, value: 1n })];
		await scene.submit("/fast", old);
		await scene.sent(old);
		await scene.submit("/fast", fresh);
		await scene.sent(fresh);
		await scene.reaches(old, "REPLACED");
		return [old, fresh];
	}

	async function assertDead(old: Signed, fresh: Signed, life: readonly string[]): Promise<void> {
		const block = (await scene.head()) + 1;
		assert.deepEqual(await scene.life(old), life);
		assert.equal(await scene.byHash(old), null);
		assert.equal((await scene.byHash(fresh))?.hash, fresh.hash);
		for (const builder of system.builders) assert.deepEqual(scene.blocks(builder, old), [block]);
	}
});

describe("a nonce that is used elsewhere", () => {
	it("drops what has it; those behind go on, and the bytes are refused", async () => {
		const actor = await scene.actor();
		const [first, second] = [actor.sign({ nonce: 0 }), actor.sign({ nonce: 1 })];
		await scene.submit("/fast", first, second);
		await scene.sent(second);
		const open = actor.sign({ nonce: 0, value: 3n });
		await scene.publish(open);
		const block = await scene.passBlock();
		const { status } = await scene.reaches(first, "DROPPED");
		assert.equal(status, "FAILED");
		assert.equal((await scene.life(first)).at(-1), `dropped ${block}`);
		assert.equal(await scene.byHash(first), null);
		await scene.sent(second);
		assert.equal(await scene.pendingNonce(actor), 2);
		assert.match(await refusal(first), /^-32000 nonce too low: next nonce 1, tx nonce 0/);
		await system.nextBlock();
		await scene.reaches(second, "INCLUDED");
		assert.deepEqual(scene.blocks(system.builder, first), [block]);
	});
});

/** Every builder was told to forget `tx` in the way it knows, and has said so. */
async function assertCancelled(tx: Signed): Promise<void> {
	const block = `0x${((await scene.head()) + 1).toString(16)}`;
	const ways = { vault: ["endpoint", "empty"], endpoint: ["endpoint"], empty: ["empty"], none: [] };
	for (const [name, forms] of Object.entries(ways)) {
		const replacementUuid = scene.deliveries(scene.builder(name), tx)[0]?.uuid;
		const calls = {
			endpoint: ["eth_cancelBundle", [{ replacementUuid }]],
			empty: ["eth_sendBundle", [{ txs: [], blockNumber: block, replacementUuid }]],
		};
		const expected = forms.map((form) => (form === "empty" ? calls.empty : calls.endpoint));
		await until("the cancels", () => scene.cancels(scene.builder(name), tx).length === expected.length);
		const found = scene.cancels(scene.builder(name), tx).map(({ method, params }) => [method, params]);
		assert.deepEqual(new Set(found.map(String)), new Set(expected.map(String)));
		for (const call of expected) assert.ok(found.some((one) => JSON.stringify(one) === JSON.stringify(call)));
		const taken = async () =>
			(await scene.events(tx)).filter(
				({ type, kind, builder, answer }) =>
					type === "delivered" && kind === "cancel" && builder === name && answer === "accepted",
			).length;
		await until("the acknowledgements", async () => (await taken()) === expected.length);
	}
}

async function fence(): Promise<void> {
	const tx = (await scene.actor()).sign();
	await scene.submit("/fast", tx);
	await scene.sent(tx);
}
