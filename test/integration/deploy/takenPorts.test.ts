// Tests a taken port of a process with a database: beside another process that has the store, and
// while the database is down. The process names the setting and ends. It does not wait for anything
// that would not help.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Server } from "../../../shared/lifecycle.ts";
import { freePort } from "../../devnet/freePort.ts";
import { type BoostHere, startBoostHere } from "../../faults/boostHere.ts";
import { startRelayHere } from "../../faults/world.ts";
import { databaseOf } from "../../support/engine.ts";
import { sized } from "../../support/length.ts";
import {
	type Exit,
	type LaunchedRelay,
	launchBoost,
	launchPair,
	launchRelay,
} from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";

type Env = Readonly<Record<string, string>>;

let system: ProcessSystem;
/** They have the store; what they run in does not matter. */
let relay: Server;
let boost: BoostHere;
/** URLs by the state of the database. */
let databases: Readonly<Record<"shared" | "down", string>>;
before(async () => {
	system = await startProcessSystem();
	const shared = await databaseOf(system.folder);
	relay = await startRelayHere({ ...system.env, DATABASE_URL: shared });
	boost = await startBoostHere(boostEnv({ DATABASE_URL: shared }));
	databases = { shared, down: `postgres://user:secretsecret@127.0.0.1:${await freePort()}/none` };
});
after(async () => {
	await boost?.stop();
	await relay?.stop();
	await system?.stop();
});

function boostEnv(env: Env): Env {
	const RELAY_URL = `http://127.0.0.1:${relay.port}`;
	return { PORT: "0", HOST: "127.0.0.1", RELAY_URL, FALLBACK_URL: "none", BOOST_SECRET: "theirs", ...env };
}

const LAUNCHES: Readonly<Record<string, (env: Env) => LaunchedRelay>> = {
	relay: (env) => launchRelay({ env: { ...system.env, ...env } }),
	boost: (env) => launchBoost({ env: boostEnv(env) }),
	pair: (env) => launchPair({ env: { ...system.env, ...boostEnv(env) } }),
};

/**
 * The processes to start, the setting of the taken port, the state of the database, and the process
 * that reports it.
 */
type Case = readonly [string, string, keyof typeof databases, string];
/** Each kind of process, each setting, and each state of the database. */
const SHORT: readonly Case[] = [
	["relay", "SEARCHER_PORT", "shared", "relay"],
	["relay", "PORT", "down", "relay"],
	["boost", "METRICS_PORT", "shared", "boost"],
	["pair", "PORT", "shared", "boost"],
];
const CASES = sized(SHORT, [
	...SHORT,
	["relay", "PORT", "shared", "relay"],
	["relay", "METRICS_PORT", "shared", "relay"],
	["boost", "PORT", "shared", "boost"],
	["boost", "PORT", "down", "boost"],
	["pair", "PORT", "down", "boost"],
]);

describe("reports a taken port by its setting, and ends", { concurrency: 3 }, () => {
	for (const [kind, setting, database, name] of CASES) {
		test(`${kind}, ${setting}, the database is ${database}`, async () => {
			const taken = String(relay.port);
			const exit: Exit = await (LAUNCHES[kind] as (env: Env) => LaunchedRelay)({
				[setting]: taken,
				DATABASE_URL: databases[database],
				LOG_LEVEL: "info",
			}).ended();
			assert.equal(exit.code, 1, exit.stdout.slice(-2_000));
			const said = `${name}: ${setting} ${taken} is taken: expected a free port, for example ${setting}=8090`;
			assert.ok(exit.stderr.split("\n").includes(said), exit.stderr);
			assert.doesNotMatch(`${exit.stdout}${exit.stderr}`, /secretsecret/);
		});
	}
});
