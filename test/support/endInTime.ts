// Ends a test process that something left open keeps alive when its tests are over, and says what that is.

/** Ends this process as failed if it has not ended by itself `ms` milliseconds from now. */
export function endInTime(ms: number): void {
	const timer = setTimeout(() => {
		const open = process.getActiveResourcesInfo().join(", ");
		process.stderr.write(`the tests are over, and the process does not end: it has open ${open}\n`);
		process.exit(1);
	}, ms);
	timer.unref();
}
