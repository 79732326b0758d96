// The pending nonce, as ethers, viem and cast read it, through submissions in any order,
// replacements, cancels, blocks, reorganisations, restarts, public transactions and a node that
// fails: it counts exactly what is pending without a gap, or is an error; and `latest` is the
// node's.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { REVERTS } from "../../support/contracts.ts";
import { sized } from "../../support/length.ts";
import type { NodeFault } from "../../support/nodes.ts";
import { NonceReaders } from "../../support/pendingNonces.ts";
import { type Actor, GWEI, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";

const LIFE_BLOCKS = 6;
const BUMPED = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };

let system: TestSystem;
let fixture: RelayFixture;
let readers: NonceReaders;

before(async () => {
	system = await startSystem({
		builders: [{ name: "vault", fullPrivacy: true }],
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
		proxied: true,
	});
	fixture = new RelayFixture(system);
	readers = new NonceReaders(system.client.url);
});
after(async () => {
	await readers.close();
	await system.stop();
});

/** Asserts that every client receives `pending`, and `latest`, which is the node's own. */
async function assertNonces(actor: Actor, pending: number, latest = 0, step = ""): Promise<void> {
	assert.deepEqual(await readers.read(actor.address), { pending, latest }, step);
	assert.equal(Number(await system.chain.rpc("eth_getTransactionCount", [actor.address, "latest"])), latest);
}

function chainOf(actor: Actor, length: number): Signed[] {
	return Array.from({ length }, (_, nonce) => actor.sign({ nonce }));
}

/**
 * Submits the transaction with each of `nonces` in turn; behind each the pending nonce is the one
 * beside it.
 */
async function submitted(actor: Actor, path: string, ...steps: (readonly [number, number])[]): Promise<void> {
	for (const [nonce, pending] of steps) {
		await fixture.submit(path, actor.sign({ nonce }));
		await assertNonces(actor, pending, 0, `${path}, behind nonce ${nonce}`);
	}
}

describe("submissions", () => {
	it("in order count from their answers on, whatever their paths", async () => {
		const actor = await fixture.actor();
		await assertNonces(actor, 0);
		const paths = ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks", "/"];
		for (const [nonce, path] of paths.entries()) await submitted(actor, path, [nonce, nonce + 1]);
		assert.deepEqual(await readers.readByCast(actor.address), { pending: 6, latest: 0 });
	});

	it("out of order count when what is before them is there", async () => {
		const actor = await fixture.actor();
		await submitted(actor, "/fast", [2, 0], [0, 1], [4, 1], [1, 3], [5, 3], [3, 6]);
	});

	it("that are refused do not count, nor do the same bytes once more", async () => {
		const actor = await fixture.actor(GWEI);
		await system.client.ask("eth_sendRawTransaction", [actor.sign().raw], "/fast");
		await assertNonces(actor, 0, 0, "without funds");
		const rich = await fixture.actor();
		await submitted(rich, "/noreverts", [0, 1], [0, 1], [1, 2], [0, 2]);
		const { error } = await system.client.ask("eth_sendRawTransaction", [rich.sign({ nonce: 67 }).raw]);
		assert.match(String(error?.message), /^nonce too high/);
		await assertNonces(rich, 2);
	});
});

describe("a replacement", () => {
	it("of any transaction in a chain doesn't change it, whether accepted or refused, passing or not", async () => {
		const actor = await fixture.actor();
		const failing = { ...BUMPED, to: await fixture.placeCode(REVERTS) };
		await fixture.submit("/fast", ...chainOf(actor, 3));
		for (const nonce of [1, 2, 0]) {
			const { error } = await system.client.ask("eth_sendRawTransaction", [
				actor.sign({ nonce, value: 1n }).raw,
			]);
			assert.match(String(error?.message), /^replacement transaction underpriced/);
			await assertNonces(actor, 3, 0, `nonce ${nonce} underpriced`);
			const held = actor.sign({ nonce, ...failing });
			await fixture.submit("/noreverts", held);
			await assertNonces(actor, 3, 0, `nonce ${nonce} replaced`);
		}
		await fixture.reaches(actor.sign({ nonce: 0, ...failing }), "SIMULATION_FAILED");
		await assertNonces(actor, 3);
	});
});

