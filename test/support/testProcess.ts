// A process of a test run: runs files one after another, each as a suite by its name.

import { after, afterEach, describe } from "node:test";
import { setFlagsFromString } from "node:v8";
import { disableHook, enableHook } from "./asyncHook.ts";
import { begins } from "./begin.ts";
import { endInTime, type FileEnd, fileEnd } from "./endInTime.ts";
import { prepareStores } from "./engine.ts";
import { reportLogs } from "./processLogs.ts";

/** A file that this process runs if no other process of the run has begun it. */
interface FileToRun {
	/** The suite's name. */
	readonly name: string;
	readonly url: string;
}

/** How long the process may take to end after its tests, in ms. */
const END_MS = 60_000;
/**
 * Most code of a process runs a few times. V8 optimizes it eight times later than by default: 5 to
 * 11 % less CPU.
 */
const V8_FLAGS = "--interrupt-budget=1000000";

/** Errors that nothing caught, of the test that runs. */
const uncaught: unknown[] = [];

/**
 * Runs `files`. `folder`: where the processes of a run note the files that they have begun;
 * `fileMs`: the longest that a file may take. asyncHook.ts must be loaded before this module.
 */
export async function runFiles(
	files: readonly FileToRun[],
	{ folder, fileMs }: { readonly folder: string; readonly fileMs: number },
): Promise<void> {
	setFlagsFromString(V8_FLAGS);
	endWithRunner();
	// Without its hook, node:test cannot find the test that an error belongs to: it is the running
	// one.
	for (const event of ["uncaughtException", "unhandledRejection"])
		process.on(event, (error) => uncaught.push(error));
	afterEach(reportLogs);
	afterEach(throwUncaught);
	await prepareStores();
	const ends: FileEnd[] = [fileEnd("the process itself")];
	for (const { name, url } of files) {
		if (!begins(folder, name)) continue;
		enableHook();
		// Each is loaded when the one before it has ended, so that no file's hooks end up in another's
		// suite.
		await new Promise<void>((ended) => {
			describe(name, { timeout: fileMs }, async () => {
				await import(url);
				after(() => {
					ends.push(fileEnd(name));
					ended();
					throwUncaught();
				});
				disableHook();
			});
		});
	}
	after(() => endInTime(END_MS, ends));
}

/**
 * Ends the process when its runner is gone, since tests that hang would never end by themselves.
 */
function endWithRunner(): void {
	if (process.env.NODE_TEST_CONTEXT === undefined) return;
	// The runner holds the other end of this pipe.
	process.stdin.once("end", () => process.exit(1)).resume();
	if ("unref" in process.stdin) process.stdin.unref();
}

function throwUncaught(): void {
	for (const error of uncaught.splice(0)) throw error;
}
