// The table of rows: every transaction that boost answers for, in memory, by hash and by sender. It is the only place where
// a row is changed, so that memory and disk go together and every bound is kept. What is to be done is not decided here.

import type { Clock, Timer } from "../../shared/clock.ts";
import { clientOf } from "../../shared/http/callContext.ts";
import type { KeyValueStore } from "../../shared/kv/port.ts";
import type { Logger } from "../../shared/log.ts";
import { type Fullness, fullest, type OverShare, Shares } from "../../shared/shares/shares.ts";
import type { UpstreamName } from "../domain/request.ts";
import {
	cancelsPendingAt,
	closed,
	type EndedOne,
	type Ending,
	ended,
	holdersOf,
	isEndedByUser,
	isLive,
	type NewRow,
	needsWork,
	openedRow,
	type Row,
	reopened,
} from "../domain/row.ts";
import { Journal } from "../journal/journal.ts";
import { isSameOnDisk } from "../journal/records.ts";

/** The table's bounds; what is left out has the default. */
export interface RowLimits {
	/** Life of a row from its arrival, or since the relay last said that it is on its way, in ms. */
	readonly ttlMs: number;
	/** Live rows at most (100 000), a sixteenth of one client; where there are that many, none is added. */
	readonly maxLive?: number;
	/** Bytes of live transactions at most (256 MiB), 512 more for each; a sixteenth of one client. */
	readonly maxBytes?: number;
	/** How long ended ones are remembered, in ms (7 days). */
	readonly endedKeepMs?: number;
	/** Ended ones that are remembered (200 000); the oldest go first, those that their users ended last. */
	readonly maxEnded?: number;
	/** How long a mined one can be opened again, in ms (12 slots of mainnet). */
	readonly reorgMs?: number;
	/** Bytes of transactions that the journal keeps in memory beside the disk (64 MiB). */
	readonly rawCacheBytes?: number;
}

const MIB = 1024 * 1024;
const DEFAULTS = {
	...{ maxLive: 100_000, maxBytes: 256 * MIB, maxEnded: 200_000, rawCacheBytes: 64 * MIB },
	...{ endedKeepMs: 7 * 24 * 3600 * 1000, reorgMs: 144_000 },
};
/** Bytes that a row takes beside its transaction, about. */
const ROW_BYTES = 512;
/** Part of all that one client may have. */
const CLIENT_PART = 1 / 16;
/** The largest transaction without blobs (execution clients take no more). */
const LARGEST_BYTES = 128 * 1024;
/** How often old ones are looked for, in ms; sooner where more were left than go at a time, so that no commit is large. */
const SWEEP_MS = 10_000;
const SWEEP_BATCH = 1_000;
const SWEEP_PAUSE_MS = 1_000;
const NONE: readonly Row[] = Object.freeze([]);

interface RowsDependencies {
	readonly kv: KeyValueStore;
	readonly clock: Clock;
	readonly log: Logger;
	/** Called for each write that failed. */
	readonly onFault?: () => void;
}

/**
 * All rows of the process. Changes are in memory at once and on their way to the disk; where the store fails they are kept in
 * memory alone until it works again. Whoever needs to know asks {@link Rows.written}. Its timer runs until {@link Rows.close}.
 */
export class Rows {
	readonly #limits: Required<RowLimits>;
	readonly #with: RowsDependencies;
	readonly #journal: Journal;
	#onWork = (): void => {};
	readonly #rows = new Map<string, Row>();
	/** Live ones, by nonce, those of one nonce by arrival. A change makes a new list. */
	readonly #bySender = new Map<string, readonly Row[]>();
	/** Hashes of the ended ones, in the order of their ends: those that their users ended, and the others. */
	readonly #byUser = new Set<string>();
	readonly #others = new Set<string>();
	/** Ended ones of which somebody was not told. */
	readonly #pendingCancels = new Set<string>();
	/** Mined ones that can be opened again, the first to end first. */
	readonly #mined = new Set<string>();
	readonly #counts: Shares;
	readonly #bytes: Shares;
	#depth = 0;
	/** Counts the changes of rows. */
	#changes = 0;
	#sweeping: Timer | null = null;
	#closed = false;

