// Two boost instances, of which the second one gets no answer from the database: it does not know
// what the first one has, so it refuses what depends on that. Only the first one's way to the
// upstreams fails; the second one reaches the relay.

import assert from "node:assert/strict";
import { after, afterEach, before, it } from "node:test";
import pg from "pg";
import type { BoostState } from "../../../boost-proxy/ingress/operators.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { type PostgresServer, startPostgres } from "../../support/postgresServer.ts";
import { ADMIN_TOKEN, type WireAnswer, type WireStatus } from "../../support/relayClient.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import { mineAll } from "../../support/systems.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcpProxy.ts";
import { until } from "../../support/until.ts";

const SLOW_MS = 2_000;
/** The server's maximum. Each boost instance has at most six. */
const CONNECTIONS = 24;
/** The second instance's name at the database. */
const SECOND = "second";
const UNKNOWN = /^the database did not answer, so it is not known whether another boost instance has /;

let fixture: BoostFixture;
let postgres: PostgresServer;
let database: string;
/** Between the database and the second instance. */
let wire: TcpProxy;
/** How long the wire holds back each query, in ms. */
let delayMs = 0;
let one: BoostClient;
let other: BoostClient;
before(async () => {
	postgres = await startPostgres({ connections: CONNECTIONS });
	database = await postgres.newDatabase();
	const DATABASE_URL = new URL(database);
	wire = await startTcpProxy(Number(DATABASE_URL.port), { delayMs: () => delayMs });
	fixture = await startBoostFixture({
		system: { env: { CANCEL_POLICY: "origin" } },
		boost: { DATABASE_URL: DATABASE_URL.toString(), BREAKER_HOLD_MAX_MS: "100" },
	});
	one = fixture.boost;
	await query(`CREATE ROLE ${SECOND} LOGIN IN ROLE ${DATABASE_URL.username}`);
	DATABASE_URL.username = SECOND;
	DATABASE_URL.port = String(wire.port);
	const env = { DATABASE_URL: DATABASE_URL.toString(), RELAY_URL: fixture.system.client.url };
	other = await fixture.startBoost({ env });
	await until("the first one knows of it", async () => (await one.status()).journal.instances?.count === 2);
});
after(async () => {
	await fixture?.stop();
	await wire?.stop();
	await postgres?.stop();
});
afterEach(async () => {
	wire.mend();
	await fixture.recovers();
	await other.reaches("its journal is on disk", ({ journal }) => journal.durable);
});

const send = async (boost: BoostClient, { raw }: Signed) =>
	(await boost.call("eth_sendRawTransaction", [raw])).json as WireAnswer;
const cancel = async (boost: BoostClient, { hash }: Signed) =>
	(await boost.call("eth_cancelTransaction", [hash])).json as WireAnswer;
const byHash = async (boost: BoostClient, { hash }: Signed) =>
	(await boost.call("eth_getTransactionByHash", [hash])).json as WireAnswer;
const pending = async (boost: BoostClient, { address }: Actor) =>
	(await boost.call("eth_getTransactionCount", [address, "pending"])).json as WireAnswer;
/** How often the fallback was sent it. */
const sentToFallback = ({ raw }: Signed) =>
	fixture.wires.fallback
		.requests()
		.flatMap(({ calls }) => calls)
		.filter(({ method, params }) => method === "eth_sendRawTransaction" && params[0] === raw).length;

function refuses(answer: WireAnswer, what: string): void {
	assert.equal(answer.error?.code, -32603, `${what}: ${JSON.stringify(answer)}`);
	assert.match(answer.error.message, UNKNOWN);
}

/** A transaction that the first instance has. */
async function held(by: Actor): Promise<Signed> {
	const tx = by.sign();
	// After a trouble of the database it may still wait before it connects again.
	await until("it has it", async () => (await send(one, tx)).result === tx.hash);
	return tx;
}

async function firstIsCutOff(): Promise<void> {
	await fixture.wires.fallback.set({ kind: "refuse" });
	await fixture.wires.relay.set({ kind: "refuse" });
	await one.reaches("it reaches nobody", ({ relay, fallback }) => {
		return relay.state !== "closed" && fallback?.state !== "closed";
	});
}

async function actors(): Promise<[Actor, Actor]> {
	const made = [await fixture.users.actor(), await fixture.users.actor()] as [Actor, Actor];
	await fixture.users.passBlock();
	return made;
}

