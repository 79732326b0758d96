// The long form of the fault matrix: all cells on each path at a hundred requests a second, and at
// fifty, one after the other, with the breaker's default times, so that the figures are the
// product's; then ten minutes with a relay that is killed and restarted every few seconds. Prints
// progress line by line.

import { systemClock } from "../../shared/clock.ts";
import { statusOf } from "../faults/boostHere.ts";
import { runCell } from "../faults/cell.ts";
import { startCellParts } from "../faults/cellParts.ts";
import { FAULT_CASES, type FaultCase } from "../faults/faultCases.ts";
import { type Figures, figuresLine, figuresTable, worseOf } from "../faults/figures.ts";
import { lostOf } from "../faults/invariants.ts";
import { Traffic } from "../faults/traffic.ts";
import { startWorld, type World } from "../faults/world.ts";
import { SeededRandom } from "../support/seededRandom.ts";
import { until } from "../support/until.ts";

interface LongBoostOptions {
	readonly seed: number;
	/** The duration of kills and restarts. */
	readonly minutes: number;
	/** Takes each line. */
	readonly say: (line: string) => void;
	/** Takes the figures. */
	readonly write: (rows: readonly Figures[]) => void;
}

const PATHS = ["/fast", "/noreverts"];
/** Each fault is played on each path, and at each rate (requests a second). */
const CELLS = [
	{ path: "/fast", rate: 100 },
	{ path: "/noreverts", rate: 100 },
	{ path: "/fast", rate: 50 },
] as const;
/** The accounts of a cell. */
const ACCOUNTS = 3_000;
const CELL = { answers: 100, relapses: true, compares: true, mostAccounts: ACCOUNTS };
/** As they are where nothing is set. */
const DEFAULT_TIMES = {
	REQUEST_BUDGET_MS: "10000",
	PROBE_INTERVAL_MS: "1000",
	PROBE_TIMEOUT_MS: "500",
	BREAKER_HOLD_MS: "2000",
	BREAKER_HOLD_MAX_MS: "60000",
};
const KILL_RATE = 50;
const KILL_ACCOUNTS = 400;
/** Between a start and the next kill, and between a kill and the next start, in ms. */
const [LEAST_MS, MOST_MS] = [500, 5_000];

/** Runs it; true where everything held. */
export async function longBoost(options: LongBoostOptions): Promise<boolean> {
	const { say, write } = options;
	let fine = true;
	const rows: Figures[] = [];
	for (const fault of FAULT_CASES) {
		const all: Figures[] = [];
		for (const { path, rate } of CELLS) {
			const { figures, violations } = await cellOn(path, rate, fault);
			for (const violation of violations) say(`boost: FAILED ${path} ${violation}`);
			fine &&= violations.length === 0;
			if (figures === null) continue;
			all.push(figures);
			say(`boost: ${path} at ${rate} a second, ${figuresLine(figures)}`);
		}
		if (all.length > 0) rows.push(all.reduce(worseOf));
	}
	say(`boost: the worst of ${CELLS.length} runs\n${figuresTable(rows)}`);
	write(rows);
	return (await killAndRestart(options)) && fine;
}

async function cellOn(
	path: string,
	rate: number,
	fault: FaultCase,
): Promise<{ readonly figures: Figures | null; readonly violations: readonly string[] }> {
	const world = await startWorld({ blockMs: 500, builder: "plain", accounts: ACCOUNTS });
	try {
		const options = { ...CELL, rate, paths: [path], boost: DEFAULT_TIMES };
		const { figures, lost, timely } = await runCell(world, fault, options);
		return { figures, violations: [...lost, ...timely] };
	} catch (thrown) {
		return { figures: null, violations: [`${fault.name}: ${String(thrown)}`] };
	} finally {
		await world.stop();
	}
}

/**
 * A relay that is killed and restarted all the time; resolves to whether nothing acknowledged was
 * lost.
 */
export async function killAndRestart({
	seed,
	minutes,
	say,
}: Omit<LongBoostOptions, "write">): Promise<boolean> {
	const world = await startWorld({ blockMs: 500, builder: "plain", accounts: KILL_ACCOUNTS });
	try {
		return await killing(world, { seed, minutes, say });
	} finally {
		await world.stop();
	}
}

async function killing(
	world: World,
	{ seed, minutes, say }: Omit<LongBoostOptions, "write">,
): Promise<boolean> {
	const random = new SeededRandom(seed);
	const parts = await startCellParts(world, "killing", { processes: ["relay"] });
	const traffic = new Traffic({
		...{ url: parts.boost.url, rate: KILL_RATE, paths: PATHS },
		...{ fresh: () => world.nextAccount(), poor: world.poorAccount() },
		...{ refusedEvery: 16, chainEvery: 2, retries: false },
	});
	const aWhile = async (): Promise<void> => {
		const end = systemClock.monotonic() + LEAST_MS + random.below(MOST_MS - LEAST_MS);
		await until("a while has passed", () => systemClock.monotonic() > end, 2 * MOST_MS);
	};
	traffic.start();
	const end = systemClock.monotonic() + minutes * 60_000;
	let kills = 0;
	try {
		while (systemClock.monotonic() < end) {
			await aWhile();
			await parts.processes.relay?.kill();
			kills += 1;
			await aWhile();
			await parts.processes.relay?.restart();
			if (kills % 10 === 0) say(`boost: killed ${kills} times, ${traffic.sent.length} transactions sent`);
		}
		await traffic.stop();
		const well = async () => (await statusOf(parts.boost.url)).relay.state === "closed";
		await until("boost is healthy again", well, 60_000);
		const violations = await lostOf(parts, traffic.sent);
		const acknowledged = traffic.sent.filter(({ outcome }) => outcome.kind === "acknowledged").length;
		for (const violation of violations) say(`boost: FAILED ${violation}`);
		say(
			`boost: killed ${kills} times in ${minutes} minutes, --seed ${seed}: ${acknowledged} acknowledged, ${violations.length} faults`,
		);
		return violations.length === 0;
	} finally {
		await traffic.stop();
		await parts.stop();
	}
}
