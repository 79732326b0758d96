// Runs test files by node:test. A process takes a second to load what most tests need, so files
// share processes: each process runs a generated module in which every file is a suite by its name.

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { run } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { RELAY_AS, STORES, TEST_DATABASE } from "./engine.ts";
import { LENGTH } from "./length.ts";
import { startPostgres } from "./postgresServer.ts";
import { Report } from "./report.ts";

/** The project's root. */
export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** A process that runs files one after another. */
export interface TestProcess {
	/**
	 * Paths from the root. It runs those that no other process of the run has begun with the same
	 * environment.
	 */
	readonly files: readonly string[];
	/** Environment variables of the process: {@link RELAY_AS}, {@link STORES} or {@link LENGTH}. */
	readonly env?: Readonly<Record<string, string>>;
}

/** Processes that may run at the same time. Each round begins when the one before it has ended. */
export interface Round {
	readonly processes: readonly TestProcess[];
	/** How many at a time. */
	readonly concurrency: number;
	/** The longest that a file may take, in ms. Default 20 minutes. */
	readonly fileMs?: number;
}

/**
 * A file that hangs fails by its name, and does not keep the others from running. Twenty times what
 * a file may take when idle.
 */
const FILE_MS = 20 * 60_000;
const MINUTE_MS = 60_000;
/** The part of a suite's name that shows its process's environment. */
const HOW = [
	[RELAY_AS, "edge", " as an edge"],
	[STORES, "postgres", " on PostgreSQL"],
	[LENGTH, "long", ", long"],
] as const;
/**
 * Relay and boost run with it too: more room for young objects saves a tenth of a test process's
 * time.
 */
const NODE_OPTIONS = "--max-semi-space-size=32";

/** Every file below test/ whose name ends so, as paths from the root. */
export function filesEnding(ending: string): readonly string[] {
	return readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" })
		.filter((name) => name.endsWith(ending) && !name.includes("node_modules"))
		.map((name) => join("test", name))
		.sort();
}

/** The test files at `path`, a file or a folder. Throws if there is none. */
export function filesAt(path: string): readonly string[] {
	const place = relative(ROOT, resolve(path));
	const all = [...filesEnding(".test.ts"), ...filesEnding(".nightly.ts")];
	const files = all.filter(
		(file) => file === place || (file.startsWith(`${place}/`) && file.endsWith(".test.ts")),
	);
	if (files.length === 0)
		throw new Error(`no test file at ${path}: expected one of test/, or a folder of them`);
	return files;
}

/**
 * `count` processes, each of which takes the next file when it has run one: all end at about the
 * same time.
 */
export function pooled(files: readonly string[], count: number): readonly TestProcess[] {
	return Array.from({ length: Math.min(count, files.length) }, () => ({ files }));
}

/** A process for each file. */
export function alone(files: readonly string[]): readonly TestProcess[] {
	return files.map((file) => ({ files: [file] }));
}

/**
 * Runs the rounds and prints the report. Resolves to whether all tests passed. `VERBOSE=1` prints
 * what tests measure.
 */
export async function runRounds(rounds: readonly Round[]): Promise<boolean> {
	process.chdir(ROOT);
	process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ""} ${NODE_OPTIONS}`;
	const begun = performance.now();
	const minutes = (): number => (performance.now() - begun) / MINUTE_MS;
	const report = new Report({ isVerbose: process.env.VERBOSE === "1" });
	const say = (text: string): void => void process.stdout.write(text);
	const [postgres] = await Promise.all([
		startPostgres({ connections: 300 }),
		import(new URL("../loader/prepare.mjs", import.meta.url).href),
	]);
	process.env[TEST_DATABASE] = await postgres.newDatabase();
	const folder = mkdtempSync(join(tmpdir(), "leeward-run-"));
	const everyMinute = setInterval(() => say(report.progress(Math.round(minutes()))), MINUTE_MS);
	let count = 0;
	/** Runs processes one after another, until none of the round is left. */
	const work = async (left: TestProcess[], fileMs: number): Promise<void> => {
		for (let one = left.shift(); one !== undefined; one = left.shift()) {
			count += 1;
			const path = join(folder, `process${count}.test.mjs`);
			writeFileSync(path, moduleOf(one, { fileMs, folder }));
			const events = run({ files: [path], timeout: fileMs * one.files.length });
			const taken = report.ofProcess();
			for await (const event of events) say(taken(event));
		}
	};
	try {
		for (const { processes, concurrency, fileMs = FILE_MS } of rounds) {
			const left = [...processes];
			await Promise.all(Array.from({ length: concurrency }, () => work(left, fileMs)));
		}
	} finally {
		clearInterval(everyMinute);
		rmSync(folder, { recursive: true, force: true });
		await postgres.stop();
	}
	say(report.summary(minutes()));
	return report.isGreen;
}

/**
 * The module that runs the files of a process. `folder`: where the processes of this run note which
 * files they have begun.
 */
function moduleOf(
	{ files, env = {} }: TestProcess,
	{ fileMs, folder }: { readonly fileMs: number; readonly folder: string },
): string {
	const how = HOW.flatMap(([key, value, words]) => (env[key] === value ? [words] : [])).join("");
	const suites = files.map((file) => ({
		name: `${file}${how}`,
		url: pathToFileURL(join(ROOT, file)).href,
	}));
	const settings = Object.entries(env).map(
		([name, value]) => `process.env[${JSON.stringify(name)}] = ${JSON.stringify(value)};`,
	);
	const urlOf = (name: string) => JSON.stringify(new URL(name, import.meta.url).href);
	return [
		// Before all that loads node:test.
		`import ${urlOf("./asyncHook.ts")};`,
		...settings,
		// Imported when the environment is set.
		`const { runFiles } = await import(${urlOf("./testProcess.ts")});`,
		`await runFiles(${JSON.stringify(suites)}, ${JSON.stringify({ fileMs, folder })});`,
		"",
	].join("\n");
}
