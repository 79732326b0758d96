// Ends a test process that an open handle keeps alive after its tests, and names the handle.

/** Ends this process as failed if it has not ended by itself `ms` milliseconds from now. */
export function endInTime(ms: number): void {
	const timer = setTimeout(() => {
		const open = process.getActiveResourcesInfo().join(", ");
		process.stderr.write(`the tests are over, and the process does not end: it has open ${open}\n`);
		process.exit(1);
	}, ms);
	timer.unref();
}
