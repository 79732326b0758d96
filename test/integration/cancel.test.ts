// Tests cancels by hash on each path and at each stage: the transaction leaves pool and builders and is never mined,
// its nonce is free, its links wait, and what is final or unknown is refused.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type CancelScene, NEVER_SEEN, NOT_PENDING, startCancels } from "../support/cancelScene.ts";
import { FeedClient } from "../support/feedClient.ts";
import { GWEI, type Signed } from "../support/relayScene.ts";
import { EMITS, REVERTS } from "../support/simulationContracts.ts";

const LIFE_BLOCKS = 8;
const PATHS = ["/", "/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"] as const;
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
/** Lower fees than the factory's: no replacement, ever. */
const CHEAPER = { maxFeePerGas: 15n * GWEI, maxPriorityFeePerGas: GWEI / 2n };

let scene: CancelScene;
before(async () => {
	scene = await startCancels({ proxied: true, env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) } });
	await scene.passBlock();
});
after(() => scene.system.stop());

/** A fee cap that empty blocks bring the base fee down to right behind the life of a transaction, so that it is held. */
async function hopefulFees(): Promise<{ maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }> {
	const history = await scene.system.chain.rpc("eth_feeHistory", ["0x1", "latest", []]);
	const [, next = "0x0"] = (history as { baseFeePerGas: string[] }).baseFeePerGas;
	return { maxFeePerGas: (BigInt(next) * 36n) / 100n, maxPriorityFeePerGas: 1n };
}

describe("a cancelled transaction", () => {
	for (const path of PATHS) {
		it(`of ${path} is gone at once, its builders are told, and its nonce is free`, async () => {
			const { actor, tx } = await scene.out(path);
			assert.equal(await scene.pendingNonce(actor), 1);
			assert.equal(await scene.cancel(tx, { path }), true);
			await scene.assertCancelled(tx);
			assert.equal(await scene.pendingNonce(actor), 0);
			await scene.withdrawn(tx);
			const sent = scene.timesSent(tx);
			const fresh = actor.sign({ ...CHEAPER, value: 5n });
			await scene.submit(path, fresh);
			await scene.reaches(fresh, "BROADCAST");
			assert.equal(await scene.pendingNonce(actor), 1);
			await scene.fence();
			const block = await scene.system.nextBlock();
			await scene.reaches(fresh, "INCLUDED");
			assert.deepEqual([await scene.receipt(tx), (await scene.receipt(fresh))?.block], [null, block]);
			await scene.fence();
			assert.deepEqual(scene.timesSent(tx), sent, "it was sent again");
			assert.equal((await scene.status(tx)).stage, "CANCELLED");
			const events = (await scene.events(tx)).filter(({ type }) => type === "cancelled");
			assert.equal(events.length, 1);
			assert.equal(events[0]?.block, block - 1);
		});
	}

	it("may be asked for on any path, by a websocket, in any case of hex; again it is true again", async () => {
		const { port } = scene.system.relay;
		for (const path of ["/", "/nochecks", "/fullprivacy?softCancellations=true", "/fast?referrer=x"]) {
			const { tx } = await scene.out();
			assert.equal(await scene.cancel(tx, { path }), true, path);
			assert.equal(await scene.cancel(tx), true);
		}
		const { tx } = await scene.out();
		const socket = await FeedClient.open(`ws://127.0.0.1:${port}/ws`);
		assert.equal(await socket.call("eth_cancelTransaction", [`0X${tx.hash.slice(2).toUpperCase()}`]), true);
		assert.equal(await socket.call("eth_cancelTransaction", [tx.hash]), true);
		assert.equal((await socket.ask("eth_cancelTransaction", [NEVER_SEEN])).error?.code, -32_000);
		socket.close();
		assert.equal(await scene.cancel(tx), true);
		assert.equal((await scene.life(tx)).filter((event) => event.startsWith("cancelled")).length, 1);
	});

	it("in one batch with its submission is never sent to anybody, or withdrawn at once", async () => {
		const actor = await scene.actor();
		const [tx, next] = [actor.sign(), actor.sign({ ...CHEAPER, value: 3n })];
		const call = (id: number, method: string, param: string) => ({
			jsonrpc: "2.0",
			id,
			method,
			params: [param],
		});
		const response = await fetch(`${scene.system.client.url}/fast`, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify([
				call(1, "eth_sendRawTransaction", tx.raw),
				call(2, "eth_cancelTransaction", tx.hash),
				call(3, "eth_sendRawTransaction", next.raw),
				call(4, "eth_cancelTransaction", tx.hash),
			]),
		});
		const answers = (await response.json()) as { id: number; result: unknown }[];
		assert.deepEqual(
			answers.map(({ id, result }) => [id, result]),
			[
				[1, tx.hash],
				[2, true],
				[3, next.hash],
				[4, true],
			],
		);
		await scene.sent(next);
		await scene.assertCancelled(tx);
		await scene.withdrawn(tx);
		await scene.system.nextBlock();
		await scene.reaches(next, "INCLUDED");
	});
});

