// The machine of the relay that decides is paused, and none of its clocks notices. Meanwhile
// another relay takes over, a user cancels there, and that relay ends. The first one must send
// nothing when it wakes up, also before the database answers it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../support/postgresServer.ts";
import { startRelayProcess } from "../../support/processes.ts";
import { type ProcessSystem, seesHead, startProcessSystem } from "../../support/systems.ts";
import { startTcpProxy } from "../../support/tcpProxy.ts";
import { rawTransaction, signedTransaction, testAccount } from "../../support/txFactory.ts";

let postgres: PostgresServer;
let system: ProcessSystem;
before(async () => {
	postgres = await startPostgres();
	system = await startProcessSystem();
});
after(async () => {
	await system?.stop();
	await postgres?.stop();
});

test("what was cancelled at the next core is not sent by a core that was paused, which ends", async (t) => {
	const DATABASE_URL = await postgres.newDatabase();
	const wired = new URL(DATABASE_URL);
	const wire = await startTcpProxy(Number(wired.port));
	t.after(() => wire.stop());
	wired.port = String(wire.port);
	const paused = await startRelayProcess({
		env: { ...system.env, DATABASE_URL: wired.href, DATA_DIR: `${system.folder}/paused` },
		entry: "test/support/unawareMain.ts",
		args: ["relay/main.ts"],
	});
	t.after(() => paused.kill());
	const by = testAccount(41_000);
	await system.chain.fund([by]);
	const options = { by, nonce: 0 };
	const raw = `0x${rawTransaction(options).toString("hex")}`;
	const { hash } = signedTransaction(options);
	const isSent = () => system.builder.requests().some(({ params }) => JSON.stringify(params).includes(raw));
	assert.equal(await paused.client.send(raw, "/nochecks"), hash);
	await system.delivered([raw]);
	wire.freeze();
	paused.signal("SIGSTOP");

	const next = await system.start({ DATABASE_URL });
	assert.equal(await next.client.call("eth_cancelTransaction", [hash]), true);
	await next.kill("SIGTERM");
	await system.builder.catchUp();
	system.builder.reset();
	await system.chain.rpc("anvil_mine", ["0x1"]);
	paused.signal("SIGCONT");
	await seesHead(paused.client, Number(await system.chain.rpc("eth_blockNumber")));
	await system.builder.catchUp();
	assert.equal(isSent(), false, "sent after the cancel");

	wire.mend();
	const { code, stdout } = await paused.ended();
	assert.equal(code, 1, stdout.slice(-2_000));
	await system.builder.catchUp();
	assert.equal(isSent(), false, "sent after the cancel");
});
