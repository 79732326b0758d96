// Cancels that race with the submission's own write, a replacement, a block, other cancels or a
// slow builder, and an account that submits and cancels without a pause. Chance decides who wins;
// answers, the relay's pages and the chain agree.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { WsClient } from "../../support/clients.ts";
import { sized } from "../../support/length.ts";
import { figureOf } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";
import { type CancelFixture, NOT_PENDING, startCancels } from "../../support/userFixtures.ts";

const SOFT = "/noreverts?softCancellations=true";
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const ROUNDS = sized(6, 12);
/**
 * Turns of the event loop by which each round starts later than the one before: the last one waits
 * as long in every length.
 */
const LATER = 12 / ROUNDS;
const BLOCKS = sized(2, 4);
/** Nonces that one account uses at the same time, and transactions that it cancels for each. */
const NONCES = 5;
const CANCELS = sized(4, 8);

let fixture: CancelFixture;
before(async () => {
	fixture = await startCancels({ proxied: true });
	await fixture.passBlock();
});
after(() => fixture.system.stop());

/** So many new accounts, with funds that the relay knows of. */
async function actors(count = ROUNDS): Promise<readonly Actor[]> {
	const all = await Promise.all(Array.from({ length: count }, () => fixture.actor()));
	await fixture.passBlock();
	return all;
}

