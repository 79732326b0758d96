// Connections to one database. No password is sent over a network in clear text unless the URL
// allows it. Every wait has a deadline. A database that is down is not contacted too often.

import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import pg from "pg";
import { type Clock, DeadlineError, within } from "../../clock.ts";
import type { Logger } from "../../log.ts";
import { DatabaseDownError, DatabaseRefusedError, downError, isDown, refusalIn } from "./errors.ts";
import { type Fault, Faults } from "./faults.ts";
import { needSession } from "./pooler.ts";

export interface DatabaseOptions {
	/** A postgres:// URL. */
	readonly url: string;
	/** Whether the server's certificate must be valid, whatever the URL says. */
	readonly verify: boolean;
	/** The name of the connections at the server. */
	readonly name: string;
	/** The most connections. Default 4. */
	readonly connections?: number;
}

export type Rows = readonly Readonly<Record<string, unknown>>[];

/** A statement; a named one is prepared once per connection. */
export interface Query {
	readonly name?: string;
	readonly text: string;
	readonly values: unknown[];
}

const CONNECTIONS = 4;
const CONNECT_MS = 3_000;
const QUERY_MS = 5_000;
/** Backoff after a failed connection: first and maximum, in ms, with jitter. */
const [FIRST_PAUSE_MS, LAST_PAUSE_MS] = [100, 2_000];
/**
 * Names of faults beside those of statements: the database does not respond, or it refuses new
 * connections.
 */
const [ANSWER, CONNECTION] = ["answer", "connection"];
/**
 * Only their refusals count as faults, since these are tried again and again, so that the fault can
 * end. The statements are those of postgres.ts, accounts.ts and lease.ts.
 */
const REPEATED: ReadonlySet<string> = new Set([CONNECTION, "write", "lease"]);

/** A pool of connections to one database. */
export class Database {
	readonly #options: DatabaseOptions;
	readonly #clock: Clock;
	#pool: pg.Pool | null = null;
	/** Free connection slots, and the calls that wait for one. */
	#free: number;
	readonly #waiting: { readonly resolve: () => void; readonly reject: (thrown: unknown) => void }[] = [];
	#address: DatabaseAddress;
	#pauseMs = 0;
	/** Until `until` (monotonic ms) no connection is tried, because of `why`. */
	#backoff = { until: Number.NEGATIVE_INFINITY, why: new DatabaseDownError("closed") as Fault };
	readonly #faults: Faults;
	/** Whether a connection was found to keep its session. */
	#hasSessions = false;

	constructor(options: DatabaseOptions, dependencies: { readonly clock: Clock }) {
		this.#options = options;
		this.#clock = dependencies.clock;
		this.#free = options.connections ?? CONNECTIONS;
		this.#faults = new Faults(dependencies);
		this.#address = databaseAddress(options.url, options.verify);
	}

	/** Why the database can't be used. Null while it can. Public, so without its host. */
	get trouble(): string | null {
		return this.#faults.latest?.message ?? null;
	}

	/** From now on logs why it can't be used, and when it can again. */
	tellBy(log: Logger): void {
		this.#faults.logTo(log);
	}

