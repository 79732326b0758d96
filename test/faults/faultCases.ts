// The rows of the fault matrix: how each fault is made and mended, and what the breaker should do
// meanwhile. They act on the parts of a cell and wait for nothing.

import type { CellParts, CellSettings } from "./cellParts.ts";
import type { WireFault } from "./wireFaults.ts";

export interface FaultCase {
	readonly name: string;
	readonly settings?: CellSettings;
	begin(parts: CellParts): Promise<void> | void;
	lift(parts: CellParts): Promise<void> | void;
	/**
	 * `holds`: it opens and stays open until the fault is lifted. `returns`: it opens, but its probe
	 * sees nothing of the fault, so that it closes and opens again. `never`: the relay is healthy.
	 */
	readonly breaker: "holds" | "returns" | "never";
	/** Whether the fallback is down as well: clients see errors, and nothing is lost all the same. */
	readonly bothOut?: boolean;
	/** Whether it takes a deadline to see it: such a one is had once only where time is short. */
	readonly slow?: boolean;
	/** Whether it ends boost's own connections, so that its clients must send again. */
	readonly cutsClients?: boolean;
	/** Runs in the nightly run alone: the case or file that tests the same rule in `npm test`. */
	readonly nightly?: string;
	/**
	 * Requests that may meet the fault before it opens; 16 unless said, null: it depends on their
	 * rate.
	 */
	readonly hole?: number | null;
}

/** Whether nobody takes what comes on `path` while the fault is there. */
export function isUnserved({ bothOut, settings }: FaultCase, path: string): boolean {
	return bothOut === true || settings?.fallbackTakes?.every((one) => `/${one}` !== path) === true;
}

/** LMDB's own two pages: with these alone it is healthy, and no write to it succeeds. */
const FULL_BYTES = 8_192;

function wireCase(name: string, fault: WireFault, more: Partial<FaultCase> = {}): FaultCase {
	return {
		name,
		breaker: "holds",
		begin: ({ wire }) => wire.set(fault),
		lift: ({ wire }) => wire.set(null),
		...more,
	};
}

/** A fault that submissions alone meet: nothing of it reaches a probe. */
function submissionCase(name: string, fault: WireFault, more: Partial<FaultCase> = {}): FaultCase {
	return wireCase(name, fault, {
		breaker: "returns",
		begin: ({ wire }) => wire.set(fault, "submissions"),
		...more,
	});
}

/** A fault of the relay's node. */
function nodeCase(name: string, fault: () => WireFault, boost: CellSettings["boost"] = {}): FaultCase {
	return {
		name,
		breaker: "holds",
		settings: { wires: ["node"], boost },
		begin: ({ nodeWire }) => nodeWire?.set(fault()),
		lift: ({ nodeWire }) => nodeWire?.set(null),
	};
}

const MIDWAY = "reset midway through the answer";
const OVERLOADED = "503 with a JSON-RPC body";
const SUBMISSIONS_FAIL = "submissions get 502, all else works";
const NODE_DOWN = "node of the relay down";
const RESTART = "restart of boost with its journal while the relay is down";

