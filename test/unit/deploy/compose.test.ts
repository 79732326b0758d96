// compose.yaml, held against the Compose specification's schema, the Procfile and the settings of what it runs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { BOOST_SETTINGS } from "../../../boost-proxy/config.ts";
import { RELAY_SETTINGS } from "../../../relay/config.ts";
import type { SettingTable } from "../../../shared/config.ts";
import { databaseAddress } from "../../../shared/kv/postgres/database.ts";
import { STOP_LIMIT_MS } from "../../../shared/lifecycle.ts";
import { compose, envExample, imageStages, schemaOf, textOf } from "../../support/deployFiles.ts";
import { lineOf } from "../../support/procfileRunner.ts";

const { services } = compose();
const SERVERS: readonly (readonly ["relay" | "boost", SettingTable])[] = [
	["relay", RELAY_SETTINGS],
	["boost", BOOST_SETTINGS],
];
/** Have a default that fits a container, or are not for a database in the same network. */
const LEFT_OUT = ["HOST", "DATA_DIR", "DATABASE_VERIFY"];

test("it is as the Compose specification's schema says, which sees what is not", () => {
	const isValid = schemaOf("dclint/schemas/compose.schema.json");
	assert.equal(isValid(compose()), true, JSON.stringify(isValid.errors));
	for (const [from, to] of [
		["depends_on:", "depends_upon:"],
		["condition: service_healthy", "condition: service_ready"],
		["read_only: true", "read_only: [1]"],
	] as const) {
		const text = textOf("compose.yaml").replace(from, to);
		assert.notEqual(text, textOf("compose.yaml"), from);
		assert.equal(isValid(parse(text, { merge: true })), false, to);
	}
});

for (const [name, settings] of SERVERS) {
	const { command = [], environment = {}, ports = [], ...service } = services[name] ?? {};

	test(`${name} is run by the Procfile's command`, () => {
		assert.equal(`exec ${command.join(" ")}`, lineOf(name));
	});

	test(`${name} gets every setting of its own and nothing else`, () => {
		const expected = Object.keys(settings).filter((setting) => !LEFT_OUT.includes(setting));
		assert.deepEqual(Object.keys(environment).sort(), expected.sort());
	});

	test(`${name}: what is taken from .env is told of there`, () => {
		const told = envExample().map(({ line }) => line.split("=")[0]);
		const taken = Object.entries(environment).flatMap(([setting, value]) =>
			value === null ? [setting] : [...value.matchAll(/\$\{(\w+)/g)].map(([, variable]) => variable),
		);
		assert.ok(taken.length > 5);
		for (const setting of taken) assert.ok(told.includes(setting), setting);
	});

	test(`${name} may take the time it needs to stop, writes nothing, and waits for the database`, () => {
		assert.ok(Number.parseInt(service.stop_grace_period ?? "0", 10) * 1_000 >= STOP_LIMIT_MS);
		assert.equal(service.read_only, true);
		assert.equal(service.depends_on?.postgres?.condition, "service_healthy");
	});

	test(`${name} is reached where it listens`, () => {
		assert.equal(settings.PORT?.parse(environment.PORT ?? ""), Number(settings.PORT?.default));
		assert.equal(ports.length, 1);
		assert.equal(ports[0]?.split(":").at(-1), environment.PORT);
	});
}

test("the world reaches boost alone, and boost the relay", () => {
	assert.match(services.relay?.ports?.[0] ?? "", /^127\.0\.0\.1:/);
	assert.deepEqual(services.boost?.ports, ["8081:8081"]);
	assert.equal(services.boost?.environment?.RELAY_URL, `http://relay:${services.relay?.environment?.PORT}`);
	assert.equal(services.boost?.environment?.BOOST_SECRET, services.relay?.environment?.BOOST_SECRET);
	assert.equal(services.postgres?.ports, undefined);
});

test("both have the database that is there, without TLS in a network of its own", () => {
	const { POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD } = services.postgres?.environment ?? {};
	const texts = SERVERS.map(([name]) => services[name]?.environment?.DATABASE_URL ?? "");
	assert.equal(texts[0], texts[1]);
	const { ssl, url } = databaseAddress(texts[0]?.replace(/\$\{.*?\}/, "password") ?? "", false);
	assert.equal(ssl, null);
	assert.equal(url, `postgres://${POSTGRES_USER}:password@postgres:5432/${POSTGRES_DB}`);
	assert.match(POSTGRES_PASSWORD ?? "", /^\$\{POSTGRES_PASSWORD:\?/);
});

test("no secret stands in it", () => {
	for (const { environment = {} } of Object.values(services)) {
		for (const [name, value] of Object.entries(environment)) {
			const isSecret = /SECRET|KEY|TOKEN|PASSWORD/.test(name);
			if (isSecret && value !== null) assert.match(value, /^\$\{.*\}$/, name);
		}
	}
});

test("the dev chain is there with its profile only, in the relay's network", () => {
	const { profiles, network_mode, build, ports } = services.chain ?? {};
	assert.deepEqual([profiles, network_mode, ports], [["dev"], "service:relay", undefined]);
	assert.ok(typeof build === "object");
	assert.ok(imageStages().some(({ name }) => name === build.target));
	for (const name of ["postgres", "relay", "boost"]) assert.equal(services[name]?.profiles, undefined);
});
