// Lets only one process at a time write to a store, across machines. The lock is an advisory lock,
// which ends with the session of its process. A row adds an expiry time, for a suspended process
// that keeps its session. It also has the term (its number, the epoch, and a random secret). The
// term is the fencing token by which writes of a former holder fail.

import { randomBytes } from "node:crypto";
import type pg from "pg";
import { type Clock, pause, type Timer } from "../../clock.ts";
import type { Logger } from "../../log.ts";
import type { Database } from "./database.ts";
import { StoreInUseError, StoreLostError } from "./errors.ts";

export interface LeaseOptions {
	readonly store: string;
	/** The holder's URL for processes that wait, which they read from its row. Default: none. */
	readonly address?: string | undefined;
	/** How long the lease lasts without renewal, in ms. Default 6,000. */
	readonly ttlMs?: number;
	/** How {@link Lease.take} waits for another process to end. Default: for two seconds. */
	readonly patience?: Patience;
}

/** Waits for the end of another process without a time limit. */
interface Patience {
	/** Called and awaited when another process is found for the first time. */
	readonly onWait: () => Promise<void>;
	/** Ends the wait. */
	readonly signal: AbortSignal;
}

interface LeaseDependencies {
	readonly database: Database;
	readonly clock: Clock;
	readonly log: Logger;
	/**
	 * Called once if another process has taken the lease. This process's memory of the store is
	 * then out of date.
	 */
	readonly onLost: () => void;
}

export const TTL_MS = 6_000;
/** The session of a killed process lives on for a moment. */
const WAIT_MS = 2_000;
/** It is renewed every quarter of its duration, and trusted for three quarters. */
const RENEWALS = 4;

/**
 * Minimum time to wait for a renewal that must confirm the lease, in ms. Otherwise a short pause of
 * the database would lose the deliveries for a new head.
 */
const CONFIRM_MS = 4_000;

const SECRET_BYTES = 32;

/** Between two attempts to take the lease. */
const POLL_MS = 100;
/** Between two attempts to get a session again. */
const RETRY_MS = 250;

/** Name of its renewal in the database's faults. */
const LEASE = "lease";

/** The first key of the advisory lock, so that it differs from locks of other programs. */
const LOCK_CLASS = 713_351;
/** The key includes the schema, so that each schema of a database has separate leases. */
const TRY = "SELECT pg_try_advisory_lock($1, hashtext(current_schema() || ' ' || $2)) AS got";
/**
 * A term as SQL: its number and its secret. The number alone may repeat, after a backup was
 * restored, or after the promotion of a standby that lacked the last term's commit.
 */
export const TERM = "(epoch || ' ' || secret)";
const TAKE = `WITH taken AS (INSERT INTO leeward_holder AS h (store, epoch, seq, address, secret)
		VALUES ($1, 1, 0, $3, $4)
		ON CONFLICT (store) DO UPDATE SET epoch = h.epoch + 1, seq = 0,
			address = excluded.address, secret = excluded.secret
		RETURNING epoch),
	lease AS (INSERT INTO leeward_lease (store, until)
		VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond')
		ON CONFLICT (store) DO UPDATE SET until = excluded.until)
	SELECT epoch FROM taken`;
/** Reads the row of the term without a lock, since writes lock it. */
const KEEP = `UPDATE leeward_lease l SET until = clock_timestamp() + $3 * interval '1 millisecond'
	FROM leeward_holder h WHERE l.store = $1 AND h.store = l.store AND ${TERM} = $2 RETURNING epoch`;
const CHECK = `SELECT epoch FROM leeward_holder WHERE store = $1 AND ${TERM} = $2`;
/**
 * Ends the session of a holder whose lease has expired. While its process is suspended, that
 * session keeps the lock.
 */
const EVICT = `SELECT pg_terminate_backend(l.pid) FROM leeward_lease h, pg_locks l
	JOIN pg_stat_activity a ON a.pid = l.pid AND a.datname = current_database()
	WHERE h.store = $2 AND h.until < clock_timestamp()
	AND l.locktype = 'advisory' AND l.granted AND l.database = a.datid AND l.classid = $1
	AND l.objid = (hashtext(current_schema() || ' ' || $2)::bigint & 4294967295)::oid
	AND a.state_change < clock_timestamp() - $3 * interval '1 millisecond'`;

