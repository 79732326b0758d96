// The journal of the transactions that boost answers for: what is known of each is in memory at once, and promises tell
// when it is on disk. It makes no decision about a transaction and talks to nobody.

import type { Clock } from "../../shared/clock.ts";
import type { Fullness, OverShare } from "../../shared/shares/shares.ts";
import type { UpstreamName } from "../domain/delivery.ts";
import {
	type EndedEntry,
	type Ending,
	isUserEnding,
	type NewEntry,
	type OpenEntry,
} from "../domain/journalEntry.ts";
import type { Journal } from "../domain/ports.ts";
import type { Endings } from "./endings.ts";
import type { JournalChain } from "./identity.ts";
import type { OpenEntries } from "./openEntries.ts";
import type { RecordDisk } from "./recordDisk.ts";
import type { KeptEntry } from "./records.ts";

const DONE = Promise.resolve();

/** The bounds of a journal. */
export interface JournalLimits {
	/** Life of an entry from its arrival, or the last word that it is on its way, in ms. */
	readonly ttlMs: number;
	/** Records at most that wait for the disk, or that it refused. */
	readonly maxUnwritten: number;
}

/** What a journal is made of, filled with what was on disk. */
export interface JournalParts {
	readonly open: OpenEntries;
	readonly endings: Endings;
	readonly disk: RecordDisk;
	readonly chain: JournalChain;
	readonly clock: Clock;
}

/** The journal on a key-value store; made by `openJournal`. */
export class DiskJournal implements Journal {
	readonly #limits: JournalLimits;
	readonly #open: OpenEntries;
	readonly #endings: Endings;
	readonly #disk: RecordDisk;
	readonly #chain: JournalChain;
	readonly #clock: Clock;
	/** By hash: requests under way about it beside the one that brought it. */
	readonly #requests = new Map<string, number>();

	constructor(limits: JournalLimits, parts: JournalParts) {
		this.#limits = limits;
		this.#open = parts.open;
		this.#endings = parts.endings;
		this.#disk = parts.disk;
		this.#chain = parts.chain;
		this.#clock = parts.clock;
	}

	get depth(): number {
		return this.#open.size;
	}

	/** False from a failed write until everything that is known is on disk again. */
	get isDurable(): boolean {
		return this.#disk.isDurable;
	}

	get isFull(): boolean {
		return !this.#hasDiskRoom || this.#open.isFull;
	}

	get fullness(): Fullness {
		return this.#open.fullness;
	}

	get(hash: string): OpenEntry | null {
		return this.#open.get(hash) ?? null;
	}

