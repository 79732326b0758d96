// What docs/deploy.md has an operator type, held against the settings and the files that hosts read. No host is asked.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { Wallet } from "ethers";
import { BOOST_SETTINGS, readBoostConfig } from "../../../boost-proxy/config.ts";
import { RELAY_SETTINGS, readRelayConfig } from "../../../relay/config.ts";
import { DEV_COINBASE_KEY } from "../../devnet/devBuilder.ts";
import { compose, flyToml, ROOT, textOf } from "../../support/deployFiles.ts";

const SETTINGS = { ...RELAY_SETTINGS, ...BOOST_SETTINGS };
const guide = textOf("docs/deploy.md");

/** The shell blocks of a part of the guide. */
function commandsOf(title: string): string {
	const [, part = ""] = guide.split(`\n## ${title}\n`);
	const blocks = [...(part.split(/\n## /)[0] ?? "").matchAll(/```sh\n([\s\S]*?)```/g)];
	assert.ok(blocks.length > 0, title);
	return blocks.map(([, block]) => block?.replaceAll("\\\n", " ")).join("\n");
}

/** The settings that each line beginning with `command` sets, with what stands for a value where one is made up. */
function setBy(commands: string, command: string): readonly Record<string, string>[] {
	const lines = commands.split("\n").filter((line) => line.startsWith(command));
	return lines.map((line) => {
		const made = line
			.replaceAll("$(openssl rand -hex 32)", "a1".repeat(32))
			.replace(/\$\(heroku apps:info [^)]*\)/, "https://my-leeward-relay.herokuapp.com/")
			.replaceAll("https://… ", "https://node.example ")
			.replace(/https:\/\/…$/, "https://node.example");
		const pairs = [...made.matchAll(/\b([A-Z][A-Z0-9_]+)=(\S+)/g)];
		return Object.fromEntries(pairs.map(([, name = "", value = ""]) => [name, value]));
	});
}

/** `given` without what is no setting's value here: the database is not there. */
function checked(given: Readonly<Record<string, string>>): Record<string, string> {
	const { PROCESS: _, DATABASE_URL: __, ...env } = given;
	for (const name of Object.keys(env)) assert.ok(name in SETTINGS, name);
	return env;
}

test("Heroku, one app: the pair starts with what is set", () => {
	const [set = {}, ...others] = setBy(commandsOf("Heroku, one app"), "heroku config:set");
	assert.deepEqual(others, []);
	assert.equal(readRelayConfig(checked(set)).TRUST_PROXY, 1);
	assert.notEqual(readBoostConfig({ ...checked(set), RELAY_URL: "http://127.0.0.1:1" }).fallback, null);
});

test("Heroku: the add-on is app.json's, and made before the first push", () => {
	const { addons } = JSON.parse(textOf("app.json")) as { addons: { plan: string }[] };
	for (const title of ["Heroku, one app", "Heroku, two apps"]) {
		const lines = commandsOf(title).split("\n");
		const apps = lines.filter((line) => line.startsWith("heroku create"));
		const made = lines.filter((line) => line.startsWith(`heroku addons:create ${addons[0]?.plan} `));
		assert.equal(made.length, apps.length, title);
		const last = made.at(-1) ?? "";
		assert.ok(lines.indexOf(last) < lines.findIndex((line) => line.startsWith("git push")), title);
	}
});

test("Heroku, two apps: each starts with what is set, and they know each other", () => {
	const [relay = {}, boost = {}] = setBy(commandsOf("Heroku, two apps"), "heroku config:set");
	assert.deepEqual([relay.PROCESS, boost.PROCESS], ["relay", "boost"]);
	assert.equal(readRelayConfig(checked(relay)).BOOST_SECRET, "$SECRET");
	const { BOOST_SECRET, RELAY_URL } = readBoostConfig(checked(boost));
	assert.deepEqual([BOOST_SECRET, RELAY_URL], ["$SECRET", "https://my-leeward-relay.herokuapp.com"]);
});

test("Fly: both start with what is set and fly.toml has, at the address that boost is told", () => {
	const { env, checks } = flyToml() as { env: Record<string, string>; checks: { relay: { port: number } } };
	const [set = {}] = setBy(commandsOf("Fly"), "fly secrets set");
	assert.match(set.DATABASE_URL ?? "", /@direct\./);
	const given = { ...env, ...checked(set) };
	assert.notEqual(readRelayConfig(given).SIGNING_KEY, undefined);
	assert.equal(
		readBoostConfig(given).RELAY_URL,
		`http://relay.process.my-leeward.internal:${checks.relay.port}`,
	);
});

test("containers: the lines fill in what .env.example leaves open, and the dev chain's settings are taken", () => {
	const commands = commandsOf("Containers");
	for (const [, pattern = ""] of commands.matchAll(/s\/(\^[A-Z_]+=)\//g)) {
		assert.match(textOf(".env.example"), new RegExp(`${pattern}$`, "m"));
	}
	const [, text = ""] = /<<END\n([\s\S]*?)\nEND\n/.exec(commands) ?? [];
	const { POSTGRES_PASSWORD, ...env } = parseEnv(text) as Record<string, string>;
	assert.ok(POSTGRES_PASSWORD !== undefined);
	const given = checked(env);
	const { ETH_RPC_URL, FEE_RECIPIENT } = readRelayConfig(given);
	assert.equal(ETH_RPC_URL, "http://127.0.0.1:8545");
	assert.equal(FEE_RECIPIENT, new Wallet(DEV_COINBASE_KEY).address.toLowerCase());
	assert.equal(readBoostConfig({ ...given, RELAY_URL: "http://relay:8080" }).fallback, null);
	for (const [, profile = ""] of guide.matchAll(/--profile (\w+)/g)) {
		assert.deepEqual(compose().services.chain?.profiles, [profile]);
	}
	assert.ok(compose().services.boost?.ports?.includes("8081:8081"));
});

test("the files that it speaks of are there", () => {
	const named = [...guide.matchAll(/`((?:\w+\.(?:json|toml|yaml))|Dockerfile|Procfile)`|(\.env\.example)/g)];
	const names = new Set(named.map(([, plain, example]) => plain ?? example ?? ""));
	for (const name of ["app.json", "fly.toml", "compose.yaml", "Dockerfile", "Procfile", ".env.example"]) {
		assert.ok(names.has(name), name);
	}
	for (const name of names) assert.ok(existsSync(join(ROOT, name)), name);
});
