// Runs a scenario again and again, each time in another order of its events: in all orders that are
// almost usual, or in random ones. A run begins anew each time, so nothing needs to be undone.

import { SeededRandom } from "../../../support/seededRandom.ts";

/** Chooses among the events that are possible now; the first one is the usual next. */
export type Choose = (names: readonly string[]) => number;

/** The result of all runs. */
export interface Explored {
	readonly runs: number;
	/** The events of each run that broke the rule, with what it broke. */
	readonly broken: readonly { readonly fault: string; readonly events: readonly string[] }[];
}

/**
 * Runs `scenario` in all orders in which at most `deviations` events are not the usual next, as in
 * delay-bounded scheduling. `scenario` returns what is wrong, or null.
 * https://www.microsoft.com/en-us/research/publication/delay-bounded-scheduling/
 */
export async function exploreAll(
	deviations: number,
	scenario: (choose: Choose) => Promise<string | null>,
): Promise<Explored> {
	const broken: Explored["broken"][number][] = [];
	let runs = 0;
	/** Each begins like a run before it, and continues with another event. */
	const open: (readonly number[])[] = [[]];
	for (let prefix = open.pop(); prefix !== undefined; prefix = open.pop()) {
		const taken: number[] = [];
		const counts: number[] = [];
		const events: string[] = [];
		const given = prefix;
		const fault = await scenario((names) => {
			const choice = given[taken.length] ?? 0;
			counts.push(names.length);
			taken.push(choice);
			events.push(names[choice] ?? "");
			return choice;
		});
		runs += 1;
		if (fault !== null) broken.push({ fault, events });
		const used = given.filter((choice) => choice > 0).length;
		if (used === deviations) continue;
		for (let at = given.length; at < counts.length; at += 1) {
			for (let choice = 1; choice < (counts[at] ?? 0); choice += 1)
				open.push([...taken.slice(0, at), choice]);
		}
	}
	return { runs, broken };
}

/** One in so many events of a random order is the usual next one. */
const USUAL_IN = 3;

/** Runs `scenario` in `runs` random orders, which are the same each time. */
export async function exploreSome(
	runs: number,
	scenario: (choose: Choose) => Promise<string | null>,
): Promise<Explored> {
	const broken: Explored["broken"][number][] = [];
	for (let run = 1; run <= runs; run += 1) {
		const random = new SeededRandom(run);
		const events: string[] = [];
		const fault = await scenario((names) => {
			const choice = random.oneIn(USUAL_IN) ? 0 : random.below(names.length);
			events.push(names[choice] ?? "");
			return choice;
		});
		if (fault !== null) broken.push({ fault, events });
	}
	return { runs, broken };
}
