// `npm start`: runs the whole system on this machine: a dev chain, a dev builder that really builds its blocks, a
// relay, a second one as the fallback, and boost in front of both, each a process of its own. With ETH_RPC_URL set:
// relay and boost alone, against that node.

import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { TRIP_REASONS } from "../../boost-proxy/domain/ports.ts";
import { pause, systemClock } from "../../shared/clock.ts";
import {
	boostSettings,
	type DevSystem,
	ended,
	fallbackSettings,
	isReady,
	relaySettings,
	type ServerName,
	startDevSystem,
	startQuietServer,
	startServer,
} from "./devSystem.ts";
import { forkOf } from "./forkChain.ts";
import { isFree } from "./freePort.ts";
import { narrate, painted, usesColour } from "./narrator.ts";
import { slotSecondsOf } from "./slots.ts";

/** The ports: setting, default and owner. The last three are only used with a dev chain. */
const PORTS = [
	["RELAY_PORT", 8080, "the relay"],
	["BOOST_PORT", 8081, "boost"],
	["CHAIN_PORT", 8545, "the dev chain"],
	["FALLBACK_PORT", 8082, "the fallback"],
	["BUILDER_PORT", 8083, "the dev builder"],
] as const;
const [RELAY_PORT, BOOST_PORT, CHAIN_PORT, FALLBACK_PORT, BUILDER_PORT] = PORTS.map(([name, usual]) =>
	port(name, usual),
) as [number, number, number, number, number];
const COLOUR = usesColour(process.stdout);
/** With a LOG_LEVEL the processes' log lines are printed; without one they are narrated. */
const TELLS = !isSet("LOG_LEVEL");
/** Nothing is narrated after a stop: Ctrl-C reaches all processes at once, and each would report that the others are gone. */
let stopping = false;
/** The time before a killed relay is started again, so that one can watch boost without it. */
const AWAY_MS = 15_000;

/** A process to start. */
interface Server {
	readonly name: ServerName;
	/** Its name in the output. */
	readonly title: string;
	readonly port: number;
	readonly env: NodeJS.ProcessEnv;
	child: ChildProcess;
}

async function main(): Promise<void> {
	const own = !isSet("ETH_RPC_URL");
	const slotSeconds = slotSecondsOf(process.env);
	const fork = forkOf(process.env);
	await portsAreFree(own);
	if (own) print(`Starting a dev chain (port ${CHAIN_PORT}) and a builder (port ${BUILDER_PORT}) …`);
	const system = own
		? await startDevSystem({ chainPort: CHAIN_PORT, builderPort: BUILDER_PORT, slotSeconds, fork })
		: null;
	const [front, ...behind] = system === null ? alone() : around(system);
	print(`Starting ${behind.map(({ title, port }) => `${title} (port ${port})`).join(" and ")} …`);
	const servers = behind.map(start);
	const stop = async (code: number): Promise<void> => {
		if (stopping) return;
		stopping = true;
		print(code === 0 ? "\nStopping." : "Stopping.");
		// Those in front first, so that their last requests still reach the others.
		const [last, ...others] = [...servers].reverse();
		if (last !== undefined) await ended(last.child);
		await Promise.all(others.map(({ child }) => ended(child)));
		await system?.stop();
		process.exit(code);
	};
	for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void stop(0));
	for (const server of servers) void keep(server, stop);
	const readyOnes = await Promise.all(servers.map(isUp));
	if (stopping) return;
	print(`Starting boost (port ${BOOST_PORT}) …`);
	// Boost starts last: it would treat a relay that is not ready yet as down.
	const boost = start(front);
	servers.push(boost);
	void keep(boost, stop);
	const ready = [...readyOnes, await isUp(boost)];
	if (stopping) return;
	print(
		system === null ? `boost ${urlOf(BOOST_PORT)}\nrelay ${urlOf(RELAY_PORT)}` : welcome(system, servers),
	);
	for (const [i, server] of servers.entries()) {
		if (ready[i] !== true) print(`${server.title} is not ready yet: see ${urlOf(server.port)}/readyz`);
	}
}

type Plan = Omit<Server, "child">;

/** Boost, and what is behind it: the relay and the fallback. */
function around(system: DevSystem): [Plan, ...Plan[]] {
	const usual = { BOOST_SECRET: randomBytes(32).toString("hex"), LOG_LEVEL: "info" };
	const boost = boostSettings(system, { relay: urlOf(RELAY_PORT), fallback: urlOf(FALLBACK_PORT) });
	const [relay, fallback] = [relaySettings(system), fallbackSettings(system)];
	const { RELAY_URL = "", FALLBACK_URL = "", FALLBACK_DIALECT = "" } = boost;
	const joined = { ...NO_PORTS, ...NO_FALLBACK, RELAY_URL, FALLBACK_URL, FALLBACK_DIALECT };
	// Always new folders, since the chain is new at each start.
	const env = (own: Readonly<Record<string, string>>, more: Readonly<Record<string, string>>) =>
		environment({ ...usual, ...own }, { ...more, DATA_DIR: own.DATA_DIR ?? "" });
	return [
		{ ...BOOST, env: env(boost, joined) },
		{ ...RELAY, env: env(relay, {}) },
		{ ...FALLBACK, env: env(fallback, { ...NO_PORTS, BOOST_SECRET: "" }) },
	];
}

