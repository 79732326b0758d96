// .env.example: every name in it is a setting, every setting is in it or set by compose.yaml, and relay and boost take
// what it says.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { BOOST_SETTINGS, readBoostConfig } from "../../../boost-proxy/config.ts";
import { RELAY_SETTINGS, readRelayConfig } from "../../../relay/config.ts";
import type { SettingTable } from "../../../shared/config.ts";
import { envExample, textOf } from "../../support/deployFiles.ts";

const SETTINGS: SettingTable = { ...RELAY_SETTINGS, ...BOOST_SETTINGS };
/** Those of compose.yaml alone, which are put into what the containers get. */
const OF_COMPOSE = ["POSTGRES_PASSWORD", "BOOST_ETH_RPC_URL"];
/** Set in compose.yaml: each has one value there, or would have no effect. */
const SET_THERE = ["PORT", "HOST", "RELAY_URL", "DATA_DIR", "DATABASE_URL", "DATABASE_VERIFY"];

const entries = envExample().map(({ line, isSet }) => {
	const [[name, value] = ["", ""]] = Object.entries(parseEnv(line));
	return { name, value: value ?? "", isSet };
});

test("it names every setting once, and nothing that is none", () => {
	const names = entries.map(({ name }) => name);
	assert.equal(new Set(names).size, names.length, "one stands there twice");
	const expected = Object.keys(SETTINGS).filter((name) => !SET_THERE.includes(name));
	assert.deepEqual(names.toSorted(), [...expected, ...OF_COMPOSE].sort());
});

test("each has a comment above it, or above those that it is told of with", () => {
	const isSetting = (line: string) => /^(# )?[A-Z][A-Z0-9_]*=/.test(line);
	const lines = textOf(".env.example").split("\n");
	for (const { name } of entries) {
		const at = lines.findIndex((line) => isSetting(line) && line.replace("# ", "").startsWith(`${name}=`));
		const above = lines.slice(0, at).findLast((line) => !isSetting(line)) ?? "";
		assert.match(above, /^# [^-]/, name);
	}
});

test("what is optional shows its default where it has one", () => {
	for (const { name, value, isSet } of entries) {
		const usual = SETTINGS[name]?.default;
		if (!isSet && usual !== undefined) assert.equal(value, usual, name);
	}
});

test("no secret has a value", () => {
	for (const { name, value } of entries) {
		if (SETTINGS[name]?.secret === true || name === "POSTGRES_PASSWORD") assert.equal(value, "", name);
	}
});

test("relay and boost take what is set, and all that is optional with it", () => {
	const values = (which: readonly (typeof entries)[number][]) =>
		Object.fromEntries(which.map(({ name, value }) => [name, value]));
	for (const env of [values(entries.filter(({ isSet }) => isSet)), values(entries)]) {
		assert.equal(readRelayConfig(env).BUILDERS.length > 0, true);
		const { fallback } = readBoostConfig({ ...env, RELAY_URL: "http://relay:8080" });
		assert.equal(fallback?.isPrivate, true);
	}
});

test("a value that is none is noticed", () => {
	const [first] = entries.filter(({ name }) => name === "ETH_RPC_URL");
	assert.throws(
		() => readRelayConfig({ BUILDERS: "mainnet", ETH_RPC_URL: `${first?.value} x` }),
		/ETH_RPC_URL/,
	);
});
