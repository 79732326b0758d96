// An account that submits and cancels as fast as it can, and a relay that is stopped while many clients follow and
// wait: nothing is left in the pool, in the records or at the builders, other clients are still served, and every
// call is answered.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createLogger } from "../../../shared/log.ts";
import { EventStreamReader, postText, RawConnection, WsClient } from "../../support/clients.ts";
import { figureOf, metricsOf, type WireAnswer } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import {
	type ProcessSystem,
	startProcessSystem,
	startSystem,
	type TestSystem,
} from "../../support/systems.ts";
import { rawTransaction, signedTransaction, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";
import { CancelFixture } from "../../support/userFixtures.ts";

const WATCH_BLOCKS = 64;
const ROUNDS = 500;
/** In one go; and nonces that it uses at the same time. */
const BURST = 125;
const NONCES = 5;
/** How much longer others' submissions may take beside the flood: it was 1.2 to 2 times as long. */
const MAX_SLOWDOWN = 8;
const STREAMS = 100;
const WAITS = 50;
/** Signal to end; the 1.5 s in which balancers learn of it included. */
const STOP_MS = 5_000;

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
		await until("the records is as small as before", async () => {
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

describe("a stop while many follow and wait", () => {
	let system: ProcessSystem;
	before(async () => {
		system = await startProcessSystem({ env: { TRUST_PROXY: "1" } });
	});
	after(() => system.stop());

	it("ends at once: streams in order, each wait by code 4 with its hash", async () => {
		const relay = await system.start();
		const txs = Array.from({ length: WAITS }, (_, i) => {
			const by = testAccount(7_000 + i);
			return { by, raw: `0x${rawTransaction({ by }).toString("hex")}`, hash: signedTransaction({ by }).hash };
		});
		await system.chain.batch(
			txs.map(({ by }) => ({ method: "anvil_setBalance", params: [by.address, "0x8ac7230489e80000"] })),
		);
		await Promise.all(txs.map(({ raw }) => relay.client.send(raw)));
		const streams = await Promise.all(
			Array.from({ length: STREAMS }, (_, i) =>
				EventStreamReader.open(`${relay.url}/tx/${txs[i % WAITS]?.hash}/events`, {
					"x-forwarded-for": `203.0.113.${i}`,
				}),
			),
		);
		const calls = txs.map(({ raw }, id) => ({
			...{ jsonrpc: "2.0", id, method: "eth_sendRawTransactionSync", params: [raw, 25_000] },
		}));
		// By HTTP one by one and in a batch, and by a websocket.
		const [single, batch, overWs] = [calls.slice(0, 20), calls.slice(20, 30), calls.slice(30)];
		const answers: WireAnswer[] = [];
		const take = (body: string) => void answers.push(...[JSON.parse(body) as WireAnswer].flat());
		for (const body of [...single, batch]) {
			const connection = await RawConnection.open(relay.port);
			connection.write(postText("/fast", body));
			void connection.answer().then((answer) => take(answer.body));
		}
		const ws = await WsClient.open(`ws://127.0.0.1:${relay.port}/fast`);
		ws.socket.on("message", (data) => take(String(data)));
		for (const call of overWs) ws.send(call);
		ws.send({ jsonrpc: "2.0", id: "last", method: "eth_chainId", params: [] });
		await until("all calls are under way", () => answers.some(({ id }) => id === "last"));
		const text = await metricsOf(relay.url);
		assert.match(text, new RegExp(`^relay_event_streams ${STREAMS}$`, "m"));
		assert.equal(answers.length, 1, "all wait");

		const begun = performance.now();
		const exit = await relay.kill("SIGTERM");
		const took = performance.now() - begun;
		assert.deepEqual([exit.code, exit.stderr], [0, ""]);
		assert.ok(took < STOP_MS, `it took ${took} ms`);
		for (const stream of streams) assert.equal(await stream.over(), "end");
		await until("all are answered", () => answers.length === WAITS + 1);
		for (const { id, error } of answers) {
			if (id === "last") continue;
			assert.deepEqual([error?.code, error?.data], [4, txs[Number(id)]?.hash]);
			assert.match(error?.message ?? "", /wasn't processed in .*shutting down/);
		}
		assert.equal((await ws.closed()).code, 1012);
	});
});

function median(values: readonly number[]): number {
	return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
