// Runs a process from its command line to its end. Relay, boost and the pair all use it, so their
// main files only contain their differences.

import { createRequire } from "node:module";
import { join } from "node:path";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { systemClock } from "./clock.ts";
import {
	type Environment,
	helpText,
	misspelled,
	printedConfig,
	readSettings,
	type Setting,
	type SettingTable,
	type TraceSettings,
} from "./config.ts";
import { KZG_PACKAGE } from "./ethereum/blobProofs.ts";
import { type EntryPair, salvageStore } from "./kv/salvage.ts";
import { type Component, StoppedError, stopLimitMs, stopOnParent, stopOnSignals } from "./lifecycle.ts";
import { createLogger, type Logger, type LogLevel, safeError } from "./log.ts";
import { type Metrics, processMetrics } from "./metrics.ts";
import { NO_TRACES, type Traces } from "./tracing/traces.ts";
import { type Build, commitOf, VERSION } from "./version.ts";

/** Settings that every process has. */
interface ProcessConfig extends TraceSettings {
	readonly LOG_LEVEL: LogLevel;
	readonly DRAIN_SECONDS: number;
}

interface ProcessKind<Config extends ProcessConfig> {
	/** For logs and printed texts, and the name of its npm script: "relay". */
	readonly name: string;
	/** One line for `--help`. */
	readonly about: string;
	readonly settings: SettingTable & { readonly DATA_DIR: Setting<string> };
	/** Entries of its store that belong together, for `--salvage`. Null if there are none. */
	readonly pair: EntryPair | null;
	/** Throws SettingError. */
	read(env: Environment): Config;
	create(config: Config, given: ProcessTools): Component;
}

/** Dependencies that the process gives to its component. */
interface ProcessTools {
	readonly log: Logger;
	readonly build: Build;
	readonly metrics: Metrics;
	readonly traces: Traces;
	/**
	 * Must be called when another process has taken over the store. This process then exits at
	 * once.
	 */
	readonly onLost: () => void;
}

/** The inputs of the process. Only a main.ts reads these globals. */
interface ProcessInput {
	readonly args: readonly string[];
	readonly env: Environment;
	readonly exit: (code: number) => void;
}

/**
 * A supervisor starts its child with this option. The child then stops when the channel to its
 * parent closes, and ignores signals, which hosts and terminals send to all processes at once:
 * parent and child must stop in order.
 */
export const SUPERVISED = "--supervised";
/** Message that a supervised child sends to its parent once it has started. */
export const STARTED = "started";

const OPTIONS: readonly string[] = ["--help", "--print-config", "--version", "--salvage"];
/**
 * The oldest major version of Node with security fixes.
 * https://nodejs.org/en/about/previous-releases
 */
const LEAST_NODE = 22;
const KEEP_ALIVE_MS = 2 ** 30;
/** A heap larger than this may at most double between two collections. */
const LARGE_HEAP = 96 * 1024 * 1024;
const HEAP_CHECK_MS = 250;

/** Codes of start errors whose message is written for the operator. */
const OPERATOR_ERRORS = new Set([
	"SETTING",
	"FOLDER_IN_USE",
	"OTHER_CHAIN",
	"WRONG_NODE",
	"STORE_FORMAT",
	"OTHER_FORMAT",
	"LISTEN",
	"DATA_FOLDER",
	"DISK_FULL",
	"DATABASE_URL",
	"DATABASE_DOWN",
	"DATABASE_REFUSED",
]);

/**
 * V8 lets a heap grow fourfold before it collects garbage. Under load that took 600 MiB instead of
 * 300. A small heap keeps that default, since collecting it more often would make reads a third
 * slower.
 */
function boundHeap(): void {
	const percent = getHeapStatistics().used_heap_size > LARGE_HEAP ? 100 : 0;
	setFlagsFromString(`--heap-growing-percent=${percent}`);
}

/**
 * Resolves when the process has started, or has printed what an option asked for; never rejects.
 */
export async function runProcess<Config extends ProcessConfig>(
	kind: ProcessKind<Config>,
	input: ProcessInput,
): Promise<void> {
	try {
		await run(kind, input);
	} catch (thrown) {
		const { name, code } = safeError(thrown);
		// The signal handler that stopped it also ends the process.
		if (thrown instanceof StoppedError) return;
		const isForOperator = thrown instanceof Error && OPERATOR_ERRORS.has(code ?? "");
		const lines = isForOperator ? thrown.message.split("\n") : [`can't start (${code ?? name})`];
		for (const line of lines) process.stderr.write(`${kind.name}: ${line}\n`);
		input.exit(1);
	}
}

