// A node whose answers are 50 MB long, cut off, without an end, or sent byte by byte: relay and
// boost stay up, serve everything else, report the fault, and catch up when it is over. Neither
// takes much memory or blocks its event loop for long.

import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { request } from "undici";
import { BOOST_SECRET, boostEnv } from "../../faults/boostHere.ts";
import { forgetPeak, memoryOf } from "../../support/attacks/processFigures.ts";
import { heldSoFar, metered, turnLimit } from "../../support/eventLoopTime.ts";
import {
	type BodyFault,
	type LongAnswers,
	type NodeCall,
	startLongAnswers,
} from "../../support/longAnswers.ts";
import { type RelayProcess, readyStatus, startRelayProcess } from "../../support/processes.ts";
import { RelayClient, type WireAnswer } from "../../support/relayClient.ts";
import { headOf, type ProcessSystem, seesHead, startProcessSystem } from "../../support/systems.ts";
import { rawTransaction, signedTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const MIB = 1024 * 1024;
/** Most memory that a process may use, in bytes. */
const MOST_BYTES = 512 * MIB;
/**
 * How long it may keep its event loop, as a multiple of {@link turnLimit}: an edge gives a core up
 * after a second.
 */
const MOST_TURNS = 35;
/** Requests for the head that meet a fault. */
const TRIES = 3;
/** Reads of one method at once. */
const READS = 20;
const NOBODY = `0x${"0b".repeat(20)}`;

/**
 * How the node's answers are; the first two rows are the control, in which the chain is followed.
 */
const ROWS: readonly (readonly [string, BodyFault | null])[] = [
	["as the node gives them", null],
	["of 30 MB", "long"],
	["of 50 MB", "huge"],
	["that are cut off", "cut"],
	["without an end", "endless"],
	["of 30 MB whose end never comes", "unfinished"],
	["byte by byte", "dripped"],
];
/** Answers that do not arrive; the others are too large for clients. */
const LOST: ReadonlySet<BodyFault> = new Set(["cut", "dripped"]);

let system: ProcessSystem;
/** In front of the relay's node, and of boost's. */
let node: LongAnswers;
let boostNode: LongAnswers;
let relay: RelayProcess;
let boost: RelayProcess;
/** Another client than the one whose reads meet the fault. */
let neighbour: RelayClient;
let limitMs = 0;
let accounts = 0;

before(async () => {
	system = await startProcessSystem({
		chain: { slotSeconds: 1 },
		env: { BOOST_SECRET, TX_TTL_BLOCKS: "1000", ACCOUNT_TIMEOUT_MS: "3000" },
	});
	node = await startLongAnswers(system.chain.url);
	boostNode = await startLongAnswers(system.chain.url);
	relay = await startRelayProcess({
		...metered("relay/main.ts"),
		env: { ...system.env, ETH_RPC_URL: node.url, TRUST_PROXY: "1" },
	});
	neighbour = new RelayClient(relay.url, { "x-forwarded-for": "192.0.2.7" });
	const places = { relayUrl: relay.url, fallbackUrl: "none", folder: `${system.folder}/boost` };
	const { FALLBACK_DIALECT: _, ...env } = boostEnv(places);
	boost = await startRelayProcess({
		...metered("boost-proxy/main.ts"),
		env: { ...env, ETH_RPC_URL: boostNode.url, BOOST_SECRET, PROBE_TIMEOUT_MS: "5000", LOG_LEVEL: "info" },
	});
	await submits(relay.client, "/fast");
	await nextBlock();
	for (const one of [relay, boost]) await heldSoFar(one);
	for (const { pid } of [relay, boost]) forgetPeak(pid);
	limitMs = turnLimit();
});
after(async () => {
	await boost?.kill();
	await relay?.kill();
	await node?.stop();
	await boostNode?.stop();
	await system?.stop();
});

interface Submission {
	readonly raw: string;
	readonly hash: string;
}

/** The first transaction of a new account. */
async function signs(): Promise<Submission> {
	accounts += 1;
	const by = testAccount(45_000 + accounts);
	await system.chain.fund([by]);
	const options: TxOptions = { by, nonce: 0 };
	return { raw: `0x${rawTransaction(options).toString("hex")}`, hash: signedTransaction(options).hash };
}

async function submits(client: RelayClient, path: string): Promise<Submission> {
	const tx = await signs();
	assert.equal(await client.send(tx.raw, path), tx.hash);
	return tx;
}

function nextBlock(): Promise<number> {
	return system.nextBlock(relay);
}

/** Builds blocks until it is mined, and everybody says so. */
async function isMined({ hash }: Submission, client = relay.client): Promise<void> {
	await until(`${hash} is mined`, async () => {
		const stage = await client.stage(hash);
		if (stage === "INCLUDED") return true;
		assert.ok(stage === undefined || !/EXPIRED|DROPPED|CANCELLED|REPLACED/.test(stage), stage);
		await nextBlock();
		return false;
	});
	assert.notEqual(await system.chain.rpc("eth_getTransactionReceipt", [hash]), null);
}

/** Asserts that requests unrelated to the fault are served. */
async function isServed(): Promise<void> {
	assert.equal(await neighbour.call("eth_getBalance", [NOBODY, "latest"]), "0x0");
	const { statusCode, body } = await request(`${relay.url}/livez`);
	await body.dump();
	assert.equal(statusCode, 200);
}

/** Neither memory nor event loop were used up since this was asked last. */
async function assertBounded(context: TestContext, one: RelayProcess): Promise<void> {
	const heldMs = Math.round(await heldSoFar(one));
	const { peak } = memoryOf(one.pid);
	forgetPeak(one.pid);
	context.diagnostic(`event loop blocked for ${heldMs} ms, ${Math.round(peak / MIB)} MiB`);
	assert.ok(heldMs < MOST_TURNS * limitMs, `the event loop was blocked for ${heldMs} ms`);
	assert.ok(peak < MOST_BYTES, `${peak} bytes of memory`);
}

/** Reads of clients, none of which is for the same as another. */
function reads(): readonly NodeCall[] {
	return Array.from({ length: READS }, (_, i) => `0x${(i + 1).toString(16)}`).flatMap((number) => [
		{ method: "eth_call", params: [{ to: NOBODY, data: topic(number) }, "latest"] },
		{ method: "eth_getBlockByNumber", params: [number, true] },
		{ method: "eth_getLogs", params: [{ fromBlock: "0x0", toBlock: "0x1", topics: [topic(number)] }] },
	]);
}

function topic(number: string): string {
	return `0x${number.slice(2).padStart(64, "0")}`;
}

function isFollowing({ method, params: [block] }: NodeCall): boolean {
	return method === "eth_getBlockByHash" || (method === "eth_getBlockByNumber" && block === "latest");
}

function isSimulation({ method }: NodeCall): boolean {
	return method === "eth_simulateV1" || method === "debug_traceCall";
}

/** The relay's own reads of accounts are at a block's hash. */
function isAccount({ params: [, block] }: NodeCall): boolean {
	return typeof block === "object" && block !== null && "blockHash" in block;
}

function outcomeOf({ result, error }: WireAnswer): string {
	if (error === undefined) return result === undefined ? "nothing" : "a result";
	return `${error.code} ${error.message}`;
}

test("a link on which a block takes longer than a second delays the head, and reports no fault", async () => {
	const early = await submits(relay.client, "/noreverts");
	await system.delivered([early.raw]);
	const { met } = node;
	node.set("slow", isFollowing);
	const { number } = await system.builder.buildBlock();
	await until(`block ${number} is processed`, async () => {
		assert.equal(await readyStatus(relay.url), 200);
		return (await headOf(relay.client)) >= number;
	});
	assert.ok(node.met > met);
	node.set(null);
	await isMined(early);
});

for (const [what, fault] of ROWS) {
	describe(`answers ${what}`, () => {
		/** Begins the fault, and returns how many requests have met it since. */
		const begins = (at: LongAnswers, meets?: (call: NodeCall) => boolean): (() => number) => {
			const { met } = at;
			at.set(fault, meets);
			return () => at.met - met;
		};

		test("to reads of clients become clear errors, and all else is served", async (t) => {
			const asked = reads();
			const texts = new Set(asked.map(({ params }) => JSON.stringify(params)));
			const met = begins(node, ({ params }) => texts.has(JSON.stringify(params)));
			const answering = asked.map(({ method, params }) => relay.client.ask(method, params));
			await isServed();
			await isMined(await submits(neighbour, "/noreverts"));
			const outcomes = new Set((await Promise.all(answering)).map(outcomeOf));
			node.set(null);
			if (fault === null) assert.deepEqual([...outcomes], ["a result"]);
			else if (LOST.has(fault)) {
				// Byte by byte a short one arrives in time.
				if (fault === "dripped") outcomes.delete("a result");
				assert.deepEqual([...outcomes], ["-32603 internal error"]);
			} else {
				const words = `-32005 limit exceeded: the answer has more than ${8 * MIB} bytes, ask for less at once`;
				assert.deepEqual([...outcomes], [words]);
			}
			assert.equal(met() > 0, fault !== null, "the node was asked");
			await assertBounded(t, relay);
		});

		test("about blocks delay the head only, and the relay catches up", async (t) => {
			const early = await submits(relay.client, "/noreverts");
			await system.delivered([early.raw]);
			const met = begins(node, isFollowing);
			const { number } = await system.builder.buildBlock();
			const late = await submits(relay.client, "/fast");
			if (fault === null || fault === "long") await seesHead(relay.client, number);
			else {
				await until("the head was asked for often", async () => {
					await isServed();
					return met() >= TRIES;
				});
				await until("it is not ready", async () => (await readyStatus(relay.url)) === 503);
				assert.ok((await headOf(relay.client)) < number);
				assert.equal(await relay.client.stage(early.hash), "BROADCAST");
			}
			node.set(null);
			await seesHead(relay.client, number);
			for (const tx of [early, late]) await isMined(tx);
			await until("it is ready", async () => (await readyStatus(relay.url)) === 200);
			await assertBounded(t, relay);
		});

		test("to simulations hold only transactions that must be simulated", async (t) => {
			const met = begins(node, isSimulation);
			const checked = await submits(relay.client, "/noreverts");
			const unchecked = await submits(relay.client, "/nochecks");
			if (fault !== null) await until("it was simulated", () => met() > 0);
			await isMined(unchecked);
			await isServed();
			node.set(null);
			await isMined(checked);
			await assertBounded(t, relay);
		});

		test("about accounts make the relay refuse a submission or keep it", async (t) => {
			const met = begins(node, isAccount);
			const tx = await signs();
			const { result, error } = await relay.client.ask("eth_sendRawTransaction", [tx.raw], "/fast");
			await isServed();
			if (error !== undefined) {
				assert.notEqual(fault, null);
				assert.deepEqual([error.code, error.data], [-32603, { reason: "node unavailable" }]);
				assert.equal(await relay.client.stage(tx.hash), undefined);
			} else assert.equal(result, tx.hash);
			assert.equal(met() > 0, fault !== null, "the node was asked");
			node.set(null);
			assert.equal(await relay.client.send(tx.raw), tx.hash);
			await isMined(tx);
			await assertBounded(t, relay);
		});

		test("from boost's own node delay none of its clients", async (t) => {
			const met = begins(boostNode);
			const tx = await submits(boost.client, "/fast");
			await isMined(tx, boost.client);
			if (fault !== null) await until("its node was asked", () => met() > 1);
			boostNode.set(null);
			assert.equal(await readyStatus(boost.url), 200);
			await isMined(await submits(boost.client, "/fast"), boost.client);
			await assertBounded(t, boost);
		});
	});
}
