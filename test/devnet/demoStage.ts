// The system of the demo: a chain, a builder, a market, the relay, and later its fallback and
// boost, each a process whose warnings are read from its log; it stops all that it started. Also
// prints the demo's lines and checks its claims.

import { createInterface } from "node:readline";
import { formatEther, hexlify, JsonRpcProvider, randomBytes, type Wallet } from "ethers";
import { pause, systemClock } from "../../shared/clock.ts";
import { compileContracts } from "./compileContracts.ts";
import { deployMarket, type Market, POOL } from "./deployMarket.ts";
import type { DevBuilder } from "./devBuilder.ts";
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
} from "./devSystem.ts";
import { freePort } from "./freePort.ts";
import { painted, usesColour } from "./narrator.ts";
import { bestRoundTrip } from "./searcher/pools.ts";

/** A claim did not hold; its line is already printed. */
export class ScenarioBroken extends Error {}

const COLOUR = usesColour(process.stdout);

/** Prints the demo, line by line. */
export class Scenario {
	/** The number of claims that have held. */
	claims = 0;

	/** Prints a heading. */
	chapter(text: string): void {
		print(`\n${painted(text, "cyan", COLOUR)}`);
	}

	/** Prints an action or a fact. */
	tell(text: string): void {
		print(`       ${text}`);
	}

	/**
	 * Checks and prints a claim. If it does not hold, prints what was `found` and throws {@link
	 * ScenarioBroken}.
	 */
	claim(text: string, holds: boolean, found = ""): void {
		print(`  ${painted(holds ? "ok  " : "FAIL", holds ? "green" : "red", COLOUR)} ${text}`);
		if (!holds && found !== "") this.tell(`found: ${found}`);
		if (!holds) throw new ScenarioBroken(`it does not hold that ${text}`);
		this.claims += 1;
	}

	/** Claims that two amounts of wei are equal. */
	same(text: string, is: bigint, shouldBe: bigint): void {
		this.claim(`${text}: ${amount(shouldBe)}`, is === shouldBe, amount(is));
	}

	/** The scenario can't go on. */
	broken(thrown: unknown): void {
		const text = thrown instanceof Error ? thrown.message : "something that is no error was thrown";
		print(`  ${painted("FAIL", "red", COLOUR)} ${text}`);
	}
}

function print(line: string): void {
	process.stdout.write(`${line}\n`);
}

/** Wei and ETH. */
export function amount(wei: bigint): string {
	return `${wei} wei (${formatEther(wei)} ETH)`;
}

/** The longest wait. */
const STEP_MS = 15_000;

/** Repeats a question until it has an answer. */
export async function until<T>(
	what: string,
	question: () => Promise<T | null | undefined | false> | T | null | undefined | false,
): Promise<T> {
	const end = systemClock.monotonic() + STEP_MS;
	for (;;) {
		const answer = await question();
		if (answer !== null && answer !== undefined && answer !== false) return answer;
		if (systemClock.monotonic() > end) throw new Error(`waited ${STEP_MS} ms in vain for ${what}`);
		await pause(systemClock, 20);
	}
}

/** Everything that has to be stopped. */
export class Stops {
	readonly #stops: (() => Promise<void>)[] = [];
	#stopping: Promise<void> | undefined;

	/** True from the first call of {@link all} on. */
	get begun(): boolean {
		return this.#stopping !== undefined;
	}

	/**
	 * Must be called as soon as something runs. If stopping has begun, stops it at once and throws.
	 */
	add(stop: () => Promise<void>): void {
		this.#stops.push(stop);
		if (!this.begun) return;
		stop().catch(() => {});
		throw new Error("it is being stopped");
	}

	/** Stops everything, even if stopping some of it fails. */
	all(): Promise<void> {
		this.#stopping ??= (async () => {
			for (const stop of [...this.#stops].reverse()) await stop().catch(() => {});
		})();
		return this.#stopping;
	}
}

/** The running system, and functions that start more. URLs are http. */
export interface Stage {
	readonly scenario: Scenario;
	readonly system: DevSystem;
	readonly builder: DevBuilder;
	readonly node: JsonRpcProvider;
	readonly market: Market;
	readonly user: Wallet;
	readonly searcherKey: string;
	readonly relayUrl: string;
	readonly boostUrl: string;
	/** Shows its operator boost's counts. */
	readonly metricsToken: string;
	readonly relay: QuietServer;
	/** Starts fallback and boost, and prints their addresses once they are ready. */
	readonly startBoost: () => Promise<void>;
	/** Starts the relay again with the same port and data; returns its pid once it is ready. */
	readonly restart: () => Promise<number>;
	/** Keys that sign requests to the builder. */
	readonly keys: { readonly relay: string; readonly fallback: string };
}

