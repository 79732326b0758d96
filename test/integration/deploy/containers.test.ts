// Checks compose.yaml, .env.example, the Dockerfile and the lock files against schemas, settings and each other.
// Running the image is tested by image.test.ts.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { validate } from "dockerfile-utils";
import { BOOST_SETTINGS, readBoostConfig } from "../../../boost-proxy/config.ts";
import { RELAY_SETTINGS, readRelayConfig } from "../../../relay/config.ts";
import type { SettingTable } from "../../../shared/config.ts";
import { databaseAddress } from "../../../shared/kv/postgres/database.ts";
import { stopLimitMs } from "../../../shared/lifecycle.ts";
import { compose, copied, envExample, imageStages, ROOT, schemaOf, textOf } from "../../support/documents.ts";
import { lineOf } from "../../support/processes.ts";

const { services } = compose();
const SERVERS: readonly (readonly ["relay" | "boost", SettingTable])[] = [
	["relay", RELAY_SETTINGS],
	["boost", BOOST_SETTINGS],
];
/** Their defaults fit a container, or they don't apply to a database in the same network. */
const LEFT_OUT = ["HOST", "DATA_DIR", "DATABASE_VERIFY"];

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
		assert.ok(
			Number.parseInt(service.stop_grace_period ?? "0", 10) * 1_000 >=
				stopLimitMs(Number(settings.DRAIN_SECONDS?.default)),
		);
		assert.equal(service.read_only, true);
		assert.equal(service.depends_on?.postgres?.condition, "service_healthy");
	});

	test(`${name}: variables of .env are in .env.example, and the published port is the listening one`, () => {
		const described = envExample().map(({ line }) => line.split("=")[0]);
		const taken = Object.entries(environment).flatMap(([setting, value]) =>
			value === null ? [setting] : [...value.matchAll(/\$\{(\w+)/g)].map(([, variable]) => variable),
		);
		assert.ok(taken.length > 5);
		for (const setting of taken) assert.ok(described.includes(setting), setting);
		assert.equal(settings.PORT?.parse(environment.PORT ?? ""), Number(settings.PORT?.default));
		assert.deepEqual(
			ports.map((port) => port.split(":").at(-1)),
			[environment.PORT],
		);
	});
}

test("only boost is public, and boost reaches the relay", () => {
	assert.match(services.relay?.ports?.[0] ?? "", /^127\.0\.0\.1:/);
	assert.deepEqual(services.boost?.ports, ["8081:8081"]);
	assert.equal(services.boost?.environment?.RELAY_URL, `http://relay:${services.relay?.environment?.PORT}`);
	assert.equal(services.boost?.environment?.BOOST_SECRET, services.relay?.environment?.BOOST_SECRET);
	assert.equal(services.postgres?.ports, undefined);
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

const SETTINGS: SettingTable = { ...RELAY_SETTINGS, ...BOOST_SETTINGS };
/** Variables of compose.yaml only. */
const OF_COMPOSE = ["POSTGRES_PASSWORD", "BOOST_ETH_RPC_URL"];
/** Fixed in compose.yaml, or without effect there. */
const SET_THERE = ["PORT", "HOST", "RELAY_URL", "DATA_DIR", "DATABASE_URL", "DATABASE_VERIFY"];

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
		const usual = SETTINGS[name]?.default;
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

/** What of `expected` is not in `found`, and the other way round. */
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
