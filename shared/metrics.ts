// A process's metrics, given to its parts as functions. Every label value is there from the start, so that
// the first increase of a series is seen.

import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";

/** Counts `labels` up by one, or by `by`. */
export type Count<L extends string> = (labels: Record<L, string>, by?: number) => void;
/** Records a time in seconds. */
export type Observe<L extends string> = (labels: Record<L, string>, seconds: number) => void;

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Metrics with those of the process itself and of Node, and its build. To be made once in a process. */
export function processMetrics(version: string): Metrics {
	const metrics = new Metrics();
	metrics.watchProcess();
	metrics.gauges(
		"leeward_build_info",
		"1, for the version that runs",
		[{ version, node_version: process.version }],
		() => 1,
	);
	return metrics;
}

/** A process's metrics; one instance a process, given to the parts as functions. */
export class Metrics {
	readonly #registry = new Registry();

	/** A counter; the series of `known` label sets exist from the start, at 0. */
	counter<L extends string>(name: string, help: string, known: readonly Record<L, string>[]): Count<L> {
		const names = Object.keys(known[0] ?? {});
		const series = new SeriesTable(known, names, () => ({ value: 0 }));
		new Counter({
			name,
			help,
			labelNames: names,
			registers: [this.#registry],
			collect() {
				this.reset();
				for (const [labels, { value }] of series.all()) this.inc(labels, value);
			},
		});
		return (labels, by = 1) => {
			series.of(labels).value += by;
		};
	}

	/** A histogram of seconds; the series of `known` label sets exist from the start. */
	histogram<L extends string>(name: string, help: string, known: readonly Record<L, string>[]): Observe<L> {
		const series = new SeriesTable(known, Object.keys(known[0] ?? {}), () => ({
			buckets: new Array<number>(SECONDS.length + 1).fill(0),
			sum: 0,
		}));
		const get = () => ({
			name,
			help,
			type: "histogram",
			values: [...series.all()].flatMap(([labels, one]) => histogramValues(name, labels, one)),
		});
		// The registry takes whatever can be read like one of its own.
		this.#registry.registerMetric({ name, get } as unknown as Counter);
		return (labels, seconds) => {
			const one = series.of(labels);
			const place = bucketOf(seconds);
			one.buckets[place] = (one.buckets[place] ?? 0) + 1;
			one.sum += seconds;
		};
	}

	/** A gauge whose value is read when the metrics are asked for. */
	gauge(name: string, help: string, read: () => number): void {
		this.gauges(name, help, [{}], read);
	}

	/** A gauge with a series for each of the `known` label sets, read when the metrics are asked for. */
	gauges<L extends string>(
		name: string,
		help: string,
		known: readonly Record<L, string>[],
		read: (labels: Record<L, string>) => number,
	): void {
		new Gauge({
			name,
			help,
			labelNames: Object.keys(known[0] ?? {}),
			registers: [this.#registry],
			collect() {
				for (const labels of known) this.set(labels, read(labels));
			},
		});
	}

	/** Watches the process from now on: it can't be undone. */
	watchProcess(): void {
		collectDefaultMetrics({ register: this.#registry });
	}

	/** All series as Prometheus text, version 0.0.4. */
	text(): Promise<string> {
		return this.#registry.metrics();
	}

	get contentType(): string {
		return this.#registry.contentType;
	}
}

/**
 * Series by their labels. Counting is on the path of every request, so it is done here: prom-client makes a sorted key of
 * all labels each time, which costs more than a request's decoding. prom-client gets the figures when they are asked for.
 */
class SeriesTable<L extends string, S> {
	readonly #names: readonly string[];
	readonly #make: () => S;
	readonly #series = new Map<string, { readonly labels: Record<L, string>; readonly value: S }>();

	constructor(known: readonly Record<L, string>[], names: readonly string[], make: () => S) {
		this.#names = names;
		this.#make = make;
		for (const labels of known) this.of(labels);
	}

	of(labels: Record<L, string>): S {
		let key = "";
		for (const name of this.#names) key += `${labels[name as L]}\u0000`;
		const found = this.#series.get(key);
		if (found !== undefined) return found.value;
		const value = this.#make();
		this.#series.set(key, { labels, value });
		return value;
	}

	*all(): Iterable<readonly [Record<L, string>, S]> {
		for (const { labels, value } of this.#series.values()) yield [labels, value];
	}
}

function bucketOf(seconds: number): number {
	let place = 0;
	while (place < SECONDS.length && seconds > (SECONDS[place] ?? 0)) place++;
	return place;
}

/** Prometheus counts into a bucket all that is not above its bound. */
function histogramValues(
	name: string,
	labels: Readonly<Record<string, string>>,
	{ buckets, sum }: { readonly buckets: readonly number[]; readonly sum: number },
) {
	let count = 0;
	const values = buckets.map((inBucket, place) => {
		count += inBucket;
		return {
			metricName: `${name}_bucket`,
			labels: { le: SECONDS[place] ?? "+Inf", ...labels },
			value: count,
		};
	});
	return [
		...values,
		{ metricName: `${name}_sum`, labels, value: sum },
		{ metricName: `${name}_count`, labels, value: count },
	];
}

/** Every combination of label values: `labelSets({ a: ["x", "y"], b: ["z"] })`. */
export function labelSets<L extends string>(values: Record<L, readonly string[]>): Record<L, string>[] {
	let sets: Record<string, string>[] = [{}];
	for (const [label, options] of Object.entries<readonly string[]>(values)) {
		sets = sets.flatMap((set) => options.map((option) => ({ ...set, [label]: option })));
	}
	return sets as Record<L, string>[];
}