/** In ms: by the monotonic clock, and since the epoch by the machine's clock. */
interface Moment {
	readonly monotonic: number;
	readonly now: number;
}

export class Lease {
	/**
	 * Secret that waiting processes present to the holder. It differs for each term, and others
	 * can't read the row.
	 */
	readonly secret = randomBytes(SECRET_BYTES).toString("hex");
	readonly #store: string;
	readonly #address: string | null;
	readonly #ttlMs: number;
	readonly #patience: Patience | null;
	readonly #dependencies: LeaseDependencies;
	#session: pg.PoolClient | null = null;
	#epoch: string | null = null;
	/**
	 * In ms, by the monotonic clock and by the machine's. After a pause of a virtual machine, only
	 * the second may show it.
	 */
	#heldUntil: Moment = { monotonic: Number.NEGATIVE_INFINITY, now: Number.NEGATIVE_INFINITY };
	/** Callers that wait for a renewal that began at `since` or later. */
	#unconfirmed: { readonly since: number; readonly confirm: () => void }[] = [];
	#timer: Timer | null = null;
	#renewing: Promise<void> | null = null;
	#isOver = false;

	constructor({ store, address, ttlMs = TTL_MS, patience }: LeaseOptions, dependencies: LeaseDependencies) {
		this.#store = store;
		this.#address = address ?? null;
		this.#ttlMs = ttlMs;
		this.#patience = patience ?? null;
		this.#dependencies = dependencies;
	}

	/** Whether this process certainly has the lease. */
	get isHeld(): boolean {
		return !this.#isOver && this.#session !== null && this.#leftMs > 0;
	}

	/** Remaining time for which the lease is trusted without a renewal, in ms. */
	get #leftMs(): number {
		const { clock } = this.#dependencies;
		return Math.min(this.#heldUntil.monotonic - clock.monotonic(), this.#heldUntil.now - clock.now());
	}

