// The table of all rows. Live rows and those with work left are in memory, the others in the
// archive on disk. Only this file stores a changed row, so that memory and disk agree and every
// limit is kept.

import type { Fullness, OverShare } from "../../shared/shares/shares.ts";
import type { Claim } from "../domain/ports.ts";
import type { UpstreamName } from "../domain/request.ts";
import {
	type EndedOne,
	type Ending,
	endRow,
	holdersOf,
	holdersSince,
	isEndedByUser,
	isLifeOver,
	isLive,
	type NewRow,
	type Notes,
	needsWork,
	newNotes,
	openRow,
	type Row,
	reopenRow,
	UNDATED,
} from "../domain/row.ts";
import { Archive } from "../journal/archive.ts";
import { Journal, type JournalDependencies, type RowChange } from "../journal/journal.ts";
import { isSameOnDisk } from "../journal/records.ts";
import { EndedRows } from "./endedRows.ts";
import { LiveRows } from "./liveRows.ts";
import { SharedRows } from "./sharedRows.ts";
import { Sweeper } from "./sweeper.ts";

export interface RowsDependencies extends JournalDependencies {
	/** In ms since the epoch; null until it is known. */
	readonly chainTime: { now(): number | null };
}

/** The table's limits, with their defaults in brackets. */
export interface RowLimits {
	/**
	 * Life of a row from its arrival, in ms. At least half of it is left whenever the relay reports
	 * the row as live.
	 */
	readonly ttlMs: number;
	/** The maximum number of live rows (100 000); one client may have a sixteenth. */
	readonly maxLive?: number;
	/**
	 * The maximum bytes of live transactions (256 MiB), each counted with 512 more; one client may
	 * have a sixteenth.
	 */
	readonly maxBytes?: number;
	/** How long ended rows are kept, in ms (7 days). */
	readonly endedKeepMs?: number;
	/**
	 * The maximum number of ended rows (200 000). The oldest are dropped first, rows ended by their
	 * users only after all others.
	 */
	readonly maxEnded?: number;
	/** The number of settled rows that stay in memory (10 000); the others are looked up on disk. */
	readonly maxRecent?: number;
	/** How long a row that the chain ended can be reopened, in ms (12 slots of mainnet). */
	readonly reorgMs?: number;
}

const MIB = 1024 * 1024;
const DEFAULTS = {
	maxLive: 100_000,
	maxBytes: 256 * MIB,
	maxEnded: 200_000,
	maxRecent: 10_000,
	endedKeepMs: 7 * 24 * 3600 * 1000,
};
const REORG_MS = 144_000;

/**
 * All rows of the process. A change is in memory at once and is then written. While the store
 * fails, it stays in memory until a write succeeds. {@link Rows.written} reports when it is on
 * disk. A timer runs until {@link Rows.close}.
 */
export class Rows {
	readonly #limits: Required<Omit<RowLimits, "ttlMs" | "reorgMs">>;
	/** Read each time, since the length of a slot is learnt. */
	readonly #times: Pick<RowLimits, "ttlMs" | "reorgMs">;
	readonly #dependencies: RowsDependencies;
	readonly #journal: Journal;
	#onWork = (): void => {};
	readonly #rows = new Map<string, Row>();
	readonly #live: LiveRows;
	readonly #ended: EndedRows;
	readonly #archive: Archive;
	readonly #sweeper: Sweeper;
	/** Null if the store is this process's alone. */
	readonly shared: SharedRows | null;
	/** The id of the next new row. */
	#nextId = 1;
	#latestVersion = 0;

