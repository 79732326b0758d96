// Checks package.json's engines, the Fly files and app.json against settings, the Procfile and what
// hosts accept, offline.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readBoostConfig } from "../../../boost-proxy/config.ts";
import { readRelayConfig } from "../../../relay/config.ts";
import { ALL_SETTINGS as SETTINGS, STOP_MS } from "../../support/deploySettings.ts";
import { flyToml, imageStages, textOf, variables } from "../../support/documents.ts";
import { lineOf, PROCFILE } from "../../support/processes.ts";

const CHECK = ["interval", "timeout", "grace_period", "method", "path"];
/** Keys allowed by Fly at each path; `*` is any name. */
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
	mounts: [
		...["source", "destination", "processes", "initial_size", "snapshot_retention"],
		...["auto_extend_size_threshold", "auto_extend_size_increment", "auto_extend_size_limit"],
	],
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
	readonly mounts?: {
		readonly destination: string;
		readonly processes: readonly string[];
		readonly initial_size: string;
	};
}

const VOLUME = "docs/deploy/fly-volume.toml";
const fly = flyToml() as unknown as Fly;
const volume = flyToml(textOf(VOLUME)) as unknown as Fly;

/** Paths of keys that Fly does not know. */
function unknownKeys(value: unknown, path = ""): readonly string[] {
	if (Array.isArray(value)) return value.flatMap((one) => unknownKeys(one, path));
	if (typeof value !== "object" || value === null) return [];
	const allowed = KEYS[path];
	if (allowed === undefined) return [path];
	return Object.entries(value).flatMap(([key, inner]) => {
		const name = allowed.includes("*") ? "*" : key;
		if (!allowed.includes(name)) return [`${path}.${key}`];
		return unknownKeys(inner, path === "" ? name : `${path}.${name}`);
	});
}

for (const [file, one, processes, front] of [
	["fly.toml", fly, ["relay", "boost"], "boost"],
	[VOLUME, volume, ["web"], "web"],
] as const) {
	test(`${file}: valid keys, the Procfile's commands, and only ${front} is public`, () => {
		assert.deepEqual(unknownKeys(one), []);
		assert.deepEqual(Object.keys(one.processes), processes);
		for (const [name, command] of Object.entries(one.processes))
			assert.equal(lineOf(name), `exec ${command}`);
		assert.deepEqual(one.http_service.processes, [front]);
	});

	test(`${file}: machines are replaced in place, wait until each is ready, and have time to stop`, () => {
		assert.equal(one.deploy.strategy, "rolling");
		// Routing depends on liveness only.
		assert.deepEqual(
			one.http_service.checks.map(({ path }) => path),
			["/livez"],
		);
		const checks = Object.entries(one.checks).map(([name, { path, processes }]) => [name, path, processes]);
		assert.deepEqual(
			checks,
			processes.map((name) => [name, "/readyz", [name]]),
		);
		assert.equal(one.kill_signal, "SIGTERM");
		assert.ok(one.kill_timeout * 1_000 >= STOP_MS);
	});
}

test("the volume is mounted at DATA_DIR, where the image's user may write", () => {
	assert.deepEqual(volume.mounts?.processes, Object.keys(volume.processes));
	assert.equal(volume.mounts?.destination, volume.env.DATA_DIR);
	const image = imageStages().at(-1);
	assert.ok(image !== undefined);
	assert.equal(variables(image).DATA_DIR, volume.mounts?.destination);
	assert.match(volume.mounts?.initial_size ?? "", /^\d+gb$/);
	assert.equal(fly.mounts, undefined);
});

