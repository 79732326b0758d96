// The standby of a real PostgreSQL is promoted under load when the primary is killed, while a core
// and an edge run: what it had is there, which is all with synchronous replication, no two relays
// are the core at once, and no end is wrong. With asynchronous replication it lacks the last
// moments, and they alone may be lost.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { pause, systemClock } from "../../../shared/clock.ts";
import { NOT_CANCELLABLE } from "../../../shared/ownership.ts";
import { freePort } from "../../devnet/freePort.ts";
import { type Signed, signed } from "../../support/crashFixture.ts";
import { type PlainBuilder, startPlainBuilder } from "../../support/plainBuilder.ts";
import { type RelayProcess, startRelayProcess } from "../../support/processes.ts";
import { REFUSED_WITHOUT_CORE, RelayClient } from "../../support/relayClient.ts";
import { NO_STANDBY, StandbyPair } from "../../support/standbyPair.ts";
import { type ProcessSystem, seesHead, startProcessSystem } from "../../support/systems.ts";
import { testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

/** Builders that get a transaction by itself receive its hash when it is cancelled. */
const PATH = "/nochecks";
const ACCOUNTS = 1_500;
/** Acknowledged and cancelled in each part of the load, at least. */
const [ENOUGH, ENOUGH_CANCELLED] = [60, 10];
/** Cancelled when the standby gets nothing any more. */
const LATE = 10;
/** One in so many is cancelled as soon as it is acknowledged. */
const CANCELLED_EVERY = 4;
/** Between two tries of what was refused, and between two looks at both relays, in ms. */
const AGAIN_MS = 50;
/** The size of one batch to anvil. */
const CHAIN_BATCH = 16;

let system: ProcessSystem;
let builder: PlainBuilder;
let accounts = 70_000;
before(async () => {
	if (NO_STANDBY !== false) return;
	builder = await startPlainBuilder();
	system = await startProcessSystem({ builders: [{ name: "plain", url: builder.url }] });
});
after(async () => {
	await system?.stop();
	await builder?.stop();
});

/**
 * Submissions to some relays, one after another at each, and cancels of some. Refused requests are
 * tried again.
 */
class Load {
	/** Wanted: acknowledged and not cancelled. */
	readonly wanted: Signed[] = [];
	/** Whose cancel was acknowledged. */
	readonly cancelled: Signed[] = [];
	/** Answers that are neither an acknowledgement nor a refusal for want of a core or a database. */
	readonly odd: string[] = [];
	/** Transactions of both kinds that the standby may lack. */
	readonly lacking = new Set<Signed>();
	/** Whether the standby gets nothing. */
	isApart = false;
	readonly #left: Signed[];
	readonly #working: Promise<unknown>;
	#isOver = false;

	constructor(urls: readonly string[], left: Signed[]) {
		this.#left = left;
		this.#working = Promise.all(urls.map((url) => this.#work(new RelayClient(url))));
	}

	/** Resolves when each part has grown by enough. */
	async grows(): Promise<void> {
		const [wanted, cancelled] = [this.wanted.length + ENOUGH, this.cancelled.length + ENOUGH_CANCELLED];
		await until(
			"enough is acknowledged and cancelled",
			() => this.wanted.length >= wanted && this.cancelled.length >= cancelled,
		);
	}

	async stop(): Promise<void> {
		this.#isOver = true;
		await this.#working;
	}

	async #work(client: RelayClient): Promise<void> {
		for (let n = 1; !this.#isOver; n += 1) {
			const tx = this.#left.pop();
			if (tx === undefined) throw new Error("no more accounts");
			if (!(await this.#asked(client, "eth_sendRawTransaction", tx.raw))) return;
			if (this.isApart) this.lacking.add(tx);
			if (n % CANCELLED_EVERY > 0) this.wanted.push(tx);
			else if (await this.#asked(client, "eth_cancelTransaction", tx.hash)) this.cancelled.push(tx);
			if (this.isApart) this.lacking.add(tx);
		}
	}

	/** Whether it was acknowledged before the end. */
	async #asked(client: RelayClient, method: string, param: string): Promise<boolean> {
		for (let isAgain = false; !this.#isOver; isAgain = true) {
			const { error } = await client.ask(method, [param], PATH);
			if (error === undefined) return true;
			const said = `${error.code} ${error.message}`;
			// The cancel that was refused may have been made all the same.
			if (isAgain && said.includes(NOT_CANCELLABLE)) return false;
			if (!REFUSED_WITHOUT_CORE.test(said)) this.odd.push(`${method}: ${said}`);
			await pause(systemClock, AGAIN_MS);
		}
		return false;
	}
}

/**
 * Looks at all relays at once, again and again, and counts how often more than one was ready as the
 * core.
 */
class Watch {
	cores = 0;
	double = 0;
	#isOver = false;
	readonly #watching: Promise<void>;

	constructor(urls: readonly string[]) {
		this.#watching = this.#watch(urls);
	}

	async stop(): Promise<void> {
		this.#isOver = true;
		await this.#watching;
	}

	async #watch(urls: readonly string[]): Promise<void> {
		while (!this.#isOver) {
			const cores = (await Promise.all(urls.map(isReadyCore))).filter(Boolean).length;
			if (cores > 0) this.cores += 1;
			if (cores > 1) this.double += 1;
			await pause(systemClock, AGAIN_MS);
		}
	}
}

async function isReadyCore(url: string): Promise<boolean> {
	const answer = await fetch(`${url}/readyz`).catch(() => null);
	if (answer === null) return false;
	const { role } = (await answer.json()) as { role?: unknown };
	return answer.ok && role === "core";
}

async function crowd(): Promise<Signed[]> {
	const some = Array.from({ length: ACCOUNTS }, (_, i) => testAccount(accounts + i));
	accounts += ACCOUNTS;
	await system.chain.fund(some);
	return some.map((by) => signed({ by, gasLimit: 21_000, value: 1 }));
}

/** Starts one, which others reach. */
async function startRelay(t: TestContext, DATABASE_URL: string, name: string): Promise<RelayProcess> {
	const PORT = String(await freePort());
	const own = { PORT, INTERNAL_URL: `http://127.0.0.1:${PORT}`, DATA_DIR: join(system.folder, name) };
	const relay = await startRelayProcess({ env: { ...system.env, DATABASE_URL, ...own } });
	t.after(() => relay.kill());
	return relay;
}

/** Once the builder got its cancel, a transaction is never sent to it again. */
function assertNoneSentAgain(cancelled: readonly Signed[]): void {
	for (const { hash, raw } of cancelled) {
		const told = builder.bodies.findIndex(
			(body) => body.includes("eth_cancelPrivateTransaction") && body.includes(hash),
		);
		if (told === -1) continue;
		assert.ok(!builder.bodies.slice(told).some((body) => body.includes(raw)), `${hash} was sent again`);
	}
}

async function stagesOf({ client }: RelayProcess, txs: readonly Signed[]): Promise<readonly string[]> {
	const stages = await Promise.all(txs.map(async ({ hash }) => (await client.stage(hash)) ?? "unknown"));
	return [...new Set(stages)].sort();
}

/** The block with all of them, from the chain's own pool. */
async function mine(txs: readonly Signed[]): Promise<number> {
	for (let i = 0; i < txs.length; i += CHAIN_BATCH) {
		const part = txs.slice(i, i + CHAIN_BATCH);
		await system.chain.batch(part.map(({ raw }) => ({ method: "eth_sendRawTransaction", params: [raw] })));
	}
	await system.chain.rpc("evm_mine");
	return Number(await system.chain.rpc("eth_blockNumber"));
}

const PENDING = ["BROADCAST", "PENDING"];

for (const how of ["synchronous", "asynchronous", "no"] as const) {
	const title = {
		synchronous: "a synchronous standby is promoted: nothing that was acknowledged is lost",
		asynchronous: "an asynchronous standby is promoted: what it had is there, and nothing ends wrongly",
		no: "no standby is promoted: all is there",
	}[how];
	test(title, { skip: NO_STANDBY }, async (t) => {
		const pair = await StandbyPair.start(t, how === "synchronous");
		const core = await startRelay(t, pair.url, `${how}-core`);
		const edge = await startRelay(t, pair.url, `${how}-edge`);
		const urls = [core.url, edge.url];
		builder.reset();
		const watch = new Watch(urls);
		const load = new Load(urls, await crowd());
		await load.grows();
		/**
		 * Pending at the standby, and cancelled at the primary alone: not sent by the core that knows,
		 * but by the next one.
		 */
		const late: Signed[] = [];
		if (how === "asynchronous") {
			load.isApart = true;
			await pair.partStandby();
			for (const one of load.wanted.splice(0, LATE)) {
				assert.equal(await core.client.call("eth_cancelTransaction", [one.hash], PATH), true);
				late.push(one);
			}
			await load.grows();
			// Changes are written with a block.
			await seesHead(core.client, await mine([]));
		}
		if (how !== "no") await pair.promote();
		load.isApart = false;
		await load.grows();
		await load.stop();
		await watch.stop();
		assert.deepEqual(load.odd, []);
		assert.equal(watch.double, 0, "two were the core at once");
		assert.ok(watch.cores > 0);
		assertNoneSentAgain([...load.cancelled, ...late]);

		const isSure = (one: Signed) => !load.lacking.has(one);
		const [sure, ended] = [load.wanted.filter(isSure), load.cancelled.filter(isSure)];
		for (const relay of [core, edge]) {
			assert.deepEqual(await stagesOf(relay, ended), ["CANCELLED"]);
			const stages = await stagesOf(relay, sure);
			assert.ok(stages.length > 0 && stages.every((stage) => PENDING.includes(stage)), stages.join());
		}
		for (const one of [edge, core]) await one.kill("SIGTERM");
		builder.reset();
		const next = await startRelay(t, pair.url, `${how}-next`);
		await until("all that is pending is sent", () => sure.every(({ raw }) => builder.raws().has(raw)));
		assert.deepEqual(await stagesOf(next, ended), ["CANCELLED"]);
		for (const { hash, raw } of ended) assert.ok(!builder.raws().has(raw), `${hash} was sent`);
		const stages = await stagesOf(
			next,
			load.wanted.filter((one) => !isSure(one)),
		);
		assert.ok(
			stages.every((stage) => [...PENDING, "unknown"].includes(stage)),
			stages.join(),
		);
		const revived = [...load.cancelled, ...late].filter(({ raw }) => builder.raws().has(raw));
		t.diagnostic(
			`${sure.length} kept, ${load.lacking.size} may be lacking; ${revived.length} cancelled are sent`,
		);
		await seesHead(next.client, await mine(sure));
		assert.deepEqual(await stagesOf(next, sure), ["INCLUDED"]);
	});
}
