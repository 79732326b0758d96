// The clock of the core, of an edge or of boost before it is hours or days off, in both directions:
// while the process runs until somebody sets it right, and in the nightly run from its start too.
// Ages go by the chain's time, so users notice nothing: only a read whose signature has an end may
// be refused, with the time that the process has. A right clock is the control.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freePort } from "../../devnet/freePort.ts";
import { BOOST_SECRET, boostEnv, statusOf } from "../../faults/boostHere.ts";
import { ask, attackerAddress, HONEST, type Outcome } from "../../support/attacks/wire.ts";
import { EventStreamReader } from "../../support/clients.ts";
import { sized } from "../../support/length.ts";
import { type PostgresServer, startPostgres } from "../../support/postgresServer.ts";
import { type LaunchedRelay, launchRelay, readyStatus } from "../../support/processes.ts";
import { ADMIN_TOKEN, RelayClient } from "../../support/relayClient.ts";
import { mineAll, type ProcessSystem, seesHead, startProcessSystem } from "../../support/systems.ts";
import { rawTransaction, signedTransaction, type TestAccount, testAccount } from "../../support/txFactory.ts";
import { cancelSignature, READ_SIGNATURE, readHeader } from "../../support/typedSignatures.ts";
import { until } from "../../support/until.ts";
import { DAYS_OFF, HOURS_OFF, WrongClock } from "../../support/wrongClock.ts";

const GWEI = 1_000_000_000n;
const DEADLINE_MS = 60_000;
/** A quarter of an hour, which no clock of this test passes by itself. */
const TX_TTL_BLOCKS = "1000";
/** By how much the time in a refusal may differ from what the test reads. */
const SLACK_MS = 60_000;

interface Sent {
	readonly by: TestAccount;
	readonly raw: string;
	readonly hash: string;
	/** The head when it was sent. */
	readonly head: number;
}

/** A process with a clock of its own, which keeps its port and its store. */
class Clocked {
	readonly url: string;
	readonly client: RelayClient;
	readonly #main: string;
	readonly #env: Readonly<Record<string, string>>;
	readonly #clock = new WrongClock();
	#process: LaunchedRelay | null = null;

	constructor(main: string, url: string, env: Readonly<Record<string, string>>) {
		this.#main = main;
		this.url = url;
		this.client = new RelayClient(url);
		this.#env = { ...env, PORT: new URL(url).port, LOG_LEVEL: "info" };
	}