test("relay and boost accept the environment of fly.toml, and listen on its ports", () => {
	for (const name of Object.keys(fly.env)) assert.ok(name in SETTINGS, name);
	const secrets = { ETH_RPC_URL: "https://node.example", BUILDERS: "mainnet", FALLBACK_URL: "none" };
	const relay = readRelayConfig({ ...fly.env, ...secrets });
	const boost = readBoostConfig({
		...fly.env,
		...secrets,
		BOOST_SECRET: "shared by both",
		RELAY_URL: "http://relay.process.a.internal:8080",
	});
	assert.equal(boost.PORT, fly.http_service.internal_port);
	assert.deepEqual([fly.checks.relay?.port, fly.checks.boost?.port], [relay.PORT, boost.PORT]);
	assert.deepEqual([relay.TRUST_PROXY, boost.HOST], [2, "::"]);
});

interface App {
	readonly env: Readonly<
		Record<string, { description: string; value?: string; required?: boolean; generator?: string }>
	>;
	readonly formation: Readonly<Record<string, { readonly quantity: number }>>;
	readonly addons: readonly { readonly plan: string }[];
	readonly description: string;
}

const app = JSON.parse(textOf("app.json")) as App;

test("each variable of app.json is a setting or PROCESS, with a description", () => {
	for (const [name, { description }] of Object.entries(app.env)) {
		assert.ok(name === "PROCESS" || name in SETTINGS, name);
		assert.match(description, /^[A-Z].{20,}\.$/, name);
	}
	assert.equal(app.description, (JSON.parse(textOf("package.json")) as App).description);
});

test("the variables that app.json requires suffice for relay and boost", () => {
	const asked = Object.entries(app.env).filter(([, { required, value, generator }]) => {
		return required ?? (value === undefined && generator === undefined);
	});
	assert.deepEqual(
		asked.map(([name]) => name),
		["ETH_RPC_URL"],
	);
	const given = Object.entries(app.env).flatMap(([name, { value }]) =>
		value === undefined ? [] : [[name, value]],
	);
	const env = { ...Object.fromEntries(given), ETH_RPC_URL: "https://node.example" } as Record<string, string>;
	assert.equal(readRelayConfig(env).TRUST_PROXY, 1);
	assert.equal(
		readBoostConfig({ ...env, BOOST_SECRET: "generated", RELAY_URL: "http://127.0.0.1:1" }).fallback
			?.isPrivate,
		true,
	);
});

test("app.json has no secrets, generates BOOST_SECRET, and asks for one dyno and a database", () => {
	const { formation, addons } = app;
	assert.deepEqual(
		Object.entries(formation).map(([name, { quantity }]) => [PROCFILE.has(name), quantity]),
		[[true, 1]],
	);
	assert.match(addons.map(({ plan }) => plan).join(), /^heroku-postgresql:[^,]+$/);
	for (const [name, { value }] of Object.entries(app.env)) {
		if (SETTINGS[name]?.secret === true) assert.equal(value, undefined, name);
	}
	assert.equal(app.env.BOOST_SECRET?.generator, "secret");
	// A key generated by Heroku has no 0x.
	assert.equal(SETTINGS.SIGNING_KEY?.parse("a1".repeat(32)), undefined);
	assert.equal(app.env.SIGNING_KEY?.generator, undefined);
});

test("engines is a bounded range, as Heroku requires; its newest version is the image's, and the lock file repeats it", () => {
	const { engines } = JSON.parse(textOf("package.json")) as { engines: { node: string } };
	const [, major] = /^\^20\.19\.0 \|\| \^22\.12\.0 \|\| (\d+)\.x$/.exec(engines.node) ?? [];
	assert.ok(major !== undefined, engines.node);
	for (const { from } of imageStages()) assert.equal(from, `node:${major}-slim`);
	const lock = JSON.parse(textOf("package-lock.json")) as { packages: Record<string, { engines?: unknown }> };
	assert.deepEqual(lock.packages[""]?.engines, engines);
	assert.ok(textOf("docs/deploy.md").includes(`the newest ${major}, as in the image`));
	for (const file of ["README.md", "CONTRIBUTING.md"])
		assert.ok(textOf(file).includes(`Node 22 or ${major}; `), file);
});
