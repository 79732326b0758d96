// The statements of one store, for the store of one process and for a shared one: how long each may
// take, and how often it is tried.

import { type Clock, pause } from "../../clock.ts";
import type { Database, Query, Rows } from "./database.ts";
import { isDown } from "./errors.ts";

/** Rows per page of a range: first, when their size is not known, and maximum. */
const [FIRST_PAGE, PAGE] = [8, 1_000];
/** Target bytes of a page, estimated from the page before. */
const PAGE_BYTES = 1024 * 1024;
/** Deadline for one page, in ms; no request waits for it. */
const PAGE_MS = 10_000;
/** Deadline for reading one value and for a write, in ms, since clients wait for both. */
const PATIENCE_MS = 1_000;
/** Time for a commit after one that failed, in ms: a write may wait for one before its own. */
const TRY_MS = 500;
/** Minimum time for each commit, in ms. */
const LEAST_MS = 100;
/**
 * Assumed minimum throughput of a database. A write's deadline is later by the time for its bytes.
 */
const BYTES_PER_MS = 1024;
/** Between two attempts. */
const RETRY_MS = 50;
const RANGE = `SELECT key, value FROM leeward_store
	WHERE store = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4`;

const BYTES = "SELECT pg_total_relation_size('leeward_store')::text AS bytes";

export class Statements {
	readonly #store: string;
	readonly #database: Database;
	readonly #clock: Clock;
	/** Whether the last commit has failed. */
	#isFailing = false;

	constructor(store: string, dependencies: { readonly database: Database; readonly clock: Clock }) {
		this.#store = store;
		this.#database = dependencies.database;
		this.#clock = dependencies.clock;
	}

	/**
	 * As KeyValueStore. Reads the next page while the last one is processed. Otherwise a start would
	 * wait for the database at each of hundreds of pages.
	 */
	async *range(start: string, end: string, limit = Number.POSITIVE_INFINITY) {
		let left = limit;
		let count = Math.min(FIRST_PAGE, left);
		let reading = count > 0 ? this.#page(start, end, count) : null;
		while (reading !== null) {
			const rows = await reading;
			const last = rows.at(-1);
			left -= rows.length;
			const isMore = last !== undefined && rows.length === count && left > 0;
			const bytes = rows.reduce((sum, { value }) => sum + (value as Buffer).length, 1);
			count = Math.min(left, PAGE, Math.max(1, Math.floor((PAGE_BYTES * rows.length) / bytes)));
			// The smallest key above the last one: PostgreSQL's text can't hold U+0000.
			reading = isMore ? this.#page(`${last.key}\u{0001}`, end, count) : null;
			// The error is thrown when its rows are needed.
			reading?.catch(() => {});
			for (const { key, value } of rows) yield [key as string, value as Buffer] as const;
		}
	}

	#page(from: string, end: string, count: number): Promise<Rows> {
		const query = { name: "range", text: RANGE, values: [this.#store, from, end, count] };
		return this.#retried(() => query, this.#clock.monotonic() + PAGE_MS);
	}

	/** Size of the table on disk, in bytes. */
	async bytes(): Promise<number> {
		const [row] = await this.#database.query({ name: "bytes", text: BYTES, values: [] }, PATIENCE_MS);
		return Number(row?.bytes);
	}

	/** The answer to a query for which clients wait. */
	answered(query: Query): Promise<Rows> {
		return this.#retried(() => query, this.#clock.monotonic() + PATIENCE_MS);
	}

	/**
	 * The answer to a commit of `bytes`, whose first write was given at `since` (monotonic ms). Calls
	 * `query` for each attempt, since some need a new number.
	 */
	async committed(
		query: () => Query,
		{ since, bytes }: { readonly since: number; readonly bytes: number },
	): Promise<Rows> {
		const begun = this.#clock.monotonic();
		const until = commitDeadline({ since, begun, isFailing: this.#isFailing }) + bytes / BYTES_PER_MS;
		const rows = await this.#retried(query, until, () => {
			this.#isFailing = true;
		});
		this.#isFailing = false;
		return rows;
	}

	/** Retries until `until` (monotonic ms) if the connection fails. */
	async #retried(query: () => Query, until: number, onDown = () => {}): Promise<Rows> {
		for (;;) {
			try {
				return await this.#database.query(query(), Math.max(RETRY_MS, until - this.#clock.monotonic()));
			} catch (thrown) {
				if (!isDown(thrown)) throw thrown;
				onDown();
				if (this.#clock.monotonic() + RETRY_MS > until) throw thrown;
				await pause(this.#clock, RETRY_MS);
			}
		}
	}
}

/**
 * The time, in monotonic ms, at which a commit that began at `begun` is given up. `since`: when its
 * first write was given. `isFailing`: whether the commit before it has failed.
 */
export function commitDeadline({
	since,
	begun,
	isFailing,
}: {
	readonly since: number;
	readonly begun: number;
	readonly isFailing: boolean;
}): number {
	const patient = since + PATIENCE_MS;
	return Math.max(isFailing ? Math.min(patient, begun + TRY_MS) : patient, begun + LEAST_MS);
}
