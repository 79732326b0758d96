// The system that the alerts are fired on: two relays and a boost instance as processes on one
// PostgreSQL, a chain whose node may fail, and a real Prometheus. It scrapes them twice a second by
// the rules of docs/monitoring/alerts.yml, their times shortened.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pause, systemClock } from "../../shared/clock.ts";
import { ended } from "../devnet/devSystem.ts";
import { freePort } from "../devnet/freePort.ts";
import { textOf } from "../support/documents.ts";
import { type NodeProxy, startNodeProxy } from "../support/nodes.ts";
import { type PostgresServer, startPostgres } from "../support/postgresServer.ts";
import { type LaunchedRelay, launchBoost, launchRelay, readyStatus } from "../support/processes.ts";
import { METRICS_TOKEN, RelayClient } from "../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../support/systems.ts";
import { accountOf, rawTransaction } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const READY_MS = 60_000;
const BOOST_SECRET = "what boost and its relays share";
/** Between two blocks, in ms. */
const BLOCK_MS = 1_000;

/**
 * Times that are shorter here than in production, and lower thresholds for what would take too much
 * time or memory.
 */
const SHORTER: readonly (readonly [RegExp, string])[] = [
	[/^( +for:) .*$/gm, "$1 2s"],
	[/\[(?:5m|10m)\]/g, "[15s]"],
	[/\[1h:30s\]/g, "[2m:1s]"],
	[/(relay_oldest_pending_seconds\)) > 900/, "$1 > 20"],
	[/(relay_lane_fullness\)) > 0\.8/, "$1 > 0.001"],
	[/(\{job=~"relay\|boost"\}) > 1\.5e9/, "$1 > 1e8"],
];

/** The rules with these changes. Throws if one has nothing to change. */
export function shortened(rules: string): string {
	return SHORTER.reduce((text, [from, to]) => {
		if (text.replace(from, to) === text) throw new Error(`the rules have no ${from}`);
		return text.replace(from, to);
	}, rules);
}

/** One of the places that Prometheus scrapes. */
interface Place {
	readonly job: "relay" | "boost";
	readonly url: string;
	readonly port: number;
	process: LaunchedRelay | null;
}

/** The whole of it. */
export class AlertWorld {
	readonly system: ProcessSystem;
	/** Between the relays and the chain. */
	readonly node: NodeProxy;
	readonly postgres: PostgresServer;
	readonly relays: readonly [Place, Place];
	readonly boost: Place;
	readonly client: RelayClient;
	readonly #databases: Readonly<Record<Place["job"], string>>;
	readonly #folder: string;
	readonly #nonces = new Map<number, number>();
	#prometheus: ChildProcess | null = null;
	#prometheusUrl = "";
	#isOver = false;
	#builds = true;
	#building: Promise<void> = Promise.resolve();

	private constructor(
		parts: Pick<AlertWorld, "system" | "node" | "postgres" | "relays" | "boost"> & {
			readonly databases: Readonly<Record<Place["job"], string>>;
			readonly folder: string;
		},
	) {
		this.system = parts.system;
		this.node = parts.node;
		this.postgres = parts.postgres;
		this.relays = parts.relays;
		this.boost = parts.boost;
		this.client = new RelayClient(parts.boost.url);
		this.#databases = parts.databases;
		this.#folder = parts.folder;
	}

	/** Starts all of it; the caller stops it. */
	static async start(): Promise<AlertWorld> {
		const system = await startProcessSystem();
		const node = await startNodeProxy(system.chain.url);
		const postgres = await startPostgres();
		const place = async (job: Place["job"]): Promise<Place> => {
			const port = await freePort();
			return { job, port, url: `http://127.0.0.1:${port}`, process: null };
		};
		const world = new AlertWorld({
			...{ system, node, postgres },
			databases: { relay: await postgres.newDatabase(), boost: await postgres.newDatabase() },
			relays: [await place("relay"), await place("relay")],
			boost: await place("boost"),
			folder: mkdtempSync(join(tmpdir(), "leeward-alerts-")),
		});
		world.#building = world.#build();
		for (const relay of world.relays) await world.startRelay(relay);
		await world.startBoost();
		await world.#startPrometheus();
		return world;
	}

	/** Starts the relay of a place, and waits until it is ready, or for as long as `isReady` says. */
	async startRelay(
		place: Place,
		env: Readonly<Record<string, string>> = {},
		isReady: () => Promise<boolean> = async () => (await readyStatus(place.url)) === 200,
	): Promise<void> {
		place.process = launchRelay({
			env: {
				...this.system.env,
				ETH_RPC_URL: this.node.url,
				DATABASE_URL: this.#databases.relay,
				PORT: String(place.port),
				INTERNAL_URL: place.url,
				BOOST_SECRET,
				TX_TTL_BLOCKS: "1000",
				LOG_LEVEL: "warn",
				...env,
			},
		});
		await until(`the relay at ${place.url}`, isReady, READY_MS);
	}

