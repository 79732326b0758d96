// Tests relay and boost behind one port, as processes: what is refused, who is restarted, and that no process is left
// over, not even when the one that watches both is killed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { freePort } from "../../devnet/freePort.ts";
import { groupGone, launchPair, readyStatus } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const READY_MS = 30_000;

let system: ProcessSystem;
before(async () => {
	system = await startProcessSystem();
});
after(() => system.stop());

test("settings that both refuse are told of both, and nothing is started again", async () => {
	const pair = launchPair({ env: { PORT: "0" } });
	const { code, stderr } = await pair.ended();
	assert.equal(code, 1);
	assert.match(stderr, /^relay: ETH_RPC_URL is missing: expected /m);
	assert.match(stderr, /^boost: FALLBACK_URL is missing: expected /m);
	assert.match(stderr, /^relay: BUILDERS is missing: expected /m);
	assert.equal(stderr.trimEnd().split("\n").length, 3, stderr);
	await groupGone(pair.pid);
});

test("a relay that is killed comes back while boost stays; SIGTERM ends boost, then the relay, with 0", async (t) => {
	const { pair, url } = await startPair(t);
	const killed = processOf(pair.pid, "relay/main.ts");
	process.kill(killed, "SIGKILL");
	await pair.logged("the relay has ended: it is started again");
	assert.equal((await fetch(`${url}/livez`)).status, 200);
	const starts = (): number =>
		pair.logs().filter(({ name, msg, task }) => name === "relay" && msg === "listening" && task === "http")
			.length;
	await until("the relay listens again", () => starts() === 2, READY_MS);
	await until("boost takes it again", async () => (await relayState(url)) === "closed", READY_MS);
	assert.notEqual(processOf(pair.pid, "relay/main.ts"), killed);
	const exit = await pair.kill("SIGTERM");
	assert.deepEqual([exit.code, exit.signal, exit.stderr], [0, null, ""]);
	const stopped = pair.logs().filter(({ msg }) => msg === "stopped");
	assert.deepEqual(
		stopped.map(({ name }) => name),
		["boost", "relay", "pair"],
	);
	await groupGone(pair.pid);
});

test("when the one that watches over both is killed, both stop in order", async (t) => {
	const { pair } = await startPair(t);
	pair.signal("SIGKILL");
	await until("both have stopped", () => pair.logs().filter(({ msg }) => msg === "stopped").length === 2);
	await groupGone(pair.pid);
});

async function startPair(t: {
	after(fn: () => Promise<unknown>): void;
}): Promise<{ readonly pair: ReturnType<typeof launchPair>; readonly url: string }> {
	const port = await freePort();
	// A probe in time: the machine is busy when tests run.
	const quick = { PROBE_INTERVAL_MS: "100", PROBE_TIMEOUT_MS: "2000", BREAKER_HOLD_MS: "100" };
	const pair = launchPair({
		env: { ...system.env, ...quick, FALLBACK_URL: "none", PORT: String(port), BREAKER_HOLD_MAX_MS: "400" },
	});
	t.after(() => pair.kill());
	const url = `http://127.0.0.1:${port}`;
	await until("it is ready", async () => (await readyStatus(url)) === 200, READY_MS);
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
