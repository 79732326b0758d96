// The Procfile's lines as a host runs them: by `sh -c`, with PORT in the environment and SIGTERM to what it started.
// The signal must reach node itself, and nothing may be left behind.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freePort } from "../../devnet/freePort.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/processSystem.ts";
import { groupGone, lineOf, PROCFILE } from "../../support/procfileRunner.ts";
import { type RelayProcess, readyStatus, runRelay, startRelayProcess } from "../../support/relayProcess.ts";

let system: ProcessSystem;
before(async () => {
	system = await startProcessSystem();
});
after(() => system.stop());

test("the Procfile has the lines relay, boost and web", () => {
	assert.deepEqual([...PROCFILE.keys()], ["relay", "boost", "web"]);
});

test("the line web has the commands of the others, by PROCESS", () => {
	for (const name of ["relay", "boost"])
		assert.ok(lineOf("web").includes(` ${name}) ${lineOf(name)} ;;`), name);
});

test("the lines relay and boost serve on PORT, and SIGTERM ends each in order", async (t) => {
	const [port, front] = [await freePort(), await freePort()];
	const start = async (name: string, env: Readonly<Record<string, string>>): Promise<RelayProcess> => {
		const started = await startRelayProcess({ line: lineOf(name), env: { ...system.env, ...env } });
		t.after(() => started.kill());
		return started;
	};
	const relay = await start("relay", { PORT: String(port) });
	const boost = await start("boost", { PORT: String(front), RELAY_URL: relay.url, FALLBACK_URL: "none" });
	for (const one of [boost, relay]) assert.equal(await one.client.call("eth_chainId", []), "0x7a69");
	const exits = await Promise.all([relay.kill("SIGTERM"), boost.kill("SIGTERM")]);
	for (const exit of exits) {
		assert.deepEqual([exit.code, exit.signal, exit.stderr], [0, null, ""]);
		assert.match(exit.stdout, /"msg":"stopped"/);
	}
	for (const one of [boost, relay]) {
		assert.equal(await readyStatus(one.url), 0);
		await groupGone(one.pid);
	}
});

test("the line web refuses a PROCESS that it does not know", async () => {
	for (const PROCESS of ["both", "relay; true", "Relay"]) {
		const exit = await runRelay({ line: lineOf("web"), env: { ...system.env, PROCESS } });
		assert.equal(exit.code, 1);
		assert.equal(exit.stdout, "");
		assert.match(
			exit.stderr,
			/^PROCESS is not valid: expected relay, boost or pair, for example PROCESS=pair$/m,
		);
	}
});
