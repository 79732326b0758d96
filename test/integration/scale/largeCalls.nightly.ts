// Large answers and large calls between an edge and its core delay no other client of the edge:
// neither when one address requests answers of 8 MB as fast as it may, nor on a line of 100 Mbit/s.

import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { Agent, request } from "undici";
import { pause, systemClock } from "../../../shared/clock.ts";
import { median } from "../../bench/load.ts";
import {
	CONNECTION_ENDED,
	clientAt,
	type EdgeWorld,
	type LineRelay,
	startEdgeWorld,
} from "../../support/edgeWorld.ts";
import { heldSoFar, turnLimit } from "../../support/eventLoopTime.ts";
import { rawTransaction, type TestAccount } from "../../support/txFactory.ts";

const GREEDY = "192.0.2.66";
const HONEST = "198.51.100.7";
/** Code that returns 4,000,000 bytes, which are 8 MB of JSON. */
const [LARGE, LARGE_CODE] = [`0x${"00".repeat(19)}aa`, "0x63003d09005ff3"];
const LARGE_CHARS = 8_000_000;
/** The beginning of such an answer. */
const RESULT = '{"jsonrpc":"2.0","id":1,"result":"0x00';
const MINUTE_MS = 60_000;
const HONEST_SUBMISSIONS = 100;
/** Reads that one client has under way. */
const AT_ONCE = 8;
/** Other clients' median time on the line, in ms, on a machine that does nothing else. */
const OTHERS_MS = 50;
const LINE = { bitsPerSecond: 100_000_000, delayMs: 1 };
/** On a busy machine a round is tried again. */
const ROUNDS = 3;
const ROUND_MS = 6_000;
const CALLS = 64;
/** Length of a large call. */
const CALL_CHARS = 120_000;

interface Pair {
	readonly core: LineRelay;
	readonly edge: LineRelay;
}

let world: EdgeWorld;
/** Large answers are read by many connections at a time, and are not kept. */
const agent = new Agent({ connections: 64 });

before(async () => {
	world = await startEdgeWorld();
	await world.chain.rpc("anvil_setCode", [LARGE, LARGE_CODE]);
});
after(async () => {
	await agent.close();
	await world?.stop();
});

/** Signs the first transaction of an account, as 0x hex. */
function signed(by: TestAccount, data = Buffer.alloc(0)): string {
	const gasLimit = 21_000 + 40 * data.length;
	return `0x${rawTransaction({ by, data, gasLimit, maxFeePerGas: 10n ** 11n }).toString("hex")}`;
}

/**
 * The length of the answer to a large read of `by` behind its own pending transaction, from the
 * address that submitted that; 0 for another answer.
 */
async function readLarge({ url }: LineRelay, by: TestAccount): Promise<number> {
	const { body } = await request(url, {
		dispatcher: agent,
		method: "POST",
		headers: { "content-type": "application/json", "x-forwarded-for": GREEDY },
		body: JSON.stringify({
			...{ jsonrpc: "2.0", id: 1, method: "eth_call" },
			params: [{ from: by.address, to: LARGE }, "pending"],
		}),
	});
	let length = 0;
	let begin = "";
	for await (const chunk of body) {
		if (begin.length < RESULT.length) begin += (chunk as Buffer).toString("latin1", 0, RESULT.length);
		length += (chunk as Buffer).length;
	}
	return begin.startsWith(RESULT) ? length : 0;
}

/** Runs `work` again and again, `count` at a time, until `isOver`; resolves to its results. */
async function repeated<T>(count: number, isOver: () => boolean, work: () => Promise<T>): Promise<T[]> {
	const results: T[] = [];
	const run = async () => {
		while (!isOver()) results.push(await work());
	};
	await Promise.all(Array.from({ length: count }, run));
	return results;
}

function connectionsEnded({ edge }: Pair): number {
	return edge.logs().filter(({ msg }) => msg === CONNECTION_ENDED).length;
}