describe("a cancel", () => {
	it("by hash of the middle, the last and the first transaction of a chain frees that nonce", async () => {
		const actor = await fixture.actor();
		const chain = chainOf(actor, 4);
		await fixture.submit("/fast", ...chain);
		for (const [nonce, pending] of [
			[1, 1],
			[3, 1],
			[0, 0],
		] as const) {
			await cancel(chain[nonce]);
			await assertNonces(actor, pending, 0, `nonce ${nonce} cancelled`);
		}
		// The old bytes do nothing; others with their nonces close the gaps, cheaper ones too.
		await fixture.submit("/fast", ...chain);
		await assertNonces(actor, 0, 0, "the same bytes again");
		for (const [nonce, pending] of [
			[3, 0],
			[0, 1],
			[1, 4],
		] as const) {
			await fixture.submit("/maxbackruns", actor.sign({ nonce, maxFeePerGas: 19n * GWEI, value: 1n }));
			await assertNonces(actor, pending, 0, `nonce ${nonce} anew`);
		}
	});

	it("by a self-transfer frees its nonce, and the self-transfer does not count", async () => {
		const actor = await fixture.actor();
		const chain = chainOf(actor, 3);
		await fixture.submit("/noreverts?softCancellations=true", ...chain);
		const empty = (nonce: number, maxFeePerGas = 20n * GWEI): Signed =>
			actor.sign({ nonce, to: actor.address, gasLimit: 21_000, maxFeePerGas });
		await fixture.submit("/noreverts?softcancel=1", empty(1));
		await assertNonces(actor, 1, 0, "the middle one");
		await fixture.submit("/fast", empty(1), empty(1, 40n * GWEI), ...chain.slice(1, 2));
		await assertNonces(actor, 1, 0, "sent again and again");
		await fixture.submit("/fast", empty(0));
		await assertNonces(actor, 0, 0, "the first one");
		await fixture.submit("/fast", actor.sign({ nonce: 0, value: 1n }));
		await fixture.submit("/fast", actor.sign({ nonce: 1, value: 1n }));
		await assertNonces(actor, 3, 0, "both anew");
	});
});

async function cancel(tx: Signed | undefined): Promise<void> {
	assert.equal(await system.client.call("eth_cancelTransaction", [tx?.hash]), true);
}

describe("blocks", () => {
	it("that pass: an expired transaction frees its nonce and all later ones, although those stay pending", async () => {
		const actor = await fixture.actor();
		const [first, second] = chainOf(actor, 2);
		assert.ok(first && second, "two of them");
		await fixture.submit("/nochecks", first);
		await fixture.reaches(first, "BROADCAST");
		await fixture.passBlock();
		await fixture.submit("/nochecks", second);
		await fixture.reaches(second, "BROADCAST");
		for (let i = 1; i < LIFE_BLOCKS; i += 1) {
			await assertNonces(actor, 2, 0, `block ${i} of its life`);
			await fixture.passBlock();
		}
		await fixture.reaches(first, "EXPIRED");
		await assertNonces(actor, 0, 0, "expired");
		await fixture.reaches(second, "QUEUED");
		await fixture.submit("/nochecks", first);
		await assertNonces(actor, 2, 0, "admitted anew");
	});

	it("that hold the chain bit by bit, also reverted: `latest` grows and `pending` stays", async () => {
		const actor = await fixture.actor();
		const chain = [0, 1, 2].map((nonce) => actor.sign({ nonce, value: BigInt(nonce) }));
		const reverting = actor.sign({ nonce: 3, to: await fixture.placeCode(REVERTS) });
		await fixture.submit("/fast", ...chain);
		await fixture.submit("/nochecks", reverting);
		for (const [i, tx] of chain.entries()) {
			// As a builder may that takes a part of the chain alone.
			await fixture.publish(tx);
			await assertNonces(actor, 4, i, `nonce ${i} in the public mempool too`);
			await fixture.passBlock();
			await assertNonces(actor, 4, i + 1, `nonce ${i} mined`);
		}
		await fixture.waitUntilSent(reverting);
		await system.nextBlock();
		await fixture.reaches(reverting, "REVERTED");
		await assertNonces(actor, 4, 4);
		assert.deepEqual(await readers.readByCast(actor.address), { pending: 4, latest: 4 });
	});

	it("that are reorganised away: returned transactions count as before, with those pending after them", async () => {
		const actor = await fixture.actor();
		const chain = chainOf(actor, 4);
		for (const [i, tx] of chain.slice(0, 3).entries()) {
			await fixture.submit("/fast", tx);
			await fixture.waitUntilSent(tx);
			await system.nextBlock();
			await assertNonces(actor, i + 1, i + 1);
		}
		await fixture.submit("/fast", ...chain.slice(3));
		await assertNonces(actor, 4, 3);
		const [first, second, third] = chain;
		assert.ok(first && second && third, "those that were mined");
		await reorganise(1);
		await fixture.event(third, "reorged");
		await assertNonces(actor, 4, 2, "one block");
		await reorganise(3, [[first, 1]]);
		await fixture.event(second, "reorged");
		await assertNonces(actor, 4, 1, "three blocks, and the first one moved");
		for (const tx of chain.slice(1)) await fixture.waitUntilSent(tx);
		await system.nextBlock();
		await assertNonces(actor, 4, 4, "all of them mined");
	});
});

/**
 * The last `depth` blocks go, as many others come; each of `mined` is in the block behind so many
 * others.
 */
async function reorganise(depth: number, mined: readonly (readonly [Signed, number])[] = []): Promise<void> {
	// anvil mines them one after another: the relay sees the last one only.
	const release = system.node?.hold();
	const pairs = mined.map(([{ raw }, behind]) => [raw, behind]);
	await system.chain.rpc("anvil_reorg", [depth, pairs]).finally(release);
}

