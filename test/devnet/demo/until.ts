// Polls until there is an answer; the demo waits for nothing else.

import { pause, systemClock } from "../../../shared/clock.ts";

/** Beyond this nothing is waited for. */
export const STEP_MS = 15_000;

/** Asks until there is an answer. */
export async function until<T>(what: string, question: () => Promise<T | null>): Promise<T> {
	const end = systemClock.monotonic() + STEP_MS;
	for (;;) {
		const answer = await question();
		if (answer !== null) return answer;
		if (systemClock.monotonic() > end) throw new Error(`waited ${STEP_MS} ms in vain for ${what}`);
		await pause(systemClock, 20);
	}
}