	async restartBoost(env: Readonly<Record<string, string>> = {}): Promise<void> {
		await this.boost.process?.kill();
		await this.startBoost(env);
	}

	async startBoost(env: Readonly<Record<string, string>> = {}): Promise<void> {
		this.boost.process = launchBoost({
			env: {
				PORT: String(this.boost.port),
				HOST: "127.0.0.1",
				RELAY_URL: this.relays[0].url,
				FALLBACK_URL: "none",
				BOOST_SECRET,
				METRICS_TOKEN,
				DATABASE_URL: this.#databases.boost,
				SLOT_SECONDS: "1",
				TX_TTL_BLOCKS: "1000",
				RATE_LIMIT_RPS: "0",
				LOG_LEVEL: "warn",
				...env,
			},
		});
		const { url } = this.boost;
		await until("boost", async () => (await readyStatus(url)) === 200, READY_MS);
	}

	/** Whether a block is built each second. */
	build(builds: boolean): void {
		this.#builds = builds;
	}

	/** The relay that decides. */
	async core(): Promise<Place> {
		return until(
			"a core",
			async () => {
				for (const relay of this.relays) {
					const answer = await fetch(`${relay.url}/info`).catch(() => null);
					const info = (await answer?.json().catch(() => null)) as { role?: string } | null | undefined;
					if (info?.role === "core") return relay;
				}
				return undefined;
			},
			READY_MS,
		);
	}

	/**
	 * Submits `count` transactions of the chain's account with this index through `to`; what is
	 * refused is left out. Returns the others' raw bytes.
	 */
	async submit(account: number, count: number, to: RelayClient = this.client): Promise<readonly string[]> {
		const accepted: string[] = [];
		const by = accountOf(this.system.chain.accounts[account]?.privateKey ?? "");
		for (let i = 0; i < count; i += 1) {
			const nonce = this.#nonces.get(account) ?? 0;
			const raw = `0x${rawTransaction({ by, nonce }).toString("hex")}`;
			const taken = await to.ask("eth_sendRawTransaction", [raw], "/fast").catch(() => null);
			if (taken?.result === undefined) continue;
			accepted.push(raw);
			this.#nonces.set(account, nonce + 1);
		}
		return accepted;
	}

	/** The names of the alerts that fire. */
	async firing(): Promise<ReadonlySet<string>> {
		const answer = await fetch(`${this.#prometheusUrl}/api/v1/alerts`);
		const { data } = (await answer.json()) as {
			data: { alerts: { state: string; labels: { alertname: string } }[] };
		};
		return new Set(
			data.alerts.filter(({ state }) => state === "firing").map(({ labels }) => labels.alertname),
		);
	}

	async stop(): Promise<void> {
		this.#isOver = true;
		await this.#building;
		if (this.#prometheus !== null) await ended(this.#prometheus, "SIGTERM");
		for (const { process } of [this.boost, ...this.relays]) await process?.kill();
		await this.system.stop();
		await this.node.stop();
		await this.postgres.stop();
		rmSync(this.#folder, { recursive: true, force: true });
	}

	async #build(): Promise<void> {
		while (!this.#isOver) {
			if (this.#builds) await this.system.builder.buildBlock();
			await pause(systemClock, BLOCK_MS);
		}
	}

	async #startPrometheus(): Promise<void> {
		const port = await freePort();
		this.#prometheusUrl = `http://127.0.0.1:${port}`;
		const file = (name: string) => join(this.#folder, name);
		writeFileSync(file("alerts.yml"), shortened(textOf("docs/monitoring/alerts.yml")));
		const job = (name: Place["job"], places: readonly Place[]) => ({
			job_name: name,
			authorization: { credentials: METRICS_TOKEN },
			static_configs: [{ targets: places.map(({ port: at }) => `127.0.0.1:${at}`) }],
		});
		const config = {
			global: { scrape_interval: "500ms", scrape_timeout: "500ms", evaluation_interval: "1s" },
			rule_files: [file("alerts.yml")],
			scrape_configs: [job("relay", this.relays), job("boost", [this.boost])],
		};
		// JSON is YAML.
		writeFileSync(file("prometheus.yml"), JSON.stringify(config));
		this.#prometheus = spawn(
			"prometheus",
			[
				`--config.file=${file("prometheus.yml")}`,
				`--storage.tsdb.path=${file("data")}`,
				`--web.listen-address=127.0.0.1:${port}`,
				"--log.level=error",
			],
			{ stdio: "ignore" },
		);
		await until("Prometheus is ready", async () => {
			const answer = await fetch(`${this.#prometheusUrl}/-/ready`).catch(() => null);
			return answer?.ok === true;
		});
	}
}
