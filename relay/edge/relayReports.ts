// The last report of each relay on the core's database, for the operator's page. The core reports,
// too.

import type { Clock } from "../../shared/clock.ts";

/** The report of one relay. */
export interface RelayReport {
	/** Host and port. */
	readonly name: string;
	readonly role: "core" | "edge";
	/** When it got this role, in ISO 8601. */
	readonly since: string;
	readonly version: string;
	/** Number of its head; null before the first. */
	readonly head: number | null;
	readonly subscriptions: number;
	/** Its problems in the words of /readyz. */
	readonly problems: readonly string[];
}

/** A report and its age. */
export interface AgedReport extends RelayReport {
	readonly secondsAgo: number;
}

/** The maximum length of the list; the least recent report is dropped. */
const MAX_RELAYS = 64;
/** A relay that has not reported for so long is no longer listed, in ms. */
const FORGOTTEN_MS = 3_600_000;

export class RelayReports {
	readonly #clock: Clock;
	/** The most recent report last. */
	readonly #last = new Map<string, { readonly report: RelayReport; readonly at: number }>();

	constructor({ clock }: { readonly clock: Clock }) {
		this.#clock = clock;
	}

	note(report: RelayReport): void {
		this.#last.delete(report.name);
		this.#last.set(report.name, { report, at: this.#clock.monotonic() });
		for (const name of this.#last.keys()) {
			if (this.#last.size <= MAX_RELAYS) break;
			this.#last.delete(name);
		}
	}

	/** The core first, then by name. */
	list(): readonly AgedReport[] {
		const now = this.#clock.monotonic();
		const recent = [...this.#last.values()].filter(({ at }) => now - at < FORGOTTEN_MS);
		const aged = recent.map(({ report, at }) => ({ ...report, secondsAgo: (now - at) / 1_000 }));
		return aged.sort((a, b) => a.role.localeCompare(b.role) || a.name.localeCompare(b.name));
	}
}
