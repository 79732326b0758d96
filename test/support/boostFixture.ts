// Starts a relay, a second relay as the fallback, and boosts in front of both, on one chain and one
// builder, all in this process. Boosts reach relay and fallback through faulty wires: TCP proxies
// that a test can make fail.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readBoostConfig } from "../../boost-proxy/config.ts";
import type { BoostStatus } from "../../boost-proxy/ingress/operators.ts";
import { createProxy } from "../../boost-proxy/proxy.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Server } from "../../shared/lifecycle.ts";
import { type Logger, silentLogger } from "../../shared/log.ts";
import { boostEnv } from "../faults/boostHere.ts";
import { type FaultyWire, startFaultyWire } from "../faults/faultyWire.ts";
import type { WireFault } from "../faults/wireFaults.ts";
import { startRelayHere } from "../faults/world.ts";
import { Wire, type WireRequest, type WireResponse } from "../integration/transport/badInput/wire.ts";
import { ADMIN_TOKEN, AUTHORIZED, type WireAnswer } from "./relayClient.ts";
import { RelayFixture } from "./relayFixture.ts";
import { openTestStore } from "./storeEngines.ts";
import { type SystemOptions, startSystem } from "./systems.ts";
import { until } from "./until.ts";

type Env = Readonly<Record<string, string>>;

interface BoostFixtureOptions {
	/** Options of the relay; its `env` overrides the fixture's. */
	readonly system?: SystemOptions;
	/** Settings of the fallback, which override the relay's. */
	readonly fallback?: Env;
	/** The log of the first boost. Default: none. */
	readonly log?: Logger;
	/**
	 * Settings of all boosts, which override the fixture's: those of `boostEnv`, whose transactions
	 * live for 1000 blocks.
	 */
	readonly boost?: Env;
	/** Whether boosts reach the relay directly: its wire rewrites some headers. */
	readonly unwired?: boolean;
}

interface BoostOptions {
	/** Overrides the fixture's settings; undefined removes one. */
	readonly env?: Readonly<Record<string, string | undefined>>;
	readonly log?: Logger;
	readonly clock?: Clock;
}

/** An answer with its body parsed as JSON; undefined if it has none. */
export interface Reply extends WireResponse {
	readonly json: unknown;
}

/** Path (default `/fast`) and headers of a call. */
export interface CallOptions {
	readonly path?: string;
	readonly headers?: Env;
}

/**
 * Options for tests that wait for seconds, through which relays and boosts would poll each other.
 */
export const QUIET = { system: { env: { HEAD_POLL_MS: "250" } }, boost: { PROBE_INTERVAL_MS: "1000" } };

export const BOOST_SECRET = "what boost and its relay share";

/** Relay, fallback and boosts. */
export class BoostFixture {
	/** The relay and its chain, as users see them. */
	readonly users: RelayFixture;
	/** The wires between boost and each upstream. */
	readonly wires: { readonly relay: FaultyWire; readonly fallback: FaultyWire };
	/** The URL of the second relay, not of its wire. */
	readonly fallbackUrl: string;
	/** The boost that most tests use. */
	readonly boost: BoostClient;
	readonly #parts: Parts;

	constructor(parts: Parts, boost: BoostClient) {
		this.users = parts.users;
		this.wires = parts.wires;
		this.fallbackUrl = parts.fallbackUrl;
		this.boost = boost;
		this.#parts = parts;
	}

	get system() {
		return this.users.system;
	}

	/** A folder for a test's files; removed at the end. */
	get folder(): string {
		return this.#parts.folder;
	}

