// Minutes of faults in a cluster of three relays and two boost instances under load (test/scale).
// Prints each fault. If something did not hold, the logs of all processes are kept in a folder, and
// its name is printed.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runChaos } from "../scale/chaos.ts";

interface LongScaleOptions {
	readonly seed: number;
	readonly minutes: number;
	/** Takes each line. */
	readonly say: (line: string) => void;
}

/** Runs it; true where everything held. */
export async function longScale({ seed, minutes, say }: LongScaleOptions): Promise<boolean> {
	say(`scale: ${minutes} minutes, --seed ${seed}`);
	const seconds = Math.round(minutes * 60);
	const { violations, logs } = await runChaos({ seed, seconds, say });
	if (violations.length > 0) {
		const folder = mkdtempSync(join(tmpdir(), "leeward-scale-"));
		for (const [name, text] of logs) writeFileSync(join(folder, `${name}.log`), text);
		say(`scale: the logs are in ${folder}`);
	}
	say(`scale: ${violations.length} kinds of faults found in ${minutes} minutes, --seed ${seed}`);
	return violations.length === 0;
}