/** Every fault, each once. */
export const FAULT_CASES: readonly FaultCase[] = [
	wireCase("refused connections", { kind: "refuse" }),
	wireCase("black hole", { kind: "blackHole" }, { slow: true, nightly: "accept and hang" }),
	wireCase("accept and hang", { kind: "acceptHang" }, { slow: true }),
	wireCase("reset on accept", { kind: "resetOnAccept" }, { nightly: MIDWAY }),
	wireCase("half-close", { kind: "halfClose" }, { nightly: MIDWAY }),
	wireCase(MIDWAY, { kind: "resetMidway" }),
	wireCase("header drip", { kind: "headerDrip", everyMs: 20 }, { slow: true, nightly: "body drip" }),
	wireCase("body drip", { kind: "bodyDrip", everyMs: 20 }, { slow: true }),
	wireCase("truncated JSON", { kind: "truncated" }, { nightly: "HTML with 200" }),
	wireCase("HTML with 200", { kind: "html" }),
	wireCase("404 without JSON-RPC", { kind: "status", status: 404 }, { nightly: OVERLOADED }),
	wireCase("500", { kind: "status", status: 500 }, { nightly: OVERLOADED }),
	wireCase(OVERLOADED, {
		kind: "status",
		status: 503,
		body: '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"overloaded"}}',
	}),
	wireCase("a relay that says it is not ready", { kind: "notReady" }),
	wireCase("429", { kind: "status", status: 429 }),
	wireCase("late acceptance", { kind: "late", ms: 3_000 }, { slow: true }),
	wireCase("flapping", { kind: "flapping", everyMs: 120 }, { breaker: "returns" }),
	// Sixteen, and one more for each time-out before it opens. On a slow machine a fourth one may be
	// over before the third is counted.
	submissionCase(
		"submissions hang, all else works",
		{ kind: "late", ms: 60_000 },
		{ slow: true, hole: 20, nightly: SUBMISSIONS_FAIL },
	),
	submissionCase(SUBMISSIONS_FAIL, { kind: "status", status: 502 }),
	wireCase(
		"storm of -32603, /readyz is 200",
		{ kind: "internal" },
		// It is no storm until half of all answers in ten seconds count as none: as many as were good
		// before.
		{
			breaker: "returns",
			slow: true,
			hole: null,
			begin: ({ wire }) => wire.set({ kind: "internal" }, "submissions"),
		},
	),
	// One block behind is enough here: three take a while.
	nodeCase("stale head", () => ({ kind: "frozenHead", heads: new Map() }), { MAX_HEAD_LAG: "1" }),
	nodeCase(NODE_DOWN, () => ({ kind: "refuse" })),
	{
		...nodeCase("node of the relay hangs", () => ({ kind: "acceptHang" })),
		...{ slow: true, hole: null, nightly: NODE_DOWN },
		// The relay gives up before boost does.
		settings: { wires: ["node"], relay: { ACCOUNT_TIMEOUT_MS: "1000" } },
	},
	{
		name: "all builders of the relay unreachable",
		breaker: "holds",
		settings: { wires: ["builder"] },
		slow: true,
		begin: ({ builderWire }) => builderWire?.set({ kind: "refuse" }),
		lift: ({ builderWire }) => builderWire?.set(null),
	},
	{
		name: "store of the relay full",
		settings: { processes: ["relay"] },
		breaker: "holds",
		begin: async ({ processes }) => processes.relay?.limitFiles(FULL_BYTES),
		lift: async ({ processes }) => processes.relay?.limitFiles(null),
	},
	{
		name: "SIGKILL of the relay",
		nightly: "test/faults/killedRelay.test.ts",
		settings: { processes: ["relay"] },
		breaker: "holds",
		begin: async ({ processes }) => processes.relay?.kill(),
		lift: async ({ processes }) => processes.relay?.restart(),
	},
	{
		name: "SIGKILL of boost",
		nightly: RESTART,
		settings: { processes: ["boost"] },
		breaker: "never",
		cutsClients: true,
		async begin({ processes }) {
			await processes.boost?.kill();
			await processes.boost?.restart();
		},
		lift() {},
	},
	{
		name: RESTART,
		settings: { processes: ["boost"] },
		breaker: "holds",
		cutsClients: true,
		async begin({ wire, processes }) {
			await processes.boost?.kill();
			await wire.set({ kind: "refuse" });
			await processes.boost?.restart();
		},
		lift: ({ wire }) => wire.set(null),
	},
	{
		name: "fallback down",
		breaker: "never",
		begin: ({ fallbackWire }) => fallbackWire.set({ kind: "refuse" }),
		lift: ({ fallbackWire }) => fallbackWire.set(null),
	},
	{
		name: "both down",
		breaker: "holds",
		bothOut: true,
		// A relay whose fallback goes down first is tried for five seconds more: nobody else could
		// serve its clients.
		hole: null,
		async begin({ wire, fallbackWire }) {
			await Promise.all([wire.set({ kind: "refuse" }), fallbackWire.set({ kind: "refuse" })]);
		},
		async lift({ wire, fallbackWire }) {
			await Promise.all([wire.set(null), fallbackWire.set(null)]);
		},
	},
	wireCase(
		"out, and the fallback does not protect from reverts",
		{ kind: "refuse" },
		{ settings: { fallbackTakes: ["fast"] } },
	),
];