	/** Rejects with the store's fault, or JournalRecordError where the bytes there are damaged. */
	async raw(hash: string): Promise<Buffer | null> {
		if (this.#open.get(hash) === undefined) return null;
		const raw = await this.#disk.raw(hash);
		return this.#open.get(hash) === undefined ? null : raw;
	}

	ended(hash: string): EndedEntry | null {
		return this.#endings.get(hash) ?? null;
	}

	of(from: string): readonly OpenEntry[] {
		return this.#open.of(from);
	}

	open(): Iterable<OpenEntry> {
		return this.#open.all();
	}

	untold(): Iterable<EndedEntry> {
		return this.#endings.untold();
	}

	recentlyMined(): ReturnType<Journal["recentlyMined"]> {
		return this.#endings.mined();
	}

	/** One that is open needs no room: its place and its bytes are there. */
	refusal({ hash, address, raw }: Pick<NewEntry, "hash" | "address" | "raw">): OverShare | null {
		if (this.#open.get(hash) !== undefined) return null;
		return this.#hasDiskRoom ? this.#open.refusal(address, raw.length) : "total";
	}

	async add(entry: NewEntry, holder: UpstreamName): Promise<boolean> {
		const { hash } = entry;
		const before = this.#open.get(hash);
		if (before?.acknowledged ?? this.refusal(entry) !== null) return false;
		const kept: KeptEntry = {
			hash,
			from: entry.from,
			nonce: entry.nonce,
			path: entry.path,
			search: entry.search,
			softCancellations: entry.softCancellations,
			address: entry.address,
			receivedAt: entry.receivedAt,
			owed: union(before?.owed, entry.owed),
			holders: union(before?.holders, [holder]),
			underWay: true,
			acknowledged: true,
			isSettled: false,
			aliveUntil: entry.receivedAt + this.#limits.ttlMs,
			bytes: entry.raw.length,
		};
		const state = { kind: "open", entry: kept } as const;
		if (before !== undefined) this.#open.remove(before);
		this.#open.add(kept);
		if (before !== undefined) await this.#saveOpen(kept);
		else if (this.#endings.get(hash) === undefined) await this.#disk.create(hash, state, entry.raw);
		else {
			this.#endings.takeOut(hash);
			await this.#disk.save(hash, state, entry.raw);
		}
		return true;
	}

	/** Where its user ended it meanwhile, `by` is one more who must hear of that. */
	held(hash: string, by: UpstreamName): Promise<void> {
		const entry = this.#open.get(hash);
		if (entry === undefined) {
			const ended = this.#endings.get(hash);
			if (ended === undefined || !isUserEnding(ended.ending)) return DONE;
			return this.#endings.endAgain(ended, { ending: ended.ending, untold: [by] });
		}
		if (entry.holders.includes(by)) return DONE;
		entry.holders = [...entry.holders, by];
		return this.#saveOpen(entry);
	}

	/** An entry that was not acknowledged and is held by nobody any more is forgotten. */
	notHeld(hash: string, by: UpstreamName): Promise<void> {
		const entry = this.#open.get(hash);
		if (entry === undefined || !entry.holders.includes(by)) return DONE;
		entry.holders = entry.holders.filter((name) => name !== by);
		return entry.holders.length === 0 && !entry.acknowledged ? this.#forget(entry) : this.#saveOpen(entry);
	}

	paid(hash: string, by: UpstreamName): Promise<void> {
		const entry = this.#open.get(hash);
		if (entry === undefined || !entry.owed.includes(by)) return DONE;
		entry.owed = entry.owed.filter((name) => name !== by);
		return this.#saveOpen(entry);
	}

	setUnderWay(hash: string, underWay: boolean): void {
		const requests = (this.#requests.get(hash) ?? 0) + (underWay ? 1 : -1);
		if (requests > 0) this.#requests.set(hash, requests);
		else this.#requests.delete(hash);
		const entry = this.#open.get(hash);
		if (entry !== undefined) entry.underWay = requests > 0 || !entry.isSettled;
	}

	/**
	 * On disk every entry is an acknowledged one from the start, so that nothing is written here for most. One that was
	 * not is acknowledged by a later call; one that was stays so, whatever a second request came to.
	 */
	settle(hash: string, acknowledged: boolean): Promise<void> {
		const entry = this.#open.get(hash);
		if (entry === undefined) return DONE;
		entry.underWay = this.#requests.has(hash);
		if (entry.isSettled && entry.acknowledged) return DONE;
		entry.isSettled = true;
		if (!acknowledged && entry.holders.length === 0) return this.#forget(entry);
		if (entry.acknowledged === acknowledged) return DONE;
		entry.acknowledged = acknowledged;
		return this.#saveOpen(entry);
	}

	alive(hash: string): void {
		const entry = this.#open.get(hash);
		if (entry === undefined) return;
		const { ttlMs } = this.#limits;
		const until = Math.max(entry.aliveUntil, this.#clock.now() + ttlMs);
		// Written twice in a life: after a start it has at least half of what it had.
		const isDue = Math.floor((2 * until) / ttlMs) > Math.floor((2 * entry.aliveUntil) / ttlMs);
		entry.aliveUntil = until;
		// What fails is counted there, and written again.
		if (isDue) this.#saveOpen(entry).catch(() => {});
	}

	/**
	 * Of one that has ended already the first word stays, but for `expired` and `dropped`, which give way to any other;
	 * who is untold is added. Of a hash that is not known nothing is kept.
	 */
	end(hash: string, ending: Ending, untold: readonly UpstreamName[] = []): Promise<void> {
		const entry = this.#open.get(hash);
		if (entry !== undefined) {
			this.#open.remove(entry);
			return this.#endings.end({ ...entry, ending, untold }, entry);
		}
		const ended = this.#endings.get(hash);
		return ended === undefined ? DONE : this.#endings.endAgain(ended, { ending, untold });
	}

	/** One that is open ends by it; one that has ended: see {@link end}. */
	markEnded(mark: Omit<EndedEntry, "endedAt">): Promise<void> {
		const { hash, ending, untold } = mark;
		const isKnown = this.#open.get(hash) !== undefined || this.#endings.get(hash) !== undefined;
		return isKnown ? this.end(hash, ending, untold) : this.#endings.end(mark, null);
	}

	told(hash: string, by: UpstreamName): Promise<void> {
		const ended = this.#endings.get(hash);
		return ended === undefined ? DONE : this.#endings.told(ended, by);
	}

	/** Does nothing later than `reorgMs` after its end: its bytes are gone. */
	reopen(hash: string): Promise<void> {
		const was = this.#endings.takeMined(hash);
		if (was === null) return DONE;
		const aliveUntil = this.#clock.now() + this.#limits.ttlMs;
		const underWay = this.#requests.has(hash);
		const entry: KeptEntry = { ...was, underWay, isSettled: true, aliveUntil };
		this.#open.add(entry);
		return this.#saveOpen(entry);
	}

	/** Ties it to a chain at the first call; throws OtherChainError where it is tied to another one. */
	bindTo(chainId: bigint): Promise<void> {
		return this.#chain.bindTo(chainId);
	}

	/** Tries once more what could not be written and waits for the disk. The store is its opener's to close. */
	async close(): Promise<void> {
		this.#endings.close();
		await this.#disk.close();
	}

	get #hasDiskRoom(): boolean {
		return this.#disk.unwritten < this.#limits.maxUnwritten;
	}

	#saveOpen(entry: KeptEntry): Promise<void> {
		return this.#disk.save(entry.hash, { kind: "open", entry });
	}

	#forget(entry: KeptEntry): Promise<void> {
		this.#open.remove(entry);
		return this.#disk.save(entry.hash, null);
	}
}

function union(
	some: readonly UpstreamName[] | undefined,
	more: readonly UpstreamName[],
): readonly UpstreamName[] {
	return some === undefined ? more : [...new Set([...some, ...more])];
}
