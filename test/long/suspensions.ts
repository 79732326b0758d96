// Random suspensions of one boost instance alone, and of one of two on a database.

import { suspendOften } from "../scale/suspensions.ts";

interface LongSuspensionsOptions {
	readonly seed: number;
	/** How many with one boost instance, and as many with two. */
	readonly suspensions: number;
	readonly say: (line: string) => void;
}

/** Runs them; resolves to whether nothing was sent that had been cancelled. */
export async function longSuspensions({ seed, suspensions, say }: LongSuspensionsOptions): Promise<boolean> {
	let fine = true;
	for (const boosts of [1, 2] as const) {
		const { cancelled, refused, sent, toFallback } = await suspendOften({ seed, suspensions, boosts });
		say(
			`suspensions: ${suspensions} with ${boosts} boost, --seed ${seed}: ${cancelled} cancelled, ${refused} refused; sent afterwards ${sent.length}, half-written to the fallback ${toFallback}`,
		);
		for (const hash of sent) say(`suspensions: sent after its cancel: ${hash}`);
		fine &&= sent.length === 0 && cancelled > 0;
	}
	return fine;
}
