// Each rule of checks.ts finds what breaks it and nothing else, by evidence that is made up.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Evidence, refundsOf, violationsOf } from "./checks.ts";
import type { BuilderCall } from "./scaleWorld.ts";
import type { Connection } from "./searchers.ts";
import type { Submitted } from "./wallets.ts";

const RAW = `0x${"02".repeat(100)}`;
const HASH = `0x${"aa".repeat(32)}`;
const [FIRST, SECOND] = ["relay1.1", "relay2.1"];

/** A transaction of nonce 0 that was acknowledged at 1,000 ms. */
function submitted(over: Partial<Submitted> = {}): Submitted {
	return {
		...{ hash: HASH, raw: RAW, from: `0x${"11".repeat(20)}`, nonce: 0, path: "/fast", client: "10.0.0.1" },
		...{ refundRecipient: null, answers: [], ackedAt: 1_000, ending: null, notFoundAt: null },
		...over,
	};
}

function sent(at: number, process = FIRST ?? ""): BuilderCall {
	return { at, process, method: "eth_sendBundle", text: JSON.stringify([{ txs: [RAW] }]) };
}

/** A websocket that is open all the time. */
function connection(relay: string, times: readonly number[], over: Partial<Connection> = {}): Connection {
	const shown = new Map(times.length === 0 ? [] : [[HASH, [...times]]]);
	return { relay, since: 0, endedAt: null, end: "", shown, ...over };
}

/**
 * A run without faults: mined, shown to two, and the lease goes from the first to the second at
 * 20,000 ms.
 */
function evidence(over: Partial<Evidence> = {}): Evidence {
	return {
		submitted: [submitted()],
		connections: [connection("relay1", [5_000]), connection("relay2", [5_900])],
		calls: [sent(1_100)],
		terms: [
			{ epoch: 1, process: FIRST ?? "", from: 0 },
			{ epoch: 2, process: SECOND ?? "", from: 20_000 },
		],
		...{ blocks: [], minedAt: new Map([[HASH, 2_000]]), faults: [], ends: [], end: 60_000 },
		readyTimes: new Map([
			["relay1", [{ from: 0, to: null }]],
			["relay2", [{ from: 0, to: null }]],
		]),
		...over,
	};
}

const CANCELLED = { ending: { kind: "cancel", askedAt: 1_100, ackedAt: 1_200 } } as const;
const FAULT = { kind: "suspend", role: "edge", from: 4_000, to: 4_500 } as const;
const ROWS: readonly (readonly [string, Partial<Evidence>, RegExp | null])[] = [
	["nothing that is wrong", {}, null],
	["one that is lost", { minedAt: new Map() }, /acknowledged and not mined/],
	["one that its user ended", { submitted: [submitted(CANCELLED)], minedAt: new Map(), calls: [] }, null],
	[
		"one that was never acknowledged",
		{ submitted: [submitted({ ackedAt: null })], minedAt: new Map() },
		null,
	],
	[
		"one behind a nonce that was never taken",
		{ submitted: [submitted({ nonce: 1 })], minedAt: new Map() },
		null,
	],
	[
		"one behind a nonce that is mined",
		{ submitted: [submitted(), submitted({ nonce: 1, hash: `0x${"bb".repeat(32)}` })] },
		/acknowledged and not mined/,
	],
	["an old holder's request on its way", { calls: [sent(20_200)] }, null],
	["an old holder's late request", { calls: [sent(20_400)] }, /had not the lease/],
	["the next holder's request", { calls: [sent(20_400, SECOND)] }, null],
	["the next holder's early request", { calls: [sent(19_900, SECOND)] }, /had not the lease/],
	["a request of one that never held it", { calls: [sent(5_000, "relay3.1")] }, /had not the lease/],
	[
		"an old holder's cancel",
		{ calls: [{ ...sent(25_000), method: "eth_sendBundle", text: '[{"txs":[]}]' }] },
		null,
	],
	[
		"a cancelled one that is sent",
		{ submitted: [submitted(CANCELLED)], calls: [sent(1_600)] },
		/though its end/,
	],
	["a cancelled one that was sent before", { submitted: [submitted(CANCELLED)], calls: [sent(1_150)] }, null],
	[
		"a refusal of a sound one",
		{
			submitted: [
				submitted({
					ackedAt: null,
					answers: [{ askedAt: 0, at: 1, by: "relay1", error: { code: -32_000, message: "no" } }],
				}),
			],
		},
		/sound and refused/,
	],
	[
		"a cancel of a pending one that is not found",
		{ submitted: [submitted({ notFoundAt: 500 })] },
		/unknown to a cancel/,
	],
	["a cancel that comes too late", { submitted: [submitted({ notFoundAt: 2_500 })] }, null],
	["one that is shown twice", { connections: [connection("relay1", [5_000, 5_001])] }, /shown twice/],
	[
		"one that is shown later",
		{ connections: [connection("relay1", [5_000]), connection("relay2", [6_100])] },
		/within a second/,
	],
	[
		"one that is not shown",
		{ connections: [connection("relay1", [5_000]), connection("relay2", [])] },
		/within a second/,
	],
	[
		"a connection that was just made",
		{ connections: [connection("relay1", [5_000]), connection("relay2", [], { since: 4_900 })] },
		null,
	],
	[
		"a relay that was suspended",
		{
			connections: [connection("relay1", [5_000]), connection("relay2", [])],
			faults: [{ ...FAULT, target: "relay2" }],
		},
		null,
	],
	[
		"another relay that was suspended",
		{
			connections: [connection("relay1", [5_000]), connection("relay2", [])],
			faults: [{ ...FAULT, target: "relay3" }],
		},
		/within a second/,
	],
	["a websocket that ends", { connections: [connection("relay1", [], { endedAt: 9_000 })] }, /broken though/],
	[
		"a websocket whose relay ends",
		{
			connections: [connection("relay1", [], { endedAt: 9_000 })],
			ends: [{ process: FIRST ?? "", at: 9_100 }],
		},
		null,
	],
	[
		"a core that changes",
		{ connections: [connection("relay1", [20_500]), connection("relay2", [])], calls: [] },
		null,
	],
];

describe("the checks find", () => {
	for (const [what, over, expected] of ROWS) {
		it(what, () => {
			const found = violationsOf(evidence(over)).join("\n");
			if (expected === null) assert.equal(found, "");
			else assert.match(found, expected);
		});
	}

	it("a bid that was mined without a refund", () => {
		const refund = { recipient: "0x", amount: 7n, hash: "0xab", skipped: null };
		const order = {
			...{ order: 1, kind: "bundle", uuid: null, hashes: [HASH, "0xbb"], reverted: [] },
			...{ gain: 8n, gasUsed: 1n },
		} as const;
		const block = (refunds: readonly (typeof refund)[]) =>
			({ number: 1, orders: [{ ...order, refunds }] }) as unknown as Evidence["blocks"][number];
		const { paid } = refundsOf(evidence({ blocks: [block([refund])] }));
		assert.deepEqual(paid, [{ target: HASH, backrun: "0xbb", wei: 7n }]);
		assert.match(refundsOf(evidence({ blocks: [block([])] })).unpaid.join(), /without a refund/);
	});
});
