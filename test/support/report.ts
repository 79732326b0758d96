// The report of a test run for the events of node:test. A green run prints a line a minute and a
// summary; a failure is printed once, with what its file has printed, and named in the summary.
// node:test sets the exit code of the processes, the runner its own.

import { relative } from "node:path";
import { inspect } from "node:util";

/**
 * The fields of an event of node:test that are used. `file` is missing in the runner's own events.
 */
export interface TestEvent {
	readonly type: string;
	readonly data: {
		readonly name?: string;
		readonly nesting?: number;
		readonly file?: string | undefined;
		readonly line?: number | undefined;
		readonly message?: string;
		/** The reason; true: none was given. */
		readonly skip?: string | boolean | undefined;
		readonly details?: {
			readonly duration_ms?: number;
			readonly passed?: boolean;
			readonly type?: string;
			readonly error?: unknown;
		};
	};
}

/** The name of the suite that a whole file is (see runner.ts). */
const OF_A_FILE = /^test\//;
/** Characters kept of what a file prints. */
const OUTPUT_LENGTH = 64 * 1024;
/** The number of slowest files in the summary. */
const SLOWEST = 10;

/** Collects the events of all test processes. */
export class Report {
	/** Whether figures that tests report are printed. */
	readonly #isVerbose: boolean;
	/** Duration of each file's suite, in ms. */
	readonly #files = new Map<string, number>();
	/** Files that have begun and not ended. */
	readonly #running = new Set<string>();
	readonly #failed: string[] = [];
	readonly #skipped = new Map<string, number>();
	#passed = 0;

	constructor({ isVerbose }: { readonly isVerbose: boolean }) {
		this.#isVerbose = isVerbose;
	}

	/** Whether nothing has failed so far. */
	get isGreen(): boolean {
		return this.#failed.length === 0;
	}

	/** A function that counts the events of one process, and returns what is to be printed now. */
	ofProcess(): (event: TestEvent) => string {
		/** The names of the suites around the current test, the outermost first. */
		const around: string[] = [];
		/** The output of the current file, which is printed here when one of its tests fails. */
		let output = "";
		let hasFailed = false;
		return ({ type, data }) => {
			const { name = "", nesting = 0, message = "" } = data;
			switch (type) {
				case "test:stdout":
				case "test:stderr":
					if (hasFailed || this.#isVerbose) return message;
					output = `${output}${message}`.slice(-OUTPUT_LENGTH);
					return "";
				case "test:diagnostic":
					return this.#isVerbose && nesting > 0 ? `${whereOf(data)} ${message}\n` : "";
				case "test:dequeue":
					if (nesting > 0 || !OF_A_FILE.test(name)) return "";
					this.#running.add(name);
					output = "";
					hasFailed = false;
					return "";
				case "test:complete":
					this.#complete(data);
					return "";
				case "test:start":
					around.splice(nesting, Number.POSITIVE_INFINITY, name);
					return "";
				case "test:fail": {
					const failure = this.#fail(data, around.slice(0, nesting));
					if (failure === "") return "";
					const before = output;
					output = "";
					hasFailed = true;
					return `${before}${failure}`;
				}
				default:
					return "";
			}
		};
	}

	/** One line about the state after so many minutes. */
	progress(minutes: number): string {
		const running = [...this.#running].sort().join(", ");
		return `${minutes} min: ${this.#counts()}; running: ${running}\n`;
	}

	/** The summary. Its last line has the counts alone. */
	summary(minutes: number): string {
		const skipped = [...this.#skipped].map(([reason, count]) => `  ${count} × ${reason}\n`);
		return [
			...(skipped.length === 0 ? [] : ["skipped:\n", ...skipped]),
			slowest(this.#files),
			...(this.#failed.length === 0 ? [] : ["failed:\n", ...this.#failed.map((one) => `  ${one}\n`)]),
			`${minutes.toFixed(1)} minutes\n`,
			`${this.#counts()}\n`,
		].join("");
	}

	#complete({ name = "", nesting = 0, skip, details }: TestEvent["data"]): void {
		const isSuite = details?.type === "suite";
		if (isSuite && nesting === 0) {
			this.#files.set(name, details.duration_ms ?? 0);
			this.#running.delete(name);
		}
		if (skip !== undefined && skip !== false) {
			const reason = typeof skip === "string" && skip !== "" ? skip : "no reason given";
			this.#skipped.set(reason, (this.#skipped.get(reason) ?? 0) + 1);
		} else if (details?.passed === true && !isSuite && nesting > 0) this.#passed += 1;
	}

	#fail(data: TestEvent["data"], around: readonly string[]): string {
		const { name = "", details } = data;
		if (isOfSubtests(details?.error)) return "";
		const path = [...around, name].join(" > ");
		const title = `${whereOf(data)} ${path}`;
		this.#failed.push(title);
		const cause = inspect(causeOf(details?.error), { depth: 6 });
		return `FAILED ${title}\n${cause.replaceAll(/^/gm, "    ")}\n`;
	}

	#counts(): string {
		const skipped = [...this.#skipped.values()].reduce((sum, count) => sum + count, 0);
		return `${this.#passed} passed, ${this.#failed.length} failed, ${skipped} skipped`;
	}
}

function whereOf({ file, line }: TestEvent["data"]): string {
	return file === undefined ? "?" : `${relative(process.cwd(), file)}:${line}`;
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
	return `the slowest of ${files.size} files:\n${lines.join("")}`;
}
