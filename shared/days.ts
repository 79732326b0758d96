// Days of figures: their numbers, their names, and which of them the public statistics show.

export const DAY_MS = 86_400_000;
/** How many days the public statistics show. */
export const SHOWN_DAYS = 90;

/** The day of a time in ms since the epoch, in days since the epoch, UTC. */
export function dayOf(ms: number): number {
	return Math.floor(ms / DAY_MS);
}

/** As `2026-01-31`. */
export function dayText(day: number): string {
	return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/**
 * The days that the public statistics show at a time in ms since the epoch: the last one has been
 * over for a day.
 */
export function shownDays(ms: number): readonly [first: number, last: number] {
	const last = dayOf(ms) - 2;
	return [last - SHOWN_DAYS + 1, last];
}
