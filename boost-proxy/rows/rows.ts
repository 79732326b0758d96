// The table of rows: every transaction that boost answers for, in memory, by hash and by sender. It is the only place where
// a row is changed, so that memory and disk go together and every bound is kept. What is to be done is not decided here.

import type { Clock, Timer } from "../../shared/clock.ts";
import { clientOf } from "../../shared/http/callContext.ts";
import { type Fullness, fullest, type OverShare, Shares } from "../../shared/shares/shares.ts";
import type { Journal, Rows } from "../domain/ports.ts";
import type { UpstreamName } from "../domain/request.ts";
import {
	aliveTo,
	cancelsPendingAt,
	closed,
	type EndedOne,
	type Ending,
	ended,
	endedRow,
	holdersOf,
	isEndedByUser,
	isHolder,
	isLive,
	type NewRow,
	needsWork,
	openedRow,
	type Row,
	reopened,
} from "../domain/row.ts";

/** The table's bounds; what is left out has the default. */
export interface RowLimits {
	/** Life of a row from its arrival, or the last word that it is on its way, in ms. */
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
}

export interface RowTableDependencies {
	readonly journal: Journal;
	readonly clock: Clock;
	/** Hears of each end of a live one. */
	readonly onEnded?: (row: Row, ending: Ending) => void;
}

const MIB = 1024 * 1024;
const SLOT_MS = 12_000;
const DEFAULTS = {
	...{ maxLive: 100_000, maxBytes: 256 * MIB, maxEnded: 200_000 },
	...{ endedKeepMs: 7 * 24 * 3600 * 1000, reorgMs: 12 * SLOT_MS },
};
/** Bytes that a row takes beside its transaction, about. */
const ROW_BYTES = 512;
/** Part of all that one client may have. */
const CLIENT_PART = 1 / 16;
/** The largest transaction without blobs (execution clients take no more). */
const LARGEST_BYTES = 128 * 1024;
/** Ended ones forgotten at a time at most, so that no commit is large; and until the rest follows, in ms. */
const SWEEP_BATCH = 1_000;
const SWEEP_PAUSE_MS = 1_000;
/** Until the next sweep at most, in ms: timers have a largest delay. */
const SWEEP_MAX_MS = 24 * 3600 * 1000;
const NONE: readonly Row[] = Object.freeze([]);

/** All rows of the process. Its timer runs until {@link close}. */
export class RowTable implements Rows {
	readonly #limits: Required<RowLimits>;
	readonly #journal: Journal;
	readonly #clock: Clock;
	readonly #onEnded: (row: Row, ending: Ending) => void;
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
	#sweeping: { readonly at: number; readonly timer: Timer } | null = null;
	#closed = false;

	/** `rows`: what was on disk. */
	constructor(limits: RowLimits, rows: readonly Row[], dependencies: RowTableDependencies) {
		this.#limits = { ...DEFAULTS, ...limits };
		const { maxLive, maxBytes } = this.#limits;
		this.#journal = dependencies.journal;
		this.#clock = dependencies.clock;
		this.#onEnded = dependencies.onEnded ?? (() => {});
		this.#counts = new Shares({ total: maxLive, perClient: Math.ceil(maxLive * CLIENT_PART) });
		this.#bytes = new Shares({ total: maxBytes, perClient: Math.ceil(maxBytes * CLIENT_PART) });
		for (const row of [...rows].sort((one, other) => one.endedAt - other.endedAt)) {
			if (isLive(row)) row.notes.heardAt = this.#clock.monotonic();
			this.#put(null, row);
		}
		this.#sweepLater();
	}

	get depth(): number {
		return this.#depth;
	}

	get isDurable(): boolean {
		return this.#journal.isDurable;
	}

	get isFull(): boolean {
		const { maxLive, maxBytes } = this.#limits;
		const isTaken = this.#counts.taken >= maxLive || this.#bytes.taken + LARGEST_BYTES + ROW_BYTES > maxBytes;
		return isTaken || !this.#hasDiskRoom;
	}

