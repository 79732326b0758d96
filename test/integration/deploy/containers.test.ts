// Checks compose.yaml, .env.example, the Dockerfile and the lock files against schemas, settings
// and each other. Running the image is tested by image.nightly.ts.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { validate } from "dockerfile-utils";
import { readBoostConfig } from "../../../boost-proxy/config.ts";
import { readRelayConfig } from "../../../relay/config.ts";
import type { SettingTable } from "../../../shared/config.ts";
import { databaseAddress } from "../../../shared/kv/postgres/database.ts";
import { DEPLOY_SETTINGS, ALL_SETTINGS as SETTINGS, STOP_MS } from "../../support/deploySettings.ts";
import { compose, copied, envExample, imageStages, ROOT, schemaOf, textOf } from "../../support/documents.ts";
import { lineOf } from "../../support/processes.ts";

const { services, configs } = compose();
const SERVERS: readonly (readonly ["relay" | "boost", SettingTable])[] = [
	["relay", DEPLOY_SETTINGS.relay],
	["boost", DEPLOY_SETTINGS.boost],
];
/** Their defaults fit a container, or they don't apply to a database in the same network. */
const LEFT_OUT = ["HOST", "DATA_DIR", "DATABASE_VERIFY", "INTERNAL_URL"];
/** The balancer's configuration. */
const BALANCER = "docs/deploy/haproxy.cfg";

const balancer = textOf(BALANCER);

test("compose.yaml is valid by the Compose schema", () => {
	const isValid = schemaOf("dclint/schemas/compose.schema.json");
	assert.equal(isValid(compose()), true, JSON.stringify(isValid.errors));
});

