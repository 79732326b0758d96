// A relay, and boost in front of it, while their database is unavailable: the relay refuses submissions meanwhile with
// an error of their own and is not ready, boost uses its fallback, and both recover by themselves.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { RelayState } from "../../../relay/ingress/operators.ts";
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
before(async () => {
	postgres = await startPostgres();
	const url = new URL(await postgres.newDatabase());
	wire = await startTcpProxy(Number(url.port));
	url.port = String(wire.port);
	const DATABASE_URL = url.toString();
	// The fallback is another's relay.
	fixture = await startBoostFixture({
		system: { env: { DATABASE_URL } },
		fallback: { DATABASE_URL: "" },
		boost: { DATABASE_URL },
	});
});
after(async () => {
	await fixture?.stop();
	await wire.stop();
	await postgres.stop();
});

for (const [how, begin] of [
	["is cut off", () => wire.cut()],
	["hangs", () => wire.freeze()],
] as const) {
	test(`a database that ${how}: the relay refuses meanwhile, /readyz says so, boost carries on, and all recovers`, async () => {
		const { users, boost } = fixture;
		const { client } = users.system;
		const actor = await users.actor();
		await users.passBlock();
		const kept = actor.sign();
		assert.equal(await boost.result("eth_sendRawTransaction", [kept.raw]), kept.hash);

		begin();
		const refused = actor.sign({ nonce: 1 });
		// The answer comes though the database does not.
		const answer = await client.ask("eth_sendRawTransaction", [refused.raw], "/fast");
		assert.deepEqual(answer.error, {
			code: -32603,
			message: "internal error: nothing can be stored now, try again",
			data: { reason: "store unavailable" },
		});
		assert.notEqual((await client.status(kept.hash)).stage, undefined);
		const readiness = await fetch(`${client.url}/readyz`);
		const { checks } = (await readiness.json()) as { checks: { store: { ok: boolean; reason?: string } } };
		assert.deepEqual([readiness.status, checks.store.ok], [503, false]);
		assert.match(checks.store.reason ?? "", /^the database of DATABASE_URL does not answer \(.+\)$/);
		const state = await fetch(`${client.url}/admin/state`, {
			headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
		});
		const { core } = (await state.json()) as RelayState;
		assert.match(core?.store.trouble ?? "", /does not answer/, "so does the operator's page");

		await boost.reaches("the relay is out for boost", ({ relay }) => relay.state !== "closed");
		const reply = await boost.call("eth_sendRawTransaction", [refused.raw]);
		assert.equal((reply.json as WireAnswer).result, refused.hash);
		assert.equal(reply.headers["x-boost-upstream"], "fallback");
		assert.equal((await boost.status()).journal.durable, false);

		wire.mend();
		await until("the relay is ready", async () => (await fetch(`${client.url}/readyz`)).status === 200);
		await boost.isWell();
		await boost.reaches("the journal is on disk again", ({ journal }) => journal.durable);
		const later = actor.sign({ nonce: 2 });
		assert.equal(await boost.result("eth_sendRawTransaction", [later.raw]), later.hash);
		await mineAll(users.system, [kept, refused, later]);
	});
}
