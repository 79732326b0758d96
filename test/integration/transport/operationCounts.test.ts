// Counts what one submission, read and bid cost a relay's and boost's main thread, and what a head
// costs for each pending transaction: recoveries, signatures, hashes, texts parsed and made, writes
// to the store, requests, timers. Counts are the same on each machine. One that fell for good is
// lowered here; one that rises needs a reason.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BOOST_SECRET, boostEnv } from "../../faults/boostHere.ts";
import { backrunBy, prepareBidding, signedBy } from "../../support/biddingFixture.ts";
import { IN_FOLDER } from "../../support/engine.ts";
import { type RelayProcess, startRelayProcess } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { rawTransaction, type TestAccount, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

type Counts = Readonly<Record<string, number>>;

/**
 * Each is done so often, so that what happens beside it does not count. One client may make 32 bids
 * on a target.
 */
const TIMES = 24;
const FUNDS = 10n ** 20n;
const GWEI = 1_000_000_000n;
const ROUNDS = 5;
/** Those of one round; each round has its own, since what an account has pending already counts. */
const senders = (round: number) => Array.from({ length: TIMES }, (_, i) => testAccount(round * TIMES + i));

let system: ProcessSystem;
let relay: RelayProcess;
let boost: RelayProcess;

before(async () => {
	system = await startProcessSystem({ env: { BOOST_SECRET } });
	relay = await counted("relay/main.ts", {
		...system.env,
		...IN_FOLDER,
		ETH_WS_URL: system.chain.wsUrl,
		HEAD_POLL_MS: "60000",
		// All is counted, whichever thread does it.
		SIGNATURE_THREAD: "false",
	});
	boost = await counted("boost-proxy/main.ts", {
		...boostEnv({ relayUrl: relay.url, fallbackUrl: "none", folder: `${system.folder}/boost` }),
		...IN_FOLDER,
		PROBE_INTERVAL_MS: "60000",
	});
	await system.chain.fund(Array.from({ length: ROUNDS }, (_, i) => senders(i)).flat(), FUNDS);
	await prepareBidding(system);
	await system.nextBlock(relay);
	// Work that is done only the first time is not counted.
	await submit(boost, 0);
});
after(async () => {
	await boost?.kill();
	await relay?.kill();
	await system?.stop();
});

function counted(entry: string, env: Readonly<Record<string, string>>): Promise<RelayProcess> {
	return startRelayProcess({ env, entry: "test/support/countedMain.ts", args: [entry] });
}

/** The counts of a process since it was asked last. */
async function countsOf(one: RelayProcess): Promise<Counts> {
	const { msg: _, level: __, ...counts } = await one.figures("counts");
	return counts as Counts;
}

function raw(by: TestAccount): string {
	const fees = { maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: GWEI };
	return `0x${rawTransaction({ by, nonce: 0, gasLimit: 30_000, ...fees }).toString("hex")}`;
}

/** Submits one transaction of each sender of a round, and waits until the builder has them. */
async function submit(to: RelayProcess, round: number, path = "/nochecks"): Promise<void> {
	const raws = senders(round).map(raw);
	for (const one of raws) await to.client.send(one, path);
	await system.delivered(raws);
}

/** Shares a transaction with searchers, and returns its hash. */
async function share(index: number): Promise<string> {
	const { raw, hash } = signedBy(index, { value: 1n });
	await relay.client.send(raw, "/maxbackruns");
	await until("it is shared", async () => (await relay.client.status(hash)).shared);
	return hash;
}

/** Bids of as many searchers on `target`. */
async function bid(target: string): Promise<void> {
	for (let i = 0; i < TIMES; i++) {
		const txs = [target, backrunBy(i, 1_000n + BigInt(i)).raw];
		await relay.client.call("eth_sendBundle", [{ txs }]);
	}
}

/**
 * Does `work`, and asserts that it costs `one` at most `limits` for each of what it does `times`
 * times.
 */
async function assertCosts(
	one: RelayProcess,
	limits: Counts,
	work: () => Promise<unknown>,
	times: number = TIMES,
): Promise<void> {
	await countsOf(one);
	await work();
	// The answers of builders that came before these requests have been read then, and count here,
	// not in the next test.
	for (const _ of [1, 2]) await fetch(`${one.url}/livez`);
	const counts = Object.fromEntries(
		Object.entries(await countsOf(one)).map(([name, count]) => [name, Math.round(count / times)]),
	);
	const kept = Object.fromEntries(
		Object.entries(counts).map(([name, count]) => [name, Math.min(count, limits[name] ?? 0)]),
	);
	assert.deepEqual(counts, kept);
}

/** Reads the balance of each sender of the first round. */
async function read({ client }: RelayProcess): Promise<void> {
	for (const { address } of senders(0)) await client.call("eth_getBalance", [address, "latest"]);
}

const RECOVERED = { recoveries: 1, writes: 1 };

test("a submission without a simulation", () =>
	assertCosts(
		relay,
		{ ...RECOVERED, signatures: 1, hashes: 5, parsed: 3, serialized: 4, toNode: 1, toOthers: 1, timers: 12 },
		() => submit(relay, 1),
	));

test("a submission that is simulated", () =>
	assertCosts(
		relay,
		{ ...RECOVERED, signatures: 1, hashes: 6, parsed: 4, serialized: 6, toNode: 2, toOthers: 1, timers: 14 },
		() => submit(relay, 2, "/noreverts"),
	));

test("a submission to boost", () =>
	assertCosts(boost, { ...RECOVERED, hashes: 3, parsed: 2, serialized: 2, toOthers: 1, timers: 9 }, () =>
		submit(boost, 3, "/noreverts"),
	));

test("a submission to boost, at the relay: boost has hashed it and recovered its sender", () =>
	assertCosts(
		relay,
		{ writes: 1, signatures: 1, hashes: 4, parsed: 4, serialized: 6, toNode: 2, toOthers: 1, timers: 14 },
		() => submit(boost, 4, "/noreverts"),
	));

test("a read", () =>
	assertCosts(relay, { parsed: 2, serialized: 3, toNode: 1, timers: 8 }, () => read(relay)));

test("a read of boost", () => assertCosts(boost, { parsed: 2, toOthers: 1, timers: 6 }, () => read(boost)));

test("a bid", async () => {
	const target = await share(99);
	await assertCosts(
		relay,
		// Each takes the slot of its client's bid before, which is cancelled in two forms. It has a
		// write of its own at most; a relay that gets them all at once writes several together. 11
		// texts and 16 timers on an idle machine: more wait for their slot on others.
		{
			...RECOVERED,
			signatures: 3,
			hashes: 12,
			parsed: 6,
			serialized: 12,
			toNode: 2,
			toOthers: 3,
			timers: 17,
		},
		() => bid(target),
	);
});

test("a head, for each pending transaction", async () => {
	const pending = Array.from({ length: ROUNDS }, (_, i) => senders(i))
		.flat()
		.map(raw);
	const last = await system.lastRequest();
	await assertCosts(
		relay,
		// 8 timers on an idle machine. A builder that answers late gets more connections, each with its
		// own.
		{ signatures: 1, hashes: 2, parsed: 2, serialized: 2, toNode: 1, toOthers: 1, timers: 12 },
		async () => {
			await system.chain.rpc("evm_mine", []);
			await system.delivered(pending, last);
		},
		pending.length,
	);
});