for (const [name, settings] of SERVERS) {
	const { command = [], environment = {}, ports = [], ...service } = services[name] ?? {};

	test(`${name}: the Procfile's command, all settings, and time to stop`, () => {
		assert.equal(`exec ${command.join(" ")}`, lineOf(name));
		const expected = Object.keys(settings).filter((setting) => !LEFT_OUT.includes(setting));
		const [missing, excess] = differences(expected, Object.keys(environment));
		assert.deepEqual(missing, [], `compose.yaml: environment of ${name} lacks a line "NAME:" for these`);
		assert.deepEqual(excess, [], `compose.yaml: environment of ${name} has what is no setting`);
		assert.ok(Number.parseInt(service.stop_grace_period ?? "0", 10) * 1_000 >= STOP_MS);
		assert.equal(service.read_only, true);
		assert.deepEqual(service.depends_on, { postgres: { condition: "service_healthy" } });
	});

	test(`${name}: there are several behind the balancer, and none has a port of the machine's`, () => {
		assert.deepEqual(service.deploy, { replicas: `\${${name.toUpperCase()}S:-2}` });
		assert.deepEqual(ports, []);
		assert.equal(settings.PORT?.parse(environment.PORT ?? ""), Number(settings.PORT?.default));
		// Its names are looked up at Docker's, and it goes by readiness.
		assert.match(
			balancer,
			new RegExp(`^\\tserver-template ${name} 8 ${name}:${environment.PORT} check$`, "m"),
		);
		assert.match(balancer, new RegExp(`^frontend ${name}s\n\\tbind :${environment.PORT}$`, "m"));
		assert.match(balancer, new RegExp(`^backend ${name}s_ready\n\\toption httpchk GET /readyz$`, "m"));
	});

	test(`${name}: variables of .env are in .env.example`, () => {
		const described = envExample().map(({ line }) => line.split("=")[0]);
		const taken = Object.entries(environment).flatMap(([setting, value]) =>
			value === null ? [setting] : [...value.matchAll(/\$\{(\w+)/g)].map(([, variable]) => variable),
		);
		assert.ok(taken.length > 5);
		for (const setting of taken) assert.ok(described.includes(setting), setting);
	});
}

test("only the balancer has ports, boost's is public, and boost reaches the relays by it", () => {
	const published = Object.entries(services).filter(([, { ports }]) => ports !== undefined);
	assert.deepEqual(
		published.map(([name, { ports }]) => [name, ports]),
		[["balancer", ["8081:8081", "127.0.0.1:8080:8080"]]],
	);
	assert.equal(services.boost?.environment?.PORT, "8081");
	assert.equal(
		services.boost?.environment?.RELAY_URL,
		`http://balancer:${services.relay?.environment?.PORT}`,
	);
	assert.equal(services.boost?.environment?.BOOST_SECRET, services.relay?.environment?.BOOST_SECRET);
	// It appends the client's address for both.
	assert.match(balancer, /^\toption forwardfor$/m);
	assert.equal(services.relay?.environment?.TRUST_PROXY, "1");
	assert.match(services.boost?.environment?.TRUST_PROXY ?? "", /^\$\{TRUST_PROXY:-1\}$/);
});

test("the balancer has its file where its image looks, and an image of one version", () => {
	const { image = "", configs: taken = [], read_only } = services.balancer ?? {};
	assert.match(image, /^haproxy:\d+\.\d+-alpine$/);
	assert.deepEqual(taken, [{ source: "balancer", target: "/usr/local/etc/haproxy/haproxy.cfg" }]);
	assert.deepEqual([configs.balancer?.file, read_only], [BALANCER, true]);
});

test("both use the database of compose.yaml, without TLS in its private network", () => {
	const { POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD } = services.postgres?.environment ?? {};
	const texts = SERVERS.map(([name]) => services[name]?.environment?.DATABASE_URL ?? "");
	assert.equal(texts[0], texts[1]);
	const { ssl, url } = databaseAddress(texts[0]?.replace(/\$\{.*?\}/, "password") ?? "", false);
	assert.equal(ssl, null);
	assert.equal(url, `postgres://${POSTGRES_USER}:password@postgres:5432/${POSTGRES_DB}`);
	assert.match(POSTGRES_PASSWORD ?? "", /^\$\{POSTGRES_PASSWORD:\?/);
});

test("compose.yaml has no secret", () => {
	for (const { environment = {} } of Object.values(services)) {
		for (const [name, value] of Object.entries(environment)) {
			const isSecret = /SECRET|KEY|TOKEN|PASSWORD/.test(name);
			if (isSecret && value !== null) assert.match(value, /^\$\{.*\}$/, name);
		}
	}
});

/** Variables of compose.yaml only. */
const OF_COMPOSE = ["POSTGRES_PASSWORD", "BOOST_ETH_RPC_URL", "RELAYS", "BOOSTS"];
/**
 * Defaults of compose.yaml where .env has nothing, if they differ from the setting's own default;
 * each process has its own name.
 */
const USUAL_THERE: Readonly<Record<string, string>> = { TRUST_PROXY: "1", OTEL_SERVICE_NAME: "" };
/** Fixed in compose.yaml, or without effect there. */
const SET_THERE = ["PORT", "RELAY_URL", "DATABASE_URL", ...LEFT_OUT];

const entries = envExample().map(({ line, isSet }) => {
	const [[name, value] = ["", ""]] = Object.entries(parseEnv(line));
	return { name, value: value ?? "", isSet };
});

test(".env.example names every setting once, and nothing else", () => {
	const names = entries.map(({ name }) => name);
	assert.equal(new Set(names).size, names.length, "a name is repeated");
	const expected = Object.keys(SETTINGS).filter((name) => !SET_THERE.includes(name));
	const [missing, excess] = differences([...expected, ...OF_COMPOSE], names);
	assert.deepEqual(missing, [], '.env.example lacks a line for these, such as "# NAME=default"');
	assert.deepEqual(excess, [], ".env.example has what is no setting");
});

test("optional settings show their default, and no secret has a value", () => {
	for (const { name, value, isSet } of entries) {
		const usual = USUAL_THERE[name] ?? SETTINGS[name]?.default;
		if (!isSet && usual !== undefined) assert.equal(value, usual, name);
		if (SETTINGS[name]?.secret === true || name === "POSTGRES_PASSWORD") assert.equal(value, "", name);
	}
});

test("relay and boost accept .env.example, with and without its optional settings", () => {
	const values = (which: readonly (typeof entries)[number][]) =>
		Object.fromEntries(which.map(({ name, value }) => [name, value]));
	for (const env of [values(entries.filter(({ isSet }) => isSet)), values(entries)]) {
		assert.equal(readRelayConfig(env).BUILDERS.length > 0, true);
		const { fallback } = readBoostConfig({ ...env, BOOST_SECRET: "its own", RELAY_URL: "http://relay:8080" });
		assert.equal(fallback?.isPrivate, true);
	}
});

/** The entries of `expected` that are not in `found`, and the other way round. */
function differences(expected: readonly string[], found: readonly string[]): [string[], string[]] {
	return [expected.filter((name) => !found.includes(name)), found.filter((name) => !expected.includes(name))];
}

const stages = imageStages();
const image = stages.at(-1);
assert.ok(image !== undefined);
/** Names that .dockerignore lets through. */
const LET_THROUGH = textOf(".dockerignore")
	.split("\n")
	.filter((line) => line.startsWith("!"))
	.map((line) => line.slice(1));

test("the Dockerfile is valid, and a build gets exactly the files that it copies", () => {
	assert.deepEqual(validate(textOf("Dockerfile")), []);
	const [first] = textOf(".dockerignore")
		.split("\n")
		.filter((line) => line !== "" && !line.startsWith("#"));
	assert.equal(first, "*");
	const wanted = new Set(stages.flatMap(copied));
	assert.deepEqual([...wanted].sort(), LET_THROUGH.toSorted());
	for (const name of wanted) assert.ok(existsSync(join(ROOT, name)), name);
});

interface Entry {
	readonly version?: string;
	readonly integrity?: string;
	readonly resolved?: string;
	readonly link?: boolean;
	readonly dev?: boolean;
	readonly optional?: boolean;
}

const LOCK_FILES = ["package-lock.json", "test/metamask/package-lock.json"];

function packagesOf(file: string): Readonly<Record<string, Entry>> {
	return (JSON.parse(textOf(file)) as { packages: Readonly<Record<string, Entry>> }).packages;
}

/** Packages from a registry: not this one, and no links. */
const locked = LOCK_FILES.flatMap((file) => Object.entries(packagesOf(file))).filter(
	([path, { link }]) => path !== "" && link !== true,
);

test("each locked package has a digest, by which npm refuses one that was changed on its way", () => {
	assert.ok(locked.length > 100, `${locked.length} entries`);
	const without = locked.filter(([, { integrity = "" }]) => !/^sha512-[\w+/]{86}==$/.test(integrity));
	assert.deepEqual(
		without.map(([path]) => path),
		[],
	);
});

for (const file of LOCK_FILES) {
	test(`${file} names no registry host`, () => {
		const { "": root, ...others } = packagesOf(file);
		assert.ok(root !== undefined);
		for (const [path, { resolved }] of Object.entries(others)) assert.equal(resolved, undefined, path);
		assert.doesNotMatch(textOf(file), /"(resolved|registry)":|\b(localhost|127\.0\.0\.1)\b/);
	});
}
