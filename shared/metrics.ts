// Metrics as functions: what comes in is what happened, what goes out is Prometheus text. Units are in the names,
// every label value is there from the start, so that the first increase of a series is seen.

import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** Counts `labels` up by one, or by `by`. */
export type Count<L extends string> = (labels: Record<L, string>, by?: number) => void;
/** Records a time in seconds. */
export type Observe<L extends string> = (labels: Record<L, string>, seconds: number) => void;

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** A process's metrics; one instance a process, given to the parts as functions. */
export class Metrics {
	readonly #registry = new Registry();

	/** A counter; the series of `known` label sets exist from the start, at 0. */
	counter<L extends string>(name: string, help: string, known: readonly Record<L, string>[]): Count<L> {
		const labelNames = Object.keys(known[0] ?? {});
		const counter = new Counter({ name, help, labelNames, registers: [this.#registry] });
		for (const labels of known) counter.inc(labels, 0);
		return (labels, by = 1) => counter.inc(labels, by);
	}

	/** A histogram of seconds; the series of `known` label sets exist from the start. */
	histogram<L extends string>(name: string, help: string, known: readonly Record<L, string>[]): Observe<L> {
		const labelNames = Object.keys(known[0] ?? {});
		const histogram = new Histogram({
			name,
			help,
			labelNames,
			buckets: SECONDS,
			registers: [this.#registry],
		});
		for (const labels of known) histogram.zero(labels);
		return (labels, seconds) => histogram.observe(labels, seconds);
	}

	/** A gauge whose value is read when the metrics are asked for. */
	gauge(name: string, help: string, read: () => number): void {
		new Gauge({
			name,
			help,
			registers: [this.#registry],
			collect() {
				this.set(read());
			},
		});
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

	/** All series as Prometheus text, version 0.0.4. */
	text(): Promise<string> {
		return this.#registry.metrics();
	}

	get contentType(): string {
		return this.#registry.contentType;
	}
}

/** Every combination of label values: `labelSets({ a: ["x", "y"], b: ["z"] })`. */
export function labelSets<L extends string>(values: Record<L, readonly string[]>): Record<L, string>[] {
	let sets: Record<string, string>[] = [{}];
	for (const [label, options] of Object.entries<readonly string[]>(values)) {
		sets = sets.flatMap((set) => options.map((option) => ({ ...set, [label]: option })));
	}
	return sets as Record<L, string>[];
}
