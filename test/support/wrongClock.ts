// The clock of a process of its own, which a test sets wrong: see wrongClockMain.ts.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LaunchedRelay } from "./processes.ts";
import { until } from "./until.ts";

const HOUR_MS = 3_600_000;

/** By how much clocks are off in tests, in ms. */
export const DAYS_OFF: Readonly<Record<string, number>> = {
	"8 days behind": -192 * HOUR_MS,
	"8 days ahead": 192 * HOUR_MS,
};
export const HOURS_OFF: Readonly<Record<string, number>> = {
	"3 hours behind": -3 * HOUR_MS,
	"3 hours ahead": 3 * HOUR_MS,
};

export class WrongClock {
	readonly #folder = mkdtempSync(join(tmpdir(), "leeward-clock-"));
	readonly #file = join(this.#folder, "ms");

	/** `offMs`: at the start. */
	constructor(offMs = 0) {
		this.starts(offMs);
	}

	/**
	 * Options of startRelayProcess and launchRelay that run the process `main`, such as
	 * relay/main.ts, with this clock.
	 */
	entryOf(main: string) {
		return { entry: "test/support/wrongClockMain.ts", args: [main, this.#file] } as const;
	}

	/** A process that is started from now on is off by so many ms. */
	starts(offMs: number): void {
		writeFileSync(this.#file, String(offMs));
	}

	/** The running process is off by so many ms from now on. */
	async set(process: LaunchedRelay, offMs: number): Promise<void> {
		this.starts(offMs);
		const times = () => process.logs().filter(({ msg }) => msg === "clock").length;
		const before = times();
		process.signal("SIGUSR2");
		await until("the clock is set", () => times() > before);
	}

	stop(): void {
		rmSync(this.#folder, { recursive: true, force: true });
	}
}
