// `npm start`: runs the whole system on this machine: a dev chain, a dev builder that really builds
// its blocks, a relay, another one as the fallback, and boost in front of both, each a process of
// its own. With RELAYS or BOOSTS set: several of them on one PostgreSQL. With ETH_RPC_URL set:
// relay and boost alone, against that node.

import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { TRIP_REASONS } from "../../boost-proxy/domain/ports.ts";
import { pause, systemClock } from "../../shared/clock.ts";
import { readCommand } from "../../shared/commandLine.ts";
import { startPostgres } from "../support/postgresServer.ts";
import { startBalancer } from "./balancer.ts";
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
import { misconductOf } from "./misconduct.ts";
import { narrate, painted, usesColour } from "./narrator.ts";
import { slotSecondsOf } from "./slots.ts";
import { START_PORTS, START_SETTINGS, type StartLayout, type StartPort, startLayout } from "./startLayout.ts";

const COLOUR = usesColour(process.stdout);
/** With a LOG_LEVEL the processes' log lines are printed; without one they are narrated. */
const TELLS = !isSet("LOG_LEVEL");
/**
 * Nothing is narrated after a stop: Ctrl-C reaches all processes at once, and each would report
 * that the others are gone.
 */
let stopping = false;
/**
 * From then on, one of several that ends by itself is started again; at the start it stops
 * everything.
 */
let started = false;
/** The time before a killed relay is started again, so that one can watch boost without it. */
const AWAY_MS = 15_000;
/** PostgreSQL's connections: enough for the most processes that can be started. */
const MOST_CONNECTIONS = 120;
/**
 * How long the second and further ones of a kind have to become ready before the addresses are
 * printed.
 */
const FURTHER_READY_MS = 2_000;

/** A relay or boost to start. */
interface Plan {
	readonly name: ServerName;
	readonly at: StartPort;
	/** Whether another of its kind goes on without it. */
	readonly isSpare: boolean;
	readonly env: NodeJS.ProcessEnv;
}

/** One that was started. */
interface Server extends Plan {
	child: ChildProcess;
}

interface Plans {
	readonly relays: readonly Plan[];
	readonly boosts: readonly Plan[];
	/** None or one. */
	readonly fallback: readonly Plan[];
}

/** The common parts of several relays or boosts; null with one of each. */
interface Shared {
	/** The one address of all relays. */
	readonly relayUrl: string;
	readonly databaseUrl: string;
	/** Ends what was started for it. */
	stop(): Promise<void>;
}

async function main(): Promise<void> {
	const own = !isSet("ETH_RPC_URL");
	const slotSeconds = slotSecondsOf(process.env);
	const fork = forkOf(process.env);
	const misconduct = misconductOf(process.env);
	const layout = startLayout(process.env);
	const isSeveral = layout.relays.length + layout.boosts.length > 2;
	if (isSeveral && !own && !isSet("DATABASE_URL"))
		throw new Error("several relays or boosts have one database: set DATABASE_URL beside ETH_RPC_URL");
	await portsAreFree(portsOf(layout, own));
	const [chainPort, builderPort] = [layout.chain.number, layout.builder.number];
	if (own) print(`Starting a dev chain (port ${chainPort}) and a builder (port ${builderPort}) …`);
	const system = own ? await startDevSystem({ chainPort, builderPort, slotSeconds, fork, misconduct }) : null;
	const shared = isSeveral ? await startShared(layout) : null;
	const { relays, boosts, fallback } =
		system === null ? alone(layout, shared) : around(system, layout, shared);
	const servers: Server[] = [];
	const stop = async (code: number): Promise<void> => {
		if (stopping) return;
		stopping = true;
		print(code === 0 ? "\nStopping." : "Stopping.");
		// Those in front first, so that their last requests still reach the others.
		for (const kind of ["boost", "relay"])
			await Promise.all(servers.filter(({ name }) => name === kind).map(({ child }) => ended(child)));
		await shared?.stop();
		await system?.stop();
		process.exit(code);
	};
	for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void stop(0));
	// Boost starts last: it would treat a relay that is not ready yet as down. The first of several
	// is ready before the others.
	const waiting: Server[] = [];
	for (const [some, ms] of [
		[[...relays.slice(0, 1), ...fallback], undefined],
		[relays.slice(1), FURTHER_READY_MS],
		[boosts.slice(0, 1), undefined],
		[boosts.slice(1), FURTHER_READY_MS],
	] as const) {
		const these = some.map(start);
		if (these.length === 0) continue;
		print(`Starting ${these.map(({ at }) => `${at.owner} (port ${at.number})`).join(" and ")} …`);
		servers.push(...these);
		for (const server of these) void keep(server, stop);
		const ready = await Promise.all(these.map(({ at, child }) => isReady(urlOf(at), child, ms)));
		if (stopping) return;
		waiting.push(...these.filter((_, i) => ready[i] !== true));
	}
	started = true;
	if (system === null) print(operatorsLine(urlOf(layout.boosts[0])));
	print(system === null ? addresses(servers) : welcome(system, layout, { shared, servers }));
	for (const { at } of waiting) print(`${at.owner} is not ready yet: see ${urlOf(at)}/readyz`);
}

