// Relays and boosts as processes on one PostgreSQL, as a host runs them: what ends is started
// again, and new connections go to what is ready. Between each of them and the database, and in
// front of each relay's own port for the others, is a proxy that can be cut.

import { pause, systemClock } from "../../shared/clock.ts";
import { freePort } from "../devnet/freePort.ts";
import { type PostgresServer, startPostgres } from "../support/postgresServer.ts";
import { type Exit, type LaunchedRelay, launchBoost, launchRelay } from "../support/processes.ts";
import { METRICS_TOKEN } from "../support/relayClient.ts";
import { until } from "../support/until.ts";
import { type PartitionProxy, startPartitionProxy } from "./partition.ts";
import { type ReadyRouter, startReadyRouter } from "./readyRouter.ts";
import { readTerms, type Term, urlOf, watchTerms } from "./terms.ts";

/** How a process ended by itself. */
export interface End extends Exit {
	/** Its name: the member's, and which life of it. */
	readonly process: string;
	/** Unix ms. */
	readonly at: number;
}

export interface ClusterOptions {
	readonly relays: number;
	readonly boosts: number;
	/** Settings of every relay; `builders` has those of the process with a name. */
	readonly relayEnv: Readonly<Record<string, string>>;
	readonly builders: (process: string) => string;
	/** Settings of every boost beside its places. */
	readonly boostEnv: Readonly<Record<string, string>>;
}

/** How often readiness is asked for, and for how long an answer is waited for, in ms. */
const LOOK_MS = 100;
const ANSWER_MS = 1_000;
/** From a process's end to its next start, in ms. */
const RESTART_MS = 300;
const READY_MS = 60_000;
const CONNECTIONS = 120;

/** One place of the host's: a process, and its successors on the same port. */
export class Member {
	readonly kind: "relay" | "boost";
	/** Such as "relay1". */
	readonly name: string;
	readonly port: number;
	/** Between it and the database. */
	readonly database: PartitionProxy;
	/** By which other relays reach it. */
	readonly internal: PartitionProxy | null;
	/** When it answered /readyz well, in Unix ms; the last one is open where it does so now. */
	readonly readyTimes: { readonly from: number; to: number | null }[] = [];
	/** Whether it is suspended. */
	isSuspended = false;
	life = 0;
	process: LaunchedRelay | null = null;

	constructor(parts: Pick<Member, "kind" | "name" | "port" | "database" | "internal">) {
		this.kind = parts.kind;
		this.name = parts.name;
		this.port = parts.port;
		this.database = parts.database;
		this.internal = parts.internal;
	}

	/** http://127.0.0.1:port */
	get url(): string {
		return `http://127.0.0.1:${this.port}`;
	}

	get isReady(): boolean {
		return this.readyTimes.at(-1)?.to === null;
	}

	/** Notes an answer of /readyz, or that there was none. */
	noteReady(isReady: boolean): void {
		if (isReady === this.isReady) return;
		const last = this.readyTimes.at(-1);
		if (isReady) this.readyTimes.push({ from: systemClock.now(), to: null });
		else if (last !== undefined) last.to = systemClock.now();
	}

	/** The name of the running process. */
	get current(): string {
		return `${this.name}.${this.life}`;
	}

	/** The name that `process` names a life of. */
	isOf(process: string): boolean {
		return process.startsWith(`${this.name}.`);
	}

	suspend(): void {
		this.isSuspended = true;
		this.process?.signal("SIGSTOP");
	}

	resume(): void {
		this.isSuspended = false;
		this.process?.signal("SIGCONT");
	}
}

/** A running cluster. */
export class Cluster {
	readonly postgres: PostgresServer;
	readonly relays: readonly Member[];
	readonly boosts: readonly Member[];
	/** Processes that ended. */
	readonly ends: End[] = [];
	/** The logs of processes that have ended, by their names. */
	readonly logs = new Map<string, string>();
	readonly #options: ClusterOptions;
	readonly #url: string;
	readonly #router: ReadyRouter;
	#terms: readonly Term[] = [];
	#isOver = false;
	#watching: Promise<void> | null = null;

	private constructor(
		options: ClusterOptions,
		parts: { postgres: PostgresServer; url: string; members: readonly Member[]; router: ReadyRouter },
	) {
		this.#options = options;
		this.postgres = parts.postgres;
		this.#url = parts.url;
		this.#router = parts.router;
		this.relays = parts.members.filter(({ kind }) => kind === "relay");
		this.boosts = parts.members.filter(({ kind }) => kind === "boost");
	}

