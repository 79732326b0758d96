// `RELAYS=3 BOOSTS=2 npm start`: several relays and boosts on one PostgreSQL, from the addresses
// that it prints to its end.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { freePort, isFree } from "../../devnet/freePort.ts";
import { cast, groupGone, type LaunchedRelay, launchRelay, readyStatus } from "../../support/processes.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { until } from "../../support/until.ts";

/** The longest that a step may take on two cores beside two other tests. */
const LONG_MS = 60_000;
const SEVERAL = { RELAYS: "3", BOOSTS: "2" };
const RELAYS = ["RELAY_PORT", "RELAY2_PORT", "RELAY3_PORT"];
const BOOSTS = ["BOOST_PORT", "BOOST2_PORT"];
const OTHERS = ["BALANCER_PORT", "CHAIN_PORT", "FALLBACK_PORT", "BUILDER_PORT"];
const TO = "0x000000000000000000000000000000000000dEaD";

/** Ports by their settings. */
const ports: Record<string, string> = {};
let run: LaunchedRelay;
before(async () => {
	for (const name of [...RELAYS, ...BOOSTS, ...OTHERS]) ports[name] = String(await freePort());
	run = launchRelay({ entry: "test/devnet/main.ts", env: { ...SEVERAL, ...ports } });
	await until("its welcome", () => run.stdout.includes("Stop with Ctrl-C"), LONG_MS);
});
after(() => run.kill());

function urlOf(name: string): string {
	return `http://127.0.0.1:${ports[name]}`;
}

/** The settings of those whose /readyz is 200. */
async function readyOnes(names: readonly string[]): Promise<readonly string[]> {
	const statuses = await Promise.all(names.map((name) => readyStatus(urlOf(name))));
	return names.filter((_, i) => statuses[i] === 200);
}

/**
 * Sends a transaction of the dev chain's first account to a boost instance, and returns its hash
 * when it is mined.
 */
async function sent(boost: string): Promise<string> {
	const key = /^ {2}0x\w{40} {2}(0x\w{64})$/m.exec(run.stdout)?.[1] ?? "";
	const to = ["--rpc-url", `${urlOf(boost)}/fast`, "--private-key", key, "--value", "1ether", TO];
	const { code, stdout, stderr } = await cast("send", ...to);
	assert.equal(code, 0, stderr + run.stdout.slice(-2_000));
	assert.match(stdout, /^status +1 \(success\)$/m);
	return /^transactionHash +(0x\w{64})$/m.exec(stdout)?.[1] ?? "";
}

it("prints each one's address, and each is up", async () => {
	for (const [i, name] of RELAYS.entries())
		assert.match(run.stdout, new RegExp(`^ {2}relay ${i + 1} +${urlOf(name)}\\b`, "m"));
	for (const [i, name] of BOOSTS.entries())
		assert.match(run.stdout, new RegExp(`^ {2}boost ${i + 1} +${urlOf(name)}\\b`, "m"));
	assert.match(run.stdout, new RegExp(`^ {2}balancer +${urlOf("BALANCER_PORT")} `, "m"));
	for (const name of RELAYS)
		await until(`${name} is ready`, async () => (await readyStatus(urlOf(name))) === 200);
	for (const name of BOOSTS) await until(`${name} is up`, async () => (await readyStatus(urlOf(name))) !== 0);
});

it("a transaction through each boost that is ready is mined", async () => {
	const ready = await readyOnes(BOOSTS);
	assert.ok(ready.length > 0);
	for (const boost of ready) await sent(boost);
});

it("when a relay that serves is killed another one serves, and boost returns to it", async () => {
	const [pid = ""] = /(?<=^ {2}kill -9 )\d+$/m.exec(run.stdout) ?? [];
	process.kill(Number(pid), "SIGKILL");
	await until("it is said", () => /^relay 1 has ended \(SIGKILL\); it is started again/m.test(run.stdout));
	const [boost = ""] = await readyOnes(BOOSTS);
	// Boost has an answer, whichever upstream accepts it meanwhile.
	await sent(boost);
	await until("another relay is ready", async () => (await readyOnes(RELAYS.slice(1))).length > 0);
	await until("boost has its relay back", async () => {
		const status = (await (await fetch(`${urlOf(boost)}/status`)).json()) as { relay: { state: string } };
		return status.relay.state === "closed";
	});
	const hash = await sent(boost);
	const balanced = new RelayClient(urlOf("BALANCER_PORT"));
	await until("the relays know it", async () => (await balanced.stage(hash)) === "INCLUDED");
});

it("Ctrl-C ends all of them, the database too", async () => {
	const database = /^ {2}database +postgres:\/\/\S+?:(\d+)\//m.exec(run.stdout)?.[1];
	process.kill(-run.pid, "SIGINT");
	const { code, stdout } = await run.ended(LONG_MS);
	assert.equal(code, 0);
	assert.match(stdout, /\nStopping\.\s*$/);
	await groupGone(run.pid);
	assert.equal(await isFree(Number(database)), true);
	for (const port of Object.values(ports)) assert.equal(await isFree(Number(port)), true, port);
});

it("says what it expects of a number, and that several beside a node of one's own need a database", async () => {
	const node = { ETH_RPC_URL: "http://127.0.0.1:1", BUILDERS: "mainnet" };
	for (const [env, message] of [
		[{ RELAYS: "9" }, /^npm start: RELAYS is not valid: expected a number, 1 to 8, for example RELAYS=3$/m],
		[{ ...SEVERAL, ...ports, ...node }, /^npm start: .* set DATABASE_URL beside ETH_RPC_URL$/m],
	] as const) {
		const { code, stderr } = await launchRelay({ entry: "test/devnet/main.ts", env }).ended();
		assert.equal(code, 1);
		assert.match(stderr, message);
	}
});