	private constructor(limits: RowLimits, dependencies: RowsDependencies) {
		this.#limits = { ...DEFAULTS, ...limits };
		this.#with = dependencies;
		const { maxLive, maxBytes, rawCacheBytes } = this.#limits;
		this.#journal = new Journal({ cacheBytes: rawCacheBytes }, dependencies);
		this.#counts = new Shares({ total: maxLive, perClient: Math.ceil(maxLive * CLIENT_PART) });
		this.#bytes = new Shares({ total: maxBytes, perClient: Math.ceil(maxBytes * CLIENT_PART) });
	}

	/** The rows as they were left in the store. Throws the store's fault. */
	static async open(limits: RowLimits, dependencies: RowsDependencies): Promise<Rows> {
		const rows = new Rows(limits, dependencies);
		const found = await rows.#journal.read();
		for (const row of [...found].sort((one, other) => one.endedAt - other.endedAt)) {
			if (isLive(row)) row.notes.heardAt = dependencies.clock.monotonic();
			rows.#put(null, row);
		}
		return rows;
	}

	/** Live rows. */
	get depth(): number {
		return this.#depth;
	}

	/** Whether the last write came through. */
	get isDurable(): boolean {
		return this.#journal.isDurable;
	}

	/** Whether there is no room for a large transaction, whoever sends it. */
	get isFull(): boolean {
		const { maxLive, maxBytes } = this.#limits;
		const isTaken = this.#counts.taken >= maxLive || this.#bytes.taken + LARGEST_BYTES + ROW_BYTES > maxBytes;
		return isTaken || !this.#hasDiskRoom;
	}

