// Tests the pending nonce of an account that also sends public transactions (with the next nonce, a private one's, or
// above a gap), and while the node fails: wallets are told the nonce to use next, or an error, never another nonce.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { NodeFault } from "../../support/nodeProxy.ts";
import { NonceReaders } from "../../support/nonceReaders.ts";
import { type Actor, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/startSystem.ts";

let system: TestSystem;
let fixture: RelayFixture;
let readers: NonceReaders;

before(async () => {
	system = await startSystem({ proxied: true });
	fixture = new RelayFixture(system);
	readers = new NonceReaders(system.client.url);
});
after(async () => {
	await readers.close();
	await system.stop();
});

/** Every client is told `pending`; and `latest`, which is the node's own. */
async function assertNonces(actor: Actor, pending: number, latest = 0, step = ""): Promise<void> {
	assert.deepEqual(await readers.read(actor.address), { pending, latest }, step);
	assert.equal(Number(await system.chain.rpc("eth_getTransactionCount", [actor.address, "latest"])), latest);
}

/** As a private transaction on a path by turns; `value` tells two of one nonce apart. */
async function privately(actor: Actor, ...nonces: readonly number[]): Promise<Signed[]> {
	const sent = nonces.map((nonce) => actor.sign({ nonce, value: 1n }));
	for (const [i, tx] of sent.entries()) await fixture.submit(i % 2 === 0 ? "/fast" : "/noreverts", tx);
	return sent;
}

async function publicly(actor: Actor, ...nonces: readonly number[]): Promise<Signed[]> {
	const sent = nonces.map((nonce) => actor.sign({ nonce, value: 2n }));
	for (const tx of sent) await fixture.publish(tx);
	return sent;
}

describe("a public transaction of the same account", () => {
	it("before the private ones counts with them, pending and mined", async () => {
		const actor = await fixture.actor();
		await publicly(actor, 0, 1);
		await assertNonces(actor, 2);
		const [tx] = await privately(actor, 2);
		assert.ok(tx, "a private one behind them");
		await assertNonces(actor, 3);
		await fixture.passBlock();
		await assertNonces(actor, 3, 2, "the public ones are mined");
		await fixture.sent(tx);
		await system.nextBlock();
		await assertNonces(actor, 3, 3, "all are mined");
	});

	it("that closes a gap between private ones counts once the node has what is before it", async () => {
		const actor = await fixture.actor();
		const [first, third] = await privately(actor, 0, 2);
		assert.ok(first && third, "both");
		await assertNonces(actor, 1);
		// The node's pool holds it behind a gap of its own: no node tells of it.
		await publicly(actor, 1);
		await assertNonces(actor, 1);
		await fixture.sent(first);
		await system.nextBlock();
		assert.equal((await fixture.receipt(first))?.ok, true);
		await assertNonces(actor, 3, Number(await latest(actor)), "the first one is mined");
		await fixture.sent(third);
		await system.nextBlock();
		await assertNonces(actor, 3, 3, "all are mined");
	});

	it("with the next nonce behind private ones counts once those are mined", async () => {
		const actor = await fixture.actor();
		const [, last] = await privately(actor, 0, 1);
		assert.ok(last, "a private one before it");
		await publicly(actor, 2);
		await assertNonces(actor, 2);
		await fixture.sent(last);
		await system.nextBlock();
		await assertNonces(actor, 3, Number(await latest(actor)), "the private ones are mined");
		await fixture.passBlock();
		await assertNonces(actor, 3, 3, "all are mined");
	});

	it("with a private one's nonce changes nothing, whichever of them is mined", async () => {
		for (const wins of ["public", "private"] as const) {
			const actor = await fixture.actor();
			const [, hidden] = await privately(actor, 0, 1, 2);
			assert.ok(hidden, "the private one in the middle");
			const open = await publicly(actor, 0, 1);
			await assertNonces(actor, 3, 0, `both are pending, ${wins}`);
			await fixture.sent(hidden);
			await (wins === "public" ? fixture.passBlock() : system.nextBlock());
			const [, winner = hidden] = wins === "public" ? open : [];
			assert.equal((await fixture.receipt(winner))?.ok, true);
			if (wins === "public") await fixture.reaches(hidden, "DROPPED");
			await assertNonces(actor, 3, Number(await latest(actor)), `the ${wins} one is mined`);
		}
	});

	it("in the place of every private one counts, and what is private behind them too", async () => {
		const actor = await fixture.actor();
		await privately(actor, 0, 1, 4);
		await publicly(actor, 0, 1, 2);
		await assertNonces(actor, 3);
		await privately(actor, 3);
		await assertNonces(actor, 5);
		await fixture.passBlock();
		await assertNonces(actor, 5, 3, "the public ones are mined");
	});

	it("above a gap does not count, and private ones up to it do", async () => {
		const actor = await fixture.actor();
		await publicly(actor, 3);
		await assertNonces(actor, 0);
		await privately(actor, 0, 1);
		await assertNonces(actor, 2);
		await fixture.passBlock();
		await assertNonces(actor, 2);
		assert.deepEqual(await readers.readByCast(actor.address), { pending: 2, latest: 0 });
	});

	it("with the nonce of one that is cancelled takes its place", async () => {
		const actor = await fixture.actor();
		const [, middle, last] = await privately(actor, 0, 1, 2);
		assert.ok(middle && last, "all of them");
		assert.equal(await system.client.call("eth_cancelTransaction", [middle.hash]), true);
		await assertNonces(actor, 1);
		await publicly(actor, 0, 1);
		await assertNonces(actor, 3, 0, "the node has it");
		await fixture.passBlock();
		await assertNonces(actor, 3, 2, "it is mined");
		await fixture.sent(last);
	});
});

function latest(actor: Actor): Promise<unknown> {
	return system.chain.rpc("eth_getTransactionCount", [actor.address, "latest"]);
}

describe("a node that", () => {
	const method = "eth_getTransactionCount";
	const FAULTS: readonly (readonly [string, NodeFault])[] = [
		["closes the connection", { kind: "destroy" }],
		["answers an HTTP error", { kind: "html", status: 502 }],
		["breaks off in its answer", { kind: "truncated" }],
		["answers another question", { kind: "wrongId" }],
		["has an error of its own", { kind: "error", code: -32603, message: "secret-of-the-node" }],
		["limits its clients", { kind: "error", code: -32005, message: "secret-of-the-node", status: 429 }],
		["knows no such state", { kind: "error", code: -32000, message: "missing trie node" }],
		["answers null", { kind: "result", result: null }],
		["answers nothing that is a number", { kind: "result", result: "0x" }],
		["answers an object", { kind: "result", result: {} }],
	];
	for (const [what, fault] of FAULTS) {
		it(`${what}: an error, no nonce`, async (t) => {
			const actor = await fixture.actor();
			await privately(actor, 0, 1);
			await assertNonces(actor, 2);
			t.after(() => system.node?.setFault(null));
			system.node?.setFault(fault, { methods: [method] });
			const { result, error } = await system.client.ask(method, [actor.address, "pending"]);
			assert.equal(result, undefined);
			assert.ok(error !== undefined, "an error");
			assert.doesNotMatch(JSON.stringify(error), /secret/);
			await assert.rejects(readers.read(actor.address), /error|failed|missing/i);
			system.node?.setFault(null);
			await assertNonces(actor, 2, 0, "it works again");
		});
	}

	it("is a block behind: what is pending behind the block counts all the same", async (t) => {
		const actor = await fixture.actor();
		const chain = await privately(actor, 0, 1);
		const [first, second] = chain;
		assert.ok(first && second, "both");
		await fixture.publish(first);
		await fixture.passBlock();
		await fixture.reaches(first, "INCLUDED");
		await assertNonces(actor, 2, 1);
		t.after(() => system.node?.setFault(null));
		// One of several behind a balancer, which has not seen the block yet.
		system.node?.setFault({ kind: "result", result: "0x0" }, { methods: [method] });
		const told = await system.client.call(method, [actor.address, "pending"]);
		assert.equal(Number(told), 2);
	});
});
