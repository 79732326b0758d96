// Boost as a process: what its start refuses with which message, what it only warns of, and that no
// secret leaks. Then relay and boost behind one port: which process is restarted, and that no
// process is left over, not even when their supervisor is killed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BOOST_SETTINGS } from "../../../boost-proxy/config.ts";
import { startDevChain } from "../../devnet/devChain.ts";
import { freePort } from "../../devnet/freePort.ts";
import { startRelayHere } from "../../faults/world.ts";
import { IN_FOLDER } from "../../support/engine.ts";
import {
	type Exit,
	groupGone,
	type LaunchedRelay,
	launchBoost,
	launchPair,
	readyStatus,
	runBoost,
} from "../../support/processes.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { rawTransaction, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

/** Nobody listens there. */
const NOBODY = "http://127.0.0.1:1";
/** A probe in time: the machine is busy when tests run. */
const QUICK = { PROBE_INTERVAL_MS: "200", PROBE_TIMEOUT_MS: "5000", BREAKER_HOLD_MS: "100" };

let folder: string;
let running: LaunchedRelay;
let port: number;
let system: ProcessSystem;
before(async () => {
	system = await startProcessSystem();
	folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	running = launchBoost({
		env: environment({ ...IN_FOLDER, PORT: "0", FALLBACK_URL: "http://localhost:1" }),
	});
	port = Number((await running.logged("listening")).port);
});
after(async () => {
	await running.kill();
	await system.stop();
	rmSync(folder, { recursive: true, force: true });
});

test("it starts without its upstreams, and warns of settings that were hardly intended", async () => {
	await running.logged("the fallback may be the relay itself: both names have one address and port");
	assert.equal((await fetch(`http://127.0.0.1:${port}/livez`)).status, 200);
	await until("it is not ready", async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 503);
});

test("impossible settings are refused, each in one line that names the setting", async () => {
	const refusals: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
		[
			{ FALLBACK_URL: "", BOOST_SECRET: "" },
			/^boost: BOOST_SECRET is missing: expected the relay's own BOOST_SECRET[^\n]+\nboost: FALLBACK_URL is missing: expected [^\n]+\n$/,
		],
		[{ PORT: String(port), DATA_DIR: join(folder, "other") }, /^boost: [^\n]*\bPORT\b[^\n]*\n$/],
		[IN_FOLDER, /^boost: [^\n]*DATA_DIR[^\n]*\n$/],
	];
	const exits = await Promise.all(refusals.map(([env]) => runBoost({ env: environment(env) })));
	for (const [i, [, expected]] of refusals.entries()) assertRefused(exits[i], expected);
});

test("--print-config prints the settings in force without secrets", async () => {
	const { code, stdout, stderr } = await runBoost({
		args: ["--print-config"],
		env: {
			RELAY_URL: "https://u:secretsecret@relay.example/secretsecret",
			FALLBACK_URL: "https://rpc.example/secretsecret",
			...{ BOOST_SECRET: "secretsecret", ADMIN_TOKEN: "secretsecret" },
		},
	});
	assert.deepEqual([code, stderr], [0, ""]);
	assert.doesNotMatch(stdout, /secretsecret/);
	const names = stdout
		.trimEnd()
		.split("\n")
		.map((line) => line.split("=")[0]);
	assert.deepEqual(names, Object.keys(BOOST_SETTINGS));
});

test("errors in settings of both processes are both printed, and nothing is restarted", async () => {
	const pair = launchPair({ env: { PORT: "0" } });
	const { code, stderr } = await pair.ended();
	assert.equal(code, 1);
	assert.match(stderr, /^relay: ETH_RPC_URL is missing: expected /m);
	assert.match(stderr, /^boost: FALLBACK_URL is missing: expected /m);
	assert.match(stderr, /^relay: BUILDERS is missing: expected /m);
	assert.equal(stderr.trimEnd().split("\n").length, 3, stderr);
	await groupGone(pair.pid);
});

