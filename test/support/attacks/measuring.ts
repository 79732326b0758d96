// Measures how an honest user is served before, during and after an attack: the slowest request of each kind, failures, and the
// peak memory of the relay's process.

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
const LIVEZ_EVERY_MS = 20;
/** Minimum time between two rounds, which keeps the user within the rate limit. */
const ROUND_EVERY_MS = 200;
const LEAST_ROUNDS = 3;
const MIB = 1024 * 1024;
/**
 * The limits hold for a machine that does nothing else, but in tests node, builder, attacker and relay share two cores, so they
 * are relaxed unless ATTACK_STRICT=1.
 */
const IS_STRICT = process.env.ATTACK_STRICT === "1";
export const SLACK = IS_STRICT ? 1 : 3;
/** Factor for /livez, which takes 1 ms: a short pause of the machine makes a single request much slower. */
const LIVEZ_SLACK = IS_STRICT ? 1 : 12;

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

	/** Runs rounds of the honest user until `work` is done, at least three. Rejects with the error of `work`. */
	async during(name: string, work: Promise<unknown> = Promise.resolve()): Promise<Figures> {
		const { user, pid, say } = this.#options;
		const samples: Sample[] = [];
		let over = false;
		let rounds = 0;
		// An error of `work` is thrown only after the measuring.
		const ending = work.then(
			() => {
				over = true;
				return null;
			},
			(thrown: unknown) => {
				over = true;
				return { thrown };
			},
		);
		forgetPeak(pid);
		let measured = false;
		const living = (async () => {
			while (!measured) {
				samples.push(await user.livez());
				await nextTick(LIVEZ_EVERY_MS);
			}
		})();
		try {
			while (!over || rounds < LEAST_ROUNDS) {
				const [round] = await Promise.all([user.round(), nextTick(ROUND_EVERY_MS)]);
				samples.push(...round);
				rounds += 1;
			}
		} finally {
			measured = true;
			await living;
		}
		const ended = await ending;
		if (ended !== null) throw ended.thrown;
		const figures = { name, rounds, memory: memoryOf(pid).peak, ...summed(samples) };
		say?.(lineOf(figures));
		return figures;
	}
}

/** Asserts that nothing took too long, failed, or needed too much memory. */
export function assertServed(...phases: readonly Figures[]): void {
	assert.deepEqual(phases.flatMap(brokenIn), []);
}

/** What took too long, failed, or needed too much memory. */
export function brokenIn({ name, slowest, faults, memory }: Figures): readonly string[] {
	return [
		...Object.entries(slowest).flatMap(([probe, ms]) => {
			const limit = LIMITS_MS[probe as Probe] * (probe === "livez" ? LIVEZ_SLACK : SLACK);
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

async function nextTick(ms: number): Promise<void> {
	const end = performance.now() + ms;
	await until("the next look", () => performance.now() >= end);
}
