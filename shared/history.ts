// The last hour by minute and the last day by quarter of an hour, for the charts of operators. Once
// a minute it reads metrics that are counted anyway, and keeps what it has read: nothing is counted
// on its behalf, and nothing is stored.

import type { Clock, Timer } from "./clock.ts";
import type { Component } from "./lifecycle.ts";
import { type Buckets, quantile } from "./metrics.ts";

const MINUTE_MS = 60_000;
/** Minutes in a quarter of an hour. */
const QUARTER = 15;
const MINUTES = 60;
/** Quarters of an hour in a day. */
const QUARTERS = 96;

/** The source of one figure. */
export type Figure =
	/** A counter; shown as its increase. Null: not known now. */
	| { readonly kind: "sum"; readonly read: () => number | null }
	/** A value as it is at the time. */
	| { readonly kind: "level"; readonly read: () => number | null }
	/**
	 * A histogram; shown as a column for each of `quantiles`, "name 0.5". `scale`: what each is
	 * multiplied with (1). `isWhole`: its values are whole numbers, such as blocks.
	 */
	| {
			readonly kind: "times";
			readonly read: () => Buckets | null;
			readonly quantiles: readonly number[];
			readonly scale?: number;
			readonly isWhole?: boolean;
	  };

/** Figures over time. */
export interface Frame {
	/** The end of each period, in s since the epoch, the oldest first. */
	readonly times: readonly number[];
	/** A value for each period, by name; null where there is none. */
	readonly columns: Readonly<Record<string, readonly (number | null)[]>>;
}

export interface HistoryReport {
	/** By minute, for an hour. */
	readonly hour: Frame;
	/** By quarter of an hour, for a day. */
	readonly day: Frame;
}

/** All figures at one time. */
interface Reading {
	/** In ms since the epoch. */
	readonly at: number;
	/** By figure, in their order: a number, the counts of a histogram, or null for not known. */
	readonly values: readonly (number | Buckets | null)[];
}

/**
 * It keeps 158 readings: a number for each counter and level, and one for each bucket of a
 * histogram. Two hundred numbers take 0.3 MB.
 */
export class History implements Component {
	readonly name = "history";
	readonly #figures: ReadonlyMap<string, Figure>;
	readonly #clock: Clock;
	#minutes: Reading[] = [];
	#quarters: Reading[] = [];
	#timer: Timer | undefined;

	readonly #prepare: () => Promise<void>;

	/** `figures`: by name. `prepare` is awaited before each reading that is kept. */
	constructor(
		figures: Readonly<Record<string, Figure>>,
		{ clock, prepare = async () => {} }: { readonly clock: Clock; readonly prepare?: () => Promise<void> },
	) {
		this.#figures = new Map(Object.entries(figures));
		this.#clock = clock;
		this.#prepare = prepare;
	}

	async start(): Promise<void> {
		const first = this.#read();
		this.#minutes = [first];
		this.#quarters = [first];
		this.#wait();
	}

	async stop(): Promise<void> {
		this.#timer?.cancel();
	}

	/** All whole periods; before the first one has ended, that one so far. */
	report(): HistoryReport {
		return { hour: this.#frame(this.#minutes), day: this.#frame(this.#quarters) };
	}

	#wait(): void {
		this.#timer = this.#clock.after(MINUTE_MS - (this.#clock.now() % MINUTE_MS), () => {
			this.#wait();
			void this.#prepare().then(() => this.#keep(this.#read()));
		});
	}

	#keep(reading: Reading): void {
		this.#minutes = [...until(this.#minutes, reading.at), reading].slice(-MINUTES - 1);
		if (Math.round(reading.at / MINUTE_MS) % QUARTER === 0)
			this.#quarters = [...until(this.#quarters, reading.at), reading].slice(-QUARTERS - 1);
	}

	#read(): Reading {
		return { at: this.#clock.now(), values: [...this.#figures.values()].map(({ read }) => read()) };
	}

	#frame(kept: readonly Reading[]): Frame {
		const readings = kept.length > 1 ? kept : [...kept, this.#read()];
		const periods = readings.slice(1).map((after, i) => ({ before: readings[i] ?? after, after }));
		const columns: Record<string, (number | null)[]> = {};
		for (const [i, [name, figure]] of [...this.#figures].entries()) {
			const changes = periods.map(({ before, after }) => [before.values[i] ?? null, after.values[i] ?? null]);
			if (figure.kind !== "times") {
				const isLevel = figure.kind === "level";
				columns[name] = changes.map(([before, after]) =>
					rounded(isLevel ? number(after) : rise(before, after)),
				);
				continue;
			}
			for (const q of figure.quantiles) {
				columns[`${name} ${q}`] = changes.map(([before, after]) => timeOf(figure, q, before, after));
			}
		}
		return { times: periods.map(({ after }) => Math.round(after.at / 1_000)), columns };
	}
}

/** The readings before `at`: after a correction of the clock some may be later. */
function until(readings: readonly Reading[], at: number): readonly Reading[] {
	return readings.filter((one) => one.at < at);
}

type Value = Reading["values"][number] | undefined;

function number(value: Value): number | null {
	return typeof value === "number" ? value : null;
}

/** A counter that began during the period was 0 before. */
function rise(before: Value, after: Value): number | null {
	return typeof after === "number" ? after - (number(before) ?? 0) : null;
}

function timeOf(
	{ scale = 1, isWhole = false }: Extract<Figure, { kind: "times" }>,
	q: number,
	before: Value,
	after: Value,
): number | null {
	if (typeof after !== "object" || after === null) return null;
	const earlier = typeof before === "object" ? (before?.counts ?? []) : [];
	const counts = after.counts.map((count, i) => count - (earlier[i] ?? 0));
	const value = quantile({ bounds: after.bounds, counts }, q);
	return value === null ? null : rounded(isWhole ? Math.ceil(value) : value * scale);
}

/** A picture shows no more digits, and the answer stays small. */
function rounded(value: number | null): number | null {
	return value === null ? null : Number(value.toPrecision(3));
}