/** The user's percentage of what a backrun pays. */
export const REFUND_PERCENT = 90n;
/** Long enough for a bid on a busy machine, short enough to watch. */
const SLOT_SECONDS = 2;
const GWEI = 1_000_000_000n;
const RECEIVER = "0x00000000000000000000000000000000DeaDBeef";
/**
 * Boost's default times are for production; here they are shorter to watch, yet long enough for a
 * busy machine.
 */
const IMPATIENT = {
	...{ PROBE_INTERVAL_MS: "100", BREAKER_HOLD_MS: "200", BREAKER_HOLD_MAX_MS: "1000" },
	PROBE_TIMEOUT_MS: "2000",
};

/** Starts all except fallback and boost. */
export async function setTheStage(scenario: Scenario, stops: Stops): Promise<Stage> {
	scenario.chapter("The stage: a chain, a builder and a market of their own, all gone afterwards");
	scenario.tell(
		`It takes about half a minute. "ok" is a claim that was checked; the first that fails ends it.`,
	);
	scenario.tell("starting the dev chain and its builder …");
	const system = await startDevSystem({ chainPort: 0, builderPort: 0, slotSeconds: SLOT_SECONDS });
	stops.add(() => system.stop());
	const { chain, builder } = system;
	scenario.tell(`dev chain   ${chain.url}, chain id ${chain.chainId}, a block every ${chain.slotSeconds} s`);
	scenario.tell(`dev builder ${builder.url}, coinbase ${builder.coinbase}`);
	const servers = await startServers(scenario, stops, system);
	scenario.tell("compiling and deploying two pools and the searcher's contract …");
	const [deployer, searcher, user] = [chain.wallet(0), chain.wallet(1), chain.wallet(2)];
	const market = await deployMarket(chain.url, compileContracts(), { deployer, searcher, user });
	const [poolA, poolB] = market.pairs;
	scenario.tell(`pool A      ${poolA}, ${formatEther(POOL.weth)} WETH and ${formatEther(POOL.token)} TOKEN`);
	scenario.tell(`pool B      ${poolB}, the same`);
	scenario.claim(
		"no round trip through both gains anything now",
		bestRoundTrip(POOL, POOL, POOL.weth) === null,
	);
	const node = new JsonRpcProvider(chain.url, undefined, { cacheTimeout: -1, staticNetwork: true });
	stops.add(async () => node.destroy());
	return { scenario, system, builder, ...servers, node, market, user, searcherKey: searcher.privateKey };
}

/** Starts the relay, and prints its address. */
async function startServers(scenario: Scenario, stops: Stops, system: DevSystem) {
	const servers: QuietServer[] = [];
	stops.add(async () => {
		// At once: each goes on serving for a while.
		await Promise.all(servers.map((server) => server.stop()));
	});
	const launch = (...args: Parameters<typeof launchQuiet>): QuietServer => {
		if (stops.begun) throw new Error("it is being stopped");
		const server = launchQuiet(...args);
		servers.push(server);
		return server;
	};
	const ports = { relay: await freePort(), fallback: await freePort(), boost: await freePort() };
	const urls = { relay: urlOf(ports.relay), fallback: urlOf(ports.fallback) };
	const [ours, others] = [relaySettings(system), fallbackSettings(system)];
	// The one setting that may be given: what a relay that refunds otherwise does to the scenario.
	const percent = process.env.REFUND_PERCENT ?? String(REFUND_PERCENT);
	const [BOOST_SECRET, METRICS_TOKEN] = [hexlify(randomBytes(32)), hexlify(randomBytes(32))];
	const settings = { ...ours, REFUND_PERCENT: percent, BOOST_SECRET };
	const relay = launch("relay", settings, ports.relay);
	await relay.ready();
	scenario.tell(`relay       ${urls.relay}, a process of its own (${relay.pid})`);
	return {
		...{ relay, relayUrl: urls.relay, boostUrl: urlOf(ports.boost), metricsToken: METRICS_TOKEN },
		async startBoost() {
			const fallback = launch("relay", others, ports.fallback);
			const boostOwn = { ...boostSettings(system, urls), ...IMPATIENT, BOOST_SECRET, METRICS_TOKEN };
			const boost = launch("boost", boostOwn, ports.boost);
			await Promise.all([fallback.ready(), boost.ready()]);
			scenario.tell(`fallback    ${urls.fallback}, another relay, which knows nothing of this one`);
			scenario.tell(`boost       ${urlOf(ports.boost)}, in front of both`);
		},
		async restart() {
			const again = launch("relay", settings, ports.relay);
			await again.ready();
			return again.pid;
		},
		keys: { relay: ours.SIGNING_KEY ?? "", fallback: others.SIGNING_KEY ?? "" },
	};
}

