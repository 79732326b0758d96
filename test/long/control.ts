// The long form of the control model: runs many sequences from a seed, prints progress line by
// line, and reports whether relay and model always agreed.

import { runSequences } from "../model/run.ts";

interface LongControlOptions {
	readonly seed: number;
	readonly sequences: number;
	readonly steps: number;
	/** To have one again that failed. */
	readonly path?: string;
	readonly replay?: string;
	/** Takes each line. */
	readonly say: (line: string) => void;
}

/** Between two lines of progress, in sequences. */
const EVERY = 10;

/** Runs it; true where nothing failed. */
export async function longControl(options: LongControlOptions): Promise<boolean> {
	const { seed, sequences, steps, path, replay, say } = options;
	say(`control: ${sequences} sequences of ${steps} steps, --seed ${seed}`);
	const begun = performance.now();
	const seconds = () => Math.round((performance.now() - begun) / 1000);
	const { failure, tally } = await runSequences({
		sequences,
		steps,
		seed,
		...(path === undefined ? {} : { path }),
		...(replay === undefined ? {} : { replayPath: replay }),
		onSequence: (done) => {
			if (done % EVERY === 0 && done <= sequences) say(`control: ${done} sequences in ${seconds()} s`);
		},
		onFailure: () => say(`control: one has failed after ${seconds()} s, it is being made smaller`),
	});
	for (const [what, count] of [...tally].sort()) say(`${String(count).padStart(8)}  ${what}`);
	say(failure ?? `control: relay and model agreed in ${sequences} sequences, ${seconds()} s`);
	return failure === null;
}
