// Transactions of six blobs each without cell proofs, as many as one client may send, block the
// event loops of relay and boost for 20 ms at most, and another client's submission is answered
// within a second. The order of the proofs is in test/unit/shared/ethereum/blobProofs.test.ts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BOOST_SECRET, boostEnv } from "../../faults/boostHere.ts";
import { heldSoFar, metered, turnLimit } from "../../support/eventLoopTime.ts";
import { type RelayProcess, startRelayProcess } from "../../support/processes.ts";
import { blobMaker, type RealBlobs } from "../../support/realBlobs.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { rawTransaction, type TestAccount, type TxOptions, testAccount } from "../../support/txFactory.ts";

const GREEDY = "192.0.2.66";
const HONEST = "198.51.100.7";
const GWEI = 10n ** 9n;
/** At most: on a machine that is busy with something else a round is tried again. */
const ROUNDS = 6;
const HONEST_MS = 1_000;
/** Submissions that the greedy client has under way. */
const AT_ONCE = 4;

let system: ProcessSystem;
let relay: RelayProcess;
let boost: RelayProcess;
let six: RealBlobs;
let one: RealBlobs;
/** A second, or more on a machine that takes longer for two blobs. */
let waitMs = 0;
let account = 9_000_000;

before(async () => {
	const maker = blobMaker();
	six = maker.make(6, 6);
	one = maker.make(1, 1);
	const begun = performance.now();
	for (const blob of six.v0.blobs.slice(0, 2)) maker.kzg.computeCellsAndKzgProofs(blob);
	waitMs = Math.max(HONEST_MS, 1.5 * (performance.now() - begun));
	system = await startProcessSystem({ env: { BOOST_SECRET, TRUST_PROXY: "1", RATE_LIMIT_RPS: "100" } });
	relay = await startRelayProcess({ ...metered("relay/main.ts"), env: system.env });
	const places = { relayUrl: relay.url, fallbackUrl: relay.url, folder: system.folder };
	const budget = { REQUEST_BUDGET_MS: "10000" };
	const env = { ...boostEnv(places), ...budget, TRUST_PROXY: "1", LOG_LEVEL: "info" };
	boost = await startRelayProcess({ ...metered("boost-proxy/main.ts"), env });
	// The library takes two seconds to load.
	const by = await newAccount();
	assert.equal(
		await outcome(relay.url, HONEST, hex({ by, type: 3, sidecar: one.v0, sidecarVersion: 0 })),
		"taken",
	);
});
after(async () => {
	await boost?.kill();
	await relay?.kill();
	await system?.stop();
});

async function newAccount(): Promise<TestAccount> {
	account += 1;
	const by = testAccount(account);
	await system.chain.fund([by]);
	return by;
}

function hex(options: TxOptions): string {
	return `0x${rawTransaction({ maxFeePerGas: 30n * GWEI, ...options }).toString("hex")}`;
}

/** `taken`, or the code of the error. */
async function outcome(url: string, client: string, raw: string): Promise<string | number> {
	const answer = await fetch(`${url}/fast`, {
		method: "POST",
		headers: { "content-type": "application/json", "x-forwarded-for": client },
		body: `{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["${raw}"]}`,
	});
	const { error } = (await answer.json()) as { error?: { code: number; message: string } };
	return error === undefined ? "taken" : error.code;
}

for (const name of ["relay", "boost"] as const) {
	test(`six blobs at a time, as many as may be, at the ${name}`, async () => {
		const { url } = name === "relay" ? relay : boost;
		const limitMs = turnLimit();
		let [held, waited] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
		let answers = "";
		for (let round = 0; round < ROUNDS && (held >= limitMs || waited >= waitMs); round++) {
			const by = await newAccount();
			const honest = await newAccount();
			const bodies = Array.from({ length: 12 }, (_, nonce) =>
				hex({ by, nonce, type: 3, sidecar: six.v0, sidecarVersion: 0 }),
			);
			const own = [
				hex({ by: honest, nonce: 0 }),
				hex({ by: honest, nonce: 1, type: 3, sidecar: one.v1 }),
				hex({ by: honest, nonce: 2, type: 3, sidecar: one.v0, sidecarVersion: 0 }),
				hex({ by: honest, nonce: 3 }),
			];
			for (const one of [relay, boost]) await heldSoFar(one);
			const outcomes: (string | number)[] = [];
			const greedy = Array.from({ length: AT_ONCE }, async () => {
				for (let raw = bodies.shift(); raw !== undefined; raw = bodies.shift())
					outcomes.push(await outcome(url, GREEDY, raw));
			});
			const honestly: (string | number)[] = [];
			let longest = 0;
			for (const raw of own) {
				const begun = performance.now();
				honestly.push(await outcome(url, HONEST, raw));
				longest = Math.max(longest, performance.now() - begun);
			}
			await Promise.all(greedy);
			const heldNow = [await heldSoFar(relay), await heldSoFar(boost)];
			answers = `${outcomes.join()}; ${honestly.join()}`;
			// On a busy machine the time of a request is up before its blobs are looked at: such a round
			// shows nothing.
			const isUnderLoad = outcomes.includes("taken") || outcomes.includes(-32603);
			if (!isUnderLoad || !honestly.every((is) => is === "taken")) continue;
			held = Math.min(held, Math.max(...heldNow));
			waited = Math.min(waited, longest);
		}
		assert.ok(held < limitMs, `${held.toFixed(1)} ms, at most ${limitMs.toFixed(1)}; ${answers}`);
		assert.ok(waited < waitMs, `${waited.toFixed(0)} ms, at most ${waitMs.toFixed(0)}`);
	});
}
