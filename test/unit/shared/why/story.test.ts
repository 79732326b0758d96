// The texts of `npm run why` that a real relay reaches only by a reorganisation, another node or
// other clients. All others are in test/integration/deploy/why.test.ts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type StatusRecord, stageReport, unknownStatus } from "../../../../shared/ethereum/statusRecord.ts";
import { type ChainFacts, type Journal, type Life, story } from "../../../../shared/why/story.ts";

const UNTOLD: ChainFacts = {
	maxFeePerGas: null,
	maxPriorityFeePerGas: null,
	nonce: null,
	nextNonce: null,
	head: null,
	baseFee: null,
	minedIn: null,
};
const AT = "2026-11-27T04:00:00.000Z";
type Events = Life["events"];

/** A record's stage and fields, its events, the rest of its life, and the expected text. */
const ROWS: readonly (readonly [
	record: Partial<StatusRecord>,
	events: Events,
	more: Partial<Life & ChainFacts>,
	said: RegExp,
])[] = [
	[
		{ stage: "QUEUED" },
		[{ type: "queued", at: AT, reason: "behindHeld" }],
		{},
		/ It waits: an earlier transaction of its sender is not sent, and must go first\. /,
	],
	[
		{ stage: "QUEUED" },
		[{ type: "queued", at: AT, reason: "behindUnchecked" }],
		{},
		/ It waits: an earlier transaction of its sender is not simulated, /,
	],
	[
		{ stage: "QUEUED", shared: true },
		[{ type: "queued", at: AT }],
		{},
		/ It waits: an earlier transaction of its sender must be sent first\. /,
	],
	[
		{ stage: "BROADCAST" },
		[
			{
				type: "notSimulated",
				at: AT,
				block: 7,
				error: { code: "NODE_UNAVAILABLE", message: "simulation not possible" },
			},
		],
		{},
		/ It was sent without a simulation: simulation not possible\. /,
	],
	[
		{ stage: "BROADCAST", shared: true, backruns: 2 },
		[
			{ type: "simulationFailed", at: AT, block: 6, error: { code: "OUT_OF_GAS" } },
			{ type: "simulated", at: AT, block: 7 },
			{ type: "broadcast", at: AT, block: 7 },
		],
		{ omitted: 3 },
		/ Its simulation passed for block 7, after 1 failure before\. It was shown to searchers; the number of bids is published once it is mined\. It was sent to builders, whose answers are not known\. \(3 events between these are not kept\.\) /,
	],
	[
		{ stage: "SHARED", shared: true },
		[{ type: "joined", at: AT, block: 6 }],
		{},
		/^.* Others sent it too, so the strictest of their preferences apply\. .* the number of bids is published once it is mined\. /,
	],
	[
		{ ...stageReport("BROADCAST", { exposed: { block: 6, depth: 1 } }) },
		[{ type: "reorged", at: AT, block: 6 }],
		{},
		/ Block 6, which contained it or used its nonce, has left the chain\. It was seen in block 6, which has left the chain, so it is public: /,
	],
	[
		{ ...stageReport("BROADCAST", { seenAt: Date.parse(AT) }) },
		[],
		{},
		/ It was in the public mempool before any block had it, so anybody may use it: /,
	],
	[{ stage: "HELD" }, [], {}, / What to do: restart the relay; boost then sends it there by itself\.$/],
	[
		{ stage: "HELD", reason: "another private relay has it" },
		[],
		{},
		/: it is held: another private relay has it\. .* What to do: wait; boost makes sure that a relay has it\.$/,
	],
	[
		{ stage: "EXPIRED", simulationError: { code: "OUT_OF_GAS", message: "out of gas" } },
		[{ type: "received", at: AT, block: 6 }],
		{ omitted: 3 },
		/ Its simulation failed: out of gas \(OUT_OF_GAS\)\. .*\(3 events between these are not kept\.\)/,
	],
	[{ stage: "EXPIRED" }, [], { omitted: 3 }, / It is no longer known whether it was simulated\. /],
	[{ status: "INCLUDED" }, [], {}, /^It landed: it is in a block\. /],
	[{ status: "INCLUDED" }, [], { minedIn: 9 }, /^It landed: it is in block 9\. /],
	[{ stage: "EXPIRED" }, [], { minedIn: 9 }, /^It landed: it is in block 9/],
	[
		{ stage: "INCLUDED", blockNumber: 9, refundWei: "12" },
		[],
		{},
		/^It landed: it is in block 9\. Its refund was 12 wei\. /,
	],
	[
		{ status: "INCLUDED", stage: "INCLUDED", blockNumber: 9, shared: true, backruns: 2 },
		[],
		{},
		/ It was shown to searchers, who sent 2 bids\. /,
	],
	[
		{ stage: "PENDING" },
		[],
		{ maxFeePerGas: 3n, maxPriorityFeePerGas: 2n, baseFee: 2n, head: 9 },
		/ so it pays the builder 1e-9 gwei for each unit of gas\. /,
	],
];

test("what a record, its life and the chain come to", () => {
	for (const [fields, events, more, said] of ROWS) {
		const record = { ...unknownStatus("0x"), ...(fields.stage && stageReport(fields.stage)), ...fields };
		const { omitted = 0, ...chain } = more;
		const text = story({ record, life: { events, omitted }, journal: null, chain: { ...UNTOLD, ...chain } });
		assert.match(text, said);
	}
});

test("what is not known is not told as if it had not been", () => {
	const record = { ...unknownStatus("0x"), ...stageReport("BROADCAST") };
	const told = (omitted: number, journal: Journal | null = null) =>
		story({ record, life: { events: [{ type: "ready", at: AT }], omitted }, journal, chain: UNTOLD });
	assert.match(told(0), / It was not simulated\. .* It was sent to no builder\. /);
	const afterRestart = told(4);
	assert.match(afterRestart, / It is no longer known whether it was simulated\. /);
	assert.match(afterRestart, / It is no longer known to which builders it was sent\. /);
	for (const [fallback, fallbackSince, said] of [
		[
			"has",
			AT,
			/ The fallback, another private relay, has it since 2026-11-27T04:00:00.000Z; which builders /,
		],
		[
			"has",
			null,
			/ The fallback, another private relay, has it; which builders received it from there is not known\. /,
		],
		["unanswered", null, / It was sent to the fallback, another private relay, whose answer is not known\. /],
	] as const) {
		assert.match(told(0, { fallback, fallbackSince }), said);
	}
	assert.doesNotMatch(told(0, { fallback: "absent", fallbackSince: null }), /fallback/);
});
