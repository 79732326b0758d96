// The Procfile's lines as hosts and runners run them, with PORT in the environment and SIGTERM to what was started. The
// signal must reach node itself, and nothing may be left behind.

import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
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

/** What each makes of a line, for `/bin/sh -c`. */
const RUNNERS: readonly (readonly [string, (line: string) => string])[] = [
	["node-foreman and honcho: sh -c", (line) => line],
	["Heroku: bash -c", (line) => `exec bash -c '${line}'`],
	["Dokku: bash -c, of what eval makes of it", (line) => `exec bash -c "$(eval echo ${line})"`],
];

for (const [name, made] of RUNNERS) {
	test(`${name}: each line is run, and web is what PROCESS names`, async () => {
		const said = async (line: string, env: Readonly<Record<string, string>> = {}): Promise<string> => {
			const exit = await runRelay({ line: made(`${lineOf(line)} --help`), env });
			assert.deepEqual([exit.code, exit.stderr], [0, ""]);
			return exit.stdout;
		};
		const [relay, boost] = [await said("relay"), await said("boost")];
		assert.match(relay, /^ {2}BUILDERS$/m);
		assert.match(boost, /^ {2}RELAY_URL$/m);
		assert.equal(await said("web", { PROCESS: "boost" }), boost);
		// An empty one is none, which is the pair.
		assert.equal(await said("web", { PROCESS: "" }), boost + relay);
	});
}

for (const [as, named] of [
	["the lines relay and boost", () => ({})],
	["the line web, with PROCESS", (PROCESS: string) => ({ PROCESS })],
] as const)
	test(`${as}: each serves on PORT, and SIGTERM ends it in order`, (t) => eachServes(t, named));

async function eachServes(
	t: TestContext,
	named: (name: string) => { readonly PROCESS?: string },
): Promise<void> {
	const [port, front] = [await freePort(), await freePort()];
	const start = async (name: string, env: Readonly<Record<string, string>>): Promise<RelayProcess> => {
		const { PROCESS } = named(name);
		const line = lineOf(PROCESS === undefined ? name : "web");
		const started = await startRelayProcess({ line, env: { ...system.env, ...named(name), ...env } });
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
}

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