	/** How full it is, by rows or bytes, whichever is fuller. */
	get fullness(): Fullness {
		return fullest([this.#counts.fullness, this.#bytes.fullness]);
	}

	get #hasDiskRoom(): boolean {
		return this.#journal.unwritten < 2 * this.#limits.maxLive;
	}

	/** What is known of a hash, live or ended. */
	get(hash: string): Row | null {
		return this.#rows.get(hash) ?? null;
	}

	/** The row of a hash that is live. */
	live(hash: string): Row | null {
		const row = this.#rows.get(hash);
		return row !== undefined && isLive(row) ? row : null;
	}

	/**
	 * Live rows of a sender by nonce, those of one nonce by arrival; of one nonce alone where that is given. A change makes
	 * a new list.
	 */
	of(from: string, nonce?: bigint): readonly Row[] {
		const rows = this.#bySender.get(from) ?? NONE;
		return nonce === undefined ? rows : ofNonce(rows, nonce);
	}

	/** All live rows, those of a sender by nonce. */
	*open(): Generator<Row> {
		// Looked up only where something has changed since: that is most of what going through all of them costs.
		const begun = this.#changes;
		for (const rows of this.#bySender.values()) {
			for (const row of rows) if (begun === this.#changes || this.#rows.get(row.hash) === row) yield row;
		}
	}

	/** Ended ones of which somebody was not told yet. */
	pendingCancels(): Iterable<Row> {
		return this.#all(this.#pendingCancels);
	}

	/** Mined ones that can be opened again, in the order of their ends. */
	mined(): Iterable<Row> {
		return this.#all(this.#mined);
	}

	*#all(hashes: ReadonlySet<string>): Generator<Row> {
		for (const hash of hashes) {
			const row = this.#rows.get(hash);
			if (row !== undefined) yield row;
		}
	}

	/** The bytes of a live row; null where it is not live any more. */
	async raw(hash: string): Promise<Buffer | null> {
		if (this.live(hash) === null) return null;
		const raw = await this.#journal.raw(hash);
		return this.live(hash) === null ? null : raw;
	}

	/** Why {@link add} would find no room: its client has its share, or all is taken; null where there is room. */
	refusal({ hash, address, raw }: Pick<NewRow, "hash" | "address" | "raw">): OverShare | null {
		if (this.live(hash) !== null) return null;
		if (!this.#hasDiskRoom) return "total";
		const client = clientOf(address);
		return this.#counts.refusal(client, 1) ?? this.#bytes.refusal(client, raw.length + ROW_BYTES);
	}

	/**
	 * Opens a row, its request under way, with `first` as the one who is given it first. One that is live and was not
	 * acknowledged becomes what this request asks for; who may have it, and must get it as a replacement, stays. Where there
	 * is no room, or it is live otherwise, nothing is kept: false.
	 */
	add(entry: NewRow, first: UpstreamName): boolean {
		const { raw } = entry;
		const before = this.get(entry.hash);
		const wasLive = before !== null && isLive(before);
		if (wasLive ? before.acknowledged : this.refusal(entry) !== null) return false;
		const { ttlMs } = this.#limits;
		const row = openedRow(entry, first, before, { ttlMs, monotonic: this.#with.clock.monotonic() });
		this.#put(before, row);
		// The bytes of one that was live already are on disk.
		this.#journal.write(row.hash, row, wasLive ? undefined : { raw, isNew: before === null });
		return true;
	}

	/** Puts what `change` makes of the row in its place; null, or one that nobody has and that was not acknowledged, is forgotten. */
	change(hash: string, change: (row: Row) => Row | null): void {
		const before = this.get(hash);
		const row = before === null ? null : change(before);
		if (row === before) return;
		// Nobody has it, and its client was told so.
		const isOver = row !== null && isLive(row) && !row.acknowledged && holdersOf(row).length === 0;
		this.#keep(before, isOver ? null : row);
	}

	/** It ends, and `notify` must hear of it; see `ended` of row.ts. One that was not known is known from now on. */
	end(one: EndedOne, ending: Ending, notify: readonly UpstreamName[] = []): void {
		const { clock, log } = this.#with;
		const now = clock.now();
		const before = this.get(one.hash);
		if (before !== null && isLive(before)) {
			const { hash, path, receivedAt, notes } = before;
			// From now on a mined one's notes are about its block.
			if (ending === "mined") Object.assign(notes, { chainAt: clock.monotonic(), misses: 0, byChain: false });
			log.info("transaction ended", { hash, path, stage: ending, ms: now - receivedAt });
		}
		const row = ended(before ?? one, ending, now, notify);
		if (row !== before) this.#keep(before, row);
	}

	/** The relay says that it is on its way: it lives on. */
	alive(hash: string): void {
		const until = this.#with.clock.now() + this.#limits.ttlMs;
		this.change(hash, (row) => (isLive(row) && until > row.aliveUntil ? { ...row, aliveUntil: until } : row));
	}

	/** A mined one is not in the chain any more: it is live again, unless that was so long ago that its bytes are gone. */
	reopen(hash: string): void {
		const { clock } = this.#with;
		const until = clock.now() + this.#limits.ttlMs;
		this.change(hash, (row) => (this.#mined.has(hash) ? reopened(row, until, clock.monotonic()) : row));
	}

	/** Calls `listener`, of which there is one, where there is something to do for a row that was just changed. */
	onWork(listener: () => void): void {
		this.#onWork = listener;
	}

	/** Whether the latest change of a hash is on disk; resolves when that is known. */
	written(hash: string): Promise<boolean> {
		return this.#journal.written(hash);
	}

	/** Tries once more what could not be written and waits for the disk. The store is its opener's to close. */
	async close(): Promise<void> {
		this.#closed = true;
		this.#sweeping?.cancel();
		await this.#journal.close();
	}

	/** Puts `row` in the place of `before`, and on disk what of it must be there. */
	#keep(before: Row | null, row: Row | null): void {
		const hash = (row ?? before)?.hash ?? "";
		const isForgotten = this.#put(before, row);
		if (!isForgotten && !isSameOnDisk(before, row, this.#limits.ttlMs)) this.#journal.write(hash, row);
	}

	/** Puts `row` in the place of `before`, in every index. Answers whether it had to make room itself at once. */
	#put(before: Row | null, row: Row | null): boolean {
		const { hash } = (row ?? before) as Row;
		this.#changes += 1;
		if (row === null) this.#rows.delete(hash);
		else this.#rows.set(hash, row);
		const wasLive = before !== null && isLive(before);
		const isNowLive = row !== null && isLive(row);
		const isSameShare = before?.address === row?.address && before?.bytes === row?.bytes;
		if (wasLive && isNowLive && isSameShare && before.receivedAt === row.receivedAt) {
			const rows = this.of(row.from);
			this.#bySender.set(row.from, rows.with(rows.indexOf(before), row));
		} else {
			if (wasLive) this.#takeOutLive(before);
			if (isNowLive) this.#putLive(row);
		}
		if (!wasLive || !isNowLive) this.#putEnded(hash, before, isNowLive ? null : row);
		if (row !== null && needsWork(row)) this.#onWork();
		return this.#makeRoom() === hash;
	}

	#putLive(row: Row): void {
		const rows = this.of(row.from);
		// From the end: most come in order.
		const at = rows.findLastIndex((one) => !isBehind(one, row)) + 1;
		this.#bySender.set(row.from, rows.toSpliced(at, 0, row));
		this.#depth += 1;
		this.#counts.force(clientOf(row.address), 1);
		this.#bytes.force(clientOf(row.address), row.bytes + ROW_BYTES);
	}

	#takeOutLive(row: Row): void {
		const rows = this.of(row.from).filter((one) => one !== row);
		if (rows.length > 0) this.#bySender.set(row.from, rows);
		else this.#bySender.delete(row.from);
		this.#depth -= 1;
		this.#counts.give(clientOf(row.address), 1);
		this.#bytes.give(clientOf(row.address), row.bytes + ROW_BYTES);
	}

	/** Puts `row` into the indexes of ended ones, or out of them; one that is there keeps its place. */
	#putEnded(hash: string, before: Row | null, row: Row | null): void {
		const keep = (hashes: Set<string>, isIn: boolean) => (isIn ? hashes.add(hash) : hashes.delete(hash));
		// A later end is a new one.
		if (before?.endedAt !== row?.endedAt || before?.desired !== row?.desired)
			for (const hashes of [this.#byUser, this.#others]) hashes.delete(hash);
		if (row !== null) (isEndedByUser(row) ? this.#byUser : this.#others).add(hash);
		keep(this.#pendingCancels, row !== null && cancelsPendingAt(row).length > 0);
		keep(this.#mined, row !== null && row.bytes > 0);
		this.#sweepIn(SWEEP_MS);
	}

	/** Forgets the oldest ended one where there are too many. Answers its hash, or null. */
	#makeRoom(): string | null {
		if (this.#byUser.size + this.#others.size <= this.#limits.maxEnded) return null;
		const [oldest = ""] = this.#others.size > 0 ? this.#others : this.#byUser;
		this.change(oldest, () => null);
		return oldest;
	}

	#sweepIn(ms: number): void {
		const isNeeded = this.#byUser.size + this.#others.size > 0;
		if (this.#closed || this.#sweeping !== null || !isNeeded) return;
		this.#sweeping = this.#with.clock.after(ms, () => this.#sweep());
	}

	/** Drops the bytes of what is mined for good, and forgets what ended long ago. */
	#sweep(): void {
		const { reorgMs, endedKeepMs } = this.#limits;
		const now = this.#with.clock.now();
		const due = (hashes: ReadonlySet<string>, keepMs: number): readonly string[] => {
			const found: string[] = [];
			for (const { hash, endedAt } of this.#all(hashes)) {
				if (endedAt > now - keepMs || found.length >= SWEEP_BATCH) break;
				found.push(hash);
			}
			return found;
		};
		const mined = due(this.#mined, reorgMs);
		const old = [...due(this.#byUser, endedKeepMs), ...due(this.#others, endedKeepMs)];
		for (const hash of mined) this.change(hash, closed);
		for (const hash of old) this.change(hash, () => null);
		this.#sweeping = null;
		this.#sweepIn(mined.length + old.length >= SWEEP_BATCH ? SWEEP_PAUSE_MS : SWEEP_MS);
	}
}

/** Those of one nonce among rows by nonce. A sender may have many, and each submission asks for this. */
function ofNonce(rows: readonly Row[], nonce: bigint): readonly Row[] {
	let [from, to] = [0, rows.length];
	while (from < to) {
		const middle = (from + to) >>> 1;
		if ((rows[middle] as Row).nonce < nonce) from = middle + 1;
		else to = middle;
	}
	while (rows[to]?.nonce === nonce) to += 1;
	return from === to ? NONE : rows.slice(from, to);
}

function isBehind(one: Row, other: Row): boolean {
	return one.nonce > other.nonce || (one.nonce === other.nonce && one.receivedAt > other.receivedAt);
}
