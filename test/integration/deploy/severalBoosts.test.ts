// Two boosts on one database, both real processes: both serve, and the one that stays alive takes over what the other one had.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { statusOf } from "../../faults/boostHere.ts";
import { type CellParts, startCellParts } from "../../faults/cellParts.ts";
import { startWorld, type World } from "../../faults/world.ts";
import { type PlainBuilder, startPlainBuilder } from "../../support/plainBuilder.ts";
import { type PostgresServer, startPostgres } from "../../support/postgresServer.ts";
import { type BoostProcess, startBoostProcess } from "../../support/processes.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { signedTransaction, type TestAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const SENDERS = 100;
const NONCES = 5;
/** A part is left alone for ten seconds; then its rows are read, moved and sent. */
const ADOPTED_MS = 40_000;

let world: World;
let builder: PlainBuilder;
let postgres: PostgresServer;
let database: string;
let parts: CellParts;
before(async () => {
	world = await startWorld({ blockMs: 300, accounts: SENDERS + 20, builder: "plain" });
	// Nothing that the relay sends is ever mined: what is mined has come by the fallback.
	builder = await startPlainBuilder();
	postgres = await startPostgres();
	database = await postgres.newDatabase();
	parts = await startCellParts(world, "several", {
		...{ processes: ["relay", "boost"], builderUrl: builder.url },
		boost: { ETH_RPC_URL: world.chain.url, DATABASE_URL: database, PROBE_TIMEOUT_MS: "3000" },
	});
});
after(async () => {
	await parts?.stop();
	await builder?.stop();
	await postgres?.stop();
	await world?.stop();
});

test("a boost is killed for good with 500 open transactions while the relay is out: another one has them all mined", async (t) => {
	const other = await startAnother();
	t.after(() => other.kill());
	const first = new RelayClient(parts.boost.url);
	const sent: string[] = [];
	const accounts = world.accounts(SENDERS);
	for (let nonce = 0; nonce < NONCES; nonce += 1)
		sent.push(...(await Promise.all(accounts.map((by) => send(first, by, nonce)))));
	assert.equal((await statusOf(parts.boost.url)).journal.depth, sent.length);
	assert.equal((await statusOf(other.url)).journal.depth, 0);

	await parts.fallbackWire.set({ kind: "refuse" });
	await parts.processes.relay?.kill();
	await parts.processes.boost?.kill();
	const open = sent.filter((hash) => !world.mined.has(hash));
	assert.equal(open.length, sent.length, "all were open when it was killed");
	await parts.fallbackWire.set(null);

	const adopted = await until(
		"the other one has adopted them",
		() => other.logs().find(({ msg }) => msg === "a part was adopted"),
		ADOPTED_MS,
	);
	assert.equal(adopted.count, sent.length);
	await until("all are mined", () => sent.every((hash) => world.mined.has(hash)), ADOPTED_MS);
	await until(
		"its journal is empty",
		async () => (await statusOf(other.url)).journal.depth === 0,
		ADOPTED_MS,
	);
	assert.deepEqual(
		sent.filter((hash) => world.publicHashes.has(hash)),
		[],
	);
});

function startAnother(): Promise<BoostProcess> {
	return startBoostProcess({ env: { ...parts.boostEnv, PORT: "0", LOG_LEVEL: "info" } });
}

async function send(to: RelayClient, by: TestAccount, nonce: number): Promise<string> {
	const { raw, hash } = signedTransaction({ gasLimit: 21_000, value: 1, by, nonce });
	assert.equal(await to.send(`0x${Buffer.from(raw).toString("hex")}`, "/fast"), hash);
	return hash;
}
