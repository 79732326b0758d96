// Keeps the state of the service by quarter of an hour, for the page of statistics. A look each
// minute, and each change that is noted, counts in its quarter, whose worst state remains. Nobody
// looks while the process is down: after the first look ever, a quarter without one was down.

import type { Clock, Timer } from "./clock.ts";
import { DAY_MS, dayOf } from "./days.ts";
import { type Change, type KeyValueStore, prefixRange } from "./kv/port.ts";
import { COMPONENT_STOP_MS, type Component } from "./lifecycle.ts";
import { type Logger, safeError } from "./log.ts";

/** Letters in stored rows and answers, from the best to the worst state. */
const STATES = "-ufd";
/** Up, carried by the fallback, or down; `-` is not known. */
export type ServiceState = "u" | "f" | "d";

/** A day of the service. */
export interface ServiceDay {
	/** Days since the epoch, UTC. */
	readonly day: number;
	/** The state of each quarter of an hour, 96 letters of `ufd-`. */
	readonly quarters: string;
}

export interface UptimeDependencies {
	readonly kv: Pick<KeyValueStore, "get" | "range" | "write">;
	/** The state now. */
	readonly look: () => ServiceState | Promise<ServiceState>;
	readonly clock: Clock;
	readonly log: Logger;
}

/** The key prefix of a day, in the stores of relay and boost. */
const PREFIX = "u/";
const DIGITS = 7;
const QUARTER_MS = 900_000;
const QUARTERS = DAY_MS / QUARTER_MS;
const LOOK_MS = 60_000;
/** Time without a look after which the service was down, in ms. A restart is shorter. */
const GAP_MS = 3 * LOOK_MS;
/** Days on disk, at 120 bytes each. */
const KEPT_DAYS = 100;
const UNKNOWN = "-".repeat(QUARTERS);

/** A stored day: its quarters, and the time of the last look, in ms since the epoch. */
interface Row {
	readonly quarters: string;
	readonly at: number;
}

const NO_LOOK: Row = { quarters: UNKNOWN, at: 0 };

/** Several processes may share a store: each merges its own looks into the rows. */
export class Uptime implements Component {
	readonly name = "uptime";
	readonly stopMs = COMPONENT_STOP_MS;
	readonly #dependencies: UptimeDependencies;
	/** The worst state of each quarter, by its number since the epoch, until it is on disk. */
	readonly #unwritten = new Map<number, ServiceState>();
	#timer: Timer | null = null;
	#looking: Promise<void> = Promise.resolve();
	#isStopped = false;
	#failed = false;

	constructor(dependencies: UptimeDependencies) {
		this.#dependencies = dependencies;
	}

	/** The first look is a minute later, when the process has settled. */
	async start(): Promise<void> {
		this.#plan();
	}

	async stop(): Promise<void> {
		this.#isStopped = true;
		this.#timer?.cancel();
		await this.#looking;
	}

	/** Counts a state in the present quarter. */
	note(state: ServiceState): void {
		const quarter = quarterOf(this.#dependencies.clock.now());
		this.#unwritten.set(quarter, worse(this.#unwritten.get(quarter) ?? "-", state) as ServiceState);
	}

	/** The days from `first` to `last`, also those of which nothing is known. */
	async days(first: number, last: number): Promise<readonly ServiceDay[]> {
		const rows = await this.#rows();
		const [begin = last + 1] = rows.keys();
		return Array.from({ length: last - first + 1 }, (_, i) => {
			const day = first + i;
			const { quarters } = rows.get(day) ?? NO_LOOK;
			if (day < begin) return { day, quarters: UNKNOWN };
			const known = day === begin ? quarters.search(/[^-]/) : 0;
			return { day, quarters: quarters.slice(0, known) + quarters.slice(known).replaceAll("-", "d") };
		});
	}

	#plan(): void {
		if (this.#isStopped) return;
		this.#timer = this.#dependencies.clock.after(LOOK_MS, () => {
			this.#looking = this.#look().finally(() => this.#plan());
		});
	}

	async #look(): Promise<void> {
		const { look, log } = this.#dependencies;
		try {
			this.note(await look());
			await this.#write();
			this.#failed = false;
		} catch (thrown) {
			if (!this.#failed) log.warn("could not write the service's state", { fault: safeError(thrown) });
			this.#failed = true;
		}
	}

	async #write(): Promise<void> {
		const { kv, clock } = this.#dependencies;
		const now = clock.now();
		const today = dayOf(now);
		const noted = new Map(this.#unwritten);
		const states = new Map<number, ServiceState>(noted);
		const rows = await this.#rows();
		// A clock that was ahead may have left later days.
		const last = Math.max(0, ...[...rows].map(([day, { at }]) => (day > today ? 0 : at)));
		if (last > 0 && now - last > GAP_MS) for (const at of [last, now]) states.set(quarterOf(at), "d");
		const changed = new Map<number, Row>();
		for (const [quarter, state] of states) {
			const day = Math.floor(quarter / QUARTERS);
			const { quarters, at } = changed.get(day) ?? rows.get(day) ?? NO_LOOK;
			const i = quarter % QUARTERS;
			const merged = quarters.slice(0, i) + worse(quarters[i] ?? "-", state) + quarters.slice(i + 1);
			changed.set(day, { quarters: merged, at: day === today ? Math.max(at, now) : at });
		}
		const added = [...changed.keys()].filter((day) => !rows.has(day)).length;
		const old = [...rows.keys()].slice(0, Math.max(0, rows.size + added - KEPT_DAYS));
		await kv.write([
			...old.map((day): Change => ({ key: keyOf(day), value: null })),
			...[...changed].map(
				([day, { quarters, at }]): Change => ({ key: keyOf(day), value: Buffer.from(`${quarters} ${at}`) }),
			),
		]);
		// A worse state may have been noted during the write.
		for (const [quarter, state] of noted)
			if (this.#unwritten.get(quarter) === state) this.#unwritten.delete(quarter);
	}

	/** All stored days, in order. */
	async #rows(): Promise<ReadonlyMap<number, Row>> {
		const rows = new Map<number, Row>();
		for await (const [key, bytes] of this.#dependencies.kv.range(...prefixRange(PREFIX)))
			rows.set(Number(key.slice(PREFIX.length)), parsed(bytes));
		return rows;
	}
}

function quarterOf(ms: number): number {
	return Math.floor(ms / QUARTER_MS);
}

function worse(one: string, other: string): string {
	return STATES.indexOf(one) > STATES.indexOf(other) ? one : other;
}

function keyOf(day: number): string {
	return `${PREFIX}${String(day).padStart(DIGITS, "0")}`;
}

/** A damaged row says nothing. */
function parsed(bytes: Buffer): Row {
	const [, quarters = UNKNOWN, at = "0"] = /^([-ufd]{96}) (\d{1,16})$/.exec(bytes.toString("utf8")) ?? [];
	return { quarters, at: Number(at) };
}
