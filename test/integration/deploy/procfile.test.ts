// The Procfile's lines as hosts run them, with PORT in the environment and SIGTERM to what was
// started, and the whole of it run by a runner of Procfiles: relay and boost as two processes, and
// the pair behind one port. The signal must reach node itself, a transaction sent through boost is
// mined, and nothing may be left behind. boostStartup.test.ts has signals to a pair.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freePort } from "../../devnet/freePort.ts";
import { sized } from "../../support/length.ts";
import {
	groupGone,
	lineOf,
	PROCFILE,
	type RelayProcess,
	readyStatus,
	runProcfile,
	runRelay,
	startRelayProcess,
	withTestLoader,
} from "../../support/processes.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

/** The line web, with the loader of the tests. One test below runs the Procfile itself. */
const WEB = withTestLoader(lineOf("web"));

let system: ProcessSystem;
/** The path of a Procfile whose lines have the loader of the tests. */
let procfile: string;
before(async () => {
	system = await startProcessSystem();
	procfile = join(system.folder, "Procfile");
	const lines = [...PROCFILE].map(([name, line]) => `${name}: ${withTestLoader(line)}\n`);
	writeFileSync(procfile, lines.join(""));
});
after(() => system.stop());

test("the Procfile has the lines relay, boost and web", () => {
	assert.deepEqual([...PROCFILE.keys()], ["relay", "boost", "web"]);
});

/** How runners wrap a line for `/bin/sh -c`; node-foreman itself runs below. */
const RUNNERS = {
	heroku: (line: string) => `exec bash -c '${line}'`,
	// Dokku passes the line through eval first.
	dokku: (line: string) => `exec bash -c "$(eval echo ${line})"`,
};

test("the line web prints the settings of boost, then the relay's, where PROCESS is empty", async () => {
	const exit = await runRelay({ line: `${WEB} --help`, env: { PROCESS: "" } });
	assert.deepEqual([exit.code, exit.stderr], [0, ""]);
	assert.match(exit.stdout, /^ {2}RELAY_URL$[\s\S]*^ {2}BUILDERS$/m);
});

test("the line web runs what PROCESS names, whatever a runner makes of it: each serves on PORT, and SIGTERM ends it in order", async (t) => {
	const [port, front] = [await freePort(), await freePort()];
	const start = async (line: string, env: Readonly<Record<string, string>>): Promise<RelayProcess> => {
		const started = await startRelayProcess({ line, env: { ...system.env, ...env } });
		t.after(() => started.kill());
		return started;
	};
	const BOOST_SECRET = "shared by both";
	const relay = await start(RUNNERS.heroku(WEB), { PROCESS: "relay", PORT: String(port), BOOST_SECRET });
	const boost = await start(RUNNERS.dokku(WEB), {
		...{ PROCESS: "boost", PORT: String(front), RELAY_URL: relay.url, FALLBACK_URL: "none" },
		BOOST_SECRET,
	});
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
	for (const PROCESS of sized(["relay; true"], ["relay; true", "Relay"])) {
		const exit = await runRelay({ line: WEB, env: { ...system.env, PROCESS } });
		assert.equal(exit.code, 1);
		assert.equal(exit.stdout, "");
		assert.match(
			exit.stderr,
			/^PROCESS is not valid: expected relay, boost or pair, for example PROCESS=pair$/m,
		);
	}
});

test("two processes: boost finds the relay, and the runner's Ctrl-C ends both in order", async (t) => {
	const port = await twoPorts();
	const env = { RELAY_URL: `http://127.0.0.1:${port}`, BOOST_SECRET: "shared by both" };
	const runner = runProcfile(["relay", "boost"], port, { ...environment("two"), ...env }, procfile);
	t.after(() => runner.kill());
	const boost = `http://127.0.0.1:${port + 100}`;
	await until("the relay is ready", async () => (await readyStatus(`http://127.0.0.1:${port}`)) === 200);
	await minedThrough(boost, 1);
	const exit = await runner.kill("SIGINT");
	assert.equal(stopsIn(exit.stdout), 2, exit.stdout.slice(-2_000));
	assert.doesNotMatch(exit.stderr, /"level":50/);
	await groupGone(runner.pid);
});

test("one port, by the Procfile itself: the pair serves all of the interface on it; a terminal's Ctrl-C, which reaches all at once and once more by the runner, ends it in order", async (t) => {
	const port = await freePort();
	const runner = runProcfile(["web"], port, environment("one"));
	t.after(() => runner.kill());
	const url = `http://127.0.0.1:${port}`;
	await minedThrough(url, 2);
	const info = await (await fetch(`${url}/info`)).json();
	assert.equal((info as { chainId: string }).chainId, "0x7a69");
	process.kill(-runner.pid, "SIGINT");
	const exit = await runner.ended();
	// Relay, boost, and what holds them.
	assert.equal(stopsIn(exit.stdout), 3, exit.stdout.slice(-2_000));
	assert.doesNotMatch(exit.stdout, /"level":50/);
	await groupGone(runner.pid);
	assert.equal(await readyStatus(url), 0);
});

/** Sends from the `i`-th account, and sees it mined in the next block. */
async function minedThrough(url: string, i: number): Promise<void> {
	await until("boost is ready, with the relay", async () => (await upstreamOf(url)) === "relay");
	const signed = await system.chain.wallet(i).signTransaction({
		...{ type: 2, chainId: 31337, nonce: 0, to: `0x${"de".repeat(20)}`, value: 1n, gasLimit: 21_000n },
		...{ maxFeePerGas: 50_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n },
	});
	const client = new RelayClient(url);
	const hash = await client.send(signed, "/noreverts");
	await system.delivered([signed]);
	const { number } = await system.builder.buildBlock();
	const receipt = (await system.chain.rpc("eth_getTransactionReceipt", [hash])) as { blockNumber: string };
	assert.equal(Number(receipt.blockNumber), number);
	await until("the status page reports it", async () => (await client.status(hash)).status === "INCLUDED");
}

/** The upstream that answers a read through boost; "" if none does. */
async function upstreamOf(url: string): Promise<string> {
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] });
	const headers = { "content-type": "application/json" };
	const answer = await fetch(url, { method: "POST", headers, body }).catch(() => null);
	await answer?.arrayBuffer();
	return answer?.status === 200 ? (answer.headers.get("x-boost-upstream") ?? "") : "";
}

/** The system's relay settings, data of its own, and no fallback. PORT is the runner's to say. */
function environment(name: string): Record<string, string> {
	const { PORT: _, ...env } = system.env;
	return { ...env, DATA_DIR: join(system.folder, name), FALLBACK_URL: "none" };
}

/** How many processes have logged that they stopped. */
function stopsIn(stdout: string): number {
	return [...stdout.matchAll(/"msg":"stopped"/g)].length;
}

/** A free port, and the one 100 above it free too. */
async function twoPorts(): Promise<number> {
	for (;;) {
		const port = await freePort();
		const server = createServer();
		const isFree = await new Promise<boolean>((resolve) => {
			server.once("error", () => resolve(false));
			server.listen(port + 100, "127.0.0.1", () => resolve(true));
		});
		await new Promise((resolve) => server.close(resolve));
		if (isFree) return port;
	}
}
