// Tests fly.toml. No living package has a schema of it, so its keys are checked against a list made of
// https://fly.io/docs/reference/configuration/, and its values against the processes and the Procfile.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BOOST_SETTINGS, readBoostConfig } from "../../../boost-proxy/config.ts";
import { RELAY_SETTINGS, readRelayConfig } from "../../../relay/config.ts";
import { STOP_LIMIT_MS } from "../../../shared/lifecycle.ts";
import { flyToml, textOf } from "../../support/deployFiles.ts";
import { lineOf } from "../../support/procfileRunner.ts";

const CHECK = ["interval", "timeout", "grace_period", "method", "path"];
/** What may stand where; `*` is any one name. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
	"": [
		...["app", "kill_signal", "kill_timeout", "deploy", "env", "processes", "http_service", "checks", "vm"],
		...["primary_region", "build", "mounts", "metrics"],
	],
	deploy: ["release_command", "strategy", "max_unavailable", "wait_timeout", "release_command_timeout"],
	env: ["*"],
	processes: ["*"],
	http_service: [
		...["processes", "internal_port", "force_https", "auto_stop_machines", "auto_start_machines"],
		...["min_machines_running", "concurrency", "checks"],
	],
	"http_service.concurrency": ["type", "soft_limit", "hard_limit"],
	"http_service.checks": [...CHECK, "headers", "protocol"],
	checks: ["*"],
	"checks.*": [...CHECK, "processes", "type", "port", "headers"],
	vm: ["size", "memory", "cpus", "cpu_kind", "processes"],
};

interface Check {
	readonly path: string;
	readonly port: number;
	readonly processes: readonly string[];
}

interface Fly {
	readonly kill_signal: string;
	readonly kill_timeout: number;
	readonly deploy: Readonly<Record<string, unknown>>;
	readonly env: Readonly<Record<string, string>>;
	readonly processes: Readonly<Record<string, string>>;
	readonly http_service: {
		readonly processes: readonly string[];
		readonly internal_port: number;
		readonly checks: readonly Check[];
	};
	readonly checks: Readonly<Record<string, Check>>;
}

const fly = flyToml() as unknown as Fly;

/** Keys that stand where they may not, by their paths. */
function unknownKeys(value: unknown, place = ""): readonly string[] {
	if (Array.isArray(value)) return value.flatMap((one) => unknownKeys(one, place));
	if (typeof value !== "object" || value === null) return [];
	const allowed = KEYS[place];
	if (allowed === undefined) return [place];
	return Object.entries(value).flatMap(([key, inner]) => {
		const name = allowed.includes("*") ? "*" : key;
		if (!allowed.includes(name)) return [`${place}.${key}`];
		return unknownKeys(inner, place === "" ? name : `${place}.${name}`);
	});
}

test("its keys are Fly's, and one that is not is noticed", () => {
	assert.deepEqual(unknownKeys(fly), []);
	for (const [from, to, expected] of [
		["strategy =", "strategie =", "deploy.strategie"],
		["path =", "paths =", "http_service.checks.paths"],
		["kill_timeout", "kill_time", ".kill_time"],
	] as const) {
		assert.deepEqual(unknownKeys(flyToml(textOf("fly.toml").replace(from, to))), [expected]);
	}
});

test("processes are the Procfile's commands", () => {
	assert.deepEqual(Object.keys(fly.processes), ["relay", "boost"]);
	for (const [name, command] of Object.entries(fly.processes)) assert.equal(lineOf(name), `exec ${command}`);
});

test("machines are replaced in place: a new one can't be ready before the old one has let go of the store", () => {
	assert.equal(fly.deploy.strategy, "rolling");
	assert.ok(!("mounts" in fly));
});

test("what it says of the environment, relay and boost take; ports are those that they listen on", () => {
	const settings = Object.keys({ ...RELAY_SETTINGS, ...BOOST_SETTINGS });
	for (const name of Object.keys(fly.env)) assert.ok(settings.includes(name), name);
	const secrets = { ETH_RPC_URL: "https://node.example", BUILDERS: "mainnet", FALLBACK_URL: "none" };
	const relay = readRelayConfig({ ...fly.env, ...secrets });
	const boost = readBoostConfig({
		...fly.env,
		...secrets,
		RELAY_URL: "http://relay.process.a.internal:8080",
	});
	assert.equal(boost.PORT, fly.http_service.internal_port);
	assert.deepEqual([fly.checks.relay?.port, fly.checks.boost?.port], [relay.PORT, boost.PORT]);
	assert.deepEqual([relay.TRUST_PROXY, boost.HOST], [2, "::"]);
});

test("only boost is public; deploys wait until each is ready, and routing goes by whether boost is up", () => {
	assert.deepEqual(fly.http_service.processes, ["boost"]);
	assert.deepEqual(
		fly.http_service.checks.map(({ path }) => path),
		["/livez"],
	);
	for (const [name, { path, processes }] of Object.entries(fly.checks)) {
		assert.deepEqual([path, processes], ["/readyz", [name]]);
	}
	assert.deepEqual(Object.keys(fly.checks), Object.keys(fly.processes));
});

test("a machine is told to stop by SIGTERM, and has the time for it", () => {
	assert.equal(fly.kill_signal, "SIGTERM");
	assert.ok(fly.kill_timeout * 1_000 >= STOP_LIMIT_MS);
});