/** Starts relay and boost with an existing node. */
function alone(): [Plan, ...Plan[]] {
	const usual = { BOOST_SECRET: randomBytes(32).toString("hex") };
	const hasFallback = Object.keys(NO_FALLBACK).some(isSet);
	if (!hasFallback) print("FALLBACK_URL is not set: while the relay is out, boost can send nothing.");
	const none = hasFallback ? {} : { FALLBACK_URL: "none" };
	const joined = { ...NO_PORTS, RELAY_URL: urlOf(RELAY_PORT) };
	return [
		{ ...BOOST, env: environment({ ...usual, ...none }, joined) },
		{ ...RELAY, env: environment(usual, {}) },
	];
}

const RELAY = { name: "relay", title: "the relay", port: RELAY_PORT } as const;
const FALLBACK = { name: "relay", title: "the fallback", port: FALLBACK_PORT } as const;
const BOOST = { name: "boost", title: "boost", port: BOOST_PORT } as const;
/** An empty setting counts as not set. */
const NO_FALLBACK = { FALLBACK_URL: "", FALLBACK_FAST_URL: "", FALLBACK_NOREVERTS_URL: "" };
/** Ports that only one process can have: the relay's. */
const NO_PORTS = { METRICS_PORT: "", SEARCHER_PORT: "" };

/** Settings: `joined` override the environment, which overrides `usual`. */
function environment(
	usual: Readonly<Record<string, string>>,
	joined: Readonly<Record<string, string>>,
): NodeJS.ProcessEnv {
	const unset = Object.entries(usual).filter(([name]) => !isSet(name));
	return { ...process.env, ...Object.fromEntries(unset), ...joined };
}

function start(server: Plan): Server {
	const env = { ...server.env, PORT: String(server.port) };
	if (!TELLS) return { ...server, child: startServer(server.name, env) };
	const child = startQuietServer(server.name, env);
	for (const stream of [child.stdout, child.stderr])
		narrate(server.title, stream, { print: tell, colour: COLOUR, reasons: TRIP_REASONS });
	return { ...server, child };
}

/** Throws with all ports that are taken. */
async function portsAreFree(own: boolean): Promise<void> {
	const taken: string[] = [];
	for (const [name, usual, who] of own ? PORTS : PORTS.slice(0, 2)) {
		const number = port(name, usual);
		if (!(await isFree(number)))
			taken.push(`port ${number}, for ${who}, is taken: end what has it, or set ${name} to another one`);
	}
	if (taken.length > 0) throw new Error(taken.join("\nnpm start: "));
}

/** A port by its setting. */
function port(name: string, usual: number): number {
	const given = process.env[name] ?? "";
	const value = given === "" ? usual : Number(given);
	if (Number.isInteger(value) && value > 0 && value < 65_536) return value;
	process.stderr.write(
		`npm start: ${name} is not valid: expected a port, 1 to 65535, for example ${name}=${usual}\n`,
	);
	process.exit(1);
}

function isUp(server: Server): Promise<boolean> {
	return isReady(urlOf(server.port), server.child);
}

/** Starts a killed relay again; if anything else ends, stops everything. */
async function keep(server: Server, stop: (code: number) => Promise<void>): Promise<void> {
	for (;;) {
		await new Promise((resolve) => server.child.once("exit", resolve));
		const { exitCode, signalCode } = server.child;
		if (stopping) return;
		if (server.name === "boost" || signalCode === null) return stop(exitCode ?? 1);
		print(`${server.title} has ended (${signalCode}); it is started again in ${AWAY_MS / 1000} s`);
		await pause(systemClock, AWAY_MS);
		if (stopping) return;
		server.child = start(server).child;
		print(`${server.title} is started again (pid ${server.child.pid})`);
	}
}

function welcome({ chain, builder, fork }: DevSystem, servers: readonly Server[]): string {
	const account = chain.accounts[0];
	const [relay, boost, fallback] = [RELAY_PORT, BOOST_PORT, FALLBACK_PORT].map(urlOf);
	const pid = servers.find(({ port }) => port === RELAY_PORT)?.child.pid;
	return `
Leeward is running.

  boost        ${boost}          POST /fast /noreverts: the relay, or the fallback while it is out
  relay        ${relay}          POST /fast /noreverts /fullprivacy /maxbackruns /nochecks
  fallback     ${fallback}          a second relay, for boost
  status       ${boost}/tx/<hash>, ${boost}/tx/<hash>/events
  searchers    ${relay?.replace("http", "ws")}            eth_subscribe, eth_sendBundle
  dev chain    ${chain.url}          chain id ${chain.chainId}, a block every ${chain.slotSeconds} s${fork === undefined ? "" : `, ${fork.name}`}
  dev builder  ${builder.url}

Send a first transaction, privately:

  npx cast send --rpc-url ${boost}/fast \\
    --private-key ${account?.privateKey} \\
    --value 1ether 0x000000000000000000000000000000000000dEaD

Kill the relay and send another one: boost carries on. It is back after ${AWAY_MS / 1000} seconds.

  kill -9 ${pid}

Open ${painted(`${boost}/`, "cyan", COLOUR)} in a browser, too.

These accounts have 10,000 ETH each. Their keys are anvil's well-known ones: never send anything real there.

${chain.accounts.map(({ address, privateKey }) => `  ${address}  ${privateKey}`).join("\n")}

What happens is told below. The chain is gone when this ends. Stop with Ctrl-C.
`;
}

function urlOf(port: number): string {
	return `http://127.0.0.1:${port}`;
}

function isSet(name: string): boolean {
	return (process.env[name] ?? "") !== "";
}

function tell(line: string): void {
	if (!stopping) print(line);
}

function print(text: string): void {
	process.stdout.write(`${text}\n`);
}

main().catch((thrown: unknown) => {
	process.stderr.write(`npm start: ${thrown instanceof Error ? thrown.message : "can't start"}\n`);
	process.exit(1);
});