/** Troubles of the database, or of the second instance's way to it. The result ends them. */
const TROUBLES: Readonly<Record<string, () => Promise<() => Promise<void> | void>>> = {
	async "is cut off"() {
		wire.cut();
		return () => wire.mend();
	},
	async hangs() {
		wire.freeze();
		return () => wire.mend();
	},
	async "is slow, two seconds for each query"() {
		delayMs = SLOW_MS;
		return () => {
			delayMs = 0;
		};
	},
	async "has no connection left"() {
		wire.cut();
		await until("its sessions have ended", async () => {
			const sessions = await query(`SELECT 1 FROM pg_stat_activity WHERE usename = '${SECOND}'`);
			return sessions.length === 0;
		});
		const clients = await filled();
		wire.mend();
		return async () => {
			await Promise.all(clients.map((client) => client.end()));
		};
	},
	async restarts() {
		await postgres.kill();
		return () => postgres.start();
	},
	async "has its table locked"() {
		const client = new pg.Client({ connectionString: database });
		await client.connect();
		await client.query("BEGIN");
		await client.query("LOCK TABLE leeward_account");
		return () => client.end();
	},
};

/** The rows that the database answers with. */
async function query(sql: string): Promise<readonly unknown[]> {
	const client = new pg.Client({ connectionString: database });
	await client.connect();
	try {
		return (await client.query(sql)).rows;
	} finally {
		await client.end();
	}
}

/** Connections until the server has none left. */
async function filled(): Promise<readonly pg.Client[]> {
	const clients: pg.Client[] = [];
	for (;;) {
		const client = new pg.Client({ connectionString: database });
		try {
			await client.connect();
		} catch {
			return clients;
		}
		clients.push(client);
	}
}

for (const [how, begin] of Object.entries(TROUBLES)) {
	it(`refuses a cancel while its database ${how}, and sends nothing once one was accepted`, async () => {
		const [by, control] = await actors();
		const [tx, kept] = [await held(by), await held(control)];
		await firstIsCutOff();
		const end = await begin();
		refuses(await cancel(other, tx), "the cancel");
		await end();
		const isAccepted = async () => (await cancel(other, tx)).result === true;
		await until("the cancel is accepted", isAccepted);
		await fixture.wires.fallback.set(null);
		// It reaches the relay, which has both. After its silence the first one may have given the
		// fallback what nobody has cancelled.
		await until("it has taken over what the first one had", async () => {
			return (await one.status()).journal.depth === 0 && (await other.status()).journal.depth === 1;
		});
		assert.equal(sentToFallback(tx), 0);
		await fixture.recovers();
		await mineAll(fixture.system, [kept]);
		await until("the first one knows", async () => {
			return ((await one.get(`/tx/${tx.hash}`)).json as WireStatus).stage === "CANCELLED";
		});
	});
}

it("names the instance that does not reach the relay at the top of the other one's page", async () => {
	await firstIsCutOff();
	const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
	const problems = async (boost: BoostClient) =>
		((await boost.send({ verb: "GET", path: "/admin/state", headers })).json as BoostState).problems;
	const { own } = (await one.status()).journal.instances ?? {};
	const text = `another boost instance does not reach the relay (${own?.slice(0, 8)})`;
	await until("it is named", async () => (await problems(other)).some((problem) => problem.text === text));
	assert.ok((await problems(one)).every((problem) => problem.text !== text));
	await fixture.recovers();
	await until("it is not named any more", async () => (await problems(other)).length === 0);
});

it("refuses a submission, and so revives nothing that was cancelled at the other instance", async () => {
	const [by, stranger] = await actors();
	const tx = await held(by);
	await firstIsCutOff();
	assert.match((await cancel(one, tx)).error?.message ?? "", /cancels it there as soon as possible/);
	wire.cut();
	refuses(await send(other, tx), "the cancelled transaction");
	refuses(await send(other, stranger.sign()), "a new transaction");
	wire.mend();
	await until("it is known again", async () => (await send(other, tx)).result === tx.hash);
	await fixture.recovers();
	await until("the relay knows", async () => (await fixture.users.status(tx)).stage === "CANCELLED");
	assert.equal(sentToFallback(tx), 0);
});

it("refuses what the other instance's rows decide: status, journal, pending nonce and transaction", async (t) => {
	// On a busy machine the first one may miss a probe, and the other one would take its rows over.
	await one.force("close");
	t.after(() => one.force("auto"));
	const [by, control] = await actors();
	const mined = await held(control);
	await mineAll(fixture.system, [mined]);
	const tx = await held(by);
	wire.cut();
	refuses(await byHash(other, tx), "the transaction");
	refuses(await pending(other, by), "the pending nonce");
	for (const path of [`/tx/${tx.hash}`, `/tx/${tx.hash}/journal`]) {
		const { status, json } = await other.get(path);
		assert.equal(status, 503, path);
		assert.match((json as { error: string }).error, UNKNOWN);
	}
	// In a block it is whatever anybody has of it. On a busy machine a probe of the relay may have
	// come late.
	await until("the mined one is returned", async () => {
		return ((await byHash(other, mined)).result as { hash: string } | null | undefined)?.hash === mined.hash;
	});
	await until("its status is returned", async () => {
		return ((await other.get(`/tx/${mined.hash}`)).json as WireStatus).status === "INCLUDED";
	});
	wire.mend();
	await until("the nonce is known again", async () => (await pending(other, by)).result === "0x1");
	await mineAll(fixture.system, [tx]);
});
