// app.json, held against what Heroku takes, the Procfile and the settings.

import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { BOOST_SETTINGS, readBoostConfig } from "../../../boost-proxy/config.ts";
import { RELAY_SETTINGS, readRelayConfig } from "../../../relay/config.ts";
import type { SettingTable } from "../../../shared/config.ts";
import { textOf } from "../../support/deployFiles.ts";
import { PROCFILE } from "../../support/procfileRunner.ts";

interface Variable {
	readonly description: string;
	readonly value?: string;
	readonly required?: boolean;
	readonly generator?: string;
}

interface App {
	readonly env: Readonly<Record<string, Variable>>;
	readonly formation: Readonly<Record<string, { readonly quantity: number }>>;
	readonly addons: readonly { readonly plan: string }[];
	readonly description: string;
}

const app = JSON.parse(textOf("app.json")) as App;
const SETTINGS: SettingTable = { ...RELAY_SETTINGS, ...BOOST_SETTINGS };

/** The keys that it uses, as Heroku describes them. https://devcenter.heroku.com/articles/app-json-schema */
const SCHEMA = z.strictObject({
	name: z.string().min(3).max(30),
	description: z.string(),
	keywords: z.array(z.string()),
	stack: z.enum(["heroku-22", "heroku-24"]),
	buildpacks: z.array(z.strictObject({ url: z.string() })),
	addons: z.array(z.strictObject({ plan: z.string(), as: z.string().optional() })),
	formation: z.record(
		z.string().regex(/^[\w-]+$/),
		z.strictObject({
			quantity: z.int().nonnegative(),
			size: z.enum(["eco", "basic", "standard-1x", "standard-2x", "performance-m", "performance-l"]),
		}),
	),
	env: z.record(
		z.string().regex(/^[A-Z][A-Z0-9_]*$/),
		z.strictObject({
			description: z.string(),
			value: z.string().optional(),
			required: z.boolean().optional(),
			generator: z.literal("secret").optional(),
		}),
	),
});

test("it is as Heroku describes it, which sees what is not", () => {
	SCHEMA.parse(app);
	for (const broken of [
		{ ...app, addon: [] },
		{ ...app, env: { BOOST_SECRET: { description: "", generator: "random" } } },
		{ ...app, formation: { web: { size: "basic" } } },
		{ ...app, stack: "heroku-16" },
	]) {
		assert.equal(SCHEMA.safeParse(broken).success, false);
	}
});

test("each variable is a setting or PROCESS, and is told of", () => {
	for (const [name, { description }] of Object.entries(app.env)) {
		assert.ok(name === "PROCESS" || name in SETTINGS, name);
		assert.match(description, /^[A-Z].{20,}\.$/, name);
	}
	assert.equal(app.description, (JSON.parse(textOf("package.json")) as App).description);
});

test("with what it asks for, both processes of the pair start", () => {
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
	assert.equal(readBoostConfig({ ...env, RELAY_URL: "http://127.0.0.1:1" }).fallback?.isPrivate, true);
});

test("no secret has a value; what both must know is made up, in a form that they take", () => {
	for (const [name, { value }] of Object.entries(app.env)) {
		if (SETTINGS[name]?.secret === true) assert.equal(value, undefined, name);
	}
	assert.equal(app.env.BOOST_SECRET?.generator, "secret");
	// What Heroku makes up has no 0x.
	assert.equal(SETTINGS.SIGNING_KEY?.parse("a1".repeat(32)), undefined);
	assert.equal(app.env.SIGNING_KEY?.generator, undefined);
});

test("one dyno of a line of the Procfile, and a database", () => {
	assert.deepEqual(
		Object.entries(app.formation).map(([name, { quantity }]) => [PROCFILE.has(name), quantity]),
		[[true, 1]],
	);
	assert.deepEqual(
		app.addons.map(({ plan }) => plan.split(":")[0]),
		["heroku-postgresql"],
	);
});
