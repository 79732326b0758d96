// Four addresses disclose as much as their limits allow. A searcher on a line of 16 Mbit/s keeps
// its feed and misses nothing, and an honest user's transaction is disclosed at once.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { WebSocket } from "ws";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { attackerAddress, HONEST, resultOf } from "../support/attacks/wire.ts";
import { sized } from "../support/length.ts";
import { type SlowLine, startSlowLine } from "../support/slowLine.ts";
import { rawTransaction, type TestAccount, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const LINE = { bitsPerSecond: 16_000_000, delayMs: 0 };
/** Calldata of the largest transaction that is admitted; twice as much is disclosed. */
const LARGE = 128 * 1024 - 200;
/**
 * Transactions of each address: as many as the rate limit allows at once, then each second, until
 * it has used its quota of the pool.
 */
const AT_ONCE = sized(25, 60);
const [FOLLOWING, EACH_TIME] = [sized(0, 22), 6];
const ADDRESSES = [0, 1, 2, 3].map(attackerAddress);
/** Disclosed at most: at once one of each address and two of any; and a MiB a second. */
const [LARGE_AT_ONCE, LARGE_A_SECOND] = [6, 4.01];
/** The first account of each address. */
const firstOf = (address: string): number => 830_000 + 1_000 * ADDRESSES.indexOf(address);
/** Time between honest transactions, so that their client need not wait for others. */
const HONEST_EVERY_MS = 250;
/** The longest time until the searcher has one, in ms, on a machine without other work. */
const SHOWN_MS = sized(Number.POSITIVE_INFINITY, 2_000);
/** Enough for some minutes. */
const HONEST_AT_MOST = 1_000;
const ETHER = 10n ** 18n;
const GWEI = 10 ** 9;

/** A searcher on the feed. */
class Searcher {
	/** Hashes in the order in which they were shown, with the monotonic time in ms. */
	readonly shown = new Map<string, number>();
	/** Close code and reason, once the connection is closed. */
	end: string | null = null;
	readonly #socket: WebSocket;
	#isSubscribed = false;

	private constructor(port: number) {
		this.#socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
		this.#socket.on("error", () => {});
		this.#socket.on("close", (code, reason) => {
			this.end = `${code} ${reason.toString()}`;
		});
		this.#socket.on("message", (data) => {
			const { params } = JSON.parse(String(data)) as { params?: { result: { hash: string } } };
			if (params === undefined) this.#isSubscribed = true;
			else this.shown.set(params.result.hash, performance.now());
		});
	}

	static async open(port: number): Promise<Searcher> {
		const searcher = new Searcher(port);
		const socket = searcher.#socket;
		await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
		const params = ["service_partialPendingTransactions"];
		socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params }));
		await until("it is subscribed", () => searcher.#isSubscribed);
		return searcher;
	}

	close(): void {
		this.#socket.terminate();
	}
}

let fixture: AttackFixture;
let line: SlowLine;
before(async () => {
	fixture = await startAttackFixture({ isTimed: false });
	line = await startSlowLine(fixture.relay.port, LINE);
});
after(async () => {
	await line?.stop();
	await fixture?.stop();
});

/** Sends all that one address may, and returns the number of transactions that were accepted. */
async function flood(from: string): Promise<number> {
	let [sent, accepted] = [0, 0];
	const send = async (count: number): Promise<void> => {
		const order = { from, count, size: LARGE, connections: 2, accounts: firstOf(from) + sent };
		const { outcomes } = await fixture.attacker.attack("shown", order);
		sent += count;
		accepted += outcomes.accepted ?? 0;
	};
	await send(AT_ONCE);
	for (let i = 0; i < FOLLOWING; i++) {
		const end = performance.now() + 1_000;
		await send(EACH_TIME);
		await until("the rate limit allows more", () => performance.now() > end);
	}
	return accepted;
}

/** Submits an honest transaction. Returns its hash and whether it is disclosed by then. */
async function submit(by: TestAccount) {
	const call = { url: `${fixture.relay.url}/maxbackruns`, from: HONEST, deadlineMs: 60_000 };
	const raw = rawTransaction({ by, maxFeePerGas: 3 * GWEI });
	const hash = String(await resultOf("eth_sendRawTransaction", [`0x${raw.toString("hex")}`], call));
	return { hash, isShared: (await fixture.relay.client.status(hash)).shared };
}

/** Submits honest ones until `isOver`. Returns their number, and the longest time to `searcher`. */
async function submitUntil(isOver: () => boolean, searcher: Searcher) {
	let [count, longestMs] = [0, 0];
	for (; !isOver(); count++) {
		const sentAt = performance.now();
		const { hash, isShared } = await submit(testAccount(820_000 + count));
		assert.ok(isShared, "an honest transaction is disclosed at once");
		await until("the searcher has it", () => searcher.shown.has(hash) || searcher.end !== null);
		assert.equal(searcher.end, null, "the searcher keeps its connection");
		longestMs = Math.max(longestMs, (searcher.shown.get(hash) ?? 0) - sentAt);
		await until("the next one", () => performance.now() > sentAt + HONEST_EVERY_MS);
	}
	return { count, longestMs };
}

it("a searcher of 16 Mbit/s keeps its feed while four addresses disclose all that they may", async () => {
	const attackers = ADDRESSES.flatMap((address) =>
		Array.from({ length: AT_ONCE + FOLLOWING * EACH_TIME }, (_, i) => testAccount(firstOf(address) + i)),
	);
	const honest = Array.from({ length: HONEST_AT_MOST }, (_, i) => testAccount(820_000 + i));
	await fixture.chain.fund([...honest, ...attackers], ETHER);
	const [slow, quick] = [await Searcher.open(line.port), await Searcher.open(fixture.relay.port)];
	const begun = performance.now();
	let isOver = false;
	const flooding = Promise.all(ADDRESSES.map(flood)).finally(() => {
		isOver = true;
	});
	const [accepted, { count, longestMs }] = await Promise.all([flooding, submitUntil(() => isOver, slow)]);
	const total = accepted.reduce((sum, one) => sum + one, 0);
	const disclosed = [...quick.shown.keys()];
	const large = disclosed.length - count;
	const seconds = (performance.now() - begun) / 1_000;
	fixture.say(`of ${total} in ${seconds} s ${large} disclosed, honest ones shown after ${longestMs} ms`);
	await until("the searcher has the same", () => slow.shown.size >= disclosed.length || slow.end !== null);
	assert.equal(slow.end, null);
	assert.deepEqual([...slow.shown.keys()].slice(0, disclosed.length), disclosed);
	assert.ok(total >= ADDRESSES.length * AT_ONCE, `only ${total} were accepted`);
	assert.ok(large <= LARGE_AT_ONCE + LARGE_A_SECOND * seconds, `${large} disclosed in ${seconds} s`);
	assert.ok(longestMs <= SHOWN_MS, `an honest transaction was shown after ${Math.round(longestMs)} ms`);
	slow.close();
	quick.close();
});