	/** Rejects with DatabaseDownError if no answer comes within `ms`, or at once during a backoff. */
	async query(query: Query, ms = QUERY_MS): Promise<Rows> {
		const until = this.#clock.monotonic() + ms;
		const client = await this.connect(ms);
		try {
			const left = Math.max(1, until - this.#clock.monotonic());
			const { rows } = await within(this.#clock, "query", left, client.query<Record<string, unknown>>(query));
			client.release();
			this.#faults.worked(ANSWER);
			this.worked(query.name ?? "");
			return rows;
		} catch (thrown) {
			// After a timeout the late answer would confuse the next query on this connection.
			client.release(isDown(thrown));
			throw this.#failed(query.name ?? "", thrown);
		}
	}

	/** Records that a statement on a connection of {@link connect} has worked. */
	worked(statement: string): void {
		this.#faults.worked(statement);
	}

	/**
	 * Records that a statement on a connection of {@link connect} has failed. Returns the fault if
	 * it was refused.
	 */
	refused(statement: string, thrown: unknown): Fault | null {
		const fault = refusalIn(thrown, this.#address.host);
		if (fault !== null && REPEATED.has(statement)) this.#faults.failed(statement, fault);
		return fault;
	}

	/** A connection for the caller alone, who must release it. */
	async connect(ms = CONNECT_MS): Promise<pg.PoolClient> {
		if (this.#clock.monotonic() < this.#backoff.until) throw this.#backoff.why;
		let isWaiting = false;
		const connecting = (async () => {
			if (this.#free > 0) this.#free -= 1;
			else {
				isWaiting = true;
				await new Promise<void>((resolve, reject) => this.#waiting.push({ resolve, reject }));
				isWaiting = false;
			}
			return await this.#connected();
		})();
		try {
			const client = await within(this.#clock, "connection", ms, connecting);
			this.#pauseMs = 0;
			return client;
		} catch (thrown) {
			connecting.then(
				(late) => late.release(),
				() => {},
			);
			// The call was still waiting for a slot. The calls before it are slow, but the database
			// is not down.
			if (isWaiting && thrown instanceof DeadlineError) {
				throw new DatabaseDownError("all connections are busy");
			}
			throw isWaiting ? thrown : this.#failed(CONNECTION, thrown);
		}
	}

	#next(): void {
		const next = this.#waiting.shift();
		if (next === undefined) this.#free += 1;
		else next.resolve();
	}

	/** May be called repeatedly. */
	async close(): Promise<void> {
		this.#backoff = { ...this.#backoff, until: Number.POSITIVE_INFINITY };
		const pool = this.#pool;
		this.#pool = null;
		await pool?.end();
	}

	/** Connects; the slot is freed when the connection is released or connecting fails. */
	async #connected(): Promise<pg.PoolClient> {
		try {
			const client = await this.#poolOf()
				.connect()
				.catch((thrown: unknown) => this.#withoutTls(thrown));
			const release = client.release.bind(client);
			client.release = (destroy) => {
				release(destroy);
				this.#next();
			};
			return client;
		} catch (thrown) {
			this.#next();
			throw thrown;
		}
	}

	/** Connects without TLS if the server has none and the address allows it. */
	async #withoutTls(thrown: unknown): Promise<pg.PoolClient> {
		if (!/does not support SSL/.test(String(thrown))) throw thrown;
		// Another connection that was made at the same time may have found that out.
		if (this.#address.ssl !== null) {
			if (!this.#address.mayBeClear)
				throw new DatabaseRefusedError(
					"no TLS",
					"a server that has it, or sslmode=disable for clear text in a private network",
					this.#address.host,
				);
			const pool = this.#pool;
			this.#pool = null;
			this.#address = { ...this.#address, ssl: null, mayBeClear: false };
			await pool?.end();
		}
		return await this.#poolOf().connect();
	}

	#poolOf(): pg.Pool {
		if (this.#pool !== null) return this.#pool;
		const { host, url, ssl } = this.#address;
		const options: pg.ClientConfig = {
			connectionString: url,
			ssl: ssl ?? false,
			connectionTimeoutMillis: CONNECT_MS,
			query_timeout: QUERY_MS,
			keepAlive: true,
			application_name: `leeward-${this.#options.name}`,
		};
		const pool = new pg.Pool({
			...options,
			max: this.#options.connections ?? CONNECTIONS,
			onConnect: async (client) => {
				if (!this.#hasSessions) await needSession(client, options, { clock: this.#clock, host });
				this.#hasSessions = true;
				// PgBouncer would refuse it as a parameter of the connection.
				await client.query(`SET statement_timeout = ${QUERY_MS}`);
			},
		});
		// Idle connections may close; queries on closed ones fail by themselves.
		pool.on("error", () => {});
		pool.on("connect", (client) => {
			client.on("error", () => {});
			this.#faults.worked(ANSWER);
			this.#faults.worked(CONNECTION);
		});
		this.#pool = pool;
		return pool;
	}

	/** The error to throw. If the connection failed, begins a backoff and rejects waiting calls. */
	#failed(what: string, thrown: unknown): unknown {
		const refused = this.refused(what, thrown);
		if (what !== CONNECTION && !isDown(thrown)) return refused ?? thrown;
		const fault = refused ?? downError(thrown, this.#address.host);
		if (refused === null) this.#faults.failed(ANSWER, fault);
		this.#pause(fault);
		for (const { reject } of this.#waiting.splice(0)) reject(fault);
		return fault;
	}

	#pause(why: Fault): void {
		const now = this.#clock.monotonic();
		if (now < this.#backoff.until) return;
		this.#pauseMs = Math.min(LAST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, this.#pauseMs * 2));
		this.#backoff = { until: now + this.#pauseMs * (0.5 + Math.random() / 2), why };
	}
}

const SSL_MODES = ["disable", "allow", "prefer", "require", "no-verify", "verify-ca", "verify-full"];

/** DATABASE_URL is invalid. */
class DatabaseUrlError extends Error {
	readonly code = "DATABASE_URL";
	constructor(what: string) {
		super(`DATABASE_URL: ${what}`);
		this.name = "DatabaseUrlError";
	}
}

interface DatabaseAddress {
	/** Host and port, for the log; undefined for a socket of this machine. */
	readonly host: string | undefined;
	/** Without TLS parameters, which pg would interpret differently. */
	readonly url: string;
	/** Null: no TLS. */
	readonly ssl: ConnectionOptions | null;
	/** Whether clear text is allowed if the server has no TLS; only on this machine. */
	readonly mayBeClear: boolean;
	/** Whether clear text goes over a network. */
	readonly isExposed: boolean;
}

/**
 * `verify`: the certificate must be valid, whatever the URL says. Throws {@link DatabaseUrlError}.
 */
export function databaseAddress(text: string, verify: boolean): DatabaseAddress {
	const url = new URL(text);
	const mode = url.searchParams.get("sslmode");
	const rootCert = url.searchParams.get("sslrootcert");
	for (const name of ["sslmode", "sslrootcert", "ssl", "uselibpqcompat"]) url.searchParams.delete(name);
	if (mode !== null && !SSL_MODES.includes(mode)) {
		throw new DatabaseUrlError(`expected an sslmode of ${SSL_MODES.join(", ")}`);
	}
	const host = hostOf(url);
	// Otherwise pg would read the host from the environment.
	if (host === "") url.searchParams.set("host", "localhost");
	const named = host.startsWith("/") ? undefined : `${host || "localhost"}:${url.port || USUAL_PORT}`;
	const base = { host: named, url: url.toString(), mayBeClear: false, isExposed: false };
	// TLS is not used on a local socket.
	if (host.startsWith("/")) return { ...base, ssl: null };
	const ca = rootCert === null ? {} : { ca: readRoot(rootCert) };
	if (verify || mode === "verify-full") return { ...base, ssl: { ...ca, rejectUnauthorized: true } };
	if (mode === "verify-ca" || (mode === "require" && rootCert !== null)) {
		return { ...base, ssl: { ...ca, rejectUnauthorized: true, checkServerIdentity: () => undefined } };
	}
	const isHere = host === "" || LOOPBACK.test(host);
	if (mode === "disable") return { ...base, ssl: null, isExposed: !isHere };
	const isWanted = mode === "require" || mode === "no-verify";
	return { ...base, ssl: { rejectUnauthorized: false }, mayBeClear: isHere && !isWanted };
}

const USUAL_PORT = 5432;
/** Hosts that are reached without a network. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

/** The host or socket folder as pg reads it: the last parameter `host`, else the URL's host. */
function hostOf(url: URL): string {
	const named = url.searchParams.getAll("host").at(-1) ?? "";
	if (named !== "") return named;
	try {
		return decodeURIComponent(url.hostname).replace(/^\[(.+)\]$/, "$1");
	} catch {
		throw new DatabaseUrlError("expected a host's name, its address, or a socket's folder");
	}
}

function readRoot(path: string): string {
	try {
		return readFileSync(path, "utf8");
	} catch {
		throw new DatabaseUrlError("expected a readable file of certificates as sslrootcert");
	}
}