/** Awaits `turns` turns of the event loop, so that rounds hit different moments. */
async function turns(count: number): Promise<void> {
	for (let i = 0; i < count; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Its ends, as its events show them: at most one. */
async function ends(tx: Signed): Promise<readonly string[]> {
	return (await fixture.life(tx))
		.map((event) => event.split(" ")[0] ?? "")
		.filter((type) => /ced$|led$/.test(type));
}

describe("a cancel at the same time as", () => {
	it("its submission: either comes first, and it is sent or cancelled accordingly", async () => {
		const path = (i: number) => ["/fast", "/noreverts", "/nochecks"][i % 3] ?? "/";
		const rounds = await Promise.all(
			(await actors()).map(async (actor, i) => {
				const tx = actor.sign();
				const sending = fixture.tried(tx, path(i));
				await turns(i * LATER);
				const answer = await fixture.cancel(tx);
				assert.equal(await sending, tx.hash);
				return { tx, answer };
			}),
		);
		for (const { tx, answer } of rounds) {
			if (answer === true) await fixture.assertCancelled(tx);
			else {
				assert.equal(answer, NOT_PENDING);
				await fixture.waitUntilSent(tx);
			}
		}
		await fixture.fence();
		for (const { tx, answer } of rounds) if (answer === true) await fixture.withdrawn(tx);
		const block = await fixture.system.nextBlock();
		for (const { tx, answer } of rounds) {
			if (answer !== true) await fixture.reaches(tx, "INCLUDED");
			assert.equal((await fixture.receipt(tx))?.block, answer === true ? undefined : block);
		}
	});

	it("a replacement: one of them ends it, and the new one goes out either way", async () => {
		const rounds = await Promise.all(
			(await actors()).map(async (actor, i) => {
				const [old, fresh] = [actor.sign(), actor.sign({ ...BUMPED, value: 1n })];
				await fixture.submit("/fast", old);
				const replacing = fixture.tried(fresh);
				await turns(i * LATER);
				const answer = await fixture.cancel(old);
				assert.equal(await replacing, fresh.hash);
				return { actor, old, fresh, answer };
			}),
		);
		for (const { actor, old, fresh, answer } of rounds) {
			assert.ok(answer === true || answer === NOT_PENDING, String(answer));
			const stage = answer === true ? "CANCELLED" : "REPLACED";
			assert.deepEqual([(await fixture.status(old)).stage, await ends(old)], [stage, [stage.toLowerCase()]]);
			await fixture.waitUntilSent(fresh);
			await fixture.withdrawn(old);
			assert.equal(await fixture.pendingNonce(actor), 1);
		}
		await fixture.system.nextBlock();
		for (const { old, fresh } of rounds) {
			await fixture.reaches(fresh, "INCLUDED");
			assert.equal(await fixture.receipt(old), null);
		}
	});

	it("the block: its final stage agrees with the chain", async () => {
		for (let round = 0; round < BLOCKS; round += 1) {
			const all = await actors(6);
			const sent = all.map((actor) => actor.sign());
			await fixture.submit("/fast", ...sent);
			for (const tx of sent) await fixture.waitUntilSent(tx);
			const building = fixture.system.builder.buildBlock();
			await turns((160 / BLOCKS) * round);
			const answers = await Promise.all(sent.map((tx) => fixture.cancel(tx)));
			const { number } = await building;
			await fixture.seesHead(number);
			await fixture.fence();
			for (const [i, tx] of sent.entries()) {
				const mined = (await fixture.receipt(tx)) !== null;
				const answer = answers[i];
				assert.ok(answer === true || (answer === NOT_PENDING && mined), `${answer} ${mined}`);
				assert.equal((await fixture.status(tx)).stage, mined ? "INCLUDED" : "CANCELLED");
				assert.equal(await fixture.pendingNonce(all[i] ?? { address: "" }), mined ? 1 : 0);
			}
		}
	});

	it("the same bytes again and more cancels: after the last answer it is gone for good", async () => {
		const rounds = await Promise.all(
			(await actors()).map(async (actor) => {
				const tx = actor.sign();
				await fixture.submit("/nochecks", tx);
				const many = await Promise.all(
					Array.from({ length: 8 }, (_, i) =>
						i % 2 === 0 ? fixture.cancel(tx) : fixture.tried(tx, "/nochecks"),
					),
				);
				return { actor, tx, many };
			}),
		);
		for (const { actor, tx, many } of rounds) {
			assert.deepEqual(new Set(many), new Set([true, tx.hash]));
			await fixture.assertCancelled(tx);
			assert.deepEqual(await ends(tx), ["cancelled"]);
			await fixture.withdrawn(tx);
			assert.equal(await fixture.pendingNonce(actor), 0);
			for (const builder of fixture.system.builders) {
				assert.ok(fixture.cancels(builder, tx).length <= 1, "at most one cancel");
			}
		}
	});
});

describe("a soft cancel at the same time as", () => {
	it("its transaction: it cancels it, is refused as a cheaper replacement, or comes first itself", async () => {
		const rounds = await Promise.all(
			(await actors()).map(async (actor, i) => {
				const tx = actor.sign();
				const cancel = actor.sign({ to: actor.address, gasLimit: 21_000, maxFeePerGas: 19n * GWEI });
				const sending = fixture.tried(tx, SOFT);
				await turns(i * LATER);
				const answer = await fixture.tried(cancel, SOFT);
				return { actor, tx, cancel, answer, sent: await sending };
			}),
		);
		await fixture.fence();
		for (const { actor, tx, cancel, answer, sent } of rounds) {
			const stages = [(await fixture.status(tx)).stage, (await fixture.status(cancel)).stage];
			if (stages[0] === "CANCELLED") {
				assert.deepEqual([answer, sent, stages[1]], [cancel.hash, tx.hash, "CANCELLED"]);
				await fixture.withdrawn(tx);
				fixture.assertNeverSent(cancel);
				assert.equal(await fixture.pendingNonce(actor), 0);
			} else {
				// The self-transfer was there first, and an ordinary one then.
				assert.deepEqual([answer, stages[1]], [cancel.hash, "BROADCAST"]);
				assert.match(sent, /^-32000 replacement transaction underpriced/);
			}
		}
	});
});

describe("a builder that is slow", () => {
	it("gets nothing of a waiting transaction after its cancel", async () => {
		const slow = fixture.builder("other");
		slow.setFaults({ slow: 300 });
		try {
			const crowd = (await actors(8)).map((actor) => actor.sign());
			await fixture.submit("/fast", ...crowd);
			for (const tx of crowd) await fixture.waitUntilSent(tx, { builders: ["other"] });
			const waiting = (await actors(4)).map((actor) => actor.sign());
			await fixture.submit("/fast", ...waiting);
			for (const tx of waiting) await fixture.waitUntilSent(tx, { builders: ["dev"] });
			for (const tx of waiting) assert.equal(await fixture.cancel(tx), true);
			slow.setFaults({});
			await fixture.fence();
			for (const tx of waiting) {
				await until("the cancel, where it is needed", () => {
					return fixture.liveOrders(slow, tx) === 0;
				});
				const cancelled = fixture.cancels(slow, tx)[0]?.seq ?? 0;
				for (const { seq } of fixture.deliveries(slow, tx))
					assert.ok(seq < cancelled, "sent behind its cancel");
			}
		} finally {
			slow.setFaults({});
		}
	});
});

// The long form, up to the limit of one sender, is cancelFlood.nightly.ts; the limit itself is in
// unit/relay/pipeline.cancels.test.ts.
describe("an account that submits and cancels without a pause", () => {
	const gauge = (name: string) => figureOf(fixture.system.core.url, name);

	it("leaves nothing in the pool and at the builders, and its next transaction is mined", async () => {
		const [account] = await actors(1);
		assert.ok(account !== undefined);
		const pending = await gauge("relay_pending_transactions");
		const rows = Array.from({ length: NONCES }, (_, nonce) =>
			Array.from({ length: CANCELS }, (_, value) => account.sign({ nonce, value })),
		);
		await Promise.all(rows.map(submitAndCancel));
		await until("all deliveries are answered", async () => (await gauge("relay_lane_depth")) === 0);
		assert.equal(await fixture.pendingNonce(account), 0);
		assert.equal(await gauge("relay_pending_transactions"), pending);
		const txs = rows.flat();
		for (const builder of fixture.system.builders)
			assert.equal(txs.filter((tx) => fixture.liveOrders(builder, tx) > 0).length, 0, builder.name);
		for (const tx of txs) await fixture.assertCancelled(tx);
		await fixture.system.nextBlock();
		for (const tx of txs) assert.equal(await fixture.receipt(tx), null);
		const next = account.sign({ value: 10n * GWEI });
		await fixture.submit("/fast", next);
		await fixture.waitUntilSent(next);
		await fixture.system.nextBlock();
		await fixture.reaches(next, "INCLUDED");
	});

	/**
	 * Submits and cancels one after the other on a connection of its own, each as soon as the one
	 * before is answered.
	 */
	async function submitAndCancel(txs: readonly Signed[]): Promise<void> {
		const ws = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/fast`);
		for (const { raw, hash } of txs) {
			ws.send({ id: hash, method: "eth_sendRawTransaction", params: [raw] });
			assert.deepEqual(await ws.next(), { jsonrpc: "2.0", id: hash, result: hash });
			ws.send({ id: hash, method: "eth_cancelTransaction", params: [hash] });
			assert.deepEqual(await ws.next(), { jsonrpc: "2.0", id: hash, result: true });
		}
		ws.terminate();
	}
});
