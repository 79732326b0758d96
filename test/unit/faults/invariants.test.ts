// Shows that the invariants of the fault matrix can fail: a scenario without faults passes, and
// each violation is reported.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { BoostStatus } from "../../faults/boostHere.ts";
import type { CellScenario } from "../../faults/cell.ts";
import type { FaultCase } from "../../faults/faultCases.ts";
import { violationsOf } from "../../faults/invariants.ts";
import type { Sent } from "../../faults/traffic.ts";

let depth = 0;
let durable = true;
const boost = createServer((_request, response) => {
	response.end(JSON.stringify({ journal: { depth, durable } }));
});
before(() => new Promise<void>((resolve) => boost.listen(0, "127.0.0.1", resolve)));
after(() => {
	boost.closeAllConnections();
	boost.close();
});

const WELL = { state: "closed", since: "0" };
const STATUS = { relay: WELL, fallback: WELL } as unknown as BoostStatus;
const OUTAGE = { begunAt: 100, trippedAt: 200, reason: "refused", liftedAt: 500, closedAt: 600 };
const FAULT = { name: "made up", breaker: "holds", begin() {}, lift() {} } satisfies FaultCase;

function sent(hash: string, at: number, more: Partial<Sent> = {}): Sent {
	return {
		...{ kind: "sound", path: "/fast", hash, raw: `raw of ${hash}`, from: "0xa", nonce: 0 },
		...{ sentAt: at, answeredAt: at + 10, outcome: { kind: "acknowledged" } },
		...{ upstream: "relay", breaker: "closed", attempts: 1, broken: 0 },
		...more,
	};
}

const REFUSED = { kind: "error", code: -32_000, message: "insufficient funds", status: 200 } as const;
const TRAFFIC: readonly Sent[] = [
	sent("0x1", 10),
	sent("0x2", 20, { path: "/noreverts" }),
	sent("0x3", 30, { kind: "poor", outcome: REFUSED }),
	sent("0x4", 150, { upstream: "fallback", attempts: 2 }),
	sent("0x5", 300, { upstream: "fallback", breaker: "open" }),
	sent("0x6", 650),
];

interface Wrong {
	readonly sent?: readonly Sent[];
	readonly fault?: Partial<FaultCase>;
	readonly after?: object;
	readonly publicHashes?: readonly string[];
	readonly mayRevert?: readonly string[];
	readonly notMined?: string;
	/** The path on which the fallback got "0x5". */
	readonly target?: string;
}

function scenario(wrong: Wrong): CellScenario {
	const list = wrong.sent ?? TRAFFIC;
	const calls = [{ id: 1, method: "eth_sendRawTransaction", params: ["raw of 0x5"] }];
	const world = {
		mined: new Set(list.map(({ hash }) => hash).filter((hash) => hash !== wrong.notMined)),
		fallbackUrl: "http://127.0.0.1:1",
		publicHashes: new Set(wrong.publicHashes ?? []),
		mayRevert: new Set(wrong.mayRevert ?? ["0x1"]),
	};
	const parts = {
		world,
		boost: { url: `http://127.0.0.1:${(boost.address() as AddressInfo).port}` },
		fallbackWire: { requests: () => [{ target: wrong.target ?? "/fast", calls }] },
	};
	return {
		fault: { ...FAULT, ...wrong.fault },
		parts: parts as unknown as CellScenario["parts"],
		sent: list,
		direct: [],
		outages: [OUTAGE],
		before: STATUS,
		after: { ...STATUS, ...wrong.after },
	};
}

async function violations(wrong: Wrong): Promise<string> {
	const { lost, timely } = await violationsOf(scenario(wrong), 30);
	return [...lost, ...timely].join("\n");
}

test("a correct scenario has no violations", async () => {
	assert.equal(await violations({}), "");
});

const NOTHING = { kind: "nothing", why: "ECONNRESET" } as const;
const UNAVAILABLE = { kind: "error", code: -32_603, message: "no relay available: x", status: 200 } as const;
const CASES: readonly (readonly [string, Wrong, RegExp])[] = [
	[
		"a client got nothing",
		{ sent: [...TRAFFIC, sent("0x7", 700, { outcome: NOTHING })] },
		/1 × wrong answer/,
	],
	["an error", { sent: [...TRAFFIC, sent("0x7", 700, { outcome: UNAVAILABLE })] }, /1 × wrong answer/],
	[
		"what must be refused was taken",
		{ sent: [...TRAFFIC, sent("0x7", 1, { kind: "poor" })] },
		/wrong answer/,
	],
	[
		"asked while unavailable",
		{ sent: [...TRAFFIC, sent("0x7", 300, { attempts: 2 })] },
		/sent to a relay that is/,
	],
	["lost", { notMined: "0x5" }, /1 × acknowledged and not mined/],
	["seen in the pool", { publicHashes: ["0x2"] }, /1 × in the public mempool/],
	["loose as a bundle", { mayRevert: ["0x2"] }, /1 × may revert/],
	["loose by itself", { mayRevert: ["raw of 0x2"] }, /1 × may revert/],
	["on another path", { target: "/noreverts" }, /got a transaction of \/fast on \/noreverts/],
	["where it must not be", { fault: { settings: { fallbackTakes: ["noreverts"] } } }, /the fallback got/],
	[
		"tripped for nothing",
		{ fault: { breaker: "never" }, after: { relay: { ...WELL, since: "1" } } },
		/opened/,
	],
	[
		"the wrong one tripped",
		{ after: { fallback: { ...WELL, since: "1" } } },
		/the fallback's breaker opened/,
	],
	["not closed again", { after: { relay: { ...WELL, state: "open" } } }, /open in the end/],
	["a hole too deep", { fault: { hole: 0 } }, /1 requests met the fault/],
	[
		"no verdicts in it",
		{ sent: TRAFFIC.filter(({ kind }) => kind === "sound") },
		/nothing was sent that must/,
	],
];

for (const [what, wrong, message] of CASES) {
	test(`${what}: it is reported`, async () => assert.match(await violations(wrong), message));
}

test("errors are no violation while both are unavailable, or if the fallback may not get the transaction", async () => {
	const list = [...TRAFFIC, sent("0x7", 120, { outcome: UNAVAILABLE, upstream: "boost", attempts: 1 })];
	assert.equal(await violations({ sent: list, fault: { bothOut: true } }), "");
	const path = "/noreverts";
	const loose = [...TRAFFIC, sent("0x7", 120, { path, outcome: UNAVAILABLE, upstream: "boost" })];
	assert.equal(await violations({ sent: loose, fault: { settings: { fallbackTakes: ["fast"] } } }), "");
});

test("a journal that failed or keeps mined transactions is reported", async () => {
	durable = false;
	assert.match(await violations({}), /the journal failed/);
	durable = true;
	depth = 3;
	assert.match(await violations({}), /3 are still in the journal/);
	depth = 0;
});
