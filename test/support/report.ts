// The reporter for node:test: prints what tests say by `diagnostic`, and each failed test when it fails and again at the end, in
// case the middle of the log is cut; then the slowest suites, one per file, and the counts. node:test sets the exit code.

import { relative } from "node:path";
import { inspect } from "node:util";

/** The fields of an event of node:test that are used. `file` is missing in the runner's own events. */
export interface TestEvent {
	readonly type: string;
	readonly data: {
		readonly name?: string;
		readonly nesting?: number;
		readonly file?: string | undefined;
		readonly line?: number | undefined;
		readonly message?: string;
		readonly details?: {
			readonly duration_ms?: number;
			readonly type?: string;
			readonly error?: unknown;
		};
	};
}

/** The number of slowest suites listed. */
const SLOWEST = 12;

/** Yields the report's text as `events` arrive. */
export async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
	const files = new Map<string, number>();
	const failures: string[] = [];
	/** The names of the suites around the current test. */
	const around: string[] = [];
	const counts: string[] = [];
	for await (const { type, data } of events) {
		const { name = "", nesting = 0, message = "", details } = data;
		if (type === "test:stdout" || type === "test:stderr") yield message;
		if (type === "test:diagnostic") {
			if (nesting === 0) counts.push(message);
			else yield `${whereOf(data)} ${message}\n`;
		}
		if (type === "test:start") around.splice(nesting, Number.POSITIVE_INFINITY, name);
		if (type === "test:complete" && nesting === 0 && details?.type === "suite")
			files.set(name, details.duration_ms ?? 0);
		if (type !== "test:fail" || isOfSubtests(details?.error)) continue;
		const path = [...around.slice(0, nesting), name].join(" > ");
		const failure = `FAILED ${whereOf(data)} ${path}\n${indented(inspect(causeOf(details?.error), { depth: 6 }))}\n`;
		failures.push(failure);
		yield failure;
	}
	yield slowest(files);
	yield `${counts.join("\n")}\n`;
	if (failures.length > 0) yield `\n${failures.length} failed, once more:\n${failures.join("")}`;
}

function whereOf({ file, line }: TestEvent["data"]): string {
	return file === undefined ? "?" : `${relative(process.cwd(), file)}:${line}`;
}

function indented(text: string): string {
	return text.replaceAll(/^/gm, "    ");
}

/** Whether the error only says that a test in the suite failed. */
function isOfSubtests(error: unknown): boolean {
	return error instanceof Error && "failureType" in error && error.failureType === "subtestsFailed";
}

/** The error that the test threw, which node:test wraps. */
function causeOf(error: unknown): unknown {
	return error instanceof Error && error.cause !== undefined ? error.cause : error;
}

function slowest(files: ReadonlyMap<string, number>): string {
	const lines = [...files]
		.sort(([, a], [, b]) => b - a)
		.slice(0, SLOWEST)
		.map(([file, ms]) => `${(ms / 1000).toFixed(1).padStart(6)} s ${file}\n`);
	return `the slowest of ${files.size} suites:\n${lines.join("")}`;
}
