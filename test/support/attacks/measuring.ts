// Measures how an honest user is served before, during and after an attack: the slowest request of
// each kind, failures, and the peak memory of the relay's process.

import assert from "node:assert/strict";
import { until } from "../until.ts";
import { type HonestUser, LIMITS_MS, type Probe, type Sample } from "./honestUser.ts";
import { forgetPeak, memoryOf } from "./processFigures.ts";

/** The measurements of one phase. */
export interface Figures {
	readonly name: string;
	/** The slowest request of each kind, in ms. */
	readonly slowest: Readonly<Partial<Record<Probe, number>>>;
	/** Failures, each wording once. */
	readonly faults: readonly string[];
	readonly rounds: number;
	/** Peak memory, in bytes. */
	readonly memory: number;
}

/** Maximum memory of the relay's process with default settings. */
const MEMORY_LIMIT: number = 512 * 1024 * 1024;
/** Time between two requests to /livez. */
const LIVEZ_EVERY_MS = 50;
/**
 * Minimum time between two rounds. It keeps the user within the rate limit of 100 a second also on
 * a quick machine: a round costs some 20, /livez one.
 */
const ROUND_EVERY_MS = 300;
const LEAST_ROUNDS = 3;
const MIB = 1024 * 1024;

interface MeasuringOptions {
	readonly user: HonestUser;
	/** The relay's process id. */
	readonly pid: number;
	/** Gets a line about each phase. */
	readonly say?: (line: string) => void;
}

/** Measures one phase after the other. */
export class Measuring {
	readonly #options: MeasuringOptions;

	constructor(options: MeasuringOptions) {
		this.#options = options;
	}

	/**
	 * Runs rounds of the honest user until `work` is done, at least three. Rejects with the error of
	 * `work`.
	 */
	async during(name: string, work: Promise<unknown> = Promise.resolve()): Promise<Figures> {
		const { user, pid, say } = this.#options;
		const samples: Sample[] = [];
		let rounds = 0;
		const over = settled(work);
		forgetPeak(pid);
		let measured = false;
		const living = (async () => {
			while (!measured) {
				samples.push(await user.livez());
				await nextTick(LIVEZ_EVERY_MS);
			}
		})();
		try {
			while (!over.is() || rounds < LEAST_ROUNDS) {
				const [round] = await Promise.all([user.round(), nextTick(ROUND_EVERY_MS)]);
				samples.push(...round);
				rounds += 1;
			}
		} finally {
			measured = true;
			await living;
		}
		await work;
		const figures = { name, rounds, memory: memoryOf(pid).peak, ...summed(samples) };
		say?.(lineOf(figures));
		return figures;
	}
}

/** Asserts that nothing took too long, failed, or needed too much memory. */
export function assertServed(...phases: readonly Figures[]): void {
	assert.deepEqual(phases.flatMap(brokenIn), []);
}

/**
 * Runs a round of `user` beside `work`, and asserts that nothing failed; how long it took does not
 * matter.
 */
export async function assertServedBeside(user: HonestUser, work: Promise<unknown>): Promise<void> {
	const [round, livez] = await Promise.all([user.round(), user.livez(), work]);
	assert.deepEqual(summed([...round, livez]).faults, []);
}

/** Figures that took too long, failed, or needed too much memory. */
export function brokenIn({ name, slowest, faults, memory }: Figures): readonly string[] {
	return [
		...Object.entries(slowest).flatMap(([probe, ms]) => {
			const limit = LIMITS_MS[probe as Probe];
			return ms > limit ? [`${name}: ${probe} took ${Math.round(ms)} ms, ${limit} at most`] : [];
		}),
		...faults.map((fault) => `${name}: ${fault}`),
		...(memory > MEMORY_LIMIT ? [`${name}: ${Math.round(memory / MIB)} MiB of memory, 512 at most`] : []),
	];
}

/** One line about a phase. */
export function lineOf({ name, slowest, faults, rounds, memory }: Figures): string {
	const times = Object.entries(slowest).map(([probe, ms]) => `${probe} ${Math.round(ms)}`);
	const wrong = faults.length === 0 ? "" : `; ${faults.join("; ")}`;
	return `${name}: ${rounds} rounds, slowest in ms: ${times.join(", ")}; ${Math.round(memory / MIB)} MiB${wrong}`;
}

function summed(samples: readonly Sample[]): Pick<Figures, "slowest" | "faults"> {
	const slowest: Partial<Record<Probe, number>> = {};
	const faults = new Set<string>();
	for (const { probe, ms, fault } of samples) {
		slowest[probe] = Math.max(slowest[probe] ?? 0, ms);
		if (fault !== null) faults.add(`${probe} failed: ${fault}`);
	}
	return { slowest, faults: [...faults] };
}

/** Whether `work` has ended. Its error is not unhandled until the caller awaits it. */
function settled(work: Promise<unknown>): { is(): boolean } {
	let isSettled = false;
	const settle = (): void => {
		isSettled = true;
	};
	work.then(settle, settle);
	return { is: () => isSettled };
}

async function nextTick(ms: number): Promise<void> {
	const end = performance.now() + ms;
	await until("the next look", () => performance.now() >= end);
}
