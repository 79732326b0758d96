// A relay, and boost in front of it, while their database is unavailable: the relay refuses
// submissions meanwhile with an error of their own and is not ready, boost uses its fallback, both
// report the cause, and both recover by themselves.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import type { RelayState } from "../../../relay/ingress/operators.ts";
import { createLogger } from "../../../shared/log.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { type PostgresServer, startPostgres } from "../../support/postgresServer.ts";
import { ADMIN_TOKEN, type WireAnswer } from "../../support/relayClient.ts";
import { mineAll } from "../../support/systems.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcpProxy.ts";
import { until } from "../../support/until.ts";

let postgres: PostgresServer;
/** Between the database and all that use it. */
let wire: TcpProxy;
let fixture: BoostFixture;
let admin: pg.Client;
const PASSWORD = "secretsecret";
const NEXT_PASSWORD = "anothersecret";
const texts: Readonly<Record<"relay" | "boost", string[]>> = { relay: [], boost: [] };
const logOf = (name: keyof typeof texts) =>
	createLogger("info", name, { write: (text: string) => void texts[name].push(text) });
before(async () => {
	postgres = await startPostgres({ password: PASSWORD });
	const url = new URL(await postgres.newDatabase());
	admin = new pg.Client({ connectionString: url.href, application_name: "admin" });
	await admin.connect();
	wire = await startTcpProxy(Number(url.port));
	url.port = String(wire.port);
	const DATABASE_URL = url.toString();
	// The fallback is another's relay.
	fixture = await startBoostFixture({
		system: { env: { DATABASE_URL }, log: logOf("relay") },
		log: logOf("boost"),
		fallback: { DATABASE_URL: "" },
		boost: { DATABASE_URL },
	});
});
after(async () => {
	await fixture?.stop();
	await wire?.stop();
	await admin?.end();
	await postgres?.stop();
});

async function changePassword(): Promise<void> {
	await admin.query(`ALTER ROLE leeward PASSWORD '${NEXT_PASSWORD}'`);
	// Sessions outlive their password.
	await admin.query(
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'leeward-%'",
	);
}

const DOWN = /^the database of DATABASE_URL does not answer \(.+\)$/;
const REFUSED =
	/^the database of DATABASE_URL refuses \(28P01\): expected a user and password that it knows; set them in DATABASE_URL and restart$/;

for (const [how, begin, reason, end] of [
	["is cut off", () => wire.cut(), DOWN, () => wire.mend()],
	["hangs", () => wire.freeze(), DOWN, () => wire.mend()],
	[
		"gets another password",
		changePassword,
		REFUSED,
		() => admin.query(`ALTER ROLE leeward PASSWORD '${PASSWORD}'`),
	],
] as const) {
	test(`a database that ${how}: the relay refuses meanwhile, /readyz says so, boost carries on, and all recovers`, async () => {
		const { users, boost } = fixture;
		const { client } = users.system;
		const actor = await users.actor();
		await users.passBlock();
		const kept = actor.sign();
		assert.equal(await boost.result("eth_sendRawTransaction", [kept.raw]), kept.hash);
		// Boost may have given it to the fallback, if the relay's first connections took a second.
		await until("the relay has it", async () => {
			const { result } = await client.ask("eth_sendRawTransaction", [kept.raw], "/fast");
			return result === kept.hash;
		});

		for (const lines of Object.values(texts)) lines.splice(0);
		await begin();
		const refused = actor.sign({ nonce: 1 });
		// The answer comes though the database does not.
		const answer = await client.ask("eth_sendRawTransaction", [refused.raw], "/fast");
		assert.deepEqual(answer.error, {
			code: -32603,
			message: "internal error: the store is unavailable, try again",
			data: { reason: "store unavailable" },
		});
		assert.notEqual((await client.status(kept.hash)).stage, undefined);
		const { status, checks } = await readiness(client.url);
		assert.deepEqual([status, checks.store?.ok], [503, false]);
		assert.match(checks.store?.reason ?? "", reason);
		const state = await fetch(`${client.url}/admin/state`, {
			headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
		});
		const { core } = (await state.json()) as RelayState;
		assert.match(core?.store.trouble ?? "", reason, "so does the operator's page");

		await boost.reaches("the relay is down for boost", ({ relay }) => relay.state !== "closed");
		const reply = await boost.call("eth_sendRawTransaction", [refused.raw]);
		assert.equal((reply.json as WireAnswer).result, refused.hash);
		assert.equal(reply.headers["x-boost-upstream"], "fallback");
		assert.equal((await boost.status()).journal.durable, false);

		await until("boost reports it", async () => {
			const { status, checks } = await readiness(boost.url);
			return status === 200 && reason.test(checks.journal?.note ?? "");
		});
		for (const [name, lines] of Object.entries(texts)) {
			const logged = lines.map((line) => JSON.parse(line) as LogLine);
			const told = logged.find((line) => reason.test(line.reason ?? ""));
			assert.equal(told?.fault?.host, new URL(fixture.system.env.DATABASE_URL ?? "").host, name);
			assert.doesNotMatch(lines.join(""), new RegExp(`${PASSWORD}|${NEXT_PASSWORD}`));
		}

		await end();
		await until("the relay is ready", async () => (await fetch(`${client.url}/readyz`)).status === 200);
		await boost.isWell();
		await boost.reaches("journal on disk again", ({ journal }) => journal.durable);
		assert.deepEqual((await readiness(boost.url)).checks.journal, { ok: true });
		const later = actor.sign({ nonce: 2 });
		assert.equal(await boost.result("eth_sendRawTransaction", [later.raw]), later.hash);
		await mineAll(users.system, [kept, refused, later]);
	});
}

interface LogLine {
	readonly reason?: string;
	readonly fault?: { readonly host?: string };
}

interface Check {
	readonly ok: boolean;
	readonly reason?: string;
	readonly note?: string;
}

async function readiness(url: string) {
	const answer = await fetch(`${url}/readyz`);
	const { checks } = (await answer.json()) as { checks: Readonly<Record<string, Check>> };
	return { status: answer.status, checks };
}
