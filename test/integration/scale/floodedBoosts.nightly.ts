// Two boost instances on one database. One client floods them as fast as its limits allow: with
// unknown hashes, or with one account's replacements at both. Other clients' submissions take
// little longer than without the flood.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pause, systemClock } from "../../../shared/clock.ts";
import { median } from "../../bench/load.ts";
import { BOOST_SECRET, boostEnv } from "../../faults/boostHere.ts";
import { type FloodRequest, flood } from "../../support/attacks/flood.ts";
import { attackerAddress, send } from "../../support/attacks/wire.ts";
import { newDatabase } from "../../support/engine.ts";
import { type BoostProcess, type RelayProcess, startBoostProcess } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { rawTransaction, type TestAccount, testAccount } from "../../support/txFactory.ts";

/** Other clients' accounts. Each has an address of its own. */
const OTHERS = Array.from({ length: 100 }, (_, i) => testAccount(i));
const ROUNDS = 3;
/** The flooding client's, one for each round. */
const FLOODING = Array.from({ length: ROUNDS }, (_, i) => testAccount(1_000 + i));
/** The nonces that each replaces in turn. */
const NONCES = 32;
const FUNDS = 10n ** 20n;
const GWEI = 1_000_000_000n;
/** Time between two submissions of other clients, in ms. */
const EVERY_MS = 50;
/**
 * Connections to each instance, and the time between two requests of each, in ms: together as many
 * as the rate limit allows for long.
 */
const [CONNECTIONS, REST_MS] = [16, 160];
const DEADLINE_MS = 30_000;
/** Factor by which a flood may raise the median. */
const MOST = 1.5;

let system: ProcessSystem;
let relay: RelayProcess;
let boosts: readonly BoostProcess[];
before(async () => {
	system = await startProcessSystem({ env: { BOOST_SECRET } });
	relay = await system.start();
	await system.chain.fund([...OTHERS, ...FLOODING], FUNDS);
	await system.nextBlock(relay);
	const DATABASE_URL = await newDatabase();
	const boost = (name: string) => {
		const folder = join(system.folder, name);
		const env = { ...boostEnv({ relayUrl: relay.url, fallbackUrl: "none", folder }), DATABASE_URL };
		return startBoostProcess({ env: { ...env, RATE_LIMIT_RPS: "100", LOG_LEVEL: "info" } });
	};
	boosts = [await boost("one"), await boost("other")];
	await others();
});
after(async () => {
	for (const boost of boosts ?? []) await boost.kill();
	await relay?.kill();
	await system?.stop();
});

/** The `n`-th submission of an account: one of its nonces, for a higher fee than before. */
function replacement(by: TestAccount, n: number): string {
	const bumps = BigInt(Math.floor(n / NONCES));
	return submissionOf(by, n % NONCES, (GWEI * 9n ** bumps) / 8n ** bumps);
}

/** A transaction as a submission. */
function submissionOf(by: TestAccount, nonce: number, feeWei = GWEI): string {
	const fees = { maxFeePerGas: 100n * feeWei, maxPriorityFeePerGas: feeWei };
	const raw = rawTransaction({ by, nonce, gasLimit: 21_000, ...fees });
	return callOf("eth_sendRawTransaction", `0x${raw.toString("hex")}`);
}

function callOf(method: string, param: string): string {
	return JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [param] });
}

/** How often each of the others has submitted. */
let phase = 0;

/** The median time of other clients' submissions at the first instance, in ms. */
async function others(): Promise<number> {
	const times: number[] = [];
	const nonce = phase++;
	for (let i = 0; i < OTHERS.length; i += 1) {
		const call = {
			url: `${boosts[0]?.url}/nochecks`,
			from: `127.0.1.${1 + i}`,
			body: submissionOf(OTHERS[i] as TestAccount, nonce),
			deadlineMs: DEADLINE_MS,
		};
		const rest = pause(systemClock, EVERY_MS);
		const begun = performance.now();
		const { body } = await send(call);
		times.push(performance.now() - begun);
		assert.match(body, /"result"/);
		await rest;
	}
	return median(times);
}

/** The median while one client floods `to`. */
async function besideFlood(to: readonly BoostProcess[], make: () => string): Promise<number> {
	let isOver = false;
	function* requests(): Generator<FloodRequest> {
		while (!isOver) yield { path: "/nochecks", body: make() };
	}
	floods += 1;
	const options = { connections: CONNECTIONS, everyMs: REST_MS, patienceMs: DEADLINE_MS };
	const from = attackerAddress(floods);
	const flooding = to.map(({ url }) =>
		flood(requests(), { ...options, url, from, lastingMs: Number.POSITIVE_INFINITY }),
	);
	try {
		return await others();
	} finally {
		isOver = true;
		for (const { outcomes } of await Promise.all(flooding)) tallies.push(outcomes);
	}
}
let floods = 0;
const tallies: unknown[] = [];

let hashes = 0;
const unknown = (): string => {
	hashes += 1;
	return `0x${hashes.toString(16).padStart(64, "0")}`;
};
const FLOODS: Readonly<Record<string, (round: number) => Promise<number>>> = {
	"cancels of unknown hashes": () =>
		besideFlood(boosts.slice(0, 1), () => callOf("eth_cancelTransaction", unknown())),
	"the status of unknown hashes": () =>
		besideFlood(boosts.slice(0, 1), () => callOf("eth_getTransactionByHash", unknown())),
	"one account at both": (round) => {
		let n = 0;
		return besideFlood(boosts, () => replacement(FLOODING[round] as TestAccount, n++));
	},
};

for (const [name, flooded] of Object.entries(FLOODS)) {
	test(`${name}: others' median`, async (t) => {
		const rounds: { readonly ratio: number; readonly figures: string }[] = [];
		for (let round = 0; round < ROUNDS; round += 1) {
			const alone = await others();
			const beside = await flooded(round);
			const figures = `${beside.toFixed(1)} ms, alone ${alone.toFixed(1)} ms`;
			rounds.push({ ratio: beside / alone, figures });
		}
		t.diagnostic(rounds.map(({ figures }) => figures).join("; "));
		t.diagnostic(JSON.stringify(tallies.splice(0)));
		// Something else on the machine may slow down one round.
		assert.ok(Math.min(...rounds.map(({ ratio }) => ratio)) < MOST, JSON.stringify(rounds));
	});
}
