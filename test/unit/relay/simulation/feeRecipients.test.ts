// The coinbase of simulated blocks: the given one, or each time another, and what that one holds.

import assert from "node:assert/strict";
import { test } from "node:test";
import { drawnBalance, feeRecipients } from "../../../../relay/simulation/feeRecipients.ts";

const DRAWS = 200;
const ETHER = 10n ** 18n;

test("the one that all builders share is the one of every simulation", () => {
	const fixed = `0x${"ab".repeat(20)}`;
	const recipientOf = feeRecipients(fixed);
	assert.deepEqual([recipientOf(), recipientOf()], [fixed, fixed]);
});

test("where there is none, each simulation has an address of its own", () => {
	const recipientOf = feeRecipients(undefined);
	const drawn = Array.from({ length: DRAWS }, recipientOf);
	for (const address of drawn) assert.match(address, /^0x[0-9a-f]{40}$/);
	assert.equal(new Set(drawn).size, DRAWS);
});

test("a drawn one holds some ether, never the same, and never a round sum", () => {
	const drawn = Array.from({ length: DRAWS }, drawnBalance);
	for (const wei of drawn) assert.ok(wei >= ETHER / 100n && wei < 101n * ETHER, `${wei}`);
	assert.equal(new Set(drawn).size, DRAWS);
	// Spread, and not all near one end.
	assert.ok(drawn.some((wei) => wei < 50n * ETHER) && drawn.some((wei) => wei > 50n * ETHER));
	assert.ok(drawn.some((wei) => wei % 10n ** 15n !== 0n));
});
