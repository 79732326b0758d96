// The reporter for node:test: prints each failed test when it fails and again at the end, where a log cut in its
// middle still has it; then the slowest suites, one per file, and the counts. The exit code is node:test's.

import { relative } from "node:path";
import { inspect } from "node:util";

/** The part of an event of node:test that is read here. `file` is missing for what the runner itself tells. */
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

/** How many of the slowest are listed. */
const SLOWEST = 12;

/** The text of a report, as `events` come. */
export async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
	const files = new Map<string, number>();
	const failures: string[] = [];
	/** The names of the tests around the one that is told of. */
	const around: string[] = [];
	const counts: string[] = [];
	for await (const { type, data } of events) {
		const { name = "", nesting = 0, message = "", details } = data;
		if (type === "test:stdout" || type === "test:stderr") yield message;
		if (type === "test:diagnostic" && nesting === 0) counts.push(message);
		if (type === "test:start") around.splice(nesting, Number.POSITIVE_INFINITY, name);
		if (type === "test:complete" && nesting === 0 && details?.type === "suite")
			files.set(name, details.duration_ms ?? 0);
		if (type !== "test:fail" || isOfSubtests(details?.error)) continue;
		const where = data.file === undefined ? "?" : `${shown(data.file)}:${data.line}`;
		const path = [...around.slice(0, nesting), name].join(" > ");
		const failure = `FAILED ${where} ${path}\n${indented(inspect(causeOf(details?.error), { depth: 6 }))}\n`;
		failures.push(failure);
		yield failure;
	}
	yield slowest(files);
	yield `${counts.join("\n")}\n`;
	if (failures.length > 0) yield `\n${failures.length} failed, once more:\n${failures.join("")}`;
}

function shown(file: string): string {
	return relative(process.cwd(), file);
}

function indented(text: string): string {
	return text.replaceAll(/^/gm, "    ");
}

/** A suite that fails only since a test in it does. */
function isOfSubtests(error: unknown): boolean {
	return error instanceof Error && "failureType" in error && error.failureType === "subtestsFailed";
}

/** What the test threw, out of node:test's wrapping. */
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