describe("at each stage of its life", () => {
	/** Cancels what no builder has had, and shows that none ever hears of it. */
	async function unheard(tx: Signed, address: string): Promise<void> {
		assert.equal(await scene.cancel(tx), true);
		await scene.assertCancelled(tx);
		assert.equal(await scene.pendingNonce({ address }), 0);
	}

	for (const [path, stage] of [
		["/fast", "PENDING"],
		["/noreverts", "PENDING"],
		["/maxbackruns", "SHARED"],
	] as const) {
		it(`${stage} on ${path}, while it is simulated`, async () => {
			const actor = await scene.actor();
			const tx = actor.sign({ to: await scene.place(EMITS) });
			const release = scene.system.node?.hold(["eth_simulateV1", "debug_traceCall"]) ?? (() => {});
			try {
				await scene.submit(path, tx);
				await scene.reaches(tx, stage);
				await unheard(tx, actor.address);
			} finally {
				release();
			}
			await scene.fence();
			await scene.passBlock();
			await scene.fence();
			scene.assertUnheard(tx);
			assert.equal((await scene.status(tx)).stage, "CANCELLED");
		});
	}

	it("QUEUED behind a gap: when it closes nothing goes out", async () => {
		const actor = await scene.actor();
		const [first, tx] = [actor.sign(), actor.sign({ nonce: 1 })];
		await scene.submit("/fast", tx);
		await scene.reaches(tx, "QUEUED");
		await unheard(tx, actor.address);
		await scene.submit("/fast", first);
		await scene.sent(first);
		await scene.fence();
		scene.assertUnheard(tx);
		assert.equal(await scene.pendingNonce(actor), 1);
	});

	it("SIMULATION_FAILED: it never passes", async () => {
		const place = await scene.place(REVERTS);
		const actor = await scene.actor();
		const tx = actor.sign({ to: place });
		await scene.submit("/noreverts", tx);
		await scene.reaches(tx, "SIMULATION_FAILED");
		await unheard(tx, actor.address);
		await scene.system.chain.rpc("anvil_setCode", [place, "0x"]);
		await scene.passBlock();
		await scene.fence();
		scene.assertUnheard(tx);
		await scene.assertCancelled(tx);
	});

	it("held for its fee cap, which nothing is said of any more", async () => {
		const actor = await scene.actor();
		const tx = actor.sign(await hopefulFees());
		await scene.submit("/fast", tx);
		await scene.reaches(tx, "SIMULATION_FAILED");
		await unheard(tx, actor.address);
		const { simulationError } = await scene.status(tx);
		assert.equal(simulationError?.code, "FEE_CAP_TOO_LOW");
	});

	it("each final one is refused in the words for an unknown hash, and stays what it is", async () => {
		const finals: [Signed, string][] = [];
		const add = async (path: string, options: object, stage: string) => {
			const { actor, tx } = await scene.out(path, options);
			finals.push([tx, stage]);
			return { actor, tx };
		};
		const expiring = (await scene.actor()).sign(await hopefulFees());
		await scene.submit("/fast", expiring);
		await scene.reaches(expiring, "SIMULATION_FAILED");
		finals.push([expiring, "EXPIRED"]);
		for (let i = 0; i < LIFE_BLOCKS; i += 1) await scene.passBlock();
		await scene.reaches(expiring, "EXPIRED");
		await add("/fast", {}, "INCLUDED");
		await add("/nochecks", { to: await scene.place(REVERTS) }, "REVERTED");
		const { actor: bumper } = await add("/fast", {}, "REPLACED");
		const successor = bumper.sign(BUMPED);
		await scene.submit("/fast", successor);
		await scene.sent(successor);
		const { actor: elsewhere } = await add("/fast", { ...CHEAPER }, "DROPPED");
		await scene.publish(elsewhere.sign({ ...BUMPED, value: 9n }));
		await scene.system.nextBlock();
		for (const [tx, stage] of finals) {
			await scene.reaches(tx, stage);
			const life = await scene.life(tx);
			assert.equal(await scene.cancel(tx), NOT_PENDING, stage);
			assert.deepEqual([(await scene.status(tx)).stage, await scene.life(tx)], [stage, life]);
		}
		assert.equal(await scene.cancel({ hash: NEVER_SEEN }), NOT_PENDING);
	});
});

