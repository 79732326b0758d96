// Runs a process from its command line to its end. Relay, boost and the pair start and stop alike, so only
// what differs is in their main files.

import { createRequire } from "node:module";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { systemClock } from "./clock.ts";
import { type Environment, helpText, misspelled, printedConfig, type SettingTable } from "./config.ts";
import { type Component, StoppedError, stopOnParent, stopOnSignals } from "./lifecycle.ts";
import { createLogger, type Logger, type LogLevel, safeError } from "./log.ts";
import { type Metrics, processMetrics } from "./metrics.ts";

/** What a process is. */
interface ProcessKind<Config extends { readonly LOG_LEVEL: LogLevel }> {
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
interface ProcessParts {
	readonly log: Logger;
	readonly version: string;
	readonly metrics: Metrics;
	/** Call it when another process has taken the store over: this one's memory is out of date, and it ends at once. */
	readonly onLost: () => void;
}

/** What it was started with. Only a main.ts may get hold of these. */
interface ProcessInput {
	readonly args: readonly string[];
	readonly env: Environment;
	readonly exit: (code: number) => void;
}

/**
 * A supervisor starts its child with this option. The child then stops when the channel to its parent closes, and
 * ignores signals: hosts and terminals send them to all processes at once, while these must stop in order.
 */
export const SUPERVISED = "--supervised";
/** What a supervised child sends to its parent once it has started. */
export const STARTED = "started";

const OPTIONS: readonly string[] = ["--help", "--print-config", "--version"];
const KEEP_ALIVE_MS = 2 ** 30;
/** A heap of so many bytes is collected when it has doubled. */
const LARGE_HEAP = 96 * 1024 * 1024;
const HEAP_LOOK_MS = 250;

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

/**
 * V8 lets a heap grow fourfold before it collects: in a flood that took 600 MiB in the place of 300. A small one may, since
 * to collect it more often costs a third of a read.
 */
function boundHeap(): void {
	const percent = getHeapStatistics().used_heap_size > LARGE_HEAP ? 100 : 0;
	setFlagsFromString(`--heap-growing-percent=${percent}`);
}

/** Runs it. Resolves when it has started, or has said what it was asked for; never rejects. */
export async function runProcess<Config extends { readonly LOG_LEVEL: LogLevel }>(
	kind: ProcessKind<Config>,
	input: ProcessInput,
): Promise<void> {
	try {
		await run(kind, input);
	} catch (thrown) {
		const { name, code } = safeError(thrown);
		// Whoever stopped it during its start also ends the process.
		if (thrown instanceof StoppedError) return;
		const told = thrown instanceof Error && TOLD.has(code ?? "");
		const lines = told ? thrown.message.split("\n") : [`can't start (${code ?? name})`];
		for (const line of lines) process.stderr.write(`${kind.name}: ${line}\n`);
		input.exit(1);
	}
}

async function run<Config extends { readonly LOG_LEVEL: LogLevel }>(
	kind: ProcessKind<Config>,
	{ args, env, exit }: ProcessInput,
): Promise<void> {
	const unknown = args.find((arg) => !OPTIONS.includes(arg) && arg !== SUPERVISED);
	if (unknown !== undefined) {
		process.stderr.write(
			`${kind.name}: unknown option ${unknown.slice(0, 40)}: expected ${OPTIONS.join(", ")}\n`,
		);
		process.exitCode = 1;
		return;
	}
	if (args.includes("--help")) return print(helpText(`npm run ${kind.name}`, kind.about, kind.settings));
	if (args.includes("--print-config")) return print(printedConfig(kind.settings, env));
	if (args.includes("--version")) return print(productVersion());
	const config = kind.read(env);
	const version = productVersion();
	setInterval(boundHeap, HEAP_LOOK_MS).unref();
	const log = createLogger(config.LOG_LEVEL, kind.name);
	for (const [setting, meant] of misspelled(kind.settings, env)) {
		log.warn(`an unknown setting has no effect: did you mean ${meant}?`, { setting });
	}
	for (const [task, native] of Object.entries(nativeBindings())) {
		if (native) log.info("native code loaded", { task, native });
		else log.warn("native code is not loaded: slow JavaScript runs in its place", { task, native });
	}
	const component = kind.create(config, {
		log,
		version,
		metrics: processMetrics(version),
		onLost() {
			log.error("the store is another process's now, ending");
			exit(1);
		},
	});
	const stopBy = (what: string) => (thrown: unknown) => {
		log.error(`${what}, stopping`, { fault: safeError(thrown) });
		exit(1);
	};
	process.on("uncaughtException", stopBy("uncaught fault"));
	process.on("unhandledRejection", stopBy("unhandled rejection"));
	const isSupervised = args.includes(SUPERVISED);
	(isSupervised ? stopOnParent : stopOnSignals)(component, { log, clock: systemClock, exit });
	// Timers do not keep the process alive, and before it listens nothing else does: only exit() ends it.
	setInterval(() => {}, KEEP_ALIVE_MS);
	await component.start();
	if (isSupervised) process.send?.(STARTED);
}

/** The version in package.json. */
function productVersion(): string {
	return (require("../package.json") as { version: string }).version;
}

function print(text: string): void {
	// The reader may close early: `--help | head`.
	process.stdout.on("error", () => {});
	process.stdout.write(`${text}\n`);
}

const require = createRequire(import.meta.url);

/** Whether `secp256k1` and `keccak` are backed by their native add-ons in this process. Never throws. */
export function nativeBindings(): { readonly secp256k1: boolean; readonly keccak: boolean } {
	return { secp256k1: isNative("secp256k1"), keccak: isNative("keccak") };
}

/** Both packages' entry is `try { bindings } catch { fallback }`: it is native where it is the very same object. */
function isNative(name: "secp256k1" | "keccak"): boolean {
	try {
		return require(name) === require(`${name}/bindings`);
	} catch {
		return false;
	}
}
