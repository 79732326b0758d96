// Runs faults side by side, under steady traffic on both paths: nothing acknowledged is lost,
// nothing becomes public, and clients see no errors but verdicts. `npm test` runs one fault of each
// kind, the nightly run every fault, and each fault again as soon as the relay is back. Then come
// counts that do not depend on time: the number of requests that a fault may cost.

import assert from "node:assert/strict";
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { after, before, test } from "node:test";
import { sized } from "../support/length.ts";
import type { TestAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";
import { isWell, statusOf } from "./boostHere.ts";
import { type CellResult, runCell } from "./cell.ts";
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
	// A cell needs fifty, and more while it waits on a slow machine.
	...{ answers: 3, compares: false, mostAccounts: 100 },
};
/** Those that take the longest first. */
const CASES = FAULT_CASES.filter(({ nightly }) => nightly === undefined || sized(false, true)).sort(
	(a, b) => costOf(b) - costOf(a),
);
/** Accounts of the tests that count requests. */
const COUNTING = 200;

/** This process has no room for another cell when its timers are so late, in ms, at the median. */
const BUSY_MS = 40;
/**
 * And it was too busy for a cell when a hundredth of them was so late, or one of them so much.
 * Alone: 40 and 100.
 */
const STARVED_MS = { hundredth: 90, most: 350 };
const NS_PER_MS = 1_000_000;
const RESOLUTION_MS = 10;
/** A cell that has begun shows what it costs after so long. */
const BEGIN_MS = 300;
const PATIENCE_MS = 600_000;
/** When so many cells were starved, the machine is too busy for the others. */
const MOST_STARVED = 3;
/** A probe exceeds no deadline, except in cells whose fault only a deadline can detect. */
const PATIENT = { PROBE_TIMEOUT_MS: "5000" };

/** The result of a cell, or why the machine was too busy for one. */
type Judged = ({ readonly starved: null } & CellResult) | { readonly starved: string };

/**
 * Lets cells in. On a busy machine a verdict that depends on time is about the machine (late probe
 * answers, clients that time out), so such a cell is skipped.
 */
class CellGate {
	readonly #most: number;
	readonly #delay = watchDelay();
	#running = 0;
	#lastAt = 0;
	/** Cells that could not be judged. */
	#starved = 0;

	/** `most` at a time; one is always let in. */
	constructor(most: number) {
		this.#most = most;
	}

	/**
	 * Runs `cell`. A violation in `lost` must not occur on any machine, so it counts even where the
	 * process was starved. `starved`: why the machine was too busy to judge the cell, or null. So
	 * busy a machine is not given many more.
	 */
	async run(cell: () => Promise<CellResult>): Promise<Judged> {
		await until(
			"there is room for a cell",
			() => this.#starved >= MOST_STARVED || this.#enter(),
			PATIENCE_MS,
		);
		if (this.#starved >= MOST_STARVED) return { starved: `${this.#starved} cells were starved before` };
		const delay = watchDelay();
		const result = await cell()
			.catch((thrown: Error) => thrown)
			.finally(() => {
				this.#running -= 1;
			});
		delay.disable();
		const wasStarved =
			delay.percentile(99) > STARVED_MS.hundredth * NS_PER_MS || delay.max > STARVED_MS.most * NS_PER_MS;
		const missed = result instanceof Error ? [result.message] : result.timely;
		if (wasStarved && missed.length > 0 && (result instanceof Error || result.lost.length === 0)) {
			this.#starved += 1;
			return { starved: missed.join("; ") };
		}
		if (result instanceof Error) throw result;
		return { starved: null, ...result };
	}

	#enter(): boolean {
		const now = performance.now();
		if (this.#running > 0) {
			if (this.#running >= this.#most || now - this.#lastAt < BEGIN_MS) return false;
			const late = this.#delay.percentile(50) / NS_PER_MS;
			this.#delay.reset();
			if (late > BUSY_MS) return false;
		}
		this.#delay.reset();
		this.#lastAt = now;
		this.#running += 1;
		return true;
	}
}

function watchDelay(): IntervalHistogram {
	const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
	delay.enable();
	return delay;
}

let world: World;
let counting: TestAccount[];
before(async () => {
	const accounts = CASES.length * OPTIONS.mostAccounts + COUNTING;
	world = await startWorld({ blockMs: 450, builder: "plain", accounts });
	counting = [...world.accounts(COUNTING)];
});
after(() => world.stop());

test("faults", { concurrency: FAULT_CASES.length }, async (t) => {
	const gate = new CellGate(CELLS);
	await Promise.all(
		CASES.map((fault) =>
			t.test(fault.name, async (cell) => {
				const options = {
					...OPTIONS,
					relapses: sized(false, costOf(fault) === 0),
					boost: fault.slow === true ? {} : PATIENT,
				};
				const run = () => runCell(world, fault, options);
				const judged = await gate.run(run);
				if (judged.starved !== null) return cell.skip(`this machine is too busy to judge: ${judged.starved}`);
				cell.diagnostic(figuresLine(judged.figures));
				assert.deepEqual(judged.lost, []);
				assert.deepEqual(judged.timely, []);
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
	// Between the closing and the next look of the probe there is time for requests, and behind the
	// relapse for all of them.
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
	// The first that times out opens it: each one before would leave its place to another.
	const parts = await startCellParts(world, "count-hang", { boost: { ...SLOW, BREAKER_FAULTS: "1" } });
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