	/**
	 * Starts another boost instance in front of the same upstreams; it is stopped with the fixture.
	 */
	startBoost(options: BoostOptions = {}): Promise<BoostClient> {
		return startBoost(this.#parts, options);
	}

	/** Makes the relay's wire fail, and waits until boost has noticed. */
	async fails(fault: WireFault = { kind: "refuse" }, boost = this.boost): Promise<void> {
		await this.wires.relay.set(fault);
		await boost.reaches("the relay is down", ({ relay }) => relay.state !== "closed");
	}

	/** Lifts all faults of the wires, and waits until boost has noticed. */
	async recovers(boost = this.boost): Promise<void> {
		await this.wires.relay.set(null);
		await this.wires.fallback.set(null);
		await boost.isWell();
	}

	/**
	 * Like {@link fails}, but an operator tells boost: for tests that are not about what it notices
	 * by itself.
	 */
	async goesOut(upstream: "relay" | "fallback" = "relay", boost = this.boost): Promise<void> {
		await this.wires[upstream].set({ kind: "refuse" });
		await boost.force("open", upstream);
	}

	/** Ends what {@link goesOut} began, of both upstreams. */
	async comesBack(): Promise<void> {
		for (const upstream of ["relay", "fallback"] as const) {
			await this.wires[upstream].set(null);
			await this.boost.force("auto", upstream);
		}
	}

	stop(): Promise<void> {
		return stopAll(this.#parts.stops);
	}
}

/** A client of one boost. */
export class BoostClient {
	readonly port: number;
	/** http://127.0.0.1:port */
	readonly url: string;
	readonly #wire: Wire;
	readonly #server: Pick<Server, "stop"> | null;

	/** `server`: the boost itself, if the client may stop it. */
	constructor(port: number, server: Pick<Server, "stop"> | null = null) {
		this.port = port;
		this.#server = server;
		this.url = `http://127.0.0.1:${port}`;
		this.#wire = new Wire(port);
	}

	/** Sends a request; the answer's body is not parsed. */
	raw(request: WireRequest): Promise<WireResponse> {
		return this.#wire.send(request);
	}

	async send(request: WireRequest): Promise<Reply> {
		const response = await this.raw(request);
		return { ...response, json: response.body === "" ? undefined : JSON.parse(response.body) };
	}

	/** Posts `body` as JSON. */
	post(body: unknown, { path = "/fast", headers = {} }: CallOptions = {}): Promise<Reply> {
		return this.send({ path, headers, body: JSON.stringify(body) });
	}

	/** Makes one call, with the id 1. */
	call(method: string, params: readonly unknown[] = [], options: CallOptions = {}): Promise<Reply> {
		return this.post({ jsonrpc: "2.0", id: 1, method, params }, options);
	}

	/** The result of one call; throws with the whole answer if it has none. */
	async result(method: string, params: readonly unknown[] = [], options: CallOptions = {}): Promise<unknown> {
		const reply = await this.call(method, params, options);
		const { result, error } = reply.json as WireAnswer;
		if (error !== undefined || result === undefined)
			throw new Error(`${method}: ${reply.status} ${reply.body}`);
		return result;
	}

	get(path: string): Promise<Reply> {
		return this.send({ verb: "GET", path });
	}

	/** As its operator sees it. */
	async status(): Promise<BoostStatus> {
		const { json } = await this.send({ verb: "GET", path: "/status", headers: AUTHORIZED });
		return json as BoostStatus;
	}

	/** Waits until `/status` satisfies `is`. */
	reaches(what: string, is: (status: BoostStatus) => boolean): Promise<true> {
		return until(what, async () => is(await this.status()));
	}

	/** Waits until both breakers let requests through. */
	async isWell(): Promise<void> {
		await this.reaches("both are healthy", ({ relay, fallback }) => {
			return relay.state === "closed" && (fallback === null || fallback.state === "closed");
		});
	}

	/** Forces a breaker (default the relay's) to `open`, `close` or `auto`, as an operator does. */
	async force(state: "open" | "close" | "auto", upstream = "relay"): Promise<void> {
		const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
		const { status, body } = await this.send({ path: `/admin/${state}?upstream=${upstream}`, headers });
		if (status !== 200) throw new Error(`${state}: ${status} ${body}`);
	}

	close(): void {
		this.#wire.close();
	}

	/** Stops the boost, too. */
	async stop(): Promise<void> {
		this.close();
		await this.#server?.stop();
	}
}

interface Parts {
	readonly users: RelayFixture;
	readonly wires: BoostFixture["wires"];
	readonly fallbackUrl: string;
	readonly env: Env;
	readonly folder: string;
	/** Functions that stop what was started, in the order of the starts. */
	readonly stops: (() => Promise<void>)[];
}

/** Starts everything; the caller stops it. */
export async function startBoostFixture(options: BoostFixtureOptions = {}): Promise<BoostFixture> {
	const stops: Parts["stops"] = [];
	const kept = <T extends { stop(): Promise<void> }>(part: T): T => {
		stops.push(() => part.stop());
		return part;
	};
	try {
		return await start();
	} catch (thrown) {
		await stopAll(stops);
		throw thrown;
	}

	async function start(): Promise<BoostFixture> {
		const folder = mkdtempSync(join(tmpdir(), "leeward-boost-"));
		stops.push(async () => rmSync(folder, { recursive: true, force: true }));
		const { system: wanted, fallback } = options;
		// Short slots, since boost asks some things only once a slot.
		const chain = { slotSeconds: 1 };
		const system = kept(await startSystem({ chain, ...wanted, env: { BOOST_SECRET, ...wanted?.env } }));
		const { BOOST_SECRET: _, ...second } = system.env;
		// Hardly a test waits for a head of the fallback.
		const own = { DATA_DIR: join(folder, "fallback"), HEAD_POLL_MS: "250" };
		const relay = kept(await startRelayHere({ ...second, ...own, ...fallback }));
		const fallbackUrl = `http://127.0.0.1:${relay.port}`;
		const wires = {
			relay: kept(await startFaultyWire(system.client.url)),
			fallback: kept(await startFaultyWire(fallbackUrl)),
		};
		const relayUrl = options.unwired === true ? system.client.url : wires.relay.url;
		const env = {
			...boostEnv({ relayUrl, fallbackUrl: wires.fallback.url, folder }),
			...{ BOOST_SECRET, ADMIN_TOKEN, SLOT_SECONDS: String(system.chain.slotSeconds) },
			// Probes every 50 ms were half of the CPU time of most tests. One successful probe closes a
			// breaker instead of three.
			...{ PROBE_INTERVAL_MS: "150", PROBE_SUCCESSES: "1" },
			...{ BREAKER_HOLD_MS: "50", BREAKER_HOLD_MAX_MS: "200" },
			// On a busy machine a healthy relay may take seconds to answer, and none of the tests has one
			// that hangs.
			PROBE_TIMEOUT_MS: "5000",
			...options.boost,
		};
		const parts = { users: new RelayFixture(system), wires, fallbackUrl, env, folder, stops };
		return new BoostFixture(parts, await startBoost(parts, { log: options.log ?? silentLogger }));
	}
}

async function stopAll(stops: (() => Promise<void>)[]): Promise<void> {
	for (const one of stops.splice(0).reverse()) await one();
}

async function startBoost(
	parts: Parts,
	{ env, log = silentLogger, clock }: BoostOptions,
): Promise<BoostClient> {
	const DATA_DIR = mkdtempSync(join(parts.folder, "boost-"));
	const config = readBoostConfig({ ...parts.env, DATA_DIR, DRAIN_SECONDS: "0", ...env });
	const clocked = clock === undefined ? {} : { clock };
	const proxy = createProxy(config, { log, openStore: openTestStore, ...clocked });
	await proxy.start();
	const client = new BoostClient(proxy.port, proxy);
	parts.stops.push(() => client.stop());
	await client.isWell();
	return client;
}
