// A process from its command line to its end: arguments and environment come in, a running component goes out, or one
// line that says what is wrong with a setting. What the component is, is the business of the main.ts that calls this.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { systemClock } from "./clock.ts";
import { helpText, printedConfig, SettingError, type SettingTable } from "./config.ts";
import { nativeBindings } from "./ethereum/native.ts";
import { type Component, StoppedError, stopOnParent, stopOnSignals } from "./lifecycle.ts";
import { createLogger, type Logger, type LogLevel, safeError } from "./log.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What a process is. */
export interface ProcessKind<Config extends { readonly LOG_LEVEL: LogLevel }> {
	/** In logs and in what is printed: "relay". It is started by `npm run` and this name. */
	readonly name: string;
	/** What it does, in one line. */
	readonly about: string;
	readonly settings: SettingTable;
	/** Throws SettingError. */
	read(env: Environment): Config;
	create(config: Config, given: ProcessParts): Component;
}

/** What a component is given by its process. */
export interface ProcessParts {
	readonly log: Logger;
	readonly version: string;
	/** To be called where another process has its store: this one's memory is not the truth any more, and it ends at once. */
	readonly onLost: () => void;
}

/** What it was started with. Only a main.ts may get hold of these. */
export interface ProcessInput {
	readonly args: readonly string[];
	readonly env: Environment;
	readonly exit: (code: number) => void;
}

/**
 * Said by a supervisor to its child: it then stops when the channel to its parent closes, be it that the parent is gone,
 * and not by signals, which hosts and terminals send to all processes at once while these have to stop in order.
 */
export const SUPERVISED = "--supervised";
/** What a supervised child sends to its parent once it has started. */
export const STARTED = "started";

const KEEP_ALIVE_MS = 2 ** 30;
/**
 * Garbage is collected when the heap has doubled. V8 lets a small heap grow fourfold, so that a flood took 600 MiB in the
 * place of 300.
 */
const HEAP_GROWTH = "--heap-growing-percent=100";

/** Refusals to start whose message is ours and meant for the operator, by their code. */
const TOLD = new Set([
	"SETTING",
	"FOLDER_IN_USE",
	"OTHER_CHAIN",
	"WRONG_NODE",
	"STORE_FORMAT",
	"JOURNAL_FORMAT",
	"LISTEN",
	"DATA_FOLDER",
	"DATABASE_URL",
	"DATABASE_DOWN",
	"DATABASE_REFUSED",
	"LATER_VERSION",
]);

/** Runs it. Resolves when it has started, or has said what it was asked for; never rejects. */
export async function runProcess<Config extends { readonly LOG_LEVEL: LogLevel }>(
	kind: ProcessKind<Config>,
	input: ProcessInput,
): Promise<void> {
	try {
		await run(kind, input);
	} catch (thrown) {
		const { name, code } = safeError(thrown);
		// Who stops it while it starts ends it, too.
		if (thrown instanceof StoppedError) return;
		const told = thrown instanceof Error && (thrown instanceof SettingError || TOLD.has(code ?? ""));
		process.stderr.write(`${kind.name}: ${told ? thrown.message : `can't start (${code ?? name})`}\n`);
		input.exit(1);
	}
}

async function run<Config extends { readonly LOG_LEVEL: LogLevel }>(
	kind: ProcessKind<Config>,
	{ args, env, exit }: ProcessInput,
): Promise<void> {
	const unknown = args.find((arg) => arg !== "--help" && arg !== "--print-config" && arg !== SUPERVISED);
	if (unknown !== undefined) {
		process.stderr.write(
			`${kind.name}: unknown option ${unknown.slice(0, 40)}: expected --help or --print-config\n`,
		);
		process.exitCode = 1;
		return;
	}
	if (args.includes("--help")) return print(helpText(`npm run ${kind.name}`, kind.about, kind.settings));
	if (args.includes("--print-config")) return print(printedConfig(kind.settings, env));
	const config = kind.read(env);
	setFlagsFromString(HEAP_GROWTH);
	const log = createLogger(config.LOG_LEVEL, kind.name);
	for (const [task, native] of Object.entries(nativeBindings())) {
		if (native) log.info("native code loaded", { task, native });
		else log.warn("native code is not loaded: slow JavaScript runs in its place", { task, native });
	}
	const component = kind.create(config, {
		log,
		version: productVersion(),
		onLost() {
			log.error("the store is another process's now, ending");
			exit(1);
		},
	});
	process.on("uncaughtException", (thrown) => {
		log.error("uncaught fault, stopping", { fault: safeError(thrown) });
		exit(1);
	});
	process.on("unhandledRejection", (thrown) => {
		log.error("unhandled rejection, stopping", { fault: safeError(thrown) });
		exit(1);
	});
	const isSupervised = args.includes(SUPERVISED);
	const stop = isSupervised ? stopOnParent : stopOnSignals;
	stop(component, { log, clock: systemClock, exit });
	// Timers do not keep the process alive, and before it listens nothing else does: only exit() ends it.
	setInterval(() => {}, KEEP_ALIVE_MS);
	await component.start();
	if (isSupervised) process.send?.(STARTED);
}

/** The version in package.json. */
export function productVersion(): string {
	const file = fileURLToPath(new URL("../package.json", import.meta.url));
	return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

function print(text: string): void {
	// Whoever reads it may have read enough: `--help | head`.
	process.stdout.on("error", () => {});
	process.stdout.write(`${text}\n`);
}