/**
 * One port for all relays; and a new database, or that of DATABASE_URL beside a node that is not
 * ours.
 */
async function startShared({ relays, balancer }: StartLayout): Promise<Shared> {
	const given = isSet("ETH_RPC_URL") ? process.env.DATABASE_URL : undefined;
	if (given === undefined) print("Starting PostgreSQL …");
	const postgres = given === undefined ? await startPostgres({ connections: MOST_CONNECTIONS }) : null;
	const ports = relays.map(({ number }) => number);
	const front = balancer === null ? null : await startBalancer(balancer.number, ports);
	return {
		relayUrl: front?.url ?? urlOf(relays[0]),
		databaseUrl: given ?? (await postgres?.newDatabase()) ?? "",
		async stop() {
			await front?.stop();
			await postgres?.stop();
		},
	};
}

/** In the place of secrets that are not set. */
const OWN_SECRETS = {
	BOOST_SECRET: randomBytes(32).toString("hex"),
	ADMIN_TOKEN: randomBytes(16).toString("hex"),
};

/** Names the operators' pages; a token that is set is not printed. */
function operatorsLine(boost: string): string {
	const token = isSet("ADMIN_TOKEN") ? "your ADMIN_TOKEN" : `ADMIN_TOKEN ${OWN_SECRETS.ADMIN_TOKEN}`;
	return `Operators open ${boost}/operator and ${boost}/relay/operator with ${token}`;
}

/** Relays and boosts on a dev chain, and the fallback. */
function around(system: DevSystem, layout: StartLayout, shared: Shared | null): Plans {
	const usual = { ...OWN_SECRETS, LOG_LEVEL: "info" };
	const [relay, fallback] = [relaySettings(system), fallbackSettings(system)];
	const urls = { relay: shared?.relayUrl ?? urlOf(layout.relays[0]), fallback: urlOf(layout.fallback) };
	const boost = boostSettings(system, urls);
	const { RELAY_URL = "", FALLBACK_URL = "", FALLBACK_DIALECT = "" } = boost;
	const joined = { ...NO_PORTS, ...NO_FALLBACK, RELAY_URL, FALLBACK_URL, FALLBACK_DIALECT };
	// Always new stores, since the chain is new at each start.
	const DATABASE_URL = shared?.databaseUrl ?? "";
	const env = (own: Readonly<Record<string, string>>, more: Readonly<Record<string, string>>) =>
		environment({ ...usual, ...own }, { DATABASE_URL, ...more, DATA_DIR: own.DATA_DIR ?? "" });
	return {
		relays: each("relay", layout.relays, (more) => env(relay, more)),
		boosts: each("boost", layout.boosts, () => env(boost, joined)),
		fallback: each("relay", [layout.fallback], () =>
			env(fallback, { ...NO_PORTS, DATABASE_URL: "", BOOST_SECRET: "" }),
		),
	};
}

