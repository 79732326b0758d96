// Works out the figures of a fault matrix cell and formats them as the Markdown table. It asserts
// nothing.

import type { CellScenario, Outage } from "./cell.ts";
import type { Sent } from "./traffic.ts";

/** Times in ms; null where it was not to be had. */
export interface Figures {
	readonly name: string;
	/** Requests that were sent to the failing relay before the breaker opened. */
	readonly hole: number | null;
	readonly tripMs: number | null;
	readonly reason: string | null;
	/** Median answer while open, beyond the median of the fallback itself where that was measured. */
	readonly openMs: number | null;
	readonly fallbackMs: number | null;
	/** The longest that a client waited for the hash of a transaction that was taken. */
	readonly slowestMs: number | null;
	/** Requests that were sent to the failing relay when it failed again. */
	readonly relapse: number | null;
	/** From the end of the fault until the breaker was closed. */
	readonly recoveryMs: number | null;
	readonly acknowledged: number;
	readonly sent: number;
}

export function figuresOf({ fault, sent, direct, outages }: CellScenario): Figures {
	const [first, second] = outages;
	const while_ = (list: readonly Sent[]) =>
		first?.trippedAt == null
			? []
			: list.filter(
					({ sentAt, answeredAt }) => sentAt >= (first.trippedAt ?? 0) && answeredAt <= first.liftedAt,
				);
	const open = while_(sent).filter(({ upstream, attempts }) => upstream === "fallback" && attempts === 1);
	return {
		name: fault.name,
		hole: first === undefined ? null : holeOf(sent, first).length,
		tripMs: first?.trippedAt == null ? null : first.trippedAt - first.begunAt,
		reason: first?.reason ?? null,
		openMs: median(open.map(tookMs)),
		fallbackMs: median(
			while_(direct)
				.filter(({ kind }) => kind === "sound")
				.map(tookMs),
		),
		slowestMs: longest(sent.filter(isAcknowledged).map(tookMs)),
		relapse: second === undefined ? null : holeOf(sent, second).length,
		recoveryMs: first?.closedAt == null ? null : first.closedAt - first.liftedAt,
		acknowledged: sent.filter(isAcknowledged).length,
		sent: sent.length,
	};
}

/** Transactions that were sent to the relay in vain before the breaker opened. */
export function holeOf(sent: readonly Sent[], { begunAt, trippedAt }: Outage): readonly Sent[] {
	if (trippedAt === null) return [];
	return sent.filter(
		({ sentAt, answeredAt, attempts, upstream }) =>
			answeredAt >= begunAt &&
			sentAt <= trippedAt &&
			(attempts > 1 || (attempts === 1 && !/relay|fallback/.test(upstream))),
	);
}

/** The worse of two cells of one fault, figure by figure. */
export function worseOf(one: Figures, other: Figures): Figures {
	const most = (a: number | null, b: number | null): number | null =>
		a === null || b === null ? (a ?? b) : Math.max(a, b);
	return {
		name: one.name,
		hole: most(one.hole, other.hole),
		tripMs: most(one.tripMs, other.tripMs),
		reason: one.reason ?? other.reason,
		openMs: most(one.openMs, other.openMs),
		fallbackMs: most(one.fallbackMs, other.fallbackMs),
		slowestMs: most(one.slowestMs, other.slowestMs),
		relapse: most(one.relapse, other.relapse),
		recoveryMs: most(one.recoveryMs, other.recoveryMs),
		acknowledged: one.acknowledged + other.acknowledged,
		sent: one.sent + other.sent,
	};
}

/** The table of docs/benchmarks.md. */
export function figuresTable(rows: readonly Figures[]): string {
	const head = [
		"fault",
		"failed before failover",
		"opened by",
		"time to open",
		"answer while open, beyond the fallback's own",
		"slowest good answer",
		"failed before failover at a relapse",
		"closed again after",
	];
	const ms = (value: number | null) => (value === null ? "–" : `${Math.round(value)} ms`);
	const lines = rows.map(
		({ name, hole, reason, tripMs, openMs, fallbackMs, slowestMs, relapse, recoveryMs }) => [
			name,
			String(hole ?? "–"),
			reason === null ? "–" : `\`${reason}\``,
			ms(tripMs),
			openMs === null || fallbackMs === null ? "–" : `${Math.max(0, openMs - fallbackMs).toFixed(1)} ms`,
			ms(slowestMs),
			String(relapse ?? "–"),
			ms(recoveryMs),
		],
	);
	const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
	return [line(head), `|${head.map(() => "---").join("|")}|`, ...lines.map(line)].join("\n");
}

/**
 * `text` with `table` between the markers `<!-- figures:NAME -->` and `<!-- /figures -->`. Throws
 * if it has none.
 */
export function withFigures(text: string, name: string, table: string): string {
	const between = new RegExp(`<!-- figures:${name} -->\\n[\\s\\S]*?<!-- /figures -->`);
	if (!between.test(text)) throw new Error(`there is no <!-- figures:${name} -->`);
	return text.replace(between, () => `<!-- figures:${name} -->\n${table}\n<!-- /figures -->`);
}

/** A cell in one line, for the output of the tests. */
export function figuresLine(row: Figures): string {
	const ms = (value: number | null) => (value === null ? "-" : `${value.toFixed(value < 10 ? 1 : 0)} ms`);
	const compared = row.fallbackMs === null ? "" : ` (fallback itself ${ms(row.fallbackMs)})`;
	return (
		`${row.name}: ${row.hole ?? "-"} failed before failover, opened by ${row.reason ?? "-"} in ${ms(row.tripMs)}, ` +
		`answers in ${ms(row.openMs)}${compared}, the slowest in ${ms(row.slowestMs)}, ${row.relapse ?? "-"} at the relapse, ` +
		`back in ${ms(row.recoveryMs)}; ${row.acknowledged} of ${row.sent} acknowledged`
	);
}

function isAcknowledged({ outcome }: Sent): boolean {
	return outcome.kind === "acknowledged";
}

function longest(values: readonly number[]): number | null {
	return values.length === 0 ? null : Math.max(...values);
}

function tookMs({ sentAt, answeredAt }: Sent): number {
	return answeredAt - sentAt;
}

export function median(values: readonly number[]): number | null {
	return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? null;
}