/** Meanwhile every answer is a refusal or the truth. */
async function restart(...truths: (readonly [Actor, number])[]): Promise<void> {
	await readers.close();
	let over = false;
	const restarted = system.restart().finally(() => {
		over = true;
	});
	const asking = truths.map(async ([actor, pending]) => {
		while (!over) {
			const params = [actor.address, "pending"];
			const answer = await system.client.ask("eth_getTransactionCount", params).catch(() => null);
			if (answer?.result !== undefined) assert.equal(Number(answer.result), pending, "while it restarts");
		}
	});
	await Promise.all([restarted, ...asking]);
	readers = new NonceReaders(system.client.url);
}

describe("a restart of the relay", () => {
	it("keeps the nonce, with gaps, held and mined transactions; during it reads are right or refused", async () => {
		const [gapped, held, mined] = [await fixture.actor(), await fixture.actor(), await fixture.actor()];
		await fixture.submit("/fast", mined.sign());
		await fixture.waitUntilSent(mined.sign());
		await system.nextBlock();
		await fixture.submit("/fast", mined.sign({ nonce: 1 }));
		for (const nonce of [0, 1, 3]) await fixture.submit("/fast", gapped.sign({ nonce }));
		const failing = held.sign({ to: await fixture.placeCode(REVERTS) });
		await fixture.submit("/noreverts", failing, held.sign({ nonce: 1 }));
		await fixture.reaches(failing, "SIMULATION_FAILED");
		await restart([gapped, 2], [held, 2], [mined, 2]);
		await assertNonces(gapped, 2);
		await assertNonces(held, 2);
		await assertNonces(mined, 2, 1);
	});
});

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
		await fixture.waitUntilSent(tx);
		await system.nextBlock();
		await assertNonces(actor, 3, 3, "all are mined");
	});

	it("that closes a gap between private ones counts once the node has what is before it", async () => {
		const actor = await fixture.actor();
		const [first, third] = await privately(actor, 0, 2);
		assert.ok(first && third, "both");
		await assertNonces(actor, 1);
		// The node's pool holds it behind a gap of its own: no node reports it.
		await publicly(actor, 1);
		await assertNonces(actor, 1);
		await fixture.waitUntilSent(first);
		await system.nextBlock();
		assert.equal((await fixture.receipt(first))?.ok, true);
		await assertNonces(actor, 3, Number(await latest(actor)), "the first one is mined");
		await fixture.waitUntilSent(third);
		await system.nextBlock();
		await assertNonces(actor, 3, 3, "all are mined");
	});

	it("with a private one's nonce changes nothing, whichever of them is mined", async () => {
		for (const wins of sized(["public"] as const, ["public", "private"] as const)) {
			const actor = await fixture.actor();
			const [, hidden] = await privately(actor, 0, 1, 2);
			assert.ok(hidden, "the private one in the middle");
			const open = await publicly(actor, 0, 1);
			await assertNonces(actor, 3, 0, `both are pending, ${wins}`);
			await fixture.waitUntilSent(hidden);
			await (wins === "public" ? fixture.passBlock() : system.nextBlock());
			const [, winner = hidden] = wins === "public" ? open : [];
			assert.equal((await fixture.receipt(winner))?.ok, true);
			if (wins === "public") await fixture.reaches(hidden, "DROPPED");
			await assertNonces(actor, 3, Number(await latest(actor)), `the ${wins} one is mined`);
		}
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
});

function latest(actor: Actor): Promise<unknown> {
	return system.chain.rpc("eth_getTransactionCount", [actor.address, "latest"]);
}

describe("a node that", () => {
	const method = "eth_getTransactionCount";
	const FAULTS: readonly (readonly [string, NodeFault])[] = [
		["closes the connection", { kind: "destroy" }],
		[
			"has an error of its own",
			{ kind: "error", code: -32603, message: "error at https://secret@node.example/v3/secret" },
		],
		["limits its clients", { kind: "error", code: -32005, message: "secret-of-the-node", status: 429 }],
		["answers null", { kind: "result", result: null }],
		["knows no such state", { kind: "error", code: -32000, message: "missing trie node" }],
		["answers an HTTP error", { kind: "html", status: 502 }],
		["breaks off in its answer", { kind: "truncated" }],
		["answers another question", { kind: "wrongId" }],
		["answers nothing that is a number", { kind: "result", result: "0x" }],
		["answers an object", { kind: "result", result: {} }],
	];
	it("fails: an error, no nonce, however it fails", async (t) => {
		const actor = await fixture.actor();
		await privately(actor, 0, 1);
		t.after(() => system.node?.setFault(null));
		for (const [what, fault] of FAULTS.slice(0, sized(4, FAULTS.length))) {
			system.node?.setFault(fault, { methods: [method] });
			const { result, error } = await system.client.ask(method, [actor.address, "pending"]);
			assert.equal(result, undefined, what);
			assert.ok(error !== undefined, what);
			assert.doesNotMatch(JSON.stringify(error), /secret/, what);
			await assert.rejects(readers.read(actor.address), /error|failed|missing/i, what);
			system.node?.setFault(null);
			await assertNonces(actor, 2, 0, `${what}, and works again`);
		}
	});

	it("is a block behind: what is pending after the missing block still counts", async (t) => {
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
