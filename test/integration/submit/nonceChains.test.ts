// Tests chains of one account's nonces, sent in any order, on any path and with gaps: which are sent to builders,
// when and to whom, and that the pending nonce is right at each step.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { GWEI, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { errorString, gate, REVERTS } from "../../support/simulationContracts.ts";
import { startSystem, type TestSystem } from "../../support/startSystem.ts";

const LIFE_BLOCKS = 4;
/** More than 10 % above the factory's fees. */
const BUMPED = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const WORD_ONE = `0x${"1".padStart(64, "0")}`;

let system: TestSystem;
let fixture: RelayFixture;

before(async () => {
	system = await startSystem({
		builders: [{ name: "vault", fullPrivacy: true }, { name: "other" }],
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
	fixture = new RelayFixture(system);
});
after(() => system.stop());

/** They are all in `block`, in their order. */
async function assertMinedInOrder(transactions: readonly Signed[], block: number): Promise<void> {
	const indexes: number[] = [];
	for (const tx of transactions) {
		await fixture.reaches(tx, "INCLUDED");
		const receipt = await fixture.receipt(tx);
		indexes.push(receipt?.index ?? -1);
		assert.deepEqual([receipt?.block, receipt?.ok], [block, true]);
	}
	assert.deepEqual(
		indexes,
		[...indexes].sort((a, b) => a - b),
	);
}

function assertNeverSent(tx: Signed): void {
	for (const builder of system.builders) assert.deepEqual(fixture.deliveries(builder, tx), []);
}

async function fence(): Promise<Signed> {
	const tx = (await fixture.actor()).sign();
	await fixture.submit("/fast", tx);
	return tx;
}

describe("a chain without gaps", () => {
	it("that comes in random order and in batches is mined in order in one block", async () => {
		const actor = await fixture.actor();
		const chain = Array.from({ length: 12 }, (_, nonce) =>
			// The later ones pay more: only their nonces hold them behind the earlier ones.
			actor.sign({ nonce, maxPriorityFeePerGas: GWEI + BigInt(nonce) * 100_000_000n }),
		);
		const order = [7, 3, 11, 0, 9, 1, 10, 5, 2, 8, 4, 6];
		const shuffled = order.flatMap((i) => chain[i] ?? []);
		await fixture.submit("/fast", ...shuffled.slice(0, 4));
		const batch = shuffled.slice(4, 9);
		const answers = (await post(batch, "/fast")) as { id: number; result: string }[];
		assert.deepEqual(
			answers.map(({ id, result }) => [id, result]),
			batch.map(({ hash }, id) => [id, hash]),
		);
		await Promise.all(shuffled.slice(9).map((tx) => fixture.submit("/fast", tx)));
		assert.equal(await fixture.pendingNonce(actor), 12);
		for (const tx of chain) await fixture.sent(tx);
		const block = await system.nextBlock();
		await assertMinedInOrder(chain, block);
	});

	it("on different paths is mined in order in one block too", async () => {
		const actor = await fixture.actor();
		const paths = ["/fast", "/noreverts", "/maxbackruns", "/", "/fast", "/nochecks", "/nochecks"];
		const chain = paths.map((_, nonce) => actor.sign({ nonce }));
		for (const [i, tx] of chain.entries()) await fixture.submit(paths[i] ?? "", tx);
		for (const tx of chain) await fixture.sent(tx);
		const block = await system.nextBlock();
		await assertMinedInOrder(chain, block);
	});
});

describe("a nonce gap", () => {
	it("makes it wait as QUEUED, longer than a life; its life begins when the gap closes", async () => {
		const actor = await fixture.actor();
		const [first, second, third] = [0, 1, 2].map((nonce) => actor.sign({ nonce }));
		assert.ok(first && second && third);
		await fixture.submit("/fast", third, second);
		for (const tx of [second, third]) {
			const { status, rpc_timestamp, transaction, stage } = await fixture.reaches(tx, "QUEUED");
			assert.deepEqual([status, rpc_timestamp, transaction.from, stage], ["UNKNOWN", null, "", "QUEUED"]);
		}
		assert.equal(await fixture.pendingNonce(actor), 0);
		for (let i = 0; i <= LIFE_BLOCKS; i += 1) await fixture.passBlock();
		await fixture.sent(await fence());
		for (const tx of [second, third]) {
			assertNeverSent(tx);
			assert.equal((await fixture.status(tx)).stage, "QUEUED");
		}
		await fixture.submit("/fast", first);
		assert.equal(await fixture.pendingNonce(actor), 3);
		const begins = (await fixture.head()) + 1;
		for (let i = 0; i < LIFE_BLOCKS; i += 1) {
			for (const tx of [first, second, third]) await fixture.sent(tx, { block: begins + i });
			await fixture.passBlock();
		}
		for (const tx of [first, second, third]) await fixture.reaches(tx, "EXPIRED");
		const life = await fixture.life(second);
		assert.deepEqual(life.slice(1, 3), ["queued", `ready ${begins}`]);
		assert.equal(life.at(-1), `expired ${begins + LIFE_BLOCKS - 1}`);
	});

	it("is closed by a public transaction of the same account once that is mined", async () => {
		const actor = await fixture.actor();
		const open = actor.sign({ nonce: 0 });
		const hidden = actor.sign({ nonce: 1 });
		await fixture.publish(open);
		assert.equal(await fixture.pendingNonce(actor), 1, "the node's mempool counts");
		await fixture.submit("/fast", hidden);
		await fixture.reaches(hidden, "QUEUED");
		assert.equal(await fixture.pendingNonce(actor), 2, "and what is private behind it");
		assert.equal(await fixture.pendingNonce(actor), 2);
		await system.nextBlock();
		assert.equal((await fixture.receipt(open))?.ok, true);
		await fixture.sent(hidden);
		assert.equal(await fixture.pendingNonce(actor), 2);
		await system.nextBlock();
		await fixture.reaches(hidden, "INCLUDED");
		assert.equal(await fixture.pendingNonce(actor), 2);
	});
});

describe("behind a link that is held", () => {
	it("the others wait as QUEUED, count for the pending nonce, and go out when it passes", async () => {
		const actor = await fixture.actor();
		const to = await fixture.place(gate(errorString("shut")));
		const held = actor.sign({ nonce: 0, to });
		const behind = [1, 2].map((nonce) => actor.sign({ nonce }));
		await fixture.submit("/fast", held, ...behind);
		await fixture.reaches(held, "SIMULATION_FAILED");
		for (const tx of behind) assert.equal((await fixture.reaches(tx, "QUEUED")).status, "UNKNOWN");
		assert.equal(await fixture.pendingNonce(actor), 3);
		const opening = (await fixture.actor()).sign({ to, data: WORD_ONE });
		await fixture.submit("/fast", opening);
		await fixture.sent(opening);
		for (const tx of [held, ...behind]) assertNeverSent(tx);
		await system.nextBlock();
		for (const tx of [held, ...behind]) await fixture.sent(tx);
		const block = await system.nextBlock();
		await assertMinedInOrder([held, ...behind], block);
	});

	it("the others go out at once when it is replaced by one that passes", async () => {
		const actor = await fixture.actor();
		const held = actor.sign({ nonce: 0, to: await fixture.place(REVERTS) });
		const behind = actor.sign({ nonce: 1 });
		await fixture.submit("/noreverts", held, behind);
		await fixture.reaches(behind, "QUEUED");
		const instead = actor.sign({ nonce: 0, ...BUMPED });
		await fixture.submit("/noreverts", instead);
		await fixture.sent(behind);
		await fixture.reaches(held, "REPLACED");
		const block = await system.nextBlock();
		await assertMinedInOrder([instead, behind], block);
	});

	it("the others tell a nonce gap when it expires, and the pending nonce falls back to it", async () => {
		const actor = await fixture.actor();
		const held = actor.sign({ nonce: 0, to: await fixture.place(REVERTS) });
		await fixture.submit("/fast", held);
		await fixture.reaches(held, "SIMULATION_FAILED");
		await fixture.passBlock();
		await fixture.passBlock();
		const behind = actor.sign({ nonce: 1 });
		await fixture.submit("/fast", behind);
		await fixture.event(behind, "queued", ({ reason }) => reason === "behindHeld");
		while ((await fixture.status(held)).stage !== "EXPIRED") await fixture.passBlock();
		await fixture.event(behind, "queued", ({ reason }) => reason === "nonceGap");
		assert.equal(await fixture.pendingNonce(actor), 0);
		const instead = actor.sign({ nonce: 0, value: 1n });
		await fixture.submit("/fast", instead);
		await fixture.sent(behind);
		assertNeverSent(held);
		await assertMinedInOrder([instead, behind], await system.nextBlock());
	});
});

/** A JSON-RPC batch of submissions; the answers as they came. */
async function post(batch: readonly Signed[], path: string): Promise<unknown> {
	const calls = batch.map(({ raw }, id) => ({
		jsonrpc: "2.0",
		id,
		method: "eth_sendRawTransaction",
		params: [raw],
	}));
	const response = await fetch(`${system.client.url}${path}`, {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: JSON.stringify(calls),
	});
	return response.json();
}
