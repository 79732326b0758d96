// Cancels by hash, on each path and at each stage: the transaction leaves pool and builders and is
// never mined, its nonce is free, its links wait, and what is final or unknown is refused. The
// rights to cancel are in cancelRights.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { EMITS, REVERTS } from "../../support/contracts.ts";
import { FeedClient } from "../../support/feeds.ts";
import { GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";
import { type CancelFixture, NEVER_SEEN, NOT_PENDING, startCancels } from "../../support/userFixtures.ts";

const LIFE_BLOCKS = 8;
const PATHS = ["/", "/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"] as const;
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
/** Lower fees than the factory's: no replacement, ever. */
const CHEAPER = { maxFeePerGas: 15n * GWEI, maxPriorityFeePerGas: GWEI / 2n };

let fixture: CancelFixture;
before(async () => {
	const env = { TX_TTL_BLOCKS: String(LIFE_BLOCKS), TRUST_PROXY: "1" };
	fixture = await startCancels({ proxied: true, env });
	await fixture.passBlock();
});
after(() => fixture.system.stop());

async function waits(tx: Signed): Promise<void> {
	await until(
		"it waits",
		async () => (await fixture.status(tx)).state === "waiting for the base fee to fall",
	);
}

/**
 * A fee cap that empty blocks bring the base fee down to right behind the life of a transaction, so
 * that it is held.
 */
async function hopefulFees(): Promise<{ maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }> {
	const history = await fixture.system.chain.rpc("eth_feeHistory", ["0x1", "latest", []]);
	const [, next = "0x0"] = (history as { baseFeePerGas: string[] }).baseFeePerGas;
	return { maxFeePerGas: (BigInt(next) * 36n) / 100n, maxPriorityFeePerGas: 1n };
}

describe("a cancelled transaction", () => {
	it("on each path is gone at once, its builders get cancels, and its nonce is free for a cheaper one", async () => {
		const rounds = [];
		for (const path of PATHS) {
			const { actor, tx } = await fixture.out(path);
			assert.equal(await fixture.pendingNonce(actor), 1, path);
			assert.equal(await fixture.cancel(tx, { path }), true, path);
			await fixture.assertCancelled(tx);
			assert.equal(await fixture.pendingNonce(actor), 0, path);
			await fixture.withdrawn(tx);
			const sent = fixture.timesSent(tx);
			const fresh = actor.sign({ ...CHEAPER, value: 5n });
			await fixture.submit(path, fresh);
			await fixture.reaches(fresh, "BROADCAST");
			assert.equal(await fixture.pendingNonce(actor), 1, path);
			rounds.push({ path, tx, fresh, sent });
		}
		await fixture.fence();
		const block = await fixture.system.nextBlock();
		await fixture.fence();
		for (const { path, tx, fresh, sent } of rounds) {
			await fixture.reaches(fresh, "INCLUDED");
			assert.deepEqual(
				[await fixture.receipt(tx), (await fixture.receipt(fresh))?.block],
				[null, block],
				path,
			);
			assert.deepEqual(fixture.timesSent(tx), sent, `${path}: it was sent again`);
			assert.equal((await fixture.status(tx)).stage, "CANCELLED");
			const events = (await fixture.events(tx)).filter(({ type }) => type === "cancelled");
			assert.deepEqual(
				events.map((event) => event.block),
				[block - 1],
			);
		}
	});

	it("can be cancelled on any path, over a websocket and in any case of hex; cancelling again returns true again", async () => {
		const { port } = fixture.system.relay;
		for (const path of ["/", "/nochecks", "/fullprivacy?softCancellations=true", "/fast?referrer=x"]) {
			const { tx } = await fixture.out();
			assert.equal(await fixture.cancel(tx, { path }), true, path);
			assert.equal(await fixture.cancel(tx), true);
		}
		const { tx } = await fixture.out();
		const socket = await FeedClient.open(`ws://127.0.0.1:${port}/ws`);
		assert.equal(await socket.call("eth_cancelTransaction", [`0X${tx.hash.slice(2).toUpperCase()}`]), true);
		assert.equal(await socket.call("eth_cancelTransaction", [tx.hash]), true);
		assert.equal((await socket.ask("eth_cancelTransaction", [NEVER_SEEN])).error?.code, -32_000);
		socket.close();
		assert.equal(await fixture.cancel(tx), true);
		assert.equal((await fixture.life(tx)).filter((event) => event.startsWith("cancelled")).length, 1);
	});

	it("and submitted in one batch is never sent to a builder, or cancelled there at once", async () => {
		const actor = await fixture.actor();
		const [tx, next] = [actor.sign(), actor.sign({ ...CHEAPER, value: 3n })];
		const call = (id: number, method: string, param: string) => ({
			jsonrpc: "2.0",
			id,
			method,
			params: [param],
		});
		const response = await fetch(`${fixture.system.client.url}/fast`, {
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
		await fixture.waitUntilSent(next);
		await fixture.assertCancelled(tx);
		await fixture.withdrawn(tx);
		await fixture.system.nextBlock();
		await fixture.reaches(next, "INCLUDED");
	});
});

describe("at each stage of its life", () => {
	/** Cancels what no builder was sent; none is sent it afterwards either. */
	async function cancelUnsent(tx: Signed, address: string): Promise<void> {
		assert.equal(await fixture.cancel(tx), true);
		await fixture.assertCancelled(tx);
		assert.equal(await fixture.pendingNonce({ address }), 0);
	}

	for (const [path, stage] of [
		["/fast", "PENDING"],
		["/noreverts", "PENDING"],
		["/maxbackruns", "SHARED"],
	] as const) {
		it(`${stage} on ${path}, while it is simulated`, async () => {
			const actor = await fixture.actor();
			const tx = actor.sign({ to: await fixture.placeCode(EMITS) });
			const release = fixture.system.node?.hold(["eth_simulateV1", "debug_traceCall"]) ?? (() => {});
			try {
				await fixture.submit(path, tx);
				await fixture.reaches(tx, stage);
				await cancelUnsent(tx, actor.address);
			} finally {
				release();
			}
			await fixture.fence();
			await fixture.passBlock();
			await fixture.fence();
			fixture.assertNeverSent(tx);
			assert.equal((await fixture.status(tx)).stage, "CANCELLED");
		});
	}

	it("QUEUED behind a gap: when it closes nothing goes out", async () => {
		const actor = await fixture.actor();
		const [first, tx] = [actor.sign(), actor.sign({ nonce: 1 })];
		await fixture.submit("/fast", tx);
		await fixture.reaches(tx, "QUEUED");
		await cancelUnsent(tx, actor.address);
		await fixture.submit("/fast", first);
		await fixture.waitUntilSent(first);
		await fixture.fence();
		fixture.assertNeverSent(tx);
		assert.equal(await fixture.pendingNonce(actor), 1);
	});

	it("SIMULATION_FAILED: it never passes", async () => {
		const place = await fixture.placeCode(REVERTS);
		const actor = await fixture.actor();
		const tx = actor.sign({ to: place });
		await fixture.submit("/noreverts", tx);
		await fixture.reaches(tx, "SIMULATION_FAILED");
		await cancelUnsent(tx, actor.address);
		await fixture.system.chain.rpc("anvil_setCode", [place, "0x"]);
		await fixture.passBlock();
		await fixture.fence();
		fixture.assertNeverSent(tx);
		await fixture.assertCancelled(tx);
	});

	it("waiting for the base fee, which its status no longer mentions", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign(await hopefulFees());
		await fixture.submit("/fast", tx);
		await waits(tx);
		await cancelUnsent(tx, actor.address);
		const { simulationError, reason } = await fixture.status(tx);
		assert.equal(simulationError?.code, "FEE_CAP_TOO_LOW");
		assert.equal(reason, "the sender cancelled it");
	});

	it("each final stage is refused with the error for an unknown hash, and stays", async () => {
		const finals: [Signed, string][] = [];
		const add = async (path: string, options: object, stage: string) => {
			const { actor, tx } = await fixture.out(path, options);
			finals.push([tx, stage]);
			return { actor, tx };
		};
		const expiring = (await fixture.actor()).sign(await hopefulFees());
		await fixture.submit("/fast", expiring);
		await waits(expiring);
		finals.push([expiring, "EXPIRED"]);
		for (let i = 0; i < LIFE_BLOCKS; i += 1) await fixture.passBlock();
		await fixture.reaches(expiring, "EXPIRED");
		await add("/fast", {}, "INCLUDED");
		await add("/nochecks", { to: await fixture.placeCode(REVERTS) }, "REVERTED");
		const { actor: bumper } = await add("/fast", {}, "REPLACED");
		const successor = bumper.sign(BUMPED);
		await fixture.submit("/fast", successor);
		await fixture.waitUntilSent(successor);
		const { actor: elsewhere } = await add("/fast", { ...CHEAPER }, "DROPPED");
		await fixture.publish(elsewhere.sign({ ...BUMPED, value: 9n }));
		await fixture.system.nextBlock();
		for (const [tx, stage] of finals) {
			await fixture.reaches(tx, stage);
			const life = await fixture.life(tx);
			assert.equal(await fixture.cancel(tx), NOT_PENDING, stage);
			assert.deepEqual([(await fixture.status(tx)).stage, await fixture.life(tx)], [stage, life]);
		}
		assert.equal(await fixture.cancel({ hash: NEVER_SEEN }), NOT_PENDING);
	});
});

describe("in a chain of nonces", () => {
	it("the last one has no effect on those before it, and the first one stops all", async () => {
		const actor = await fixture.actor();
		const links = [0, 1, 2].map((nonce) => actor.sign({ nonce }));
		const [first, second, third] = links as [Signed, Signed, Signed];
		await fixture.submit("/noreverts", ...links);
		for (const link of links) await fixture.waitUntilSent(link);
		assert.equal(await fixture.cancel(third), true);
		assert.deepEqual(
			[(await fixture.status(second)).stage, await fixture.pendingNonce(actor)],
			["BROADCAST", 2],
		);
		assert.equal(await fixture.cancel(first), true);
		await fixture.reaches(second, "QUEUED");
		assert.equal(await fixture.pendingNonce(actor), 0);
		for (const gone of [first, third]) await fixture.withdrawn(gone);
		await fixture.system.nextBlock();
		for (const link of links) assert.equal(await fixture.receipt(link), null);
	});
});