	/** Starts it, after it was stopped if it ran, and waits until it is ready. */
	async start(offMs = 0): Promise<void> {
		await this.stop();
		this.#clock.starts(offMs);
		const launched = launchRelay({ env: this.#env, ...this.#clock.entryOf(this.#main) });
		this.#process = launched;
		let said = "";
		void launched.exited.then(({ stdout, stderr }) => {
			said = `${stdout}${stderr}`;
		});
		await until(`${this.#main} is ready`, async () => {
			if ((await readyStatus(this.url)) === 200) return true;
			assert.equal(said, "", "it has ended");
			// To a clock that is ahead the first head is an old one, until another comes.
			if (await this.#hasOldHead()) await mineEmpty();
			return false;
		});
	}

	async stop(): Promise<void> {
		await this.#process?.kill("SIGTERM");
		this.#process = null;
	}

	async sets(offMs: number): Promise<void> {
		if (this.#process !== null) await this.#clock.set(this.#process, offMs);
	}

	async end(): Promise<void> {
		await this.#process?.kill();
		this.#clock.stop();
	}

	async #hasOldHead(): Promise<boolean> {
		const answer = await fetch(`${this.url}/readyz`).catch(() => null);
		return (await answer?.text())?.includes("the head is too old") === true;
	}
}

let postgres: PostgresServer;
let system: ProcessSystem;
/** The core, unless the test says otherwise. */
let first: Clocked;
/** The edge before it, which boost sends to. */
let second: Clocked;
let boost: Clocked;
/** It has a gap before its nonce, so it waits from the first test to the last. */
let waiting: Sent;
let accounts = 9_700_000;
before(async () => {
	postgres = await startPostgres();
	system = await startProcessSystem({ chain: { slotSeconds: 1 }, env: { BOOST_SECRET, TX_TTL_BLOCKS } });
	const DATABASE_URL = await postgres.newDatabase();
	const relay = async () => {
		const url = `http://127.0.0.1:${await freePort()}`;
		const env = { DATABASE_URL, INTERNAL_URL: url, CORE_TIMEOUT_MS: "20000", DRAIN_SECONDS: "0" };
		return new Clocked("relay/main.ts", url, { ...system.env, ...env });
	};
	[first, second] = [await relay(), await relay()];
	const places = { relayUrl: second.url, fallbackUrl: "none", folder: `${system.folder}/boost` };
	boost = new Clocked("boost-proxy/main.ts", `http://127.0.0.1:${await freePort()}`, {
		...{ ...boostEnv(places), ETH_RPC_URL: system.chain.url, ADMIN_TOKEN, TX_TTL_BLOCKS, DRAIN_SECONDS: "0" },
	});
	await first.start();
	await second.start();
	await boost.start();
	await onlyTestsOpen();
	waiting = await sent({ nonce: 3 });
});
after(async () => {
	for (const one of [boost, second, first]) await one?.end();
	await system?.stop();
	await postgres?.stop();
});

/** A relay that starts anew, or is slow on a busy machine, opens no breaker of boost's. */
async function onlyTestsOpen(): Promise<void> {
	const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
	const { status } = await fetch(`${boost.url}/admin/close`, { method: "POST", headers });
	assert.equal(status, 200);
}

async function headNumber(): Promise<number> {
	return Number(await system.chain.rpc("eth_blockNumber"));
}

/** A block without what builders have. */
async function mineEmpty(): Promise<void> {
	const head = (await system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as { timestamp: string };
	await system.chain.rpc("evm_mine", [{ timestamp: Number(head.timestamp) + 1 }]);
}

/**
 * The same, and waits until both relays have handled it: with it they look at what has ended, or is
 * old.
 */
async function passBlock(): Promise<void> {
	await mineEmpty();
	const number = await headNumber();
	for (const { client } of [first, second]) await seesHead(client, number);
}

/** Makes a call to boost as a client at `from`. */
function call(method: string, params: readonly unknown[], from = HONEST): Promise<Outcome> {
	return ask(method, params, { url: `${boost.url}/fast`, from, deadlineMs: DEADLINE_MS });
}

/**
 * A transaction that boost has acknowledged: a new account's, or one in the place of `replaced`.
 */
async function sent({ nonce = 0, replaced }: { nonce?: number; replaced?: Sent } = {}): Promise<Sent> {
	const by = replaced?.by ?? testAccount(accounts++);
	if (replaced === undefined) await system.chain.fund([by]);
	const fees = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 4n * GWEI };
	const options = { by, nonce, gasLimit: 21_000, ...(replaced === undefined ? {} : fees) };
	const [raw, { hash }] = [`0x${rawTransaction(options).toString("hex")}`, signedTransaction(options)];
	const head = await headNumber();
	assert.deepEqual(await call("eth_sendRawTransaction", [raw]), { jsonrpc: "2.0", id: 1, result: hash });
	return { by, raw, hash, head };
}

/**
 * A transaction that boost has acknowledged and cancelled: for its address, or by its sender's
 * signature from anywhere.
 */
async function cancelled(isSigned: boolean): Promise<Sent> {
	const tx = await sent();
	const signature = isSigned ? [await cancelSignature(tx.by.keyHex, tx.hash)] : [];
	const from = isSigned ? attackerAddress() : HONEST;
	const { result, error } = await call("eth_cancelTransaction", [tx.hash, ...signature], from);
	assert.equal(result, true, error?.message);
	return tx;
}

/** The blocks that the builder has got it for. */
function blocksOf({ raw }: Sent): readonly number[] {
	return system.builder.requests().flatMap(({ params }) => {
		const { txs, blockNumber } = (params[0] ?? {}) as { txs?: readonly string[]; blockNumber?: string };
		return txs?.includes(raw) === true ? [Number(blockNumber)] : [];
	});
}

/**
 * Waits until the builder has each for the next block; it has got them for no block but those that
 * were next meanwhile.
 */
async function areOut(...txs: readonly Sent[]): Promise<void> {
	const next = (await headNumber()) + 1;
	for (const tx of txs) {
		await until(`${tx.hash} for block ${next}`, () => blocksOf(tx).includes(next));
		for (const block of blocksOf(tx)) assert.ok(block > tx.head && block <= next, `for ${block} of ${next}`);
	}
}

/** That boost and both relays say that each is at `stage`. */
async function areAll(stage: string, ...txs: readonly Sent[]): Promise<void> {
	for (const { hash } of txs) {
		for (const { client, url } of [boost, second, first])
			await until(`${hash} is ${stage} at ${url}`, async () => (await client.stage(hash)) === stage);
	}
}

/**
 * A read whose signature is good for ten minutes: answered, or refused with the time that some
 * process has.
 */
async function reads({ by }: Sent, offMs: number): Promise<void> {
	for (const { url } of [first, second, boost]) {
		const headers = { [READ_SIGNATURE]: await readHeader(by.keyHex, { scope: "refunds" }) };
		const answer = await fetch(`${url}/refunds/${by.address}`, { headers });
		const text = await answer.text();
		if (answer.status === 200) continue;
		assert.notEqual(offMs, 0, text);
		assert.equal(answer.status, 401, text);
		const [, there] = /until: exp.*, it is (\d+) here/.exec(text) ?? [];
		assert.ok(Math.abs(Number(there) * 1_000 - Date.now() - offMs) < SLACK_MS, text);
	}
}

/** One row: what users do before `goesWrong`, meanwhile, and after `isRight`. */
async function assertUnnoticed(
	offMs: number,
	goesWrong: () => Promise<void>,
	isRight: () => Promise<void>,
): Promise<void> {
	/** Ended transactions, with the last block that each may have been sent for. */
	const ended: { readonly tx: Sent; readonly stage: string; readonly last: number }[] = [];
	const ends = async (tx: Sent, stage: string) => {
		ended.push({ tx, stage, last: (await headNumber()) + 1 });
	};
	const early = await sent();
	await ends(await cancelled(false), "CANCELLED");
	await goesWrong();
	const [late, old] = [await sent(), await sent()];
	for (const isSigned of [false, true]) await ends(await cancelled(isSigned), "CANCELLED");
	const fresh = await sent({ replaced: old });
	await ends(old, "REPLACED");
	// Replaced when the clock is right again, by what may have come earlier by the clock.
	const outlived = await sent();
	await passBlock();
	await passBlock();
	await areOut(early, late, fresh, outlived);
	await reads(early, offMs);
	await areAll("BROADCAST", early, late, fresh, outlived);
	await areAll("QUEUED", waiting);
	const seen = { late: await followed(late, "broadcast"), outlived: await followed(outlived, "broadcast") };

	await isRight();
	const younger = await sent({ replaced: outlived });
	await ends(outlived, "REPLACED");
	const last = await sent();
	// Wallets send again what they think is pending.
	for (const { tx } of ended)
		assert.equal((await call("eth_sendRawTransaction", [tx.raw])).result, tx.hash, "its bytes again");
	await reads(early, 0);
	await passBlock();
	const live = [early, late, fresh, younger, last];
	await areOut(...live);
	await mineAll(system, live);
	await areAll("INCLUDED", ...live);
	// A follower who was away meanwhile receives what came since.
	await followed(late, "included", seen.late);
	await followed(outlived, "replaced", seen.outlived);
	for (const tx of [early, late]) await isInOrder(tx, "included");
	for (const one of ended) {
		await areAll(one.stage, one.tx);
		await isInOrder(one.tx, one.stage.toLowerCase());
		assert.equal(await system.chain.rpc("eth_getTransactionReceipt", [one.tx.hash]), null);
		const blocks = blocksOf(one.tx);
		assert.ok(Math.max(0, ...blocks) <= one.last, `for ${blocks}, though it ended before ${one.last}`);
	}
	await areAll("QUEUED", waiting);
	await until("boost has nothing open but what waits", async () => {
		return (await statusOf(boost.url)).journal.depth === 1;
	});
}

/** Follows a transaction's events at boost until `type`, and leaves; the id of the last one. */
async function followed({ hash }: Sent, type: string, since?: string): Promise<string> {
	const headers = since === undefined ? {} : { "last-event-id": since };
	const stream = await EventStreamReader.open(`${boost.url}/tx/${hash}/events`, headers);
	await stream.message(`${type} of ${hash}`, (data) => data.type === type);
	stream.leave();
	return stream.messages.at(-1)?.id ?? "";
}

/**
 * Checks that the page of its events has them in order of time, deliveries aside. A transaction
 * that no builder had keeps only its end.
 */
async function isInOrder({ hash }: Sent, last: string): Promise<void> {
	for (const { client } of [boost, second, first]) {
		const events = await client.events(hash);
		const types = events.map(({ type }) => type).filter((type) => type !== "delivered");
		assert.deepEqual(
			[types.at(-1), types.lastIndexOf("received")],
			[last, types.length > 1 ? 0 : -1],
			types.join(),
		);
	}
}

async function roleOf({ url }: Clocked): Promise<unknown> {
	return ((await (await fetch(`${url}/info`)).json()) as { role: unknown }).role;
}

async function becomes(one: Clocked, role: string): Promise<void> {
	await until(`it is ${role}`, async () => (await roleOf(one)) === role);
}

const CLOCKED = { "the core": () => first, "an edge": () => second, boost: () => boost } as const;
const OFFSETS = Object.entries({ right: 0, ...DAYS_OFF, ...sized({}, HOURS_OFF) });

for (const [whose, of] of Object.entries(CLOCKED)) {
	for (const [name, offMs] of OFFSETS) {
		test(`the clock of ${whose} that is ${name} for a while ends and revives nothing, and nothing is late`, async () => {
			assert.deepEqual([await roleOf(first), await roleOf(second)], ["core", "edge"]);
			await assertUnnoticed(
				offMs,
				() => of().sets(offMs),
				() => of().sets(0),
			);
		});
	}
}

for (const [name, offMs] of sized([], Object.entries({ right: 0, ...DAYS_OFF }))) {
	test(`the clock of boost that is ${name} from its start ends and revives nothing`, async () => {
		await assertUnnoticed(
			offMs,
			() => startBoost(offMs),
			() => startBoost(0),
		);
	});

	test(`the clock of an edge that is ${name} from its start ends and revives nothing`, async () => {
		await assertUnnoticed(
			offMs,
			() => second.start(offMs),
			() => second.start(),
		);
	});

	test(`the clock of a relay that is ${name} when it becomes the core ends and revives nothing`, async () => {
		await assertUnnoticed(
			offMs,
			async () => {
				await second.start(offMs);
				await first.stop();
				await becomes(second, "core");
				await first.start();
			},
			async () => {
				await second.start();
				await becomes(first, "core");
			},
		);
	});
}

async function startBoost(offMs: number): Promise<void> {
	await boost.start(offMs);
	await onlyTestsOpen();
}
