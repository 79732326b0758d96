// What `npm run why` says where a real relay comes to it only by a reorganisation, another node or other clients. All else is in
// test/integration/deploy/why.test.ts.

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

/** What is said, by a record's stage and fields, its events and what else its life has. */
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
		/ It waits: an earlier transaction of its sender is held, and goes first\. /,
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
		/ It waits: an earlier transaction of its sender goes first\. /,
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
		/ It went out without a simulation: simulation not possible\. /,
	],
	[
		{ stage: "BROADCAST", shared: true, backruns: 2 },
		[
			{ type: "simulationFailed", at: AT, block: 6, error: { code: "OUT_OF_GAS" } },
			{ type: "simulated", at: AT, block: 7 },
			{ type: "broadcast", at: AT, block: 7 },
		],
		{ omitted: 3 },
		/ Its simulation passed for block 7, after 1 failure before\. Searchers were shown it; how many bid is told once it is mined\. It was sent to builders; what they answered is not told\. \(3 events between are not kept\.\) /,
	],
	[
		{ stage: "SHARED", shared: true },
		[{ type: "joined", at: AT, block: 6 }],
		{},
		/^.* Others sent it, too, so the strictest of their wishes holds\. .* how many bid is told once it is mined\. /,
	],
	[
		{ ...stageReport("BROADCAST", { exposed: { block: 6, depth: 1 } }) },
		[{ type: "reorged", at: AT, block: 6 }],
		{},
		/ Block 6, which had it or its nonce, has left the chain\. It was seen in block 6, which is gone, so it is public: /,
	],
	[{ stage: "HELD" }, [], {}, / What to do: bring the relay back; boost hands it over by itself\.$/],
	[
		{ stage: "HELD", reason: "another private relay has it" },
		[],
		{},
		/: it is held: another private relay has it\. .* What to do: wait, since boost sees to it that a relay has it\.$/,
	],
	[
		{ stage: "EXPIRED", simulationError: { code: "OUT_OF_GAS", message: "out of gas" } },
		[{ type: "received", at: AT, block: 6 }],
		{ omitted: 3 },
		/ Its simulation failed: out of gas \(OUT_OF_GAS\)\. .*\(3 events between are not kept\.\)/,
	],
	[{ stage: "EXPIRED" }, [], { omitted: 3 }, / Whether it was simulated is not known any more\. /],
	[{ status: "INCLUDED" }, [], {}, /^It did land: it is in a block\. /],
	[{ status: "INCLUDED" }, [], { minedIn: 9 }, /^It did land: it is in block 9\. /],
	[{ stage: "EXPIRED" }, [], { minedIn: 9 }, /^It did land: it is in block 9/],
	[
		{ stage: "INCLUDED", blockNumber: 9, refundWei: "12" },
		[],
		{},
		/^It did land: it is in block 9\. Its refund was 12 wei\. /,
	],
	[
		{ status: "INCLUDED", stage: "INCLUDED", blockNumber: 9, shared: true, backruns: 2 },
		[],
		{},
		/ Searchers were shown it, and 2 bids came\. /,
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
	assert.match(afterRestart, / Whether it was simulated is not known any more\. /);
	assert.match(afterRestart, / Which builders it was sent to is not known any more\. /);
	for (const [fallback, fallbackSince, said] of [
		[
			"has",
			AT,
			/ The fallback, another private relay, has it since 2026-11-27T04:00:00.000Z; what that sent /,
		],
		["has", null, / The fallback, another private relay, has it; what that sent to builders is not known\. /],
		[
			"unanswered",
			null,
			/ The fallback, another private relay, was sent it; what became of it there is not known\. /,
		],
	] as const) {
		assert.match(told(0, { fallback, fallbackSince }), said);
	}
	assert.doesNotMatch(told(0, { fallback: "absent", fallbackSince: null }), /fallback/);
});
