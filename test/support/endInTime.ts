// Ends a test process that an open handle keeps alive after its tests, and names the handle and the
// file that left it.

/** The open handles when a file had ended. */
export interface FileEnd {
	readonly name: string;
	/** How many handles. */
	readonly open: number;
}

/** Resources of requests, such as reads of files, end by themselves. */
const REQUEST = /Req/;

/** The end of a file, now. */
export function fileEnd(name: string): FileEnd {
	const handles = process.getActiveResourcesInfo().filter((type) => !REQUEST.test(type));
	return { name, open: handles.length };
}

/**
 * Ends this process as failed if it has not ended by itself `ms` milliseconds from now. `ends`: of
 * its files, in order.
 */
export function endInTime(ms: number, ends: readonly FileEnd[]): void {
	const timer = setTimeout(() => {
		const open = process.getActiveResourcesInfo().join(", ");
		const files = leaving(ends).map((name) => `\n  left by ${name}`);
		process.stderr.write(
			`the tests are over, and the process does not end: it has open ${open}${files.join("")}\n`,
		);
		process.exit(1);
	}, ms);
	timer.unref();
}

/** The files after which more was open for good. */
function leaving(ends: readonly FileEnd[]): readonly string[] {
	const least = (from: number) => Math.min(...ends.slice(from).map(({ open }) => open));
	return ends.filter((_, i) => i > 0 && least(i) > least(i - 1)).map(({ name }) => name);
}
