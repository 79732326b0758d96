// Waits until a condition is observed, or fails at the deadline. Nothing here sleeps for a fixed
// time.

/** The longest wait for anything that must happen, in ms. */
export const PATIENCE_MS = 120_000;
/**
 * Initial pause between two questions, in ms. It grows with the wait to a twentieth of it, to leave
 * the machine to other work.
 */
const LEAST_MS = 30;
const MOST_MS = 250;
const SHARE = 0.05;

/**
 * Asks `question` until it returns something other than undefined or false; throws after `ms` (two
 * minutes: a busy machine takes ten times as long as an idle one). Pauses between two questions for
 * at most `mostMs`.
 */
export async function until<T>(
	what: string,
	question: () => Promise<T | undefined | false> | T | undefined | false,
	ms = PATIENCE_MS,
	mostMs = MOST_MS,
): Promise<T> {
	const begun = Date.now();
	for (;;) {
		const answer = await question();
		if (answer !== undefined && answer !== false) return answer;
		const spent = Date.now() - begun;
		if (spent > ms) throw new Error(`not seen within ${ms} ms: ${what}`);
		const waitMs = Math.min(mostMs, Math.max(LEAST_MS, SHARE * spent));
		await new Promise((resolve) => setTimeout(resolve, waitMs));
	}
}