/** A process that may not be ready yet. */
interface QuietServer {
	readonly pid: number;
	/** Waits until it is ready. Rejects with its warnings if it never is. */
	ready(): Promise<void>;
	/** Ends it and waits until it is gone. May be called again. */
	stop(): Promise<void>;
	/** The same by SIGKILL: it gets no chance to write anything. */
	kill(): Promise<void>;
}

const WARN = 40;
const KEPT_WARNINGS = 1_000;

/** Starts a process without waiting. Its environment is the settings, PATH, HOME and TMPDIR. */
function launchQuiet(
	name: ServerName,
	settings: Readonly<Record<string, string>>,
	port: number,
): QuietServer {
	const { PATH = "", HOME = "", TMPDIR = "/tmp" } = process.env;
	const env = { PATH, HOME, TMPDIR, ...settings, PORT: String(port), LOG_LEVEL: "info" };
	const child = startQuietServer(name, env);
	const warnings: string[] = [];
	for (const input of [child.stdout, child.stderr]) {
		createInterface({ input }).on("line", (line) => {
			const level = Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? WARN);
			if (level >= WARN && warnings.length < KEPT_WARNINGS) warnings.push(line);
		});
	}
	return {
		pid: child.pid ?? 0,
		stop: () => ended(child),
		kill: () => ended(child, "SIGKILL"),
		async ready() {
			if (await isReady(urlOf(port), child)) return;
			throw new Error([`${name} does not become ready`, ...warnings].join("\n"));
		},
	};
}

function urlOf(port: number): string {
	return `http://127.0.0.1:${port}`;
}

/** A user's transfer of 1 ETH with the next nonce, or a nonce `behind` later. */
export async function transfer({ system, node, user }: Stage, behind = 0): Promise<string> {
	const nonce = (await node.getTransactionCount(user.address)) + behind;
	return user.signTransaction({
		...{ type: 2, chainId: system.chain.chainId, nonce, to: RECEIVER, value: 10n ** 18n, gasLimit: 21_000n },
		...{ maxFeePerGas: 50n * GWEI, maxPriorityFeePerGas: 2n * GWEI },
	});
}

/** Waits for the beginning of a slot, so that what follows has all of it. */
export async function newBlock({ node }: Stage): Promise<void> {
	const head = await node.getBlockNumber();
	await until("a new block", async () => (await node.getBlockNumber()) > head);
}

/** A mined transaction. Addresses lower case; amounts in wei. */
export interface Landed {
	readonly hash: string;
	readonly block: number;
	/** Index in its block. */
	readonly index: number;
	readonly from: string;
	readonly to: string;
	readonly value: bigint;
	readonly succeeded: boolean;
	/** Wei that its sender paid for gas. */
	readonly gasCost: bigint;
	/** The part of {@link gasCost} that went to the coinbase. */
	readonly priorityFee: bigint;
}

/** Reads the transaction from the node; null while it is not mined. */
export async function landed({ node }: Pick<Stage, "node">, hash: string): Promise<Landed | null> {
	const [transaction, receipt] = await Promise.all([
		node.getTransaction(hash),
		node.getTransactionReceipt(hash),
	]);
	if (transaction === null || receipt === null) return null;
	const block = await node.getBlock(receipt.blockNumber);
	return {
		...{ hash, block: receipt.blockNumber, index: receipt.index, value: transaction.value },
		...{ from: receipt.from.toLowerCase(), to: (receipt.to ?? "").toLowerCase() },
		succeeded: receipt.status === 1,
		gasCost: receipt.gasUsed * receipt.gasPrice,
		priorityFee: receipt.gasUsed * (receipt.gasPrice - (block?.baseFeePerGas ?? 0n)),
	};
}
