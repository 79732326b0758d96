// What a copy leaves in the stores that it went between: marks, which are entries that no copy takes along. A store comes
// in, what was copied out of it or into it goes out, and a refusal for who would go on with a store that is not the one.

import type { Change, KeyValueStore } from "../port.ts";

/** The engines, by the names that a command has for them. */
export const ENGINES = ["lmdb", "postgres"] as const;
export type EngineName = (typeof ENGINES)[number];
/** Who has a store of his own. */
export const STORES = ["relay", "boost"] as const;
export type StoreName = (typeof STORES)[number];

/** One copy of a store. Its id is the same at both ends. */
export interface CopyMark {
	readonly from: EngineName;
	readonly to: EngineName;
	/** When it was begun, or ended, in ISO 8601. */
	readonly at: string;
	readonly copy: string;
}

/** What a store is marked with. */
export interface Marks {
	/** A copy into it that has not come to its end. */
	readonly underWay: CopyMark | null;
	/** A copy out of it that has: the data goes on elsewhere. */
	readonly moved: CopyMark | null;
}

const PREFIX = "copy/";
const UNDER_WAY = `${PREFIX}under-way`;
const MOVED = `${PREFIX}moved`;

/** The store goes on in another engine. */
export class StoreMovedError extends Error {
	readonly code = "STORE_MOVED";
	constructor(store: StoreName, { from, to }: CopyMark) {
		super(
			`the ${store}'s store was moved to ${to}: start ${to === "postgres" ? "with" : "without"} DATABASE_URL, or copy it back (${copyCommand(to, from, store)})`,
		);
		this.name = "StoreMovedError";
	}
}

/** The store has a part of what it should. */
export class StoreHalfCopiedError extends Error {
	readonly code = "STORE_HALF_COPIED";
	constructor(store: StoreName, { from, to }: CopyMark) {
		super(`the ${store}'s store was not copied whole: run the copy again (${copyCommand(from, to, store)})`);
		this.name = "StoreHalfCopiedError";
	}
}

/** The command as one would type it. */
export function copyCommand(from: string, to: string, store: StoreName): string {
	return `npm run store -- copy ${from} ${to} ${store}`;
}

/**
 * To be called by who is about to work with a store: its transactions may long be cancelled elsewhere. Throws
 * {@link StoreMovedError} or {@link StoreHalfCopiedError}.
 */
export async function refuseIfMarked(kv: KeyValueStore, store: StoreName): Promise<void> {
	const { underWay, moved } = await readMarks(kv);
	if (underWay !== null) throw new StoreHalfCopiedError(store, underWay);
	if (moved !== null) throw new StoreMovedError(store, moved);
}

/** Whether the entry is a mark, not the store's own. */
export function isMark(key: string): boolean {
	return key.startsWith(PREFIX);
}

/** What the store is marked with now. */
export async function readMarks(kv: KeyValueStore): Promise<Marks> {
	const [underWay, moved] = [await kv.get(UNDER_WAY), await kv.get(MOVED)];
	return {
		underWay: underWay === null ? null : decodeMark(underWay),
		moved: moved === null ? null : decodeMark(moved),
	};
}

/** For the destination, before its first entry: who has moved from there is to come back. */
export function markUnderWay(mark: CopyMark): readonly Change[] {
	return [
		{ key: UNDER_WAY, value: encodeMark(mark) },
		{ key: MOVED, value: null },
	];
}

/** For the source, once the destination is known to have it all. */
export function markMoved(mark: CopyMark): readonly Change[] {
	return [{ key: MOVED, value: encodeMark(mark) }];
}

/** For the destination, at the very end. */
export function unmark(): readonly Change[] {
	return [
		{ key: UNDER_WAY, value: null },
		{ key: MOVED, value: null },
	];
}

function encodeMark(mark: CopyMark): Buffer {
	return Buffer.from(JSON.stringify(mark), "utf8");
}

/** A mark counts by being there, whatever it says. */
function decodeMark(bytes: Buffer): CopyMark {
	const said = readable(bytes);
	const text = (value: unknown) => (typeof value === "string" ? value : "");
	const to = said?.to === "lmdb" ? "lmdb" : "postgres";
	return { from: to === "lmdb" ? "postgres" : "lmdb", to, at: text(said?.at), copy: text(said?.copy) };
}

function readable(bytes: Buffer): Partial<Record<keyof CopyMark, unknown>> | null {
	try {
		return JSON.parse(bytes.toString("utf8")) as Partial<Record<keyof CopyMark, unknown>> | null;
	} catch {
		return null;
	}
}