	private constructor(limits: RowLimits, dependencies: RowsDependencies) {
		this.#limits = { ...DEFAULTS, ...limits };
		this.#times = limits;
		this.#dependencies = dependencies;
		this.#journal = new Journal(dependencies);
		this.#archive = new Archive(dependencies);
		this.#live = new LiveRows(this.#limits);
		this.shared = this.#sharedOf(dependencies);
		const { clock, chainTime } = dependencies;
		const { maxEnded, endedKeepMs } = this.#limits;
		this.#ended = new EndedRows(this.#limits, {
			clock,
			isNeeded: (hash) => (this.get(hash)?.requests ?? 0) > 0 || this.#journal.holds(hash),
			onLeave: (hash) => this.#rows.delete(hash),
		});
		this.#sweeper = new Sweeper(
			{ maxEnded, endedKeepMs, reorgMs: () => limits.reorgMs ?? REORG_MS, isShared: this.shared !== null },
			{
				archive: this.#archive,
				clock,
				chainTime,
				get: (hash) => this.get(hash),
				reopenable: () => this.reopenable(),
				leaveMemory: () => this.#ended.makeRoom(),
				// If another instance has written it since, the next sweep finds it again.
				replace: (before, row) => this.#replaceAndWrite(before, row, (one) => (one === before ? row : one)),
				written: (hash) => this.written(hash),
			},
		);
	}

	#sharedOf({ kv, log, clock }: RowsDependencies): SharedRows | null {
		const { accounts } = kv;
		if (accounts === undefined) return null;
		return new SharedRows({
			...{ accounts, journal: this.#journal, log, clock },
			table: {
				get: (hash) => this.get(hash),
				ofAccount: (from) => [...this.liveOf(from), ...this.#all(this.#ended.of(from))],
				opened: (row) => this.#opened(row),
				replace: (before, row) => this.#replaceInMemory(before, row),
				inBulk: (from, work) => this.#live.inBulk(from, work),
				apply: (hash, made) => this.#apply(hash, made),
				drop: (row) => {
					this.#rows.delete(row.hash);
					if (isLive(row)) this.#live.replace(row, null);
					else this.#ended.put(row.hash, null);
				},
			},
		});
	}

	/** Reads the rows with work left from the store. Rejects if the store fails. */
	static async load(limits: RowLimits, dependencies: RowsDependencies): Promise<Rows> {
		const rows = new Rows(limits, dependencies);
		await rows.#archive.open();
		// Rows of a shared store come with their accounts.
		const { rows: found, lastId } =
			rows.shared === null ? await rows.#journal.read() : { rows: [], lastId: dependencies.clock.now() };
		rows.#nextId = lastId + 1;
		for (const row of [...found].sort((one, other) => one.endedAt - other.endedAt))
			rows.#replaceInMemory(null, rows.#opened(row));
		rows.#sweeper.wake();
		return rows;
	}

	/** The chain's time in ms since the epoch, by which rows age; null until it is known. */
	get chainNow(): number | null {
		return this.#dependencies.chainTime.now();
	}

	/** A row from the store as it is in memory. */
	#opened(row: Row): Row {
		const notes = isLive(row) ? this.#freshNotes(this.#agedBy(row)) : row.notes;
		return { ...row, version: this.#newVersion(), notes };
	}

	/** The end of a life that begins now. */
	#freshLife(): number {
		const { chainNow } = this;
		return chainNow === null ? UNDATED : chainNow + this.#times.ttlMs;
	}

	/** Notes of a row whose life began `agedMs` ago. */
	#freshNotes(agedMs = 0): Notes {
		const now = this.#dependencies.clock.monotonic();
		return newNotes(now, now + this.#times.ttlMs - agedMs);
	}

	#newVersion(): number {
		this.#latestVersion += 1;
		return this.#latestVersion;
	}

	/** How much of a journaled row's life is over by the machine's clock, in ms. */
	#agedBy({ receivedAt, aliveUntil }: Row): number {
		const begun = Math.max(receivedAt, aliveUntil - this.#times.ttlMs);
		return Math.max(0, this.#dependencies.clock.now() - begun);
	}

	/**
	 * Whether a live row's life has been over for `graceMs`. While the chain's time is unknown: only
	 * if `elseByOwn`, and if this process has had the row for that long.
	 */
	isOver(row: Row, graceMs: number, elseByOwn: boolean): boolean {
		const { chainNow } = this;
		const monotonic = this.#dependencies.clock.monotonic();
		if (chainNow !== null) return isLifeOver(row, { now: chainNow, monotonic }, graceMs);
		return elseByOwn && monotonic - row.notes.openedAt >= this.#times.ttlMs + graceMs;
	}

	/** Number of live rows. */
	get liveCount(): number {
		return this.#live.count;
	}

	/** False from a failed write until everything is on disk again. */
	get isDurable(): boolean {
		return this.#journal.isDurable;
	}

	/** Whether there is no room for a large transaction of any client. */
	get isFull(): boolean {
		return this.#live.isFull || !this.#hasBacklogRoom;
	}

	/** How full it is by rows or bytes, whichever is fuller. */
	get fullness(): Fullness {
		return this.#live.fullness;
	}

	get #hasBacklogRoom(): boolean {
		return this.#journal.unwritten < 2 * this.#limits.maxLive;
	}

	/** The row of a hash if it is in memory: it is live, has work left, or ended a short time ago. */
	get(hash: string): Row | null {
		return this.#rows.get(hash) ?? null;
	}

	/**
	 * The row of a hash, live or ended. Only a row that ended earlier is looked up on disk, and then
	 * stays in memory for now. Rejects if that look-up fails.
	 */
	find(hash: string): Promise<Row | null> | Row | null {
		return this.#rows.get(hash) ?? (this.#archive.has(hash) ? this.#recall(hash) : null);
	}

	/** The same, but null if the disk fails, for callers that can ask elsewhere. */
	findIfReadable(hash: string): Promise<Row | null> | Row | null {
		const found = this.find(hash);
		return found instanceof Promise ? found.catch(() => null) : found;
	}

	/** Whether there is a row of a hash, live or ended. */
	has(hash: string): boolean {
		return this.#rows.has(hash) || this.#archive.has(hash);
	}

	/** The row of a hash if it is live. */
	live(hash: string): Row | null {
		const row = this.#rows.get(hash);
		return row !== undefined && isLive(row) ? row : null;
	}

	/**
	 * Live rows of a sender, optionally of one nonce, in the order of nonce and arrival. The list
	 * never changes: a change of the rows makes a new one.
	 */
	liveOf(from: string, nonce?: bigint): readonly Row[] {
		return this.#live.of(from, nonce);
	}

	/** All live rows, those of a sender by nonce. */
	allLive(): Generator<Row> {
		return this.#live.all();
	}

	/** Ended rows that must still be cancelled at an upstream. */
	pendingCancels(): Iterable<Row> {
		return this.#all(this.#ended.pendingCancels);
	}

	/** Rows that the chain ended and that can be reopened, in the order of their ends. */
	reopenable(): Iterable<Row> {
		return this.#all(this.#ended.reopenable);
	}

	*#all(hashes: ReadonlySet<string>): Generator<Row> {
		for (const hash of hashes) {
			const row = this.#rows.get(hash);
			if (row !== undefined) yield row;
		}
	}

	/** The bytes of a live row; null if it is no longer live. */
	async raw(hash: string): Promise<Buffer | null> {
		const row = this.live(hash);
		const raw = row === null ? null : await this.#journal.raw(row);
		return this.live(hash) === null ? null : raw;
	}

	/** The same of a row that may be in the store only. */
	rawOf(row: Row): Promise<Buffer | null> {
		return this.live(row.hash) === null && this.shared !== null ? this.#journal.raw(row) : this.raw(row.hash);
	}

	/**
	 * The limit that leaves no room to {@link add} it: its client's share or the total; null if there
	 * is room.
	 */
	exceeded(entry: Pick<NewRow, "hash" | "address" | "raw">): OverShare | null {
		if (this.live(entry.hash) !== null) return null;
		return this.#hasBacklogRoom ? this.#live.exceeded(entry) : "total";
	}

	/**
	 * Opens a row with its request in progress. An earlier ended row must have been looked up. An
	 * unacknowledged live row gets the values of this request and keeps its delivery state. Returns
	 * false and changes nothing if there is no room, or the row is live and acknowledged.
	 */
	add(entry: NewRow): boolean {
		const { raw } = entry;
		const before = this.get(entry.hash);
		const wasLive = before !== null && isLive(before);
		if (wasLive ? before.acknowledged : this.exceeded(entry) !== null) return false;
		let notBefore = 0;
		for (const { receivedAt } of this.liveOf(entry.from, entry.nonce))
			notBefore = Math.max(notBefore, receivedAt);
		const row = openRow(entry, before, {
			id: wasLive ? before.id : this.#nextId++,
			version: this.#newVersion(),
			aliveUntil: this.#freshLife(),
			notBefore,
			notes: this.#freshNotes(),
		});
		this.#replaceInMemory(before, row);
		// If the row was already live, its bytes are on disk, or being written.
		this.#journal.write(before, row, "arrival", wasLive ? undefined : raw);
		return true;
	}

	/**
	 * Replaces a row in memory by the result of `change`. Deletes it if the result is null, or an
	 * unneeded live row.
	 */
	change(hash: string, change: (row: Row) => Row | null): void {
		this.#apply(hash, (before) => {
			const row = before === null ? null : change(before);
			// No upstream has or may have it, and its client got an error. (A row counts as acknowledged
			// while it is being submitted.)
			const isOver = row !== null && isLive(row) && !row.acknowledged && holdersOf(row).length === 0;
			return isOver ? null : row;
		});
	}

	#apply(hash: string, made: RowChange): void {
		const before = this.get(hash);
		const row = made(before);
		if (row !== before) this.#replaceAndWrite(before, row, made);
	}

	/** The same, only while it is live. */
	changeLive(hash: string, change: (row: Row) => Row): void {
		this.change(hash, (row) => (isLive(row) ? change(row) : row));
	}

	/**
	 * Ends a row, or creates an ended one, to be cancelled at the upstreams `cancelAt`; see `endRow`
	 * in row.ts.
	 */
	end(one: Omit<EndedOne, "id">, ending: Ending, cancelAt: readonly UpstreamName[] = []): void {
		const { clock, log } = this.#dependencies;
		const before = this.get(one.hash);
		if (before !== null && isLive(before)) {
			const { hash, path, receivedAt, requestId, notes } = before;
			const request = requestId ?? undefined;
			notes.checkedAt = clock.monotonic();
			notes.contradictions = 0;
			notes.byChain = false;
			log.info("transaction ended", { hash, request, path, stage: ending, ms: clock.now() - receivedAt });
		}
		const { chainNow } = this;
		const endedAt = chainNow === null ? 0 : Math.max(chainNow, clock.now());
		const id = before?.id ?? this.#nextId++;
		this.#apply(one.hash, (row) => {
			// Another boost instance may have sent it elsewhere meanwhile.
			const isByUser = isEndedByUser({ desired: ending });
			const more = row === null || !isByUser ? [] : holdersSince(row, before);
			return endRow(row ?? { ...one, id }, ending, endedAt, [...cancelAt, ...more]);
		});
	}

	/**
	 * The relay reports it as live, so at least half a life is left. Most reports change nothing,
	 * since changes are written.
	 */
	extendLife(hash: string): void {
		const { ttlMs } = this.#times;
		const aliveUntil = this.#freshLife();
		const row = this.live(hash);
		if (row === null) return;
		row.notes.aliveUntil = this.#dependencies.clock.monotonic() + ttlMs;
		if (aliveUntil === UNDATED) return;
		if (aliveUntil - row.aliveUntil >= ttlMs / 2 || this.isMisdated(row))
			this.change(hash, (one) => ({ ...one, aliveUntil }));
	}

	/**
	 * Whether its life ends much later than one that begins now. The chain's time was then unknown or
	 * wrong.
	 */
	isMisdated({ aliveUntil }: Row): boolean {
		return aliveUntil - this.#freshLife() > this.#times.ttlMs;
	}

	/**
	 * The block that ended a row is no longer in the chain. The row is live again, if its bytes are
	 * still kept.
	 */
	reopen(hash: string): void {
		if (!this.#ended.reopenable.has(hash)) return;
		const life = { aliveUntil: this.#freshLife(), version: this.#newVersion(), notes: this.#freshNotes() };
		this.change(hash, (row) => reopenRow(row, life));
	}

	/** Reads anew which rows have ended. Rejects if the store fails. */
	readEnded(): Promise<void> {
		return this.#archive.open();
	}

	/** Sets the only listener, called after a change that leaves work. */
	onWork(listener: () => void): void {
		this.#onWork = listener;
	}

	/** True if the latest change of a hash is on disk, or once it is; false if its write failed. */
	written(hash: string): Promise<boolean> | true {
		return this.#journal.written(hash);
	}

	/** Whether a live row may be sent. A store of this process alone never makes it wait. */
	claimed(hash: string): Claim | Promise<Claim> {
		if (this.shared === null) return "won";
		const row = this.live(hash);
		return row === null ? "lost" : this.shared.claimed(row);
	}

	/** Retries failed writes once and waits for the disk. Does not close the store. */
	async close(): Promise<void> {
		await this.#sweeper.close();
		await this.#journal.close();
	}

	/** Reads a settled row from the archive into memory. */
	async #recall(hash: string): Promise<Row | null> {
		const found = await this.#archive.read(hash);
		// It may have been loaded by another call, changed or dropped in between.
		const row = this.#rows.get(hash);
		if (row !== undefined) return row;
		if (found === null || !this.#archive.has(hash)) return null;
		this.#rows.set(hash, found);
		this.#ended.recalled(found);
		return found;
	}

	/**
	 * Replaces `before` by `row` in memory, and on disk if it would differ after a restart; null: no
	 * row.
	 */
	#replaceAndWrite(before: Row | null, row: Row | null, made: RowChange): void {
		this.#replaceInMemory(before, row);
		if (!isSameOnDisk(before, row)) this.#journal.write(before, row, made);
	}

	/** Replaces `before` by `row` in the table and every index. */
	#replaceInMemory(before: Row | null, row: Row | null): void {
		const { hash } = (row ?? before) as Row;
		if (row === null) this.#rows.delete(hash);
		else this.#rows.set(hash, row);
		const wasLive = before !== null && isLive(before);
		const isNowLive = row !== null && isLive(row);
		if (before !== null && isNowLive && row.at !== before.at) {
			const has = row.at.fallback.presence === "has";
			if (has && before.at.fallback.presence !== "has")
				row.notes.fallbackSince = this.#dependencies.clock.now();
		}
		if (wasLive || isNowLive) this.#live.replace(wasLive ? before : null, isNowLive ? row : null);
		const ended = isNowLive ? null : row;
		if (ended !== null || (before !== null && !wasLive)) this.#putEnded(hash, ended);
		if (row !== null && needsWork(row)) this.#onWork();
	}

	#putEnded(hash: string, row: Row | null): void {
		this.#ended.put(hash, row);
		if (row === null) this.#archive.delete(hash);
		else this.#archive.add(hash);
		this.#sweeper.wake();
	}
}