describe("in a chain of nonces", () => {
	it("what is behind it waits as QUEUED, and goes on when the gap is closed", async () => {
		const actor = await scene.actor();
		const links = [0, 1, 2, 3].map((nonce) => actor.sign({ nonce }));
		const [first, second, third, fourth] = links as [Signed, Signed, Signed, Signed];
		await scene.submit("/fast", ...links);
		for (const link of links) await scene.sent(link);
		assert.equal(await scene.pendingNonce(actor), 4);
		assert.equal(await scene.cancel(second), true);
		assert.equal(await scene.pendingNonce(actor), 1);
		for (const link of [third, fourth]) await scene.reaches(link, "QUEUED");
		await scene.withdrawn(second);
		await scene.system.nextBlock();
		await scene.reaches(first, "INCLUDED");
		assert.deepEqual([await scene.receipt(second), await scene.receipt(third)], [null, null]);
		const fresh = actor.sign({ ...CHEAPER, nonce: 1, value: 8n });
		await scene.submit("/fast", fresh);
		for (const link of [fresh, third, fourth]) await scene.sent(link);
		assert.equal(await scene.pendingNonce(actor), 4);
		const block = await scene.system.nextBlock();
		for (const link of [fresh, third, fourth]) await scene.reaches(link, "INCLUDED");
		const mined = await Promise.all([fresh, third, fourth].map((link) => scene.receipt(link)));
		assert.deepEqual(
			mined.map((receipt) => receipt?.block),
			[block, block, block],
		);
		await scene.assertCancelled(second);
	});

	it("the last one leaves those before it alone, and the first one stops all", async () => {
		const actor = await scene.actor();
		const links = [0, 1, 2].map((nonce) => actor.sign({ nonce }));
		const [first, second, third] = links as [Signed, Signed, Signed];
		await scene.submit("/noreverts", ...links);
		for (const link of links) await scene.sent(link);
		assert.equal(await scene.cancel(third), true);
		assert.deepEqual([(await scene.status(second)).stage, await scene.pendingNonce(actor)], ["BROADCAST", 2]);
		assert.equal(await scene.cancel(first), true);
		await scene.reaches(second, "QUEUED");
		assert.equal(await scene.pendingNonce(actor), 0);
		await scene.system.nextBlock();
		for (const link of links) assert.equal(await scene.receipt(link), null);
	});
});