	/** Starts all of them; the first relay is ready when this resolves. */
	static async start(options: ClusterOptions): Promise<Cluster> {
		const postgres = await startPostgres({ connections: CONNECTIONS });
		const url = await postgres.newDatabase();
		const members: Member[] = [];
		const pids = () => members.flatMap(({ process }) => (process === null ? [] : [process.pid]));
		for (const [kind, count] of [
			["relay", options.relays],
			["boost", options.boosts],
		] as const) {
			for (let i = 1; i <= count; i++) {
				const port = await freePort();
				const database = await startPartitionProxy(Number(new URL(url).port));
				const internal = kind === "relay" ? await startPartitionProxy(port, pids) : null;
				members.push(new Member({ kind, name: `${kind}${i}`, port, database, internal }));
			}
		}
		const relays = members.filter(({ kind }) => kind === "relay");
		const router = await startReadyRouter(() =>
			relays.filter(({ isReady }) => isReady).map(({ port }) => port),
		);
		const cluster = new Cluster(options, { postgres, url, members, router });
		const [first, ...others] = members;
		if (first === undefined) throw new Error("a cluster needs a relay");
		cluster.#launch(first);
		cluster.#watching = cluster.#watch(members);
		await until("the first relay is ready", () => first.isReady, READY_MS);
		await watchTerms(url, first.current);
		for (const one of others) cluster.#launch(one);
		return cluster;
	}

	get members(): readonly Member[] {
		return [...this.relays, ...this.boosts];
	}

	/** The members that can be asked now. */
	ready(kind: Member["kind"]): readonly Member[] {
		return (kind === "relay" ? this.relays : this.boosts).filter(({ isReady }) => isReady);
	}

	/** The terms so far; while the database is down, those that were read last. */
	async terms(): Promise<readonly Term[]> {
		this.#terms = await readTerms(this.#url).catch(() => this.#terms);
		return this.#terms;
	}

	/** The relay that began the latest term, whether it lives or not. */
	async core(): Promise<Member> {
		const last = (await this.terms()).at(-1);
		const core = this.relays.find((one) => last !== undefined && one.isOf(last.process));
		if (core === undefined) throw new Error("no relay has ever had the lease");
		return core;
	}

	/** Ends all cuts, and wakes all that are suspended. */
	mend(): void {
		for (const one of this.members) {
			one.database.mend();
			one.internal?.mend();
			if (one.isSuspended) one.resume();
		}
	}

	/** Ends it all. */
	async stop(): Promise<void> {
		this.#isOver = true;
		this.mend();
		await this.#watching;
		for (const { process } of this.members) await process?.kill();
		for (const { database, internal } of this.members) {
			await database.stop();
			await internal?.stop();
		}
		await this.#router.stop();
		await this.postgres.stop();
	}

	#launch(member: Member): void {
		member.life += 1;
		const name = member.current;
		const env = {
			PORT: String(member.port),
			HOST: "127.0.0.1",
			LOG_LEVEL: "info",
			METRICS_TOKEN,
			DATABASE_URL: urlOf(this.#url, name, member.database.port),
		};
		const { relayEnv, boostEnv, builders } = this.#options;
		const launched =
			member.kind === "boost"
				? launchBoost({ env: { ...env, ...boostEnv, RELAY_URL: this.#router.url } })
				: launchRelay({
						env: {
							...{ ...env, ...relayEnv, BUILDERS: builders(name) },
							INTERNAL_URL: `http://127.0.0.1:${member.internal?.port}`,
						},
					});
		member.process = launched;
		member.isSuspended = false;
		void launched.exited.then(async (exit) => {
			member.noteReady(false);
			this.ends.push({ ...exit, process: name, at: systemClock.now() });
			this.logs.set(name, exit.stdout + exit.stderr);
			if (this.#isOver) return;
			await pause(systemClock, RESTART_MS);
			if (!this.#isOver) this.#launch(member);
		});
	}

	/** Asks each for its readiness, again and again. */
	async #watch(members: readonly Member[]): Promise<void> {
		await Promise.all(
			members.map(async (member) => {
				while (!this.#isOver) {
					const { life } = member;
					const isReady = member.process !== null && (await isWell(member.url));
					member.noteReady(isReady && member.life === life);
					await pause(systemClock, LOOK_MS);
				}
			}),
		);
	}
}

async function isWell(url: string): Promise<boolean> {
	try {
		const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(ANSWER_MS) });
		await answer.arrayBuffer();
		return answer.ok;
	} catch {
		return false;
	}
}
