// The format of the data that relay and boost store. A store in another format is refused, since
// unreadable data would be lost silently.

import { type KeyValueStore, prefixRange } from "./port.ts";

/**
 * Must be raised by each change after which an older or newer version would read different data.
 */
const FORMAT = "5";
const FORMAT_KEY = "m/format";

/** The store was written by a version with another format. The message is for the operator. */
export class OtherFormatError extends Error {
	readonly code = "OTHER_FORMAT";
	/** `kept`: the store's format. Undefined if the store has no mark, as before this version. */
	constructor(kept?: string) {
		super(
			`the store was written by another version (format ${kept ?? "without a mark"}, expected ${FORMAT}): drain it with that version, or set DATA_DIR or DATABASE_URL to another one`,
		);
		this.name = "OtherFormatError";
	}
}

/** The format in the store's mark. Undefined if it has no mark. */
async function markOf(kv: KeyValueStore): Promise<string | undefined> {
	return (await kv.get(FORMAT_KEY))?.toString("utf8");
}

/** Whether the store has this format's mark. */
export async function hasFormat(kv: KeyValueStore): Promise<boolean> {
	return (await markOf(kv)) === FORMAT;
}

/**
 * Marks an empty store. Throws {@link OtherFormatError} for any other store without this format's
 * mark.
 */
export async function checkFormat(kv: KeyValueStore): Promise<void> {
	const kept = await markOf(kv);
	if (kept === FORMAT) return;
	if (kept !== undefined) throw new OtherFormatError(kept);
	for await (const _ of kv.range(...prefixRange(""), 1)) throw new OtherFormatError();
	await mark(kv);
}

/** Marks a store that has lost its mark. */
export async function markFormat(kv: KeyValueStore): Promise<void> {
	if ((await markOf(kv)) === undefined) await mark(kv);
}

function mark(kv: KeyValueStore): Promise<void> {
	return kv.write([{ key: FORMAT_KEY, value: Buffer.from(FORMAT) }]);
}