async function run<Config extends ProcessConfig>(
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
	const build = { version: VERSION, commit: commitOf(env) };
	if (args.includes("--version")) return print(`${build.version} (commit ${build.commit})`);
	if (args.includes("--salvage")) {
		const { DATA_DIR } = readSettings({ DATA_DIR: kind.settings.DATA_DIR }, env);
		// The timers of a wait do not keep the process alive.
		const alive = setInterval(() => {}, KEEP_ALIVE_MS);
		const salvage = salvageStore(join(DATA_DIR, kind.name), kind.pair, new Date());
		return print(await salvage.finally(() => clearInterval(alive)));
	}
	const config = kind.read(env);
	setInterval(boundHeap, HEAP_CHECK_MS).unref();
	const log = createLogger(config.LOG_LEVEL, kind.name);
	if (Number.parseInt(process.versions.node, 10) < LEAST_NODE) {
		log.warn(`Node ${process.versions.node} is out of support: use Node 22 or 24`);
	}
	for (const [setting, meant] of misspelled(kind.settings, env)) {
		log.warn(`unknown setting has no effect: did you mean ${meant}?`, { setting });
	}
	for (const [task, native] of Object.entries(nativeBindings())) {
		if (native) log.info("native code loaded", { task, native });
		else log.warn("native code not loaded: using slow JavaScript", { task, native });
	}
	if (hasPackage(KZG_PACKAGE)) log.info("native code loaded", { task: "kzg", native: true });
	else
		log.warn("native code not loaded: accepting only blobs with cell proofs, unverified", {
			task: "kzg",
			native: false,
		});
	const traces = await tracesOf(config, log.child("traces"));
	const made = kind.create(config, {
		log,
		build,
		metrics: processMetrics(VERSION),
		traces,
		onLost() {
			log.error("another process has the store, exiting");
			exit(1);
		},
	});
	const component = traces.isOn ? withTraces(made, traces) : made;
	const stopBy = (what: string) => (thrown: unknown) => {
		log.error(`${what}, stopping`, { fault: safeError(thrown) });
		exit(1);
	};
	process.on("uncaughtException", stopBy("uncaught fault"));
	process.on("unhandledRejection", stopBy("unhandled rejection"));
	const isSupervised = args.includes(SUPERVISED);
	const limitMs = stopLimitMs(config.DRAIN_SECONDS);
	(isSupervised ? stopOnParent : stopOnSignals)(component, { log, clock: systemClock, limitMs, exit });
	// Nothing else keeps the process alive before it listens. It ends by exit().
	setInterval(() => {}, KEEP_ALIVE_MS);
	await component.start();
	if (isSupervised) process.send?.(STARTED);
}

/** Loads the SDK only if a collector is set. */
async function tracesOf(config: TraceSettings, log: Logger): Promise<Traces> {
	const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = config;
	if (endpoint === undefined) return NO_TRACES;
	const { openTraces } = await import("./tracing/otlp.ts");
	return openTraces({ ...config, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, { clock: systemClock, log });
}

/**
 * The component, which at its stop sends the remaining traces after everything else has stopped.
 */
function withTraces(made: Component, traces: Traces): Component {
	return {
		name: made.name,
		start: () => made.start(),
		stop: () => made.stop().finally(() => traces.close()),
	};
}

function print(text: string): void {
	// The reader of the pipe may close it early: `--help | head`.
	process.stdout.on("error", () => {});
	process.stdout.write(`${text}\n`);
}

const require = createRequire(import.meta.url);

/**
 * Whether `secp256k1` and `keccak` are backed by their native add-ons in this process. Never
 * throws.
 */
function nativeBindings(): { readonly secp256k1: boolean; readonly keccak: boolean } {
	return { secp256k1: isNative("secp256k1"), keccak: isNative("keccak") };
}

/** Whether the package, which has a binary for each kind of machine, has one for this machine. */
function hasPackage(name: string): boolean {
	try {
		require(name);
		return true;
	} catch {
		return false;
	}
}

/**
 * Each package's entry is `try { bindings } catch { fallback }`. So it is native if it is the same
 * object as the bindings.
 */
function isNative(name: "secp256k1" | "keccak"): boolean {
	try {
		return require(name) === require(`${name}/bindings`);
	} catch {
		return false;
	}
}