/** Relays and boosts with an existing node. */
function alone(layout: StartLayout, shared: Shared | null): Plans {
	const usual = OWN_SECRETS;
	const hasFallback = Object.keys(NO_FALLBACK).some(isSet);
	if (!hasFallback) print("FALLBACK_URL is not set: while the relay is down, boost can send nothing.");
	const none = hasFallback ? {} : { FALLBACK_URL: "none" };
	const joined = { ...NO_PORTS, RELAY_URL: shared?.relayUrl ?? urlOf(layout.relays[0]) };
	return {
		relays: each("relay", layout.relays, (more) => environment(usual, more)),
		boosts: each("boost", layout.boosts, () => environment({ ...usual, ...none }, joined)),
		fallback: [],
	};
}

/** A plan for each port; `env` receives the settings of this one alone. */
function each(
	name: ServerName,
	ports: readonly StartPort[],
	env: (more: Readonly<Record<string, string>>) => NodeJS.ProcessEnv,
): readonly Plan[] {
	const isSpare = ports.length > 1;
	return ports.map((at, i) => {
		// The others find it there: by itself it would name this machine's address in the network.
		const address = isSpare ? { INTERNAL_URL: urlOf(at) } : {};
		return { name, at, isSpare, env: env({ ...(i === 0 ? {} : NO_PORTS), ...address }) };
	});
}

/** An empty setting counts as not set. */
const NO_FALLBACK = { FALLBACK_URL: "", FALLBACK_FAST_URL: "", FALLBACK_NOREVERTS_URL: "" };
/** Ports that only one process can have: the first relay's. */
const NO_PORTS = { METRICS_PORT: "", SEARCHER_PORT: "" };

/** Settings: `joined` override the environment, which overrides `usual`. */
function environment(
	usual: Readonly<Record<string, string>>,
	joined: Readonly<Record<string, string>>,
): NodeJS.ProcessEnv {
	const unset = Object.entries(usual).filter(([name]) => !isSet(name));
	return { ...process.env, ...Object.fromEntries(unset), ...joined };
}

function start(plan: Plan): Server {
	const env = { ...plan.env, PORT: String(plan.at.number) };
	if (!TELLS) return { ...plan, child: startServer(plan.name, env) };
	const child = startQuietServer(plan.name, env);
	for (const stream of [child.stdout, child.stderr])
		narrate(plan.at.owner, stream, { print: tell, colour: COLOUR, reasons: TRIP_REASONS });
	return { ...plan, child };
}

/** The ports that will be listened on. */
function portsOf(layout: StartLayout, own: boolean): readonly StartPort[] {
	const { relays, boosts, balancer, chain, fallback, builder } = layout;
	const joined = [...relays, ...boosts, ...(balancer === null ? [] : [balancer])];
	return own ? [...joined, chain, fallback, builder] : joined;
}

/** Throws with all ports that are taken. */
async function portsAreFree(ports: readonly StartPort[]): Promise<void> {
	const taken: string[] = [];
	for (const { setting, number, owner } of ports) {
		if (!(await isFree(number)))
			taken.push(`port ${number}, for ${owner}, is taken: end what has it, or set ${setting} to another one`);
	}
	if (taken.length > 0) throw new Error(taken.join("\nnpm start: "));
}

/**
 * Starts again a killed relay, and any of several, as a host does; if anything else ends, stops
 * everything.
 */
async function keep(server: Server, stop: (code: number) => Promise<void>): Promise<void> {
	const { name, at, isSpare } = server;
	for (;;) {
		await new Promise((resolve) => server.child.once("exit", resolve));
		const { exitCode, signalCode } = server.child;
		if (stopping) return;
		const isKilledRelay = name === "relay" && signalCode !== null;
		if (!isKilledRelay && !(isSpare && started)) return stop(exitCode ?? 1);
		print(`${at.owner} has ended (${signalCode ?? exitCode}); it is started again in ${AWAY_MS / 1000} s`);
		await pause(systemClock, AWAY_MS);
		if (stopping) return;
		server.child = start(server).child;
		print(`${at.owner} is started again (pid ${server.child.pid})`);
	}
}

