// Waiting for an observed condition: a question comes in, its answer goes out as soon as there is one, or a failure
// at the deadline. Nothing here waits for time to pass as such.

/** Asks `question` until it answers something but undefined or false; throws after `ms` milliseconds. */
export async function until<T>(
	what: string,
	question: () => Promise<T | undefined | false> | T | undefined | false,
	ms = 10_000,
): Promise<T> {
	const end = Date.now() + ms;
	for (;;) {
		const answer = await question();
		if (answer !== undefined && answer !== false) return answer;
		if (Date.now() > end) throw new Error(`not seen within ${ms} ms: ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 10));
	}
}
