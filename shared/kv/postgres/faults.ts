// The current faults of a database, for /readyz and the log. A fault stays until the same operation
// works again. So a refused write is one outage, not many, even if reads work meanwhile.

import type { Clock } from "../../clock.ts";
import { type Logger, safeError } from "../../log.ts";
import { type DatabaseDownError, DatabaseRefusedError } from "./errors.ts";

export type Fault = DatabaseDownError | DatabaseRefusedError;

export class Faults {
	readonly #clock: Clock;
	#log: Logger | null = null;
	/** The faults by the failing operation, the latest one last. */
	readonly #current = new Map<string, Fault>();
	/** Messages that were logged in this outage. */
	readonly #logged = new Set<string>();
	/** Monotonic time of the outage's start, in ms. */
	#since = 0;

	constructor(dependencies: { readonly clock: Clock }) {
		this.#clock = dependencies.clock;
	}

	/** The latest; null while everything works. */
	get latest(): Fault | null {
		return [...this.#current.values()].at(-1) ?? null;
	}

	/** Logs faults and their end from now on. */
	logTo(log: Logger): void {
		this.#log = log;
	}

	/** Logs each cause once per outage. */
	failed(what: string, fault: Fault): void {
		if (this.#current.size === 0) this.#since = this.#clock.monotonic();
		this.#current.delete(what);
		this.#current.set(what, fault);
		if (this.#logged.has(fault.message)) return;
		this.#logged.add(fault.message);
		const isRefusal = fault instanceof DatabaseRefusedError;
		this.#log?.warn(isRefusal ? "the database refuses this process" : "the database does not answer", {
			reason: fault.message,
			fault: safeError(fault),
		});
	}

	worked(what: string): void {
		if (!this.#current.delete(what) || this.#current.size > 0) return;
		this.#logged.clear();
		this.#log?.info("database answers again", {
			ms: Math.round(this.#clock.monotonic() - this.#since),
		});
	}
}