test("one address requests answers of 8 MB as fast as it may for a minute: the edge stays connected, and no submission is refused", async (t) => {
	const pair = { core: await world.start(), edge: await world.start() };
	t.after(() => stop(pair));
	const { core, edge } = pair;
	const [greedy, ...honest] = await world.accounts(1 + HONEST_SUBMISSIONS);
	assert.ok(greedy !== undefined);
	await clientAt(edge, GREEDY).send(signed(greedy), "/nochecks");
	assert.ok((await readLarge(edge, greedy)) > LARGE_CHARS);
	for (const one of [core, edge]) await heldSoFar(one);
	const end = systemClock.monotonic() + MINUTE_MS;
	const isOver = () => systemClock.monotonic() > end;
	const reading = repeated(AT_ONCE, isOver, () => readLarge(edge, greedy));
	const refused: string[] = [];
	for (const by of honest) {
		const due = pause(systemClock, MINUTE_MS / HONEST_SUBMISSIONS);
		await clientAt(edge, HONEST)
			.send(signed(by))
			.catch(({ message }: Error) => refused.push(message));
		await due;
	}
	const lengths = await reading;
	const large = lengths.filter((length) => length > LARGE_CHARS).length;
	const [atCore, atEdge] = [await heldSoFar(core), await heldSoFar(edge)];
	t.diagnostic(
		`${large} of ${lengths.length} answers were large; event loops blocked for ${atCore.toFixed(1)} ms (core), ${atEdge.toFixed(1)} ms (edge)`,
	);
	assert.deepEqual(refused, []);
	assert.equal(connectionsEnded(pair), 0);
	assert.ok(large > HONEST_SUBMISSIONS, `${large} large answers`);
	assert.ok(atCore < turnLimit(), `the core's event loop was blocked for ${atCore} ms`);
});

async function stop({ core, edge }: Pair): Promise<void> {
	// The edge first, so that it does not become the core.
	await edge.kill();
	await core.kill();
}

/** The median time of other clients' submissions and small reads while `load` runs, in ms. */
async function othersTimes(
	{ edge }: Pair,
	others: readonly TestAccount[],
	load: (isOver: () => boolean) => Promise<unknown>,
): Promise<number> {
	let isOver = false;
	const loading = load(() => isOver);
	const times: number[] = [];
	const client = clientAt(edge, HONEST);
	const end = systemClock.monotonic() + ROUND_MS;
	for (const by of others) {
		for (const ask of [
			() => client.send(signed(by), "/nochecks"),
			() => client.call("eth_getTransactionCount", [by.address, "pending"]),
		]) {
			const begun = systemClock.monotonic();
			await ask();
			times.push(systemClock.monotonic() - begun);
			await pause(systemClock, 10);
		}
		if (systemClock.monotonic() > end) break;
	}
	isOver = true;
	await loading;
	return median(times);
}

/** Asserts that the others' median is short while `load` runs. */
async function assertOthersServed(
	t: TestContext,
	pair: Pair,
	load: (isOver: () => boolean) => Promise<unknown>,
): Promise<void> {
	const limitMs = (OTHERS_MS * turnLimit()) / 20;
	const found: string[] = [];
	for (let round = 0; round < ROUNDS; round += 1) {
		const idle = await othersTimes(pair, await world.accounts(100), async () => {});
		for (const one of [pair.core, pair.edge]) await heldSoFar(one);
		const busy = await othersTimes(pair, await world.accounts(600), load);
		const held = [await heldSoFar(pair.core), await heldSoFar(pair.edge)].map((ms) => ms.toFixed(1));
		found.push(`${busy.toFixed(1)} ms, ${idle.toFixed(1)} ms without; event loops blocked for ${held} ms`);
		t.diagnostic(found.at(-1) ?? "");
		if (busy < limitMs) break;
	}
	assert.equal(connectionsEnded(pair), 0);
	assert.ok(Number.parseFloat(found.at(-1) ?? "") < limitMs, `${found.join("; ")}; limit ${limitMs} ms`);
}

test("on a line of 100 Mbit/s", async (t) => {
	const env = { RATE_LIMIT_RPS: "0" };
	const pair = { core: await world.start({ line: LINE, env }), edge: await world.start({ env }) };
	t.after(() => stop(pair));
	await t.test("64 calls of 120 KB at once, again and again: others wait for 50 ms at most", async (t) => {
		const accounts = await world.accounts(CALLS);
		const raws = accounts.map((by) => signed(by, Buffer.alloc(CALL_CHARS / 2, 1)));
		const client = clientAt(pair.edge, GREEDY);
		let bursts = 0;
		await assertOthersServed(t, pair, async (isOver) => {
			for (; !isOver(); bursts += 1) {
				const answers = await Promise.all(
					raws.map((raw) => client.ask("eth_sendRawTransaction", [raw], "/nochecks")),
				);
				assert.deepEqual(
					answers.filter(({ result }) => result === undefined),
					[],
				);
			}
		});
		t.diagnostic(`${bursts} bursts`);
		assert.ok(bursts > 1);
	});
	await t.test("four answers of 8 MB at once, again and again: others wait for 50 ms at most", async (t) => {
		const [greedy] = await world.accounts(1);
		assert.ok(greedy !== undefined);
		await clientAt(pair.edge, GREEDY).send(signed(greedy), "/nochecks");
		let answers = 0;
		await assertOthersServed(t, pair, (isOver) =>
			repeated(4, isOver, async () => {
				assert.ok((await readLarge(pair.edge, greedy)) > LARGE_CHARS);
				answers += 1;
			}),
		);
		t.diagnostic(`${answers} answers`);
	});
});
