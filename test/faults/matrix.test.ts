// Tests every fault once, side by side, under steady traffic on both paths: nothing acknowledged is lost, nothing
// becomes public, and clients see no errors but verdicts. Prints the measurements, then tests counts that do not
// depend on time: how many requests a fault may cost.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { TestAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";
import { isWell, statusOf } from "./boostHere.ts";
import { runCell } from "./cell.ts";
import { CellGate } from "./cellGate.ts";
import { type CellSettings, startCellParts } from "./cellParts.ts";
import { FAULT_CASES, type FaultCase } from "./faultCases.ts";
import { figuresLine } from "./figures.ts";
import { type Answered, sendOne } from "./traffic.ts";
import type { WireFault } from "./wireFaults.ts";
import { startWorld, type World } from "./world.ts";

/** Cells at a time. */
const CELLS = 5;
const OPTIONS = {
	...{ rate: 8, paths: ["/fast", "/noreverts"] },
	...{ answers: 3, compares: false },
};
/** A cell uses about fifty; on a busy machine, where each takes longer, more. */
const ACCOUNTS = 12_000;

/** Of the tests that count. */
const COUNTING = 200;

let world: World;
let counting: TestAccount[];
before(async () => {
	world = await startWorld({ blockMs: 450, builder: "plain", accounts: ACCOUNTS + COUNTING });
	counting = [...world.accounts(COUNTING)];
});
after(() => world.stop());

test("faults", { concurrency: FAULT_CASES.length }, async (t) => {
	const gate = new CellGate(CELLS);
	// Those that take the longest first.
	const cases = [...FAULT_CASES].sort((a, b) => costOf(b) - costOf(a));
	await Promise.all(
		cases.map((fault) =>
			t.test(fault.name, async (cell) => {
				const relapses = costOf(fault) === 0;
				const run = () => runCell(world, fault, { ...OPTIONS, relapses });
				const { figures, lost, timely, wasStarved } = await gate.run(run);
				cell.diagnostic(figuresLine(figures));
				assert.deepEqual(lost, []);
				if (!wasStarved) assert.deepEqual(timely, []);
				else if (timely.length > 0) cell.diagnostic(`the machine is too busy to judge: ${timely.join("; ")}`);
			}),
		),
	);
});

/** Default times, so that no probe comes in between. */
const SLOW: CellSettings["boost"] = {
	...{ REQUEST_BUDGET_MS: "10000", PROBE_INTERVAL_MS: "30000", PROBE_TIMEOUT_MS: "2000" },
};

/** One request after another; how many were sent to the relay in vain, of `count`. */
async function inVain(url: string, count: number): Promise<number> {
	let found = 0;
	for (let i = 0; i < count; i++) {
		const { attempts, upstream, outcome } = await sendOne(counting.pop(), url);
		assert.deepEqual(outcome, { kind: "acknowledged" });
		if (upstream !== "relay" && attempts > 1) found += 1;
	}
	return found;
}

for (const [what, fault, most] of [
	["a refused connection costs one request", { kind: "refuse" }, 1],
	["an answer that is none costs three at most", { kind: "html" }, 3],
] as readonly (readonly [string, WireFault, number])[]) {
	test(what, async (t) => {
		const parts = await startCellParts(world, `count-${fault.kind}`, { boost: SLOW });
		t.after(() => parts.stop());
		assert.equal(await inVain(parts.boost.url, 5), 0);
		await parts.wire.set(fault);
		const cost = await inVain(parts.boost.url, 10);
		assert.ok(cost >= 1 && cost <= most, `${cost} requests`);
		assert.equal((await statusOf(parts.boost.url)).relay.state, "open");
	});
}

test("a relapse costs one request", async (t) => {
	// Between the closing and the next look of the probe there is time for requests, and behind the relapse for all of them.
	const boost = {
		...{ PROBE_INTERVAL_MS: "700", PROBE_SUCCESSES: "1" },
		...{ BREAKER_HOLD_MS: "1500", BREAKER_HOLD_MAX_MS: "60000" },
	};
	const parts = await startCellParts(world, "count-relapse", { boost });
	t.after(() => parts.stop());
	const fault: WireFault = { kind: "status", status: 502 };
	await parts.wire.set(fault);
	await until("it is open", async () => !(await isWell(parts.boost.url)));
	await parts.wire.set(null);
	await until("it is closed", () => isWell(parts.boost.url));
	assert.equal(await inVain(parts.boost.url, 1), 0);
	await parts.wire.set(fault, "submissions");
	assert.equal(await inVain(parts.boost.url, 5), 1);
});

test("a relay that hangs gets sixteen requests and no more", async (t) => {
	const parts = await startCellParts(world, "count-hang", { boost: SLOW });
	t.after(() => parts.stop());
	assert.equal(await inVain(parts.boost.url, 5), 0);
	await parts.wire.set({ kind: "acceptHang" });
	const answers: Promise<Answered>[] = [];
	const send = (count: number) => {
		for (let i = 0; i < count; i++) answers.push(sendOne(counting.pop(), parts.boost.url));
	};
	send(16);
	await until("sixteen are under way", async () => {
		const { inFlight, oldestInFlightMs, state } = (await statusOf(parts.boost.url)).relay;
		return state !== "closed" || (inFlight === 16 && oldestInFlightMs > 100);
	});
	send(100);
	const all = await Promise.all(answers);
	assert.ok(
		all.every(({ outcome, upstream }) => outcome.kind === "acknowledged" && upstream === "fallback"),
		"the fallback took all of them",
	);
	assert.equal(all.filter(({ attempts }) => attempts > 1).length, 16);
});

/** How long it takes, compared with others. */
function costOf({ settings, slow }: FaultCase): number {
	return 2 * (settings?.processes?.length ?? 0) + (slow === true ? 1 : 0);
}
