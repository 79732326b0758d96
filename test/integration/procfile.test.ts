// The Procfile's lines as a host runs them: by `sh -c`, with PORT in the environment and SIGTERM to what it started.
// The signal must reach node itself, and nothing may be left behind.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type ProcessSystem, startProcessSystem } from "../support/processSystem.ts";
import { freePort, readyStatus, runRelay, startRelayProcess } from "../support/relayProcess.ts";
import { until } from "../support/until.ts";

const LINES = new Map(
	readFileSync(new URL("../../Procfile", import.meta.url), "utf8")
		.trimEnd()
		.split("\n")
		.map((line) => /^(\w+): (.+)$/.exec(line)?.slice(1) as [string, string]),
);

let system: ProcessSystem;
before(async () => {
	system = await startProcessSystem();
});
after(() => system.stop());

test("the Procfile has the lines relay and web", () => {
	assert.deepEqual([...LINES.keys()], ["relay", "web"]);
});

for (const [name, env] of [
	["relay", {}],
	["web", {}],
	["web", { PROCESS: "relay" }],
] as const) {
	const said = Object.entries(env).map(([key, value]) => `, ${key}=${value}`);
	test(`the line ${name}${said.join("")} serves on PORT, and SIGTERM ends it in order`, async (t) => {
		const port = await freePort();
		const line = lineOf(name);
		const DATA_DIR = join(system.folder, `${name}${said.join("")}`);
		const relay = await startRelayProcess({
			line,
			env: { ...system.env, ...env, DATA_DIR, PORT: String(port) },
		});
		t.after(() => relay.kill());
		assert.equal(await relay.client.call("eth_chainId", []), "0x7a69");
		const exit = await relay.kill("SIGTERM");
		assert.deepEqual([exit.code, exit.signal, exit.stderr], [0, null, ""]);
		assert.match(exit.stdout, /"msg":"stopped"/);
		assert.equal(await readyStatus(relay.url), 0);
		await until("nothing of its process group is left", () => isGone(relay.pid));
	});
}

test("the line web refuses a PROCESS that it does not know", async () => {
	for (const PROCESS of ["boost", "relay; true", "Relay"]) {
		const exit = await runRelay({ line: lineOf("web"), env: { ...system.env, PROCESS } });
		assert.equal(exit.code, 1);
		assert.equal(exit.stdout, "");
		assert.match(exit.stderr, /^PROCESS is not valid: expected relay/);
	}
});

function lineOf(name: string): string {
	const line = LINES.get(name);
	if (line === undefined) throw new Error(`the Procfile has no line ${name}`);
	return line;
}

function isGone(group: number): boolean {
	try {
		process.kill(-group, 0);
		return false;
	} catch (thrown) {
		return (thrown as { code?: string }).code === "ESRCH";
	}
}
