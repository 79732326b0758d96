// The table of all rows in memory, by hash and by sender. It is the only place that stores a changed row, so that memory and
// disk agree and every bound is kept.

import type { Timer } from "../../shared/clock.ts";
import type { Fullness, OverShare } from "../../shared/shares/shares.ts";
import type { UpstreamName } from "../domain/request.ts";
import {
	cancelsPendingAt,
	type EndedOne,
	type Ending,
	endRow,
	holdersOf,
	isEndedByUser,
	isLifeOver,
	isLive,
	keepsBytes,
	type NewRow,
	type Notes,
	needsWork,
	newNotes,
	openRow,
	type Row,
	reopenRow,
	stripRow,
	UNDATED,
} from "../domain/row.ts";
import { Journal, type JournalDependencies } from "../journal/journal.ts";
import { isSameOnDisk } from "../journal/records.ts";
import { LiveRows } from "./liveRows.ts";

export interface RowsDependencies extends JournalDependencies {
	/** In ms since the epoch; null until it is known. */
	readonly chainTime: { now(): number | null };
}

/** The table's bounds, with their defaults in brackets. */
export interface RowLimits {
	/** Life of a row from its arrival, in ms. At least half of it is left whenever the relay reports the row as live. */
	readonly ttlMs: number;
	/** The most live rows (100 000); one client may have a sixteenth. */
	readonly maxLive?: number;
	/** The most bytes of live transactions (256 MiB), each counted with 512 more; one client may have a sixteenth. */
	readonly maxBytes?: number;
	/** How long ended rows are kept, in ms (7 days). */
	readonly endedKeepMs?: number;
	/** The most ended rows (200 000). Oldest first are dropped; rows ended by their users only after all others. */
	readonly maxEnded?: number;
	/** How long a mined row can be reopened, in ms (12 slots of mainnet). */
	readonly reorgMs?: number;
}

const MIB = 1024 * 1024;
const DEFAULTS = {
	maxLive: 100_000,
	maxBytes: 256 * MIB,
	maxEnded: 200_000,
	endedKeepMs: 7 * 24 * 3600 * 1000,
};
const REORG_MS = 144_000;
/** How often old rows are dropped, in ms. */
const SWEEP_MS = 10_000;
/** The most rows of a kind that are dropped at a time, so that no commit is large. */
const SWEEP_BATCH = 1_000;
/** Until the next sweep, in ms, if more rows may be due than one batch. */
const SWEEP_PAUSE_MS = 1_000;

/**
 * All rows of the process. A change is in memory at once and is then written; while the store fails it stays in memory until
 * it can be written. {@link Rows.written} reports when it is on disk. A timer runs until {@link Rows.close}.
 */
export class Rows {
	readonly #limits: Required<Omit<RowLimits, "ttlMs" | "reorgMs">>;
	/** Read each time, since a slot's length is learnt. */
	readonly #times: Pick<RowLimits, "ttlMs" | "reorgMs">;
	readonly #dependencies: RowsDependencies;
	readonly #journal: Journal;
	#onWork = (): void => {};
	readonly #rows = new Map<string, Row>();
	readonly #live: LiveRows;
	/** Hashes of ended rows, each set in the order of their ends. */
	readonly #endedByUser = new Set<string>();
	readonly #endedOtherwise = new Set<string>();
	/** Ended rows that must still be cancelled at an upstream. */
	readonly #pendingCancels = new Set<string>();
	/** Mined rows that can be reopened, in the order of their ends. */
	readonly #mined = new Set<string>();
	/** The id of the next new row. */
	#nextId = 1;
	#latestVersion = 0;
	#sweeping: Timer | null = null;
	#closed = false;

	private constructor(limits: RowLimits, dependencies: RowsDependencies) {
		this.#limits = { ...DEFAULTS, ...limits };
		this.#times = limits;
		this.#dependencies = dependencies;
		this.#journal = new Journal(dependencies);
		this.#live = new LiveRows(this.#limits);
	}

	/** Reads the rows from the store. Rejects if the store fails. */
	static async load(limits: RowLimits, dependencies: RowsDependencies): Promise<Rows> {
		const rows = new Rows(limits, dependencies);
		const { rows: found, lastId } = await rows.#journal.read();
		rows.#nextId = lastId + 1;
		for (const row of [...found].sort((one, other) => one.endedAt - other.endedAt)) {
			const notes = isLive(row) ? rows.#freshNotes(rows.#agedBy(row)) : row.notes;
			rows.#replaceInMemory(null, { ...row, version: rows.#newVersion(), notes });
		}
		return rows;
	}

