// One store from one engine into another: two open stores come in, the same entries in both go out, and marks by which
// only one of them can be gone on with. Whatever it is interrupted by, the same copy completes it. It opens nothing.

import { randomUUID } from "node:crypto";
import type { Clock } from "../../clock.ts";
import type { Change, KeyValueStore } from "../port.ts";
import { type Digest, digestOf, type Entry, entriesOf, isEmpty } from "./entries.ts";
import {
	type EngineName,
	markMoved,
	markUnderWay,
	readMarks,
	StoreHalfCopiedError,
	StoreMovedError,
	type StoreName,
	unmark,
} from "./marks.ts";

/** A store in one of its engines, open, and nobody else's for as long as it is copied. */
export interface Place {
	readonly engine: EngineName;
	readonly kv: KeyValueStore;
}

/** A copy that may be made. */
export interface CopyPlan {
	readonly store: StoreName;
	readonly from: Place;
	readonly to: Place;
	/** Of a copy that was interrupted in its last step, else null. */
	readonly resumed: string | null;
}

/** How far it is: entries of the source that were looked at, what was written and what was taken away. */
export interface CopyCounts {
	readonly read: number;
	readonly written: number;
	readonly removed: number;
}

/** What was copied, and what both sides hold now. */
export interface CopyResult {
	readonly counts: CopyCounts;
	readonly from: Digest;
	readonly to: Digest;
	/** Where they are not, the copy did not come to its end. */
	readonly isSame: boolean;
}

/** The destination has what no copy has put there. */
export class StoreNotEmptyError extends Error {
	readonly code = "STORE_NOT_EMPTY";
	constructor(store: StoreName, engine: EngineName) {
		const other = engine === "lmdb" ? "DATA_DIR=./data-new" : "that of a new database in DATABASE_URL";
		super(
			`the ${store}'s store in ${engine} holds data of its own: expected an empty one, for example ${other}`,
		);
		this.name = "StoreNotEmptyError";
	}
}

/** Changes of a write at most. */
const BATCH = 500;
/** Bytes of a write at most, unless one entry has more: a database must take it in time. */
const BATCH_BYTES = 1024 * 1024;
/** Between two reports. */
const REPORT = 2_000;

/**
 * Looks whether the copy may be made, and changes nothing. Throws {@link StoreHalfCopiedError} or
 * {@link StoreMovedError} for the source, {@link StoreNotEmptyError} for the destination.
 */
export async function planCopy(store: StoreName, from: Place, to: Place): Promise<CopyPlan> {
	const [source, destination] = [await readMarks(from.kv), await readMarks(to.kv)];
	if (source.underWay !== null) throw new StoreHalfCopiedError(store, source.underWay);
	if (source.moved !== null) {
		// Between the two last writes: the destination waits for its own.
		const { copy } = source.moved;
		if (destination.underWay === null || copy === "" || destination.underWay.copy !== copy)
			throw new StoreMovedError(store, source.moved);
		return { store, from, to, resumed: copy };
	}
	const isMarked = destination.underWay !== null || destination.moved !== null;
	if (!isMarked && !(await isEmpty(to.kv))) throw new StoreNotEmptyError(store, to.engine);
	return { store, from, to, resumed: null };
}

/**
 * Makes it, and tells `report` how far it is every few thousand entries. Rejects with what an engine fails with; the
 * destination is then marked, as it is where the two turn out not to be the same.
 */
export async function copyStore(
	{ from, to, resumed }: CopyPlan,
	{ clock, report }: { readonly clock: Clock; readonly report: (counts: CopyCounts) => void },
): Promise<CopyResult> {
	const copy = resumed ?? randomUUID();
	const mark = () => ({ from: from.engine, to: to.engine, at: new Date(clock.now()).toISOString(), copy });
	await to.kv.write(markUnderWay(mark()));
	const counts = await merge(from.kv, to.kv, report);
	const digests = { from: await digestOf(from.kv), to: await digestOf(to.kv) };
	const isSame = digests.from.count === digests.to.count && digests.from.sha256 === digests.to.sha256;
	if (isSame) {
		// In this order: at no moment may both be gone on with.
		await from.kv.write(markMoved(mark()));
		await to.kv.write(unmark());
	}
	return { counts, ...digests, isSame };
}

/** Makes `to` what `from` is, in one pass over both in key order. What is the same is left alone. */
async function merge(
	from: KeyValueStore,
	to: KeyValueStore,
	report: (counts: CopyCounts) => void,
): Promise<CopyCounts> {
	const counts = { read: 0, written: 0, removed: 0 };
	const batch = new Batch(to);
	const tell = async (): Promise<void> => {
		if ((counts.read + counts.removed) % REPORT !== 0) return;
		// What is said to be written is.
		await batch.write();
		report({ ...counts });
	};
	const [sources, others] = [entriesOf(from), entriesOf(to)];
	let source = await nextOf(sources);
	let other = await nextOf(others);
	while (source !== undefined || other !== undefined) {
		if (source === undefined || (other !== undefined && other[0] < source[0])) {
			if (other === undefined) break;
			await batch.add({ key: other[0], value: null });
			counts.removed += 1;
			await tell();
			other = await nextOf(others);
			continue;
		}
		const isThere = other !== undefined && other[0] === source[0];
		if (!isThere || other?.[1].equals(source[1]) !== true) {
			await batch.add({ key: source[0], value: source[1] });
			counts.written += 1;
		}
		counts.read += 1;
		await tell();
		source = await nextOf(sources);
		if (isThere) other = await nextOf(others);
	}
	await batch.write();
	return counts;
}

async function nextOf(entries: AsyncGenerator<Entry, undefined>): Promise<Entry | undefined> {
	return (await entries.next()).value;
}

/** Changes on their way into one write. */
class Batch {
	readonly #kv: KeyValueStore;
	#changes: Change[] = [];
	#bytes = 0;

	constructor(kv: KeyValueStore) {
		this.#kv = kv;
	}

	async add(change: Change): Promise<void> {
		const bytes = change.key.length + (change.value?.byteLength ?? 0);
		if (this.#changes.length >= BATCH || this.#bytes + bytes > BATCH_BYTES) await this.write();
		this.#changes.push(change);
		this.#bytes += bytes;
	}

	async write(): Promise<void> {
		const changes = this.#changes;
		this.#changes = [];
		this.#bytes = 0;
		await this.#kv.write(changes);
	}
}
