// An account that submits and cancels until the relay refuses it leaves nothing in pool, records or
// builders, and slows down others' submissions at most eightfold. Its short form is in
// cancelRaces.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createLogger } from "../../../shared/log.ts";
import { WsClient } from "../../support/clients.ts";
import { figureOf } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";
import { CancelFixture } from "../../support/userFixtures.ts";

const WATCH_BLOCKS = 64;
const ROUNDS = 500;
/** In one go; and nonces that it uses at the same time. */
const BURST = 125;
const NONCES = 5;
/** How much longer others' submissions may take beside the flood: it was 1.2 to 2 times as long. */
const MAX_SLOWDOWN = 8;

describe("one account that submits and cancels all the time", () => {
	const faults: string[] = [];
	const log = createLogger("error", "relay", { write: (line) => void faults.push(line) });
	let system: TestSystem;
	let fixture: CancelFixture;
	before(async () => {
		// One way to cancel each, as rows have them.
		const builders = [
			{ name: "dev", cancel: "endpoint" },
			{ name: "other", cancel: "empty" },
		] as const;
		system = await startSystem({ builders, log });
		fixture = new CancelFixture(system);
		await fixture.passBlock();
	});
	after(() => system.stop());

	it("leaves nothing in memory, and slows others down within limits", async () => {
		const account = await fixture.actor();
		const pending = await gauge("relay_pending_transactions");
		const records = await gauge("relay_transaction_records");
		const txs = Array.from({ length: ROUNDS }, (_, i) => account.sign({ value: i, nonce: i % NONCES }));
		const url = `ws://127.0.0.1:${system.relay.port}/fast`;
		const sockets = await Promise.all(Array.from({ length: NONCES }, () => WsClient.open(url)));
		const quiet: number[] = [];
		const busy: number[] = [];
		// In turns, so that what else the machine does meets both.
		for (let i = 0; i < ROUNDS; i += BURST) {
			for (let k = 0; k < 6; k++) quiet.push(await time(await fixture.actor()));
			const actors = await Promise.all(Array.from({ length: 10 }, () => fixture.actor()));
			let over = false;
			const burst = txs.slice(i, i + BURST);
			const flooding = Promise.all(
				sockets.map((ws, nonce) =>
					flood(
						ws,
						burst.filter((_, k) => k % NONCES === nonce),
					),
				),
			).finally(() => {
				over = true;
			});
			for (const actor of actors) if (!over) busy.push(await time(actor));
			await flooding;
		}
		for (const ws of sockets) ws.terminate();
		assert.ok(busy.length >= 10, `only ${busy.length} submissions beside the flood`);
		const slowdown = median(busy) / median(quiet);
		assert.ok(slowdown < MAX_SLOWDOWN, `others took ${slowdown} times as long`);

		const last = txs.at(-1);
		assert.ok(last !== undefined, "there was a last one");
		await until("all deliveries are answered", async () => (await gauge("relay_lane_depth")) === 0);
		assert.equal(await fixture.pendingNonce(account), 0);
		assert.equal(await gauge("relay_pending_transactions"), pending + quiet.length + busy.length);
		const hashes = new Set(txs.map(({ hash }) => hash));
		for (const builder of system.builders) {
			const live = builder
				.orders()
				.filter(
					({ state, transactions }) => state === "live" && transactions.some(({ hash }) => hashes.has(hash)),
				);
			assert.deepEqual(live, [], `${builder.name} would still mine one`);
		}
		for (const tx of [txs[0], txs[ROUNDS >> 1], last]) {
			if (tx !== undefined) await fixture.assertCancelled(tx);
		}
		const mined = await system.nextBlock();
		const block = (await system.chain.rpc("eth_getBlockByNumber", [`0x${mined.toString(16)}`, false])) as {
			transactions: string[];
		};
		assert.deepEqual(
			block.transactions.filter((hash) => hashes.has(hash)),
			[],
		);
		// Another one with that nonce is as good as ever.
		const next = account.sign({ value: 10n * GWEI });
		await fixture.submit("/fast", next);
		await fixture.waitUntilSent(next);
		await system.nextBlock();
		await fixture.reaches(next, "INCLUDED");
		// It may not go on like this for ever: what was taken back is remembered for a while.
		const more = Array.from({ length: 100 }, (_, i) =>
			account.sign({ value: i, nonce: 1, gasLimit: 50_000 }),
		);
		let refusal: string | null = null;
		for (const tx of more) {
			const answer = await fixture.tried(tx);
			if (answer !== tx.hash) refusal ??= answer;
			else assert.equal(await fixture.cancel(tx), true);
			if (refusal !== null) break;
		}
		assert.match(refusal ?? "", /^-32000 txpool is full/);
		const { chain } = system;
		await chain.rpc("anvil_mine", [`0x${WATCH_BLOCKS.toString(16)}`, `0x${chain.slotSeconds.toString(16)}`]);
		await fixture.passBlock();
		await until("the records are as few as before", async () => {
			return (await gauge("relay_transaction_records")) <= records;
		});
		await fixture.submit("/fast", account.sign({ nonce: 1 }));
		assert.deepEqual(faults, [], "no event was illegal, and nothing of ours failed");
	});

	const gauge = (name: string) => figureOf(system.core.url, name);

	/** Submits and cancels one after the other, as soon as the one before is answered. */
	async function flood(ws: WsClient, txs: readonly Signed[]): Promise<void> {
		for (const { raw, hash } of txs) {
			ws.send({ id: hash, method: "eth_sendRawTransaction", params: [raw] });
			assert.deepEqual(await ws.next(), { jsonrpc: "2.0", id: hash, result: hash });
			ws.send({ id: hash, method: "eth_cancelTransaction", params: [hash] });
			assert.deepEqual(await ws.next(), { jsonrpc: "2.0", id: hash, result: true });
		}
	}

	/** Ms that one submission takes. */
	async function time(actor: Actor): Promise<number> {
		const tx = actor.sign();
		const begun = performance.now();
		await fixture.submit("/fast", tx);
		return performance.now() - begun;
	}
});

function median(values: readonly number[]): number {
	return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
