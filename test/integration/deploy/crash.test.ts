// SIGKILL in the middle of hundreds of submissions, of the relay, of its PostgreSQL and of both at
// once: what was answered is kept, sent again and mined, and what was cancelled is never sent
// again. All of them are real processes; clients see their connections break, as wallets would.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Pool } from "undici";
import { keccak256 } from "../../../shared/ethereum/signatures.ts";
import { sized } from "../../support/length.ts";
import { type PlainBuilder, startPlainBuilder } from "../../support/plainBuilder.ts";
import { type PostgresServer, startPostgres } from "../../support/postgresServer.ts";
import { type RelayProcess, readyStatus } from "../../support/processes.ts";
import { RelayClient, type WireAnswer, type WireStatus } from "../../support/relayClient.ts";
import { type ProcessSystem, seesHead, startProcessSystem } from "../../support/systems.ts";
import { rawTransaction, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

/** Raw transactions (0x hex) by hash. */
type Submissions = ReadonlyMap<string, string>;

interface SubmitOptions {
	readonly onAnswer?: (count: number, hash: string) => void;
	/** The store may be unavailable: a submission that is refused for that counts as not answered. */
	readonly mayFail?: boolean;
	/** Requests at the same time. Default 60. */
	readonly connections?: number;
}

/** How many send, in turns: one nonce of each, then the next. */
const SENDERS = sized(30, 40);
const NONCES = sized(4, 6);
const COUNT = SENDERS * NONCES;
/** Sizes of one batch to the relay (its limit) and of one to anvil, which mixes up longer ones. */
const RELAY_BATCH = 100;
const CHAIN_BATCH = 16;

/**
 * In the long form also near the end; sixty requests are under way at once, and some must be left.
 */
const ROUNDS = [{ killAt: 20, path: "/fast" }, ...sized([], [{ killAt: 150, path: "/nochecks" }])];
/** Processes killed while the relay is on a database. A killed relay on LMDB is tested above. */
const VICTIMS = [["database"], ...sized([], [["relay"]]), ["database", "relay"]];
/** Builders that get a transaction by itself receive its hash when it is cancelled. */
const PATH = "/nochecks";
const KILL_AT = sized(40, 100);
/** One in so many is cancelled as soon as it is answered. */
const CANCELLED_EVERY = 10;

let system: ProcessSystem;
let builder: PlainBuilder;
let postgres: PostgresServer;
before(async () => {
	postgres = await startPostgres();
	// The dev builder tries each bundle by itself: hundreds would take it seconds a round.
	builder = await startPlainBuilder();
	system = await startProcessSystem({
		builders: [{ name: "plain", url: builder.url }],
		// Submissions and checks have many connections each, from one address.
		env: { MAX_CONNECTIONS_PER_CLIENT: "500" },
	});
});
after(async () => {
	await system.stop();
	await builder.stop();
	await postgres.stop();
});

for (const [round, { killAt, path }] of ROUNDS.entries()) {
	test(`SIGKILL after ${killAt} of ${COUNT} answers on ${path}: all that was answered is held and mined`, async () => {
		const submissions = await prepareCrowd(round);
		// A folder of its own: what earlier rounds left behind would be read again at each start.
		const env = { DATA_DIR: join(system.folder, `round${round}`) };
		const killed = await system.start(env);
		const answered = await submitCrowd(killed.url, path, submissions, {
			onAnswer(count) {
				if (count === killAt) killed.signal("SIGKILL");
			},
		});
		assert.equal((await killed.ended()).signal, "SIGKILL");
		assert.ok(answered.size >= killAt, `${answered.size} were answered`);
		assert.ok(answered.size < submissions.size, "all were answered before it was killed");

		builder.reset();
		const relay = await system.start(env);
		await assertHeld(relay.url, [...answered]);

		// Senders without an answer send again, as wallets do.
		const again = await submitCrowd(relay.url, path, submissions);
		assert.equal(again.size, submissions.size);
		await allSent([...submissions.values()]);
		await assertMined(relay, submissions);
		await relay.kill();
	});
}

// The relay alone on a database is killed in cancelCrash.test.ts and crashState.test.ts.
test(`SIGKILL after ${KILL_AT} of ${COUNT} answers, of the ${VICTIMS.map((one) => one.join(" and ")).join(", then of the ")}: nothing is lost, and nothing cancelled is sent`, async () => {
	const env = { DATABASE_URL: await postgres.newDatabase() };
	let relay = await system.start(env);
	/** The transactions of each round that must be there in the end. */
	const rounds: { kept: string[]; cancelled: ReadonlyMap<string, string>; due: string[] }[] = [];
	for (const [round, victims] of VICTIMS.entries()) {
		const submissions = await prepareCrowd(ROUNDS.length + round);
		const killedOne = relay;
		/** Confirmed cancels; and all that were tried, as the kill may have lost the answer. */
		const cancelled = new Map<string, string>();
		const tried = new Set<string>();
		const cancels: Promise<unknown>[] = [];
		let killed: Promise<void> | null = null;
		const kill = async (): Promise<void> => {
			if (victims.includes("relay")) killedOne.signal("SIGKILL");
			if (victims.includes("database")) await postgres.kill();
		};
		builder.reset();
		const answered = await submitCrowd(relay.url, PATH, submissions, {
			// On a busy machine one of the writes may take longer than a relay waits: it is refused then,
			// and not lost.
			mayFail: true,
			// Behind too many a cancel would be answered when all of them are.
			connections: 20,
			onAnswer(count, hash) {
				// A cancel is read, decided and written while dozens of submissions are.
				if (count >= KILL_AT && cancelled.size > 0) killed ??= kill();
				if (count % CANCELLED_EVERY !== 0) return;
				tried.add(hash);
				const cancel = killedOne.client.call("eth_cancelTransaction", [hash], PATH);
				const note = (done: unknown) => done === true && cancelled.set(hash, submissions.get(hash) ?? "");
				cancels.push(cancel.then(note).catch(() => {}));
			},
		});
		await Promise.all(cancels);
		await killed;
		assert.ok(answered.size >= KILL_AT, `${answered.size} were answered`);
		assert.ok(answered.size < submissions.size, "all were answered before the kill");
		assert.ok(cancelled.size > 0, "nothing was cancelled");
		const kept = [...answered].filter((hash) => !tried.has(hash));
		const due = unbroken(submissions, new Set(kept));
		assert.ok(due.length > 0, "nothing can be sent");
		rounds.push({ kept, cancelled, due });

		if (victims.includes("database")) await postgres.start();
		const isAlive = !victims.includes("relay");
		if (isAlive) await until("it is ready again", async () => (await readyStatus(relay.url)) === 200);
		assertNoneSentAgain(cancelled);
		if (isAlive) continue;
		builder.reset();
		relay = await system.start(env);
	}
	for (const { kept, cancelled } of rounds) {
		await assertHeld(relay.url, kept);
		for (const hash of cancelled.keys())
			assert.equal((await relay.client.status(hash)).stage, "CANCELLED", hash);
	}
	await allSent(rounds.flatMap(({ due }) => due));
	const sent = builder.raws();
	for (const [hash, raw] of rounds.flatMap(({ cancelled }) => [...cancelled]))
		assert.ok(!sent.has(raw), `${hash} was sent`);
	await relay.kill();
});

/** The raw transactions of `held` with no nonce gap before them. */
function unbroken(submissions: Submissions, held: ReadonlySet<string>): string[] {
	const stopped = new Set<number>();
	return [...submissions].flatMap(([hash, raw], i) => {
		const sender = i % SENDERS;
		if (!held.has(hash)) stopped.add(sender);
		return stopped.has(sender) ? [] : [raw];
	});
}

/** After its cancel the builder is never sent a transaction again. */
function assertNoneSentAgain(cancelled: ReadonlyMap<string, string>): void {
	for (const [hash, raw] of cancelled) {
		const told = builder.bodies.findIndex(
			(body) => body.includes("eth_cancelPrivateTransaction") && body.includes(hash),
		);
		if (told === -1) continue;
		assert.ok(!builder.bodies.slice(told).some((body) => body.includes(raw)), `${hash} was sent again`);
	}
}

/** Raw transactions by hash, of accounts of this round's own. */
async function prepareCrowd(round: number): Promise<Submissions> {
	const accounts = Array.from({ length: SENDERS }, (_, i) => testAccount(10_000 + round * SENDERS + i));
	await system.chain.fund(accounts);
	const submissions = new Map<string, string>();
	for (let nonce = 0; nonce < NONCES; nonce++) {
		for (const by of accounts) {
			const raw = rawTransaction({ by, nonce, gasLimit: 21_000, value: 1 });
			submissions.set(`0x${keccak256(raw).toString("hex")}`, `0x${raw.toString("hex")}`);
		}
	}
	return submissions;
}

/**
 * Sends all at once; the hashes that were answered. Connections may break, refusals fail the test.
 */
async function submitCrowd(
	url: string,
	path: string,
	submissions: Submissions,
	{ onAnswer = () => {}, mayFail = false, connections = 60 }: SubmitOptions = {},
): Promise<Set<string>> {
	// Its own connections: what else the test asks does not wait behind hundreds.
	const pool = new Pool(url, { connections });
	const answered = new Set<string>();
	const send = async (hash: string, raw: string): Promise<void> => {
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] });
		const headers = { "content-type": "application/json" };
		let answer: WireAnswer;
		try {
			const response = await pool.request({ method: "POST", path, headers, body });
			answer = (await response.body.json()) as WireAnswer;
		} catch {
			return;
		}
		if (mayFail && answer.error?.code === -32_603) return;
		assert.deepEqual(answer, { jsonrpc: "2.0", id: 1, result: hash });
		answered.add(hash);
		onAnswer(answered.size, hash);
	};
	await Promise.all([...submissions].map(([hash, raw]) => send(hash, raw)));
	await pool.destroy();
	return answered;
}