	get fullness(): Fullness {
		return fullest([this.#counts.fullness, this.#bytes.fullness]);
	}

	get(hash: string): Row | null {
		return this.#rows.get(hash) ?? null;
	}

	live(hash: string): Row | null {
		const row = this.#rows.get(hash);
		return row !== undefined && isLive(row) ? row : null;
	}

	of(from: string): readonly Row[] {
		return this.#bySender.get(from) ?? NONE;
	}

	*open(): Generator<Row> {
		// Looked up only where something has changed since: that is most of what going through all of them costs.
		const begun = this.#changes;
		for (const rows of this.#bySender.values()) {
			for (const row of rows) if (begun === this.#changes || this.#rows.get(row.hash) === row) yield row;
		}
	}

	pendingCancels(): Iterable<Row> {
		return this.#all(this.#pendingCancels);
	}

	mined(): Iterable<Row> {
		return this.#all(this.#mined);
	}

	wasMined({ from, nonce }: Row): boolean {
		for (const one of this.mined()) if (one.from === from && one.nonce === nonce) return true;
		return false;
	}

	async raw(hash: string): Promise<Buffer | null> {
		if (this.live(hash) === null) return null;
		const raw = await this.#journal.raw(hash);
		return this.live(hash) === null ? null : raw;
	}

	refusal({ hash, address, raw }: Pick<NewRow, "hash" | "address" | "raw">): OverShare | null {
		if (this.live(hash) !== null) return null;
		if (!this.#hasDiskRoom) return "total";
		const client = clientOf(address);
		return this.#counts.refusal(client, 1) ?? this.#bytes.refusal(client, raw.length + ROW_BYTES);
	}

	add(entry: NewRow, first: UpstreamName): boolean {
		const before = this.get(entry.hash);
		if (before !== null && isLive(before) ? before.acknowledged : this.refusal(entry) !== null) return false;
		const { ttlMs } = this.#limits;
		const row = openedRow(entry, first, before, { ttlMs, monotonic: this.#clock.monotonic() });
		this.#put(before, row);
		const { raw } = entry;
		// The bytes of one that was live already are on disk.
		const bytes = before === null || !isLive(before) ? { raw, isNew: before === null } : undefined;
		this.#journal.write(row.hash, row, bytes);
		return true;
	}

	change(hash: string, change: (row: Row) => Row): void {
		const before = this.#rows.get(hash);
		const changed = before === undefined ? undefined : change(before);
		if (before === undefined || changed === undefined || changed === before) return;
		// Nobody has it, and its client was told so.
		const isOver = isLive(changed) && !changed.acknowledged && holdersOf(changed).length === 0;
		const row = isOver ? null : changed;
		const isForgotten = this.#put(before, row);
		if (!isForgotten && !isSameOnDisk(before, row, this.#limits.ttlMs)) this.#journal.write(hash, row);
	}

	end(one: EndedOne, ending: Ending, notify: readonly UpstreamName[] = []): void {
		const { hash } = one;
		const now = this.#clock.now();
		// From now on a mined one's notes are about its block.
		const live = this.live(hash);
		if (ending === "mined" && live !== null)
			Object.assign(live.notes, { chainAt: this.#clock.monotonic(), misses: 0, byChain: false });
		if (live !== null) this.#onEnded(live, ending);
		if (this.#rows.has(hash)) {
			this.change(hash, (row) => ended(row, ending, now, notify));
			return;
		}
		const row = endedRow(one, ending, now, notify);
		if (!this.#put(null, row)) this.#journal.write(hash, row);
	}

	alive(hash: string): void {
		const until = this.#clock.now() + this.#limits.ttlMs;
		this.change(hash, (row) => aliveTo(row, until));
	}

	/** Does nothing later than `reorgMs` after its end: its bytes are gone. */
	reopen(hash: string): void {
		const now = this.#clock.now();
		const { reorgMs, ttlMs } = this.#limits;
		this.change(hash, (row) =>
			this.#mined.has(hash) && now - row.endedAt <= reorgMs
				? reopened(row, now + ttlMs, this.#clock.monotonic())
				: row,
		);
	}

	onWork(listener: () => void): void {
		this.#onWork = listener;
	}

	written(hash: string): Promise<boolean> {
		return this.#journal.written(hash);
	}

	close(): void {
		this.#closed = true;
		this.#sweeping?.timer.cancel();
	}

	*#all(hashes: ReadonlySet<string>): Generator<Row> {
		for (const hash of hashes) {
			const row = this.#rows.get(hash);
			if (row !== undefined) yield row;
		}
	}

	get #hasDiskRoom(): boolean {
		return this.#journal.unwritten < 2 * this.#limits.maxLive;
	}

	/** Puts `row` in the place of `before`, in every index. Answers whether it had to make room itself at once. */
	#put(before: Row | null, row: Row | null): boolean {
		this.#changes += 1;
		const isSame = before !== null && row !== null && isSameLife(before, row);
		if (before !== null && !isSame) this.#takeOut(before, row);
		if (row === null) return false;
		const { hash } = row;
		this.#rows.set(hash, row);
		if (isLive(row)) this.#putLive(isSame ? before : null, row);
		else {
			(isEndedByUser(row) ? this.#byUser : this.#others).add(hash);
			if (cancelsPendingAt(row).length > 0) this.#pendingCancels.add(hash);
			if (row.bytes > 0) this.#mined.add(hash);
			this.#sweepLater();
		}
		if (needsWork(row)) this.#onWork();
		return this.#makeRoom() === hash;
	}

	/** `before`: the same one, live as well, in whose place it comes. */
	#putLive(before: Row | null, row: Row): void {
		const rows = this.of(row.from);
		if (before !== null) {
			this.#bySender.set(row.from, rows.with(rows.indexOf(before), row));
			return;
		}
		// From the end: most come in order.
		const at = rows.findLastIndex((one) => !isBehind(one, row)) + 1;
		this.#bySender.set(row.from, rows.toSpliced(at, 0, row));
		this.#depth += 1;
		this.#counts.force(clientOf(row.address), 1);
		this.#bytes.force(clientOf(row.address), row.bytes + ROW_BYTES);
	}

	/** Takes `before` out of every index that it is not in any more with `row` in its place; a later end is a new one. */
	#takeOut(before: Row, row: Row | null): void {
		const { hash, from, address, bytes } = before;
		if (isLive(before)) {
			const rows = this.of(from).filter((one) => one !== before);
			if (rows.length > 0) this.#bySender.set(from, rows);
			else this.#bySender.delete(from);
			this.#depth -= 1;
			this.#counts.give(clientOf(address), 1);
			this.#bytes.give(clientOf(address), bytes + ROW_BYTES);
		}
		if (row === null) this.#rows.delete(hash);
		if (row?.endedAt !== before.endedAt || row.desired !== before.desired) {
			this.#byUser.delete(hash);
			this.#others.delete(hash);
		}
		if (row === null || isLive(row) || cancelsPendingAt(row).length === 0) this.#pendingCancels.delete(hash);
		if (row === null || isLive(row) || row.bytes === 0) this.#mined.delete(hash);
	}

	/** Forgets the oldest ended one where there are too many. Answers its hash, or null. */
	#makeRoom(): string | null {
		if (this.#byUser.size + this.#others.size <= this.#limits.maxEnded) return null;
		const [oldest] = this.#others.size > 0 ? this.#others : this.#byUser;
		if (oldest === undefined) return null;
		this.#forget(oldest);
		return oldest;
	}

	#forget(hash: string): void {
		const row = this.#rows.get(hash);
		if (row === undefined) return;
		this.#put(row, null);
		this.#journal.write(hash, null);
	}

	#sweepLater(): void {
		if (this.#closed) return;
		const { endedKeepMs, reorgMs } = this.#limits;
		const dueOf = (hashes: ReadonlySet<string>, keepMs: number): number => {
			const [hash = ""] = hashes;
			const row = this.#rows.get(hash);
			return row === undefined ? Number.POSITIVE_INFINITY : row.endedAt + keepMs;
		};
		const due = Math.min(
			dueOf(this.#byUser, endedKeepMs),
			dueOf(this.#others, endedKeepMs),
			dueOf(this.#mined, reorgMs),
		);
		if (due === Number.POSITIVE_INFINITY) return;
		const now = this.#clock.now();
		const at = Math.min(Math.max(due, now + SWEEP_PAUSE_MS), now + SWEEP_MAX_MS);
		if (this.#sweeping !== null && this.#sweeping.at <= at) return;
		this.#sweeping?.timer.cancel();
		this.#sweeping = { at, timer: this.#clock.after(at - now, () => this.#sweep()) };
	}

	/** Drops the bytes of what is mined for good, and forgets what ended long ago. */
	#sweep(): void {
		this.#sweeping = null;
		const now = this.#clock.now();
		const due = (hashes: ReadonlySet<string>, keepMs: number): readonly string[] => {
			const found: string[] = [];
			for (const { hash, endedAt } of this.#all(hashes)) {
				if (endedAt > now - keepMs || found.length >= SWEEP_BATCH) break;
				found.push(hash);
			}
			return found;
		};
		for (const hash of due(this.#mined, this.#limits.reorgMs)) this.change(hash, closed);
		const { endedKeepMs } = this.#limits;
		for (const hash of [...due(this.#byUser, endedKeepMs), ...due(this.#others, endedKeepMs)])
			this.#forget(hash);
		this.#sweepLater();
	}
}

/** Whether a live row takes the place of a live one, with the same share of the same client. */
function isSameLife(before: Row, row: Row): boolean {
	const isSame = before.receivedAt === row.receivedAt && before.address === row.address;
	return isLive(before) && isLive(row) && isSame && before.bytes === row.bytes;
}

function isBehind(one: Row, other: Row): boolean {
	return one.nonce > other.nonce || (one.nonce === other.nonce && one.receivedAt > other.receivedAt);
}

/** Whether a restart would bring back the same. How long it is alive is written twice in a life. */
function isSameOnDisk(before: Row, row: Row | null, ttlMs: number): boolean {
	if (row === null) return false;
	return (
		before.desired === row.desired &&
		before.endedAt === row.endedAt &&
		before.bytes === row.bytes &&
		before.acknowledged === row.acknowledged &&
		Math.floor((2 * before.aliveUntil) / ttlMs) === Math.floor((2 * row.aliveUntil) / ttlMs) &&
		isSameStanding(before.at.relay, row.at.relay) &&
		isSameStanding(before.at.fallback, row.at.fallback)
	);
}

function isSameStanding(one: Row["at"]["relay"], other: Row["at"]["relay"]): boolean {
	if (one === other) return true;
	return (
		one.replacementPending === other.replacementPending &&
		one.cancelPending === other.cancelPending &&
		isHolder(one) === isHolder(other)
	);
}
