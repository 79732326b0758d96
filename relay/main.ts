// The relay's process: the environment and arguments come in, a running relay goes out, or one line that says what
// is wrong with a setting. Everything else is made in relay.ts.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { systemClock } from "../shared/clock.ts";
import { helpText, printedConfig, SettingError } from "../shared/config.ts";
import { nativeBindings } from "../shared/ethereum/native.ts";
import { stopOnSignals } from "../shared/lifecycle.ts";
import { createLogger, safeError } from "../shared/log.ts";
import { RELAY_SETTINGS, readRelayConfig } from "./config.ts";
import { createRelay } from "./relay.ts";

const KEEP_ALIVE_MS = 2 ** 30;
const COMMAND = "npm run relay";
const ABOUT = "takes signed transactions privately and sends them to block builders";

async function main(args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
	const unknown = args.find((arg) => arg !== "--help" && arg !== "--print-config");
	if (unknown !== undefined) {
		return refuse(`unknown option ${unknown.slice(0, 40)}: expected --help or --print-config`);
	}
	if (args.includes("--help")) return print(helpText(COMMAND, ABOUT, RELAY_SETTINGS));
	if (args.includes("--print-config")) return print(printedConfig(RELAY_SETTINGS, env));
	const config = readRelayConfig(env);
	const log = createLogger(config.LOG_LEVEL, "relay");
	for (const [task, native] of Object.entries(nativeBindings())) {
		if (native) log.info("native code loaded", { task, native });
		else log.warn("native code is not loaded: slow JavaScript runs in its place", { task, native });
	}
	const relay = createRelay(config, { log, version: version() });
	const exit = (code: number): never => process.exit(code);
	process.on("uncaughtException", (thrown) => {
		log.error("uncaught fault, stopping", { fault: safeError(thrown) });
		exit(1);
	});
	process.on("unhandledRejection", (thrown) => {
		log.error("unhandled rejection, stopping", { fault: safeError(thrown) });
		exit(1);
	});
	stopOnSignals(relay, { log, clock: systemClock, exit });
	// Timers do not keep the process alive, and before it listens nothing else does: only exit() ends it.
	setInterval(() => {}, KEEP_ALIVE_MS);
	await relay.start();
}

function version(): string {
	const file = fileURLToPath(new URL("../package.json", import.meta.url));
	return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

function print(text: string): void {
	process.stdout.write(`${text}\n`);
}

function refuse(text: string): void {
	process.stderr.write(`relay: ${text}\n`);
	process.exitCode = 1;
}

/** Refusals to start whose message is ours and meant for the operator, by their code. */
const TOLD = new Set([
	"SETTING",
	"FOLDER_IN_USE",
	"OTHER_CHAIN",
	"WRONG_NODE",
	"STORE_FORMAT",
	"LISTEN",
	"DATA_FOLDER",
]);

main(process.argv.slice(2), process.env).catch((thrown: unknown) => {
	const { name, code } = safeError(thrown);
	const told = thrown instanceof Error && (thrown instanceof SettingError || TOLD.has(code ?? ""));
	process.stderr.write(`relay: ${told ? thrown.message : `can't start (${code ?? name})`}\n`);
	process.exit(1);
});