	/**
	 * Renews it now. Resolves when a renewal that begins from now on has succeeded. Without one it
	 * resolves when the lease has run out, after at least {@link CONFIRM_MS}, or at once if it is
	 * lost. After a pause of the machine, no clock shows for certain whether another process has
	 * taken the lease. Only the database does.
	 */
	async confirm(): Promise<void> {
		if (this.#isOver) return;
		const { clock } = this.#dependencies;
		const waiting = new AbortController();
		this.#unconfirmed.push({ since: clock.monotonic(), confirm: () => waiting.abort() });
		this.#plan(0);
		await pause(clock, Math.max(CONFIRM_MS, this.#leftMs), waiting.signal);
	}

	/** The number of the term. Throws {@link StoreLostError}. */
	get number(): number {
		if (this.#isOver || this.#epoch === null) throw new StoreLostError(this.#store);
		return Number(this.#epoch);
	}

	/** The fencing token for writes, in the form of {@link TERM}. Throws {@link StoreLostError}. */
	get term(): string {
		return this.#termOf(this.number);
	}

	#termOf(number: string | number | null): string {
		return `${number} ${this.secret}`;
	}

	/** Takes the lease. Throws {@link StoreInUseError} or the database's error. */
	async take(): Promise<void> {
		const { clock } = this.#dependencies;
		const patience = this.#patience;
		const until = clock.monotonic() + (patience === null ? WAIT_MS : Number.POSITIVE_INFINITY);
		let session = await this.#lockedSession();
		if (session === null) await patience?.onWait();
		while (session === null && clock.monotonic() < until && patience?.signal.aborted !== true) {
			await pause(clock, POLL_MS, patience?.signal);
			session = await this.#lockedSession();
		}
		if (session === null) throw new StoreInUseError(this.#store);
		const begun = this.#moment();
		try {
			const { rows } = await session.query<{ epoch: string }>({
				text: TAKE,
				values: [this.#store, this.#ttlMs, this.#address, this.secret],
			});
			this.#epoch = rows[0]?.epoch ?? null;
		} catch (thrown) {
			session.release(true);
			throw thrown;
		}
		this.#keep(session, begun);
	}

	/** Must be called if a read or write shows that another process has the lease. */
	lost(): void {
		if (this.#isOver) return;
		this.#end();
		this.#dependencies.log.error("another process took over the store", {
			store: this.#store,
			term: Number(this.#epoch),
		});
		this.#dependencies.onLost();
	}

	/** Releases the lease, so that the next process need not wait. */
	async release(): Promise<void> {
		this.#end();
		await this.#renewing;
		// Ending the session releases the lock.
		this.#session?.release(true);
		this.#session = null;
	}

	#end(): void {
		this.#isOver = true;
		this.#timer?.cancel();
		for (const { confirm } of this.#unconfirmed.splice(0)) confirm();
	}

	#moment(): Moment {
		const { clock } = this.#dependencies;
		return { monotonic: clock.monotonic(), now: clock.now() };
	}

	/** A session with the lock, or null if another process has the lock. */
	async #lockedSession(): Promise<pg.PoolClient | null> {
		const session = await this.#dependencies.database.connect();
		try {
			const { rows } = await session.query<{ got: boolean }>({
				text: TRY,
				values: [LOCK_CLASS, this.#store],
			});
			if (rows[0]?.got === true) return session;
			await session.query({ text: EVICT, values: [LOCK_CLASS, this.#store, this.#ttlMs] });
			session.release();
			return null;
		} catch (thrown) {
			session.release(true);
			throw thrown;
		}
	}

	#keep(session: pg.PoolClient, begun: Moment): void {
		if (session !== this.#session) {
			this.#session = session;
			session.on("error", () => this.#dropSession(session));
		}
		const trustedMs = this.#ttlMs * (1 - 1 / RENEWALS);
		this.#heldUntil = { monotonic: begun.monotonic + trustedMs, now: begun.now + trustedMs };
		const isConfirmed = ({ since }: { readonly since: number }) => since <= begun.monotonic;
		for (const one of this.#unconfirmed) if (isConfirmed(one)) one.confirm();
		this.#unconfirmed = this.#unconfirmed.filter((one) => !isConfirmed(one));
		this.#plan(this.#unconfirmed.length > 0 ? 0 : this.#ttlMs / RENEWALS);
	}

	/** Without the session another process may take the lock, so `isHeld` is false. */
	#dropSession(session: pg.PoolClient): void {
		if (this.#session !== session) return;
		this.#session = null;
		session.release(true);
		if (!this.#isOver) this.#plan(0);
	}

	#plan(ms: number): void {
		this.#timer?.cancel();
		this.#timer = this.#dependencies.clock.after(ms, () => {
			// The running renewal plans the next one.
			if (this.#renewing !== null) return;
			this.#renewing = this.#renew().finally(() => {
				this.#renewing = null;
			});
		});
	}

	/** Renews the lease, in a new session if the old one has ended. */
	async #renew(): Promise<void> {
		const { database } = this.#dependencies;
		const begun = this.#moment();
		const known = this.#session;
		let session = known;
		try {
			session ??= await this.#lockedSession();
			// The old session may still hold the lock if the server has not noticed its end.
			const values = [this.#store, this.#termOf(this.#epoch)];
			const query =
				session === null
					? database.query({ text: CHECK, values })
					: rowsOf(session, KEEP, [...values, this.#ttlMs]);
			if ((await query).length === 0) this.lost();
			// The session ended during the query.
			if (known !== null && this.#session !== known) {
				if (!this.#isOver) this.#plan(RETRY_MS);
				return;
			}
			if (this.#isOver) {
				if (session !== known) session?.release(true);
			} else if (session === null) this.#plan(RETRY_MS);
			else {
				database.worked(LEASE);
				this.#keep(session, begun);
			}
		} catch (thrown) {
			if (session !== null) database.refused(LEASE, thrown);
			if (session !== known) session?.release(true);
			else if (session !== null) this.#dropSession(session);
			if (!this.#isOver) this.#plan(RETRY_MS);
		}
	}
}

async function rowsOf(session: pg.PoolClient, text: string, values: unknown[]): Promise<readonly unknown[]> {
	return (await session.query({ text, values })).rows;
}