/**
 * Each of `hashes` is held: its page says so, and the relay returns it as a pending transaction.
 */
async function assertHeld(url: string, hashes: readonly string[]): Promise<void> {
	const held = new Set(["PENDING", "QUEUED", "SIMULATION_FAILED", "BROADCAST"]);
	const statuses = await statusesOf(url, hashes);
	assert.deepEqual(
		statuses.filter(({ stage }) => !held.has(stage ?? "")),
		[],
	);
	for (const part of parts(hashes, RELAY_BATCH)) {
		const calls = part.map((hash, id) => ({
			jsonrpc: "2.0",
			id,
			method: "eth_getTransactionByHash",
			params: [hash],
		}));
		const headers = { "content-type": "application/json" };
		const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(calls) });
		const found = ((await response.json()) as { result: { hash: string } | null }[]).map(
			({ result }) => result?.hash,
		);
		assert.deepEqual(found, part);
	}
}

/** The page of each. */
function statusesOf(url: string, hashes: readonly string[]): Promise<WireStatus[]> {
	const client = new RelayClient(url);
	return Promise.all(hashes.map((hash) => client.status(hash)));
}

/** Waits until the builder was sent each of `raws`. */
async function allSent(raws: readonly string[]): Promise<void> {
	await until("all were sent to the builder", () => raws.every((raw) => builder.raws().has(raw)));
}

/** Mines `submissions` in one block; the relay then tells that each is in it. */
async function assertMined(relay: RelayProcess, submissions: Submissions): Promise<void> {
	await seesHead(relay.client, await mine([...submissions.values()]));
	const statuses = await statusesOf(relay.url, [...submissions.keys()]);
	assert.deepEqual(
		statuses.filter(({ status }) => status !== "INCLUDED"),
		[],
	);
}

/** The head behind them. */
async function mine(raws: readonly string[]): Promise<number> {
	for (const part of parts(raws, CHAIN_BATCH)) {
		await system.chain.batch(part.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] })));
	}
	await system.chain.rpc("evm_mine");
	const block = (await system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as {
		number: string;
		transactions: string[];
	};
	assert.equal(block.transactions.length, raws.length);
	return Number(block.number);
}

function parts<T>(list: readonly T[], size: number): T[][] {
	return Array.from({ length: Math.ceil(list.length / size) }, (_, i) =>
		list.slice(i * size, (i + 1) * size),
	);
}
