// Connections to one database. It gives up in time, does not try again and again where nobody answers, and comes back by
// itself; what is asked is not known here.

import pg from "pg";
import { type Clock, withDeadline } from "../../clock.ts";
import { DatabaseDownError, DatabaseRefusedError, downError, isDown } from "./errors.ts";
import { type DatabaseAddress, databaseAddress } from "./tls.ts";

export interface DatabaseOptions {
	/** A postgres:// URL. */
	readonly url: string;
	/** Whether the server's certificate must be valid, whatever the URL says. */
	readonly verify: boolean;
	/** As it is listed at the server. */
	readonly name: string;
	/** Connections at most. */
	readonly connections?: number;
}

/** A query's answer. */
export type Rows = readonly Readonly<Record<string, unknown>>[];

/** A statement; one with a name is prepared once for each connection. */
export interface Query {
	readonly name?: string;
	readonly text: string;
	readonly values: unknown[];
}

const CONNECTIONS = 4;
const CONNECT_MS = 3_000;
/** Of one query. */
const QUERY_MS = 5_000;
/** After a connection failed none is tried for so long, at first and at most, in ms; somewhere in its upper half. */
const [FIRST_PAUSE_MS, LAST_PAUSE_MS] = [100, 2_000];

/** Of one who wants a connection. */
interface Turn {
	isWaiting: boolean;
}

/** A pool of connections to one database. */
export class Database {
	readonly #options: DatabaseOptions;
	readonly #clock: Clock;
	readonly #random: () => number;
	#pool: pg.Pool | null = null;
	/** Turns that nobody has, and who waits for one. */
	#free: number;
	readonly #waiting: { readonly resolve: () => void; readonly reject: (thrown: unknown) => void }[] = [];
	#address: DatabaseAddress;
	#pauseMs = 0;
	#downUntil = Number.NEGATIVE_INFINITY;

	constructor(
		options: DatabaseOptions,
		dependencies: { readonly clock: Clock; readonly random?: () => number },
	) {
		this.#options = options;
		this.#clock = dependencies.clock;
		this.#random = dependencies.random ?? Math.random;
		this.#free = options.connections ?? CONNECTIONS;
		this.#address = databaseAddress(options.url, options.verify);
	}

	/** Rejects with DatabaseDownError where there is no answer within `ms`, at once where there just was none. */
	async query(query: Query, ms = QUERY_MS): Promise<Rows> {
		const until = this.#clock.monotonic() + ms;
		const client = await this.connect(ms);
		try {
			const left = Math.max(1, until - this.#clock.monotonic());
			// What pg knows of a query beside what its types do.
			const timed: pg.QueryConfig = Object.assign({ query_timeout: left }, query);
			const { rows } = await client.query<Record<string, unknown>>(timed);
			client.release();
			return rows;
		} catch (thrown) {
			// A connection that timed out has an answer under way that is nobody's.
			client.release(isDown(thrown));
			throw this.#judge(thrown);
		}
	}

	/** A connection of one's own within `ms`; must be released. */
	async connect(ms = CONNECT_MS): Promise<pg.PoolClient> {
		if (this.#clock.monotonic() < this.#downUntil) throw new DatabaseDownError("no answer a moment ago");
		const turn: Turn = { isWaiting: false };
		const connecting = this.#inTurn(turn);
		try {
			const client = await withDeadline(this.#clock, "connection", ms, () => connecting);
			this.#pauseMs = 0;
			return client;
		} catch (thrown) {
			connecting.then(
				(late) => late.release(),
				() => {},
			);
			// Those before it were slow: that is no fault of the database's.
			if (turn.isWaiting)
				throw thrown instanceof DatabaseDownError
					? thrown
					: new DatabaseDownError("all connections are busy");
			// Whatever it is, the next one would meet it too.
			this.#pause();
			throw this.#judge(thrown);
		}
	}

	/** No more are tried at once than there may be: who waits for his turn is told as soon as one fails. */
	async #inTurn(turn: Turn): Promise<pg.PoolClient> {
		if (this.#free > 0) this.#free -= 1;
		else {
			turn.isWaiting = true;
			await new Promise<void>((resolve, reject) => this.#waiting.push({ resolve, reject }));
			turn.isWaiting = false;
		}
		try {
			const client = await this.#connected();
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

	#next(): void {
		const next = this.#waiting.shift();
		if (next === undefined) this.#free += 1;
		else next.resolve();
	}

	/** No more connections; may be called again. */
	async close(): Promise<void> {
		this.#downUntil = Number.POSITIVE_INFINITY;
		const pool = this.#pool;
		this.#pool = null;
		await pool?.end();
	}

	async #connected(): Promise<pg.PoolClient> {
		try {
			return await this.#poolOf().connect();
		} catch (thrown) {
			if (!/does not support SSL/.test(String(thrown))) throw thrown;
			if (!this.#address.mayBeClear)
				throw new DatabaseRefusedError(
					"no TLS",
					"a server that has it, or sslmode=disable for clear text in a network of one's own",
				);
			await this.#pool?.end();
			this.#pool = null;
			this.#address = { ...this.#address, ssl: null, mayBeClear: false };
			return await this.#poolOf().connect();
		}
	}

	#poolOf(): pg.Pool {
		if (this.#pool !== null) return this.#pool;
		const pool = new pg.Pool({
			connectionString: this.#address.url,
			ssl: this.#address.ssl ?? false,
			max: this.#options.connections ?? CONNECTIONS,
			connectionTimeoutMillis: CONNECT_MS,
			query_timeout: QUERY_MS,
			statement_timeout: QUERY_MS,
			keepAlive: true,
			application_name: `leeward-${this.#options.name}`,
		});
		// A connection that ends in its idle time is not missed; whose query it had is told by that.
		pool.on("error", () => {});
		pool.on("connect", (client) => void client.on("error", () => {}));
		this.#pool = pool;
		return pool;
	}

	/** What is thrown on; where the connection is at fault the next ones wait. */
	#judge(thrown: unknown): unknown {
		if (!isDown(thrown)) return thrown;
		this.#pause();
		const down = downError(thrown);
		for (const { reject } of this.#waiting.splice(0)) reject(down);
		return down;
	}

	#pause(): void {
		const now = this.#clock.monotonic();
		if (now < this.#downUntil) return;
		this.#pauseMs = Math.min(LAST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, this.#pauseMs * 2));
		this.#downUntil = now + this.#pauseMs * (0.5 + this.#random() / 2);
	}
}
