// The start against the world outside: a node that comes later or is another chain's, ports and folders that are
// taken, ports of their own for websockets and metrics. Refusals name the setting that would help.

import assert from "node:assert/strict";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { startDevChain } from "../../devnet/devChain.ts";
import { freePort } from "../../devnet/freePort.ts";
import { IN_FOLDER } from "../../support/engine.ts";
import { metricsOf } from "../../support/metricsPage.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/processSystem.ts";
import { type Exit, type RelayProcess, readyStatus, runRelay } from "../../support/relayProcess.ts";
import { until } from "../../support/until.ts";

let system: ProcessSystem;
let running: RelayProcess;
before(async () => {
	system = await startProcessSystem();
	running = await system.start(folder("running"));
});
after(() => system.stop());

test("a node that is not up yet is waited for", async (t) => {
	const port = await freePort();
	const listens = await freePort();
	const waiting = system.launch({
		...folder("early"),
		ETH_RPC_URL: `http://127.0.0.1:${port}`,
		PORT: String(listens),
	});
	await waiting.logged("the node does not answer yet");
	// Nothing is served yet that could not be served well.
	assert.equal(await readyStatus(`http://127.0.0.1:${listens}`), 0);
	const chain = await startDevChain({ port });
	t.after(() => chain.stop());
	await until("it is ready", async () => (await readyStatus(`http://127.0.0.1:${listens}`)) === 200);
	assert.equal((await waiting.logged("node found")).chainId, "31337");
	await waiting.kill();
});

test("a node of another chain than CHAIN_ID is refused at once", async () => {
	const ETH_RPC_URL = system.chain.url.replace("//", "//user:secretsecret@");
	const exit = await run({ ...folder("chain"), CHAIN_ID: "1", ETH_RPC_URL });
	assert.equal(exit.code, 1);
	assert.doesNotMatch(`${exit.stderr}${exit.stdout}`, /secretsecret/);
	assert.match(exit.stderr, /^relay: [^\n]*31337[^\n]*CHAIN_ID[^\n]*\b1\b[^\n]*\n$/);
	const right = await system.start({ ...folder("chain"), CHAIN_ID: "31337" });
	await right.kill();
});

test("a port that is taken is named, and the setting that moves it", async () => {
	const taken = String(running.port);
	for (const name of ["PORT", "METRICS_PORT", "SEARCHER_PORT"]) {
		const exit = await run({ ...folder("port"), [name]: taken });
		assert.equal(exit.code, 1);
		assert.match(exit.stderr, /^relay: [^\n]+\n$/);
		assert.match(exit.stderr, new RegExp(`\\b${name}\\b`), name);
		assert.match(exit.stderr, new RegExp(`\\b${taken}\\b`), name);
	}
	assert.equal(await readyStatus(running.url), 200);
});

test("an address that is not this machine's is refused by the name of its setting", async () => {
	for (const HOST of ["192.0.2.1", "no host at all"]) {
		const exit = await run({ ...folder("host"), HOST });
		assert.equal(exit.code, 1);
		assert.match(exit.stderr, /^relay: HOST is not valid[^\n]*: expected [^\n]+, for example HOST=[^\n]*\n$/);
	}
});

test("a data folder that can't be one is refused by the name of its setting", async () => {
	const file = join(system.folder, "a file");
	writeFileSync(file, "");
	for (const DATA_DIR of [file, join(file, "below")]) {
		const exit = await run({ ...IN_FOLDER, DATA_DIR });
		assert.equal(exit.code, 1);
		assert.match(exit.stderr, /^relay: DATA_DIR [^\n]*: expected [^\n]+, for example DATA_DIR=[^\n]*\n$/);
	}
});

test("BUILDERS may be a file; websockets and metrics move to ports of their own; the store is its owner's", async () => {
	const file = join(system.folder, "builders.json");
	writeFileSync(file, system.env.BUILDERS ?? "");
	const data = join(system.folder, "own ports");
	mkdirSync(data);
	const [searchers, metrics] = [await freePort(), await freePort()];
	const relay = await system.start({
		...IN_FOLDER,
		DATA_DIR: data,
		BUILDERS: file,
		SEARCHER_PORT: String(searchers),
		METRICS_PORT: String(metrics),
	});
	assert.equal(await opened(`ws://127.0.0.1:${searchers}/fast`), "open");
	assert.notEqual(await opened(`ws://127.0.0.1:${relay.port}/fast`), "open");
	assert.match(await metricsOf(`http://127.0.0.1:${metrics}`), /^relay_head_number \d+$/m);
	assert.equal((await fetch(`${relay.url}/metrics`)).status, 404);
	assert.equal(statSync(join(data, "relay")).mode & 0o777, 0o700);
	await relay.kill();
});

test("the log of a start tells whether the native code is loaded", () => {
	const lines = running.logs().filter(({ msg }) => msg.includes("native code"));
	assert.deepEqual(lines.map(({ task, native }) => `${task} ${native}`).sort(), [
		"keccak true",
		"secp256k1 true",
	]);
});

function run(env: Readonly<Record<string, string>>): Promise<Exit> {
	return runRelay({ env: { ...system.env, ...env } });
}

function folder(name: string): { DATA_DIR: string } {
	return { DATA_DIR: join(system.folder, name) };
}

/** "open", or how it was refused. */
function opened(url: string): Promise<string> {
	return new Promise((resolve) => {
		const socket = new WebSocket(url);
		socket.once("open", () => {
			socket.terminate();
			resolve("open");
		});
		socket.once("error", (error) => resolve(error.message));
	});
}