test("a killed relay is restarted while boost stays; a host's SIGTERM to every process ends boost, then the relay, with 0", async (t) => {
	const { pair, url } = await startPair(t);
	const killed = processOf(pair.pid, "relay/main.ts");
	process.kill(killed, "SIGKILL");
	await pair.logged("relay ended, restarting it");
	assert.equal((await fetch(`${url}/livez`)).status, 200);
	const starts = (): number =>
		pair.logs().filter(({ name, msg, task }) => name === "relay" && msg === "listening" && task === "http")
			.length;
	await until("the relay listens again", () => starts() === 2);
	await until("boost takes it again", async () => (await relayState(url)) === "closed");
	assert.notEqual(processOf(pair.pid, "relay/main.ts"), killed);
	// As Heroku does: the pair and both of its processes get it at once.
	process.kill(-pair.pid, "SIGTERM");
	const exit = await pair.ended();
	assert.deepEqual([exit.code, exit.signal, exit.stderr], [0, null, ""]);
	const stopped = pair.logs().filter(({ msg }) => msg === "stopped");
	assert.deepEqual(
		stopped.map(({ name }) => name),
		["boost", "relay", "pair"],
	);
	await groupGone(pair.pid);
});

test("while a pair's relay waits for its node boost serves from the fallback; both stop when their supervisor is killed", async (t) => {
	const [port, nodePort] = [await freePort(), await freePort()];
	const fallback = await startRelayHere({ ...system.env, DATA_DIR: join(folder, "fallback") });
	t.after(() => fallback.stop());
	const fallbackUrl = `http://127.0.0.1:${fallback.port}`;
	const url = `http://127.0.0.1:${port}`;
	const pair = launchPair({
		env: {
			...{ ...system.env, ...QUICK, BREAKER_HOLD_MAX_MS: "400", DATA_DIR: join(folder, "waits") },
			...{ PORT: String(port), FALLBACK_URL: fallbackUrl, ETH_RPC_URL: `http://127.0.0.1:${nodePort}` },
		},
	});
	t.after(() => pair.kill());
	await until("it is ready, by the fallback", async () => (await readyStatus(url)) === 200);
	const client = new RelayClient(url);
	const by = testAccount(71_000);
	await system.chain.fund([by]);
	const raw = `0x${rawTransaction({ by, nonce: 0 }).toString("hex")}`;
	const hash = await client.send(raw);
	assert.notEqual((await new RelayClient(fallbackUrl).status(hash)).stage, undefined);
	assert.notEqual(await relayState(url), "closed");
	const node = await startDevChain({ port: nodePort });
	t.after(() => node.stop());
	await until("boost takes the relay", async () => (await relayState(url)) === "closed");
	const told = pair.logs().map(({ msg }) => msg);
	assert.equal(told.includes("relay ended, restarting it"), false);
	pair.signal("SIGKILL");
	await until("both have stopped", () => pair.logs().filter(({ msg }) => msg === "stopped").length === 2);
	await groupGone(pair.pid);
});

function environment(over: Readonly<Record<string, string>>): Record<string, string> {
	const usual = {
		RELAY_URL: NOBODY,
		FALLBACK_URL: "none",
		BOOST_SECRET: "shared by both",
		HOST: "127.0.0.1",
		DATA_DIR: folder,
		PORT: "0",
	};
	return { ...usual, ...over };
}

function assertRefused(exit: Exit | undefined, expected: RegExp): void {
	assert.equal(exit?.code, 1);
	assert.match(exit.stderr, expected);
}

async function startPair(t: {
	after(fn: () => Promise<unknown>): void;
}): Promise<{ readonly pair: ReturnType<typeof launchPair>; readonly url: string }> {
	const port = await freePort();
	const pair = launchPair({
		env: { ...system.env, ...QUICK, FALLBACK_URL: "none", PORT: String(port), BREAKER_HOLD_MAX_MS: "400" },
	});
	t.after(() => pair.kill());
	const url = `http://127.0.0.1:${port}`;
	await until("it is ready", async () => (await readyStatus(url)) === 200);
	return { pair, url };
}

/** The pid of a child of `parent` whose command line has `what` in it. */
function processOf(parent: number, what: string): number {
	const all = execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" });
	const found = all.split("\n").flatMap((line) => {
		const [, pid, ppid, args = ""] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
		return Number(ppid) === parent && args.includes(what) ? [Number(pid)] : [];
	});
	assert.equal(found.length, 1, `children of ${parent} that run ${what}`);
	return found[0] ?? 0;
}

/** How boost sees its relay. */
async function relayState(url: string): Promise<string> {
	const answer = await fetch(`${url}/status`);
	return ((await answer.json()) as { relay: { state: string } }).relay.state;
}
