// How the journal lies in the key-value store: pure functions between what is known of a transaction and bytes. It
// decides nothing about when something is written.

import { BOOST_PATHS, UPSTREAMS, type UpstreamName } from "../domain/delivery.ts";
import { ENDINGS, type EndedEntry, type NewEntry, type OpenEntry } from "../domain/journalEntry.ts";

// Keys. What a transaction is at its arrival lies under its birth, with its bytes, in one write. What has changed since
// lies under its state, without them, and counts instead; an ended one has that alone.
const BIRTH = "b/";
const STATE = "s/";

/** Prefixes of the two kinds of records; the hash stands behind them. */
export const RECORD_KEYS = { birth: BIRTH, state: STATE } as const;

/** An open entry as the journal itself holds it: what changes in place, arrays anew each time. */
export interface KeptEntry extends Omit<NewEntry, "raw"> {
	owed: readonly UpstreamName[];
	holders: readonly UpstreamName[];
	underWay: boolean;
	acknowledged: boolean;
	/** Whether it was said already that it is acknowledged, or not: what is on disk counts as said. */
	isSettled: boolean;
	aliveUntil: number;
	/** Not stored: it is the length of what lies under the birth. */
	bytes: number;
}

/** All that is remembered of a hash. */
export type KeptState =
	| { readonly kind: "open"; readonly entry: KeptEntry }
	/** `was`: what it is again if its block is reorganised away; its bytes are kept as long. */
	| { readonly kind: "ended"; readonly ended: EndedEntry; readonly was: KeptEntry | null };

/** Whether the bytes are still of use. */
export function keepsBytes(state: KeptState | null): boolean {
	return state !== null && (state.kind === "open" || state.was !== null);
}

/** A stored value that is not what was written: the journal is damaged, or another program's. */
export class JournalRecordError extends Error {
	readonly code = "JOURNAL_RECORD";
	constructor(key: string) {
		super(`the journal's record ${key} can't be read`);
		this.name = "JournalRecordError";
	}
}

/** A state as JSON bytes. */
export function encodeState(state: KeptState): Buffer {
	return Buffer.from(stateText(state), "utf8");
}

/** Length of the state (4 bytes, big endian), the state as JSON, the raw transaction. */
export function encodeBirth(state: KeptState, raw: Buffer): Buffer {
	const json = stateText(state);
	const length = Buffer.byteLength(json);
	const bytes = Buffer.allocUnsafe(4 + length + raw.length);
	bytes.writeUInt32BE(length, 0);
	bytes.write(json, 4, "utf8");
	bytes.set(raw, 4 + length);
	return bytes;
}

/** The reverse of {@link encodeState}. Throws {@link JournalRecordError}. */
export function decodeState(hash: string, bytes: Buffer): KeptState {
	return readable(STATE + hash, () => stateOf(hash, bytes.toString("utf8")));
}

/** The state that a birth begins with. Throws {@link JournalRecordError}. */
export function decodeBirth(hash: string, bytes: Buffer): KeptState {
	return readable(BIRTH + hash, () => stateOf(hash, bytes.toString("utf8", 4, rawStart(bytes))));
}

/** The length of the raw transaction behind it; of a record that can't be read its own. */
export function rawLength(bytes: Buffer): number {
	return bytes.length < 4 ? bytes.length : Math.max(0, bytes.length - 4 - bytes.readUInt32BE(0));
}

/** The raw transaction behind it, a copy. Throws {@link JournalRecordError}. */
export function rawOfBirth(hash: string, bytes: Buffer): Buffer {
	return readable(BIRTH + hash, () => Buffer.from(bytes.subarray(rawStart(bytes))));
}

function rawStart(bytes: Buffer): number {
	const start = 4 + bytes.readUInt32BE(0);
	if (start >= bytes.length) throw new RangeError("no bytes");
	return start;
}

// Put together by hand: for the little that is in it, that costs a fifth of JSON.stringify on objects made for it.
function stateText(state: KeptState): string {
	const { from, nonce, path, address } = state.kind === "open" ? state.entry : state.ended;
	const both = `"from":${quoted(from)},"nonce":"${nonce}","path":"${path}","address":${quoted(address)}`;
	if (state.kind === "open") return `{${both},"open":${openText(state.entry)}}`;
	const { ending, endedAt, untold } = state.ended;
	const was = state.was === null ? "" : `,"open":${openText(state.was)}`;
	return `{${both},"ending":"${ending}","endedAt":${endedAt},"untold":${listed(untold)}${was}}`;
}

/** What an open entry, and one that may be open again, has beside what both kinds have. */
function openText(entry: OpenEntry): string {
	const { search, softCancellations, receivedAt, owed, holders, acknowledged, aliveUntil } = entry;
	return (
		`{"search":${quoted(search)},"soft":${softCancellations},"receivedAt":${receivedAt},` +
		`"owed":${listed(owed)},"holders":${listed(holders)},` +
		// What is on disk without this is acknowledged.
		`${acknowledged ? "" : '"unacknowledged":true,'}"aliveUntil":${aliveUntil}}`
	);
}

const PLAIN = /^[\w=&.:%-]*$/;

function quoted(text: string): string {
	return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

function listed(names: readonly UpstreamName[]): string {
	return names.length === 0 ? "[]" : `["${names.join('","')}"]`;
}

/** Throws anything where it is not what {@link stateText} writes. */
function stateOf(hash: string, text: string): KeptState {
	const read: unknown = JSON.parse(text);
	const { from, nonce, path, address, open, ending, endedAt, untold } = fieldsOf(read);
	const both = {
		hash,
		from: textOf(from),
		nonce: BigInt(textOf(nonce)),
		path: oneOf(BOOST_PATHS, path),
		address: textOf(address),
	};
	const part = open === undefined ? null : fieldsOf(open);
	const entry: KeptEntry | null =
		part === null
			? null
			: {
					...both,
					search: textOf(part.search),
					softCancellations: flagOf(part.soft),
					receivedAt: numberOf(part.receivedAt),
					owed: namesOf(part.owed),
					holders: namesOf(part.holders),
					underWay: false,
					acknowledged: part.unacknowledged === undefined,
					isSettled: true,
					aliveUntil: numberOf(part.aliveUntil),
					bytes: 0,
				};
	if (ending !== undefined) {
		const ended = {
			...both,
			ending: oneOf(ENDINGS, ending),
			endedAt: numberOf(endedAt),
			untold: namesOf(untold),
		};
		return { kind: "ended", ended, was: entry };
	}
	if (entry === null) throw new TypeError("neither open nor ended");
	return { kind: "open", entry };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
	if (typeof value !== "object" || value === null) throw new TypeError("no object");
	return value as Readonly<Record<string, unknown>>;
}

function textOf(value: unknown): string {
	if (typeof value !== "string") throw new TypeError("no text");
	return value;
}

function numberOf(value: unknown): number {
	if (typeof value !== "number") throw new TypeError("no number");
	return value;
}

function flagOf(value: unknown): boolean {
	if (typeof value !== "boolean") throw new TypeError("no flag");
	return value;
}

function oneOf<T>(values: readonly T[], value: unknown): T {
	const found = values.find((one) => one === value);
	if (found === undefined) throw new TypeError("no such value");
	return found;
}

function namesOf(value: unknown): readonly UpstreamName[] {
	if (!Array.isArray(value)) throw new TypeError("no list");
	return value.map((one) => oneOf(UPSTREAMS, one));
}

function readable<T>(key: string, read: () => T): T {
	try {
		return read();
	} catch {
		throw new JournalRecordError(key);
	}
}
