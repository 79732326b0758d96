// The logs of the processes that tests start: printed when a test fails, forgotten when it passes.

/** A process with the output that is kept of it. */
interface Logged {
	/** The program that it runs. */
	readonly name: string;
	/** Whether it has ended. */
	readonly ended: () => boolean;
	readonly output: () => string;
}

/** Characters printed of one process's output, from its end. */
const SHOWN = 4_000;

const processes = new Set<Logged>();

/**
 * Prints the output of this process when a test fails while it runs, or that it was started for.
 */
export function keepLog(logged: Logged): void {
	processes.add(logged);
}

/** To be called after each test with its context. */
export function reportLogs({
	name,
	passed = true,
}: {
	readonly name: string;
	readonly passed?: boolean;
}): void {
	if (!passed)
		for (const one of processes)
			process.stderr.write(`log of ${one.name} during "${name}":\n${one.output().slice(-SHOWN)}\n`);
	for (const one of processes) if (one.ended()) processes.delete(one);
}