/** A line for each: `relay http://127.0.0.1:8080`. */
function addresses(servers: readonly Server[]): string {
	const lines = servers.map(({ at }) => `${nameOf(at)} ${urlOf(at)}`);
	return lines.sort().join("\n");
}

function welcome(
	{ chain, builder, fork }: DevSystem,
	layout: StartLayout,
	running: { readonly shared: Shared | null; readonly servers: readonly Server[] },
): string {
	const { shared, servers } = running;
	const account = chain.accounts[0];
	const [boost, relay, fallback] = [layout.boosts[0], layout.relays[0], layout.fallback].map(urlOf);
	const isSeveral = layout.relays.length > 1;
	const pid = servers.find(({ at }) => at === layout.relays[0])?.child.pid;
	const rows = [
		...layout.boosts.map((one, i) => [
			nameOf(one),
			urlOf(one),
			i === 0 ? "POST /fast /noreverts: the relay, or the fallback while it is down" : "",
		]),
		...layout.relays.map((one, i) => [
			nameOf(one),
			urlOf(one),
			i === 0 ? "POST /fast /noreverts /fullprivacy /maxbackruns /nochecks" : "",
		]),
		...(isSeveral ? [["balancer", shared?.relayUrl, "all relays behind one port, as boost has them"]] : []),
		["fallback", fallback, "a relay of its own, for boost"],
		["status", `${boost}/tx/<hash>, ${boost}/tx/<hash>/events`],
		["searchers", relay?.replace("http", "ws"), "eth_subscribe, eth_sendBundle"],
		...(shared === null ? [] : [["database", shared.databaseUrl]]),
		[
			...["dev chain", chain.url],
			`chain id ${chain.chainId}, a block every ${chain.slotSeconds} s${fork === undefined ? "" : `, ${fork.name}`}`,
		],
		["dev builder", builder.url],
	];
	const table = rows.map(([name = "", url = "", about = ""]) =>
		`  ${name.padEnd(12)} ${url.padEnd(30)} ${about}`.trimEnd(),
	);
	return `
Leeward is running.

${table.join("\n")}

Send a first transaction, privately:

  npx cast send --rpc-url ${boost}/fast \\
    --private-key ${account?.privateKey} \\
    --value 1ether 0x000000000000000000000000000000000000dEaD

Kill the ${isSeveral ? "first relay" : "relay"} and send another one: boost carries on. It is back after ${AWAY_MS / 1000} seconds.

  kill -9 ${pid}

Open ${painted(`${boost}/`, "cyan", COLOUR)} in a browser, too.
${operatorsLine(boost ?? "")}.

These accounts have 10,000 ETH each. Their keys are anvil's well-known ones: never send anything real there.

${chain.accounts.map(({ address, privateKey }) => `  ${address}  ${privateKey}`).join("\n")}

Events are printed below. The chain is gone when this ends. Stop with Ctrl-C.
`;
}

/** "relay", or of several "relay 2". */
function nameOf({ owner }: StartPort): string {
	return owner.replace(/^the /, "");
}

function urlOf(at: StartPort): string {
	return `http://127.0.0.1:${at.number}`;
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

const COMMAND = {
	name: "npm start",
	about: [
		"runs the whole system on this machine: a dev chain, a builder that builds its blocks,",
		"a relay, another one as the fallback, and boost in front of both. Ctrl-C ends it all.",
	],
	settings: [
		...Object.values(START_PORTS).map(
			([setting, usual, owner]) => [setting, `port of ${owner}; default ${usual}`] as const,
		),
		...START_SETTINGS,
	],
};

if (readCommand(COMMAND, process.argv.slice(2)) !== null) {
	main().catch((thrown: unknown) => {
		process.stderr.write(`npm start: ${thrown instanceof Error ? thrown.message : "can't start"}\n`);
		process.exit(1);
	});
}
