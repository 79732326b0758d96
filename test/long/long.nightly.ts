// The long forms of `npm run test:long`: the control model, kills behind boost, all attacks at
// once, a rolling restart, ten minutes of faults of every kind, suspensions, and each alert. A
// failure prints the seed that repeats it.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { hasPrometheus, longAlerts } from "./alerts.ts";
import { longAttacks } from "./attacks.ts";
import { killAndRestart } from "./boost.ts";
import { longControl } from "./control.ts";
import { longRolling } from "./rolling.ts";
import { longScale } from "./scale.ts";
import { longSuspensions } from "./suspensions.ts";

type Say = (line: string) => void;

/** Seeds are 31 bits. */
const SEEDS = 2 ** 31;
const seed = Math.floor(Math.random() * SEEDS);

/** Runs a long form; if it fails, prints the lines that it said. */
async function holds(t: TestContext, run: (say: Say) => Promise<boolean>): Promise<void> {
	const lines: string[] = [];
	const isFine = await run((line) => {
		lines.push(line);
		t.diagnostic(line);
	});
	assert.ok(isFine, lines.join("\n"));
}

test("relay, builders and node agree with a model for 100 random sequences of 30 commands", (t) =>
	holds(t, (say) => longControl({ seed, sequences: 100, steps: 30, say })));

test("a relay that is killed every few seconds for three minutes loses nothing acknowledged behind boost", (t) =>
	holds(t, (say) => killAndRestart({ seed, minutes: 3, say })));

test("honest users are served during all attacks at once, for two minutes", (t) =>
	holds(t, (say) => longAttacks({ minutes: 2, say })));

test("three relays and two boost instances are restarted one after another under 10,000 searchers", (t) =>
	holds(t, longRolling));

test("kills, cuts, suspensions and a lost database break no promise of three relays and two boost instances in ten minutes", (t) =>
	holds(t, (say) => longScale({ seed, minutes: 10, say })));

test("nothing is sent that was cancelled while boost was suspended at random", (t) =>
	holds(t, (say) => longSuspensions({ seed, suspensions: 60, say })));

test("each alert fires in its state, and ceases after it", async (t) => {
	if (!hasPrometheus()) return t.skip("prometheus is not installed here");
	await holds(t, longAlerts);
});
