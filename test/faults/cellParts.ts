// The parts of one cell of the fault matrix: a relay of its own between wires that can fail on each
// side, a boost instance of its own, and the shared fallback behind another such wire. Everything
// can be broken and repaired from outside.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { BoostPath } from "../../boost-proxy/domain/request.ts";
import { freePort } from "../devnet/freePort.ts";
import { type RelayProcess, startBoostProcess, startRelayProcess } from "../support/processes.ts";
import { BOOST_SECRET, boostEnv, startBoostHere } from "./boostHere.ts";
import { type FaultyWire, startFaultyWire } from "./faultyWire.ts";
import { startRelayHere, type World } from "./world.ts";

export interface CellParts {
	readonly world: World;
	/** Between boost and its relay; a relay that is a process is reached without it. */
	readonly wire: FaultyWire;
	/** Between boost and the fallback. */
	readonly fallbackWire: FaultyWire;
	/** Between the relay and its node, and its builder, where the settings ask for one. */
	readonly nodeWire: FaultyWire | null;
	readonly builderWire: FaultyWire | null;
	/** The relay itself, past the wire. */
	readonly relay: { readonly url: string };
	readonly boost: { readonly url: string };
	/** The settings of boost. */
	readonly boostEnv: Readonly<Record<string, string>>;
	/** Those that are processes. */
	readonly processes: { readonly relay: Killable | null; readonly boost: Killable | null };
	stop(): Promise<void>;
}

export interface CellSettings {
	/** Settings of the relay, over the world's. */
	readonly relay?: Readonly<Record<string, string>>;
	/** Settings of boost, over the usual ones. */
	readonly boost?: Readonly<Record<string, string>>;
	/** Paths that the fallback may be given; both unless set. */
	readonly fallbackTakes?: readonly BoostPath[];
	/** Which are processes; in this one unless named. */
	readonly processes?: readonly ("relay" | "boost")[];
	/** Wires on the relay's other sides; each costs its time. */
	readonly wires?: readonly ("node" | "builder")[];
	/** The relay's builder, instead of the world's. */
	readonly builderUrl?: string;
}

type Env = Readonly<Record<string, string>>;

/** Starts a cell's parts in `world`; `name` is for its folder. */
export async function startCellParts(
	world: World,
	name: string,
	settings: CellSettings = {},
): Promise<CellParts> {
	const stops: (() => Promise<void>)[] = [];
	const kept = <T extends { stop(): Promise<void> }>(part: T): T => {
		stops.unshift(() => part.stop());
		return part;
	};
	const wireTo = async (url: string) => kept(await startFaultyWire(url));
	const sideWire = async (side: "node" | "builder", url: string) =>
		settings.wires?.includes(side) === true ? kept(await startFaultyWire(url, { records: false })) : null;
	try {
		const builderUrl = settings.builderUrl ?? world.builder.url;
		const nodeWire = await sideWire("node", world.chain.url);
		const builderWire = await sideWire("builder", builderUrl);
		const relay = await startRelay({
			...world.relayEnv,
			ETH_RPC_URL: nodeWire?.url ?? world.chain.url,
			BUILDERS: JSON.stringify([{ name: "dev", url: builderWire?.url ?? builderUrl }]),
			DATA_DIR: world.folder(name),
			BOOST_SECRET,
			...settings.relay,
		});
		const wire = await wireTo(relay.url);
		const fallbackWire = await wireTo(world.fallbackUrl);
		const relayUrl = relay.process === null ? wire.url : relay.url;
		const env = {
			...boostEnv({ relayUrl, fallbackUrl: fallbackWire.url, folder: world.folder(name) }),
			FALLBACK_REVERT_PROTECTED: String(settings.fallbackTakes?.includes("noreverts") ?? true),
			...settings.boost,
		};
		const boost = await startBoost(env);
		const processes = { relay: relay.process, boost: boost.process };
		return { world, wire, fallbackWire, builderWire, nodeWire, relay, boost, boostEnv: env, processes, stop };
	} catch (thrown) {
		await stop();
		throw thrown;
	}

	async function startRelay(env: Env): Promise<{ readonly url: string; readonly process: Killable | null }> {
		if (settings.processes?.includes("relay") === true) {
			const process = kept(await startKillable(startRelayProcess, env));
			return { url: process.url, process };
		}
		const here = kept(await startRelayHere(env));
		return { url: `http://127.0.0.1:${here.port}`, process: null };
	}

	async function startBoost(env: Env): Promise<{ readonly url: string; readonly process: Killable | null }> {
		if (settings.processes?.includes("boost") === true) {
			const process = kept(await startKillable(startBoostProcess, env));
			return { url: process.url, process };
		}
		return { url: kept(await startBoostHere(env)).url, process: null };
	}

	/** The last one first. */
	async function stop(): Promise<void> {
		for (const one of stops.splice(0)) await one();
	}
}

export interface Killable {
	/** The same for all its lives. */
	readonly url: string;
	/** SIGKILL; it is gone when this resolves. */
	kill(): Promise<void>;
	/** Starts it again; it is ready when this resolves. */
	restart(): Promise<void>;
	/**
	 * From now on, writes to files beyond `bytes` from their beginning fail, as on a full disk; null:
	 * they succeed again. (RLIMIT_FSIZE, set from outside by util-linux's prlimit.)
	 */
	limitFiles(bytes: number | null): Promise<void>;
	stop(): Promise<void>;
}

type Start = (options: { readonly env: Readonly<Record<string, string>> }) => Promise<RelayProcess>;

/** Starts it by `start` on a port of its own. */
export async function startKillable(start: Start, env: Readonly<Record<string, string>>): Promise<Killable> {
	const port = await freePort();
	const own = { env: { LOG_LEVEL: "warn", ...env, PORT: String(port) } };
	let running = await start(own);
	return {
		url: `http://127.0.0.1:${port}`,
		async kill() {
			await running.kill();
		},
		async restart() {
			running = await start(own);
		},
		async limitFiles(bytes) {
			const limit = bytes === null ? "unlimited" : `${bytes}:unlimited`;
			await promisify(execFile)("prlimit", ["--pid", String(running.pid), `--fsize=${limit}`]);
		},
		async stop() {
			await running.kill();
		},
	};
}