	/** The chain's time in ms since the epoch, by which rows age; null until it is known. */
	get chainNow(): number | null {
		return this.#dependencies.chainTime.now();
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

	/** How much of the life of a row from the journal is over by the machine's clock, in ms. */
	#agedBy({ receivedAt, aliveUntil }: Row): number {
		const begun = Math.max(receivedAt, aliveUntil - this.#times.ttlMs);
		return Math.max(0, this.#dependencies.clock.now() - begun);
	}

	/**
	 * Whether the life of a live row has been over for `graceMs`. While the chain's time is not known only what this process has
	 * held for that long is, if `elseByOwn`.
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

	/** The row of a hash, live or ended. */
	get(hash: string): Row | null {
		return this.#rows.get(hash) ?? null;
	}

	/** The row of a hash if it is live. */
	live(hash: string): Row | null {
		const row = this.#rows.get(hash);
		return row !== undefined && isLive(row) ? row : null;
	}

	/**
	 * Live rows of a sender, optionally of one nonce, in the order of nonce and arrival. The list is never changed: a change of
	 * the rows makes a new one.
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
		return this.#all(this.#pendingCancels);
	}

	/** Mined rows that can be reopened, in the order of their ends. */
	mined(): Iterable<Row> {
		return this.#all(this.#mined);
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

	/** Which limit leaves no room to {@link add} it: its client's share or the total; null if there is room. */
	refusal(entry: Pick<NewRow, "hash" | "address" | "raw">): OverShare | null {
		if (this.live(entry.hash) !== null) return null;
		return this.#hasBacklogRoom ? this.#live.refusal(entry) : "total";
	}

	/**
	 * Opens a row with its request in progress. A live row that was not acknowledged
	 * takes over the values of this request and keeps its delivery state. Returns false and changes nothing if there is no room,
	 * or the row is live and acknowledged.
	 */
	add(entry: NewRow): boolean {
		const { raw } = entry;
		const before = this.get(entry.hash);
		const wasLive = before !== null && isLive(before);
		if (wasLive ? before.acknowledged : this.refusal(entry) !== null) return false;
		let notBefore = 0;
		for (const { receivedAt } of this.liveOf(entry.from, entry.nonce))
			notBefore = Math.max(notBefore, receivedAt);
		const row = openRow(entry, before, {
			id: before?.id ?? this.#nextId++,
			version: this.#newVersion(),
			aliveUntil: this.#freshLife(),
			notBefore,
			notes: this.#freshNotes(),
		});
		this.#replaceInMemory(before, row);
		// If the row was already live, its bytes are on disk, or being written.
		this.#journal.write(row, row, wasLive ? undefined : { raw, isNew: before === null });
		return true;
	}

	/** Replaces a row by the result of `change`. Deletes it if that is null, or a live row that nobody needs. */
	change(hash: string, change: (row: Row) => Row | null): void {
		const before = this.get(hash);
		const row = before === null ? null : change(before);
		if (row === before) return;
		// No upstream has or may have it, and its client got an error. (While it is being submitted it is acknowledged.)
		const isOver = row !== null && isLive(row) && !row.acknowledged && holdersOf(row).length === 0;
		this.#replaceAndWrite(before, isOver ? null : row);
	}

	/** Ends a row, or creates an ended one, to be cancelled at the upstreams `cancelAt`; see `endRow` in row.ts. */
	end(one: Omit<EndedOne, "id">, ending: Ending, cancelAt: readonly UpstreamName[] = []): void {
		const { clock, log } = this.#dependencies;
		const before = this.get(one.hash);
		if (before !== null && isLive(before)) {
			const { hash, path, receivedAt, notes } = before;
			if (ending === "mined") {
				notes.checkedAt = clock.monotonic();
				notes.missingReceipts = 0;
				notes.byChain = false;
			}
			log.info("transaction ended", { hash, path, stage: ending, ms: clock.now() - receivedAt });
		}
		const { chainNow } = this;
		const endedAt = chainNow === null ? 0 : Math.max(chainNow, clock.now());
		const row = endRow(before ?? { ...one, id: this.#nextId++ }, ending, endedAt, cancelAt);
		if (row !== before) this.#replaceAndWrite(before, row);
	}

	/** The relay reports it as live: at least half a life is left. Most reports change nothing, since changes are written. */
	extendLife(hash: string): void {
		const { ttlMs } = this.#times;
		const aliveUntil = this.#freshLife();
		const row = this.live(hash);
		if (row === null) return;
		row.notes.aliveUntil = this.#dependencies.clock.monotonic() + ttlMs;
		if (aliveUntil === UNDATED) return;
		if (aliveUntil - row.aliveUntil >= ttlMs / 2 || this.isMisdated(row))
			this.change(hash, () => ({ ...row, aliveUntil }));
	}

	/** Whether its life ends much later than one that begins now: the chain's time was not known then, or was wrong. */
	isMisdated({ aliveUntil }: Row): boolean {
		return aliveUntil - this.#freshLife() > this.#times.ttlMs;
	}

	/** A mined row is no longer in the chain: it is live again, if its bytes are still kept. */
	reopen(hash: string): void {
		if (!this.#mined.has(hash)) return;
		const life = { aliveUntil: this.#freshLife(), version: this.#newVersion(), notes: this.#freshNotes() };
		this.change(hash, (row) => reopenRow(row, life));
	}

	/** Sets the one listener, called after a change that leaves something to do. */
	onWork(listener: () => void): void {
		this.#onWork = listener;
	}

	/** True if the latest change of a hash is on disk, or once it is; false if it could not be written. */
	written(hash: string): Promise<boolean> | true {
		return this.#journal.written(hash);
	}

	/** Retries failed writes once and waits for the disk. Does not close the store. */
	async close(): Promise<void> {
		this.#closed = true;
		this.#sweeping?.cancel();
		await this.#journal.close();
	}

	/** Replaces `before` by `row` in memory, and on disk if it would differ after a restart; null: no row. */
	#replaceAndWrite(before: Row | null, row: Row | null): void {
		const wasEvicted = this.#replaceInMemory(before, row);
		if (!wasEvicted && !isSameOnDisk(before, row)) this.#journal.write((row ?? before) as Row, row);
	}

	/** Replaces `before` by `row` in the table and every index. Returns whether `row` was dropped at once to make room. */
	#replaceInMemory(before: Row | null, row: Row | null): boolean {
		const { hash } = (row ?? before) as Row;
		if (row === null) this.#rows.delete(hash);
		else this.#rows.set(hash, row);
		const wasLive = before !== null && isLive(before);
		const isNowLive = row !== null && isLive(row);
		if (wasLive || isNowLive) this.#live.replace(wasLive ? before : null, isNowLive ? row : null);
		const ended = isNowLive ? null : row;
		if (ended !== null || (before !== null && !wasLive)) this.#putEnded(hash, before, ended);
		if (row !== null && needsWork(row)) this.#onWork();
		return this.#makeRoom() === hash;
	}

	/** Updates the indexes of ended rows. A row that is there keeps its position. */
	#putEnded(hash: string, before: Row | null, row: Row | null): void {
		// A different end moves the row to the back.
		if (before?.endedAt !== row?.endedAt || before?.desired !== row?.desired)
			for (const hashes of [this.#endedByUser, this.#endedOtherwise]) hashes.delete(hash);
		if (row !== null) (isEndedByUser(row) ? this.#endedByUser : this.#endedOtherwise).add(hash);
		if (row !== null && cancelsPendingAt(row).length > 0) this.#pendingCancels.add(hash);
		else this.#pendingCancels.delete(hash);
		if (keepsBytes(row)) this.#mined.add(hash);
		else this.#mined.delete(hash);
		this.#sweepIn(SWEEP_MS);
	}

	/** Drops the oldest ended row if there are too many. Returns its hash, or null. */
	#makeRoom(): string | null {
		if (this.#endedByUser.size + this.#endedOtherwise.size <= this.#limits.maxEnded) return null;
		const [oldest = ""] = this.#endedOtherwise.size > 0 ? this.#endedOtherwise : this.#endedByUser;
		this.change(oldest, () => null);
		return oldest;
	}

	#sweepIn(ms: number): void {
		const isNeeded = this.#endedByUser.size + this.#endedOtherwise.size > 0;
		if (this.#closed || this.#sweeping !== null || !isNeeded) return;
		this.#sweeping = this.#dependencies.clock.after(ms, () => this.#sweep());
	}

	/** Drops the bytes of rows that can't be reopened any more, and rows that ended long ago by chain and machine. */
	#sweep(): void {
		const { endedKeepMs } = this.#limits;
		const { reorgMs = REORG_MS } = this.#times;
		const { chainNow } = this;
		if (chainNow === null) {
			this.#sweeping = null;
			this.#sweepIn(SWEEP_MS);
			return;
		}
		const machineNow = this.#dependencies.clock.now();
		const [now, latest] = [Math.min(chainNow, machineNow), Math.max(chainNow, machineNow)];
		// What ended before the chain's time was known, or while a clock was ahead, is kept as long as any other.
		for (const hashes of [this.#endedByUser, this.#endedOtherwise]) {
			const isWrong = ({ endedAt }: Row) => endedAt === 0 || endedAt > latest + reorgMs;
			for (const { hash } of [...this.#all(hashes)].filter(isWrong))
				this.change(hash, (row) => ({ ...row, endedAt: latest }));
		}
		const due = (hashes: ReadonlySet<string>, keepMs: number): readonly string[] => {
			const found: string[] = [];
			for (const { hash, endedAt } of this.#all(hashes)) {
				if (endedAt > now - keepMs || found.length >= SWEEP_BATCH) break;
				found.push(hash);
			}
			return found;
		};
		const mined = due(this.#mined, reorgMs);
		const old = [...due(this.#endedByUser, endedKeepMs), ...due(this.#endedOtherwise, endedKeepMs)];
		for (const hash of mined) this.change(hash, stripRow);
		for (const hash of old) this.change(hash, () => null);
		this.#sweeping = null;
		this.#sweepIn(mined.length + old.length >= SWEEP_BATCH ? SWEEP_PAUSE_MS : SWEEP_MS);
	}
}
