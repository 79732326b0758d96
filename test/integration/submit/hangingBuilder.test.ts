// A builder that accepts connections and never answers, for some blocks, and in the nightly run for
// an hour of them; the time is moved by hand. Its cost stays bounded: connections, its queue,
// memory. Nothing counts as sent to it that it has not acknowledged. When it answers again, it gets
// only current orders. A builder that answers is the control, beside it in every block.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isEdge } from "../../support/engine.ts";
import { LeapingClock } from "../../support/leapingClock.ts";
import { sized } from "../../support/length.ts";
import { type PlainBuilder, startPlainBuilder } from "../../support/plainBuilder.ts";
import { figureOf, metricsOf, RelayClient } from "../../support/relayClient.ts";
import { RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

/** Number of blocks, each 12 s long. */
const BLOCKS = sized(12, 300);
/** Blocks after which memory is measured for the first time. */
const WARM = sized(4, 30);
/** More than the hanging builder is sent within a slot. */
const TRANSACTIONS = 40;
/** Bytes of each transaction's data: what is kept of one for each block shows. */
const DATA_BYTES = 8_192;
/** Requests in flight to one builder at most, and how long each is waited for, in ms. */
const [IN_FLIGHT, ANSWER_MS] = [8, 4_000];
/** How often that happens in a slot. */
const ROUNDS = 3;
/**
 * Allowed growth of the heap. The bodies of all blocks in the nightly run are six times as much.
 */
const GROWTH_BYTES = 32 * 1024 * 1024;

const clock = new LeapingClock();
let fixture: RelayFixture;
let answering: PlainBuilder;
let hanging: PlainBuilder;
before(async () => {
	[answering, hanging] = [await startPlainBuilder(), await startPlainBuilder()];
	hanging.answerWith(() => "hang");
	const system = await startSystem({
		clock,
		builders: [
			{ name: "answering", url: answering.url },
			{ name: "hanging", url: hanging.url },
		],
		env: { TX_TTL_BLOCKS: "1000", TRUST_PROXY: "1" },
	});
	fixture = new RelayFixture(system);
});
after(async () => {
	await fixture?.system.stop();
	await answering?.stop();
	await hanging?.stop();
});

/** The transactions that a builder has got for a block, and how often it got each. */
function gotFor(builder: PlainBuilder, block: number): ReadonlyMap<string, number> {
	const counts = new Map<string, number>();
	for (const body of builder.bodies) {
		const { params } = JSON.parse(body) as { params: [{ txs?: string[]; blockNumber?: string }] };
		const [{ txs = [], blockNumber }] = params;
		if (Number(blockNumber) !== block) continue;
		for (const raw of txs) counts.set(raw, (counts.get(raw) ?? 0) + 1);
	}
	return counts;
}

/** The blocks of the bundles that a builder has got, cancels aside. */
function blocksAt(builder: PlainBuilder): readonly number[] {
	return builder.bodies.flatMap((body) => {
		const { params } = JSON.parse(body) as { params: [{ txs?: string[]; blockNumber?: string }] };
		const [{ txs = [], blockNumber }] = params;
		return txs.length === 0 ? [] : [Number(blockNumber)];
	});
}

/** A client of its own: one alone has half of a builder's connections at most. */
function user(index: number): RelayClient {
	return new RelayClient(fixture.system.client.url, { "x-forwarded-for": `198.51.100.${index}` });
}

function heapBytes(): number {
	setFlagsFromString("--expose-gc");
	const gc = runInNewContext("gc") as () => void;
	gc();
	gc();
	const { heapUsed, arrayBuffers } = process.memoryUsage();
	return heapUsed + arrayBuffers;
}

/** How many deliveries to the hanging builder had this answer, by the metrics. */
async function answers(answer: string): Promise<number> {
	const series = `relay_deliveries_total\\{builder="hanging",kind="bundle",answer="${answer}"\\}`;
	const text = await metricsOf(fixture.system.client.url);
	return Number(new RegExp(`^${series} (\\d+)$`, "m").exec(text)?.[1]);
}

/**
 * Waits until the answering builder has got each of `txs` once for the next block, and nothing for
 * another one; the block.
 */
async function allHaveArrived(txs: readonly Signed[]): Promise<number> {
	const next = (await fixture.head()) + 1;
	await until(`all for block ${next}`, () => gotFor(answering, next).size === txs.length);
	for (const { raw } of txs) assert.equal(gotFor(answering, next).get(raw), 1);
	assert.deepEqual(
		blocksAt(answering).filter((block) => block !== next),
		[],
	);
	return next;
}

const skip = isEdge ? "the core is a process with a clock of its own" : false;
test("keeps a builder that hangs within its bounds, and sends it only what is current when it answers again", {
	skip,
}, async () => {
	const txs: Signed[] = [];
	for (let i = 0; i < TRANSACTIONS; i += 1) {
		const actor = await fixture.actor();
		txs.push(actor.sign({ gasLimit: 500_000, data: Buffer.alloc(DATA_BYTES, 1 + i) }));
	}
	for (const [i, { raw, hash }] of txs.entries()) assert.equal(await user(i).send(raw), hash);
	let heap = 0;
	let [rounds, held] = [0, 0];
	for (let block = 0; block < BLOCKS; block += 1) {
		if (block > 0) await fixture.passBlock();
		await allHaveArrived(txs);
		for (let round = 0; round < ROUNDS; round += 1) {
			rounds += 1;
			await until(`round ${rounds}`, () => held + hanging.bodies.length >= rounds * IN_FLIGHT);
			await until("no more connections", async () => (await hanging.connections()) <= IN_FLIGHT);
			const depth = await figureOf(fixture.system.client.url, "relay_lane_depth");
			assert.ok(depth <= TRANSACTIONS + IN_FLIGHT, `${depth} wait`);
			clock.leap(ANSWER_MS);
		}
		held += hanging.bodies.length;
		answering.reset();
		hanging.reset();
		if (block === WARM) heap = heapBytes();
	}
	const growth = heapBytes() - heap;
	assert.ok(growth < GROWTH_BYTES, `${growth} bytes more`);

	// Nothing that it has not acknowledged counts as sent.
	assert.equal(await answers("accepted"), 0);
	assert.ok((await answers("timeout")) > 0);
	const [cancelled, ...live] = txs as [Signed, ...Signed[]];
	for (const tx of txs) {
		const told = (await fixture.events(tx)).filter(({ type }) => type === "delivered");
		for (const { builder, answer } of told)
			assert.ok(builder === "answering" ? answer === "accepted" : /^(timeout|unsent)$/.test(String(answer)));
	}
	assert.equal(await user(0).call("eth_cancelTransaction", [cancelled.hash]), true);
	await fixture.event(
		cancelled,
		"delivered",
		({ kind, builder, answer }) => kind === "cancel" && builder === "answering" && answer === "accepted",
	);
	const page = await fetch(`${fixture.system.client.url}/tx/${cancelled.hash}/events`);
	const { cancels } = (await page.json()) as { cancels: { builders: number; confirmed: number } };
	assert.deepEqual([cancels.builders, cancels.confirmed], [2, 1]);

	// It answers again, what is in flight aside.
	hanging.reset();
	answering.reset();
	hanging.answerWith(() => ({ status: 200, body: '{"jsonrpc":"2.0","id":1,"result":null}' }));
	clock.leap(ANSWER_MS);
	await fixture.passBlock();
	const next = await allHaveArrived(live);
	await until("it has all that is pending", () => gotFor(hanging, next).size === live.length);
	const current = new Set(live.map(({ raw }) => raw));
	for (const raw of hanging.raws()) assert.ok(current.has(raw), "it was sent what was cancelled");
	for (const block of blocksAt(hanging)) assert.ok(block >= next - 1, `for ${block} at block ${next - 1}`);
	await until("its queue is empty", async () => {
		return (await figureOf(fixture.system.client.url, "relay_lane_depth")) === 0;
	});
	for (const tx of live)
		await fixture.event(
			tx,
			"delivered",
			({ builder, answer, block }) => builder === "hanging" && answer === "accepted" && block === next,
		);
});
