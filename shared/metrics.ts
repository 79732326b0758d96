// A process's metrics, which its components receive as functions. Every series exists from the
// start at zero, so that Prometheus sees its first increase.

import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";

/** Adds `by` (default 1) to the series of `labels`. */
export type Count<L extends string> = (labels: Record<L, string>, by?: number) => void;
/** Records a value, by default a time in seconds. */
export type Observe<L extends string> = (labels: Record<L, string>, value: number) => void;

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Label values that a series must have. */
type Match = Readonly<Record<string, string>>;

/** The counts of a histogram, now or in some time. */
export interface Buckets {
	/** Upper bounds, ascending; the last bucket has none. */
	readonly bounds: readonly number[];
	/** How many values each bucket has; one more than `bounds`. */
	readonly counts: readonly number[];
}

/** Metrics including those of the process, of Node and of the build. Call it once in a process. */
export function processMetrics(version: string): Metrics {
	const metrics = new Metrics();
	metrics.watchProcess();
	metrics.gauges(
		"leeward_build_info",
		"1, labelled with the running version",
		[{ version, node_version: process.version }],
		() => 1,
	);
	return metrics;
}

export class Metrics {
	readonly #registry = new Registry();
	/** The sum of the series with some labels, by metric. */
	readonly #sums = new Map<string, (labels: Match) => number>();
	readonly #buckets = new Map<string, (labels: Match) => Buckets>();

	/** A counter; the series of `known` label sets exist from the start, at 0. */
	counter<L extends string>(name: string, help: string, known: readonly Record<L, string>[]): Count<L> {
		const names = Object.keys(known[0] ?? {}) as L[];
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
		this.#sums.set(name, (labels) => {
			let sum = 0;
			for (const [own, { value }] of series.all()) if (matches(own, labels)) sum += value;
			return sum;
		});
		return (labels, by = 1) => {
			series.of(labels).value += by;
		};
	}

	/**
	 * A histogram; the series of `known` label sets exist from the start. `bounds`: the upper bounds
	 * of its buckets; default: for seconds.
	 */
	histogram<L extends string>(
		name: string,
		help: string,
		known: readonly Record<L, string>[],
		bounds: readonly number[] = SECONDS,
	): Observe<L> {
		const series = new SeriesTable(known, Object.keys(known[0] ?? {}) as L[], () => ({
			buckets: new Array<number>(bounds.length + 1).fill(0),
			sum: 0,
		}));
		const get = () => ({
			name,
			help,
			type: "histogram",
			values: [...series.all()].flatMap(([labels, one]) => histogramValues(name, labels, one, bounds)),
		});
		// The registry only calls `get`, so it accepts this object as a metric.
		this.#registry.registerMetric({ name, get } as unknown as Counter);
		this.#buckets.set(name, (labels) => {
			const counts = new Array<number>(bounds.length + 1).fill(0);
			for (const [own, { buckets }] of series.all()) {
				if (matches(own, labels))
					for (const [i, count] of buckets.entries()) counts[i] = (counts[i] ?? 0) + count;
			}
			return { bounds, counts };
		});
		return (labels, seconds) => {
			const one = series.of(labels);
			const bucket = bucketOf(seconds, bounds);
			one.buckets[bucket] = (one.buckets[bucket] ?? 0) + 1;
			one.sum += seconds;
		};
	}

	/** A gauge; `read` is called at each scrape. */
	gauge(name: string, help: string, read: () => number): void {
		this.gauges(name, help, [{}], read);
	}

	/** A gauge with a series for each of the `known` label sets; `read` is called at each scrape. */
	gauges<L extends string>(
		name: string,
		help: string,
		known: readonly Record<L, string>[],
		read: (labels: Record<L, string>) => number,
	): void {
		this.#sums.set(name, (labels) => {
			let sum = 0;
			for (const own of known) if (matches(own, labels)) sum += read(own);
			return sum;
		});
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

	/** Adds the default metrics of the process. Can't be undone. */
	watchProcess(): void {
		collectDefaultMetrics({ register: this.#registry });
	}

	/**
	 * The sum of the series of a counter or gauge that have these labels; null if there is no such
	 * metric.
	 */
	sum(name: string, labels: Match = {}): number | null {
		return this.#sums.get(name)?.(labels) ?? null;
	}

	/** The same of a histogram, by bucket. */
	buckets(name: string, labels: Match = {}): Buckets | null {
		return this.#buckets.get(name)?.(labels) ?? null;
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
 * Series by their labels. Every request counts something, so counting is done here: prom-client
 * makes a sorted key of all labels each time, which costs more than decoding a request. prom-client
 * gets the values at each scrape.
 */
class SeriesTable<L extends string, S> {
	readonly #names: readonly L[];
	readonly #make: () => S;
	readonly #root = new Level<S>();
	readonly #all: (readonly [Record<L, string>, S])[] = [];

	constructor(known: readonly Record<L, string>[], names: readonly L[], make: () => S) {
		this.#names = names;
		this.#make = make;
		for (const labels of known) this.of(labels);
	}

	of(labels: Record<L, string>): S {
		let level = this.#root;
		for (const name of this.#names) level = level.below(labels[name]);
		if (level.series === undefined) {
			level.series = this.#make();
			this.#all.push([labels, level.series]);
		}
		return level.series;
	}

	all(): Iterable<readonly [Record<L, string>, S]> {
		return this.#all;
	}
}

/**
 * One level of the tree of series: those with the same labels so far, by the value of the next
 * label. A joined key would have to be made and hashed for each count.
 */
class Level<S> {
	series: S | undefined;
	readonly #below = new Map<string, Level<S>>();

	below(value: string): Level<S> {
		let level = this.#below.get(value);
		if (level === undefined) {
			level = new Level();
			this.#below.set(value, level);
		}
		return level;
	}
}

function matches(own: Match, wanted: Match): boolean {
	for (const name in wanted) if (own[name] !== wanted[name]) return false;
	return true;
}

function bucketOf(value: number, bounds: readonly number[]): number {
	let bucket = 0;
	while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket++;
	return bucket;
}

/**
 * The value that a share `q` of all values does not exceed, estimated within its bucket; the last
 * bound at most. Null if there is no value.
 */
export function quantile({ bounds, counts }: Buckets, q: number): number | null {
	const total = counts.reduce((sum, count) => sum + count, 0);
	if (total <= 0) return null;
	let below = 0;
	for (const [i, bound] of bounds.entries()) {
		const count = counts[i] ?? 0;
		if (count > 0 && below + count >= q * total) {
			const least = bounds[i - 1] ?? 0;
			return least + ((bound - least) * (q * total - below)) / count;
		}
		below += count;
	}
	return bounds.at(-1) ?? null;
}

/** Prometheus buckets are cumulative. */
function histogramValues(
	name: string,
	labels: Readonly<Record<string, string>>,
	{ buckets, sum }: { readonly buckets: readonly number[]; readonly sum: number },
	bounds: readonly number[],
) {
	let count = 0;
	const values = buckets.map((inBucket, i) => {
		count += inBucket;
		return {
			metricName: `${name}_bucket`,
			labels: { le: bounds[i] ?? "+Inf", ...labels },
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
