// The stored format of rows: pure functions between a row and its keys and bytes.

import {
	archivedKey,
	enveloped,
	knownIn,
	LATEST_MS,
	rawIn,
	rawStart,
	timeKey,
} from "../../shared/kv/archive.ts";
import type { Change } from "../../shared/kv/port.ts";
import { type Owner, readOwner, storedOwner } from "../../shared/ownership.ts";
import {
	ABSENT,
	type DeliveryState,
	isUnanswered,
	PRESENCES,
	type Presence,
	statesAt,
} from "../domain/deliveryState.ts";
import { onlyOwner } from "../domain/owners.ts";
import { BOOST_PATHS, type BoostPath, UPSTREAMS, type UpstreamName } from "../domain/request.ts";
import {
	cancelsPendingAt,
	ENDINGS,
	type Ending,
	holdersOf,
	isEndedByUser,
	isHolder,
	isLive,
	isSettled,
	keepsBytes,
	NO_OWNERS,
	newNotes,
	type Row,
	type ShownFields,
} from "../domain/row.ts";

// Keys. A row with work left has records by its id and hash, all of which are read at the start.
// The birth record is written on arrival: the row and its bytes. The state record is the row after
// later changes, without the bytes, and overrides the birth record. A settled row is archived: it
// only has a record by its hash, which is looked up. All ended rows have an entry in the index by
// kind and time, which finds them when they are dropped.
export const BIRTH = "b/";
export const STATE = "s/";
export const BY_TIME = "x/";
/** Keys that grow with each row fill the pages of a store one after another. */
const ID_DIGITS = 8;

export type RowKey = Pick<Row, "id" | "hash">;

/** Rows that their users ended are dropped after all others. */
export const ENDED_KINDS = ["others", "byUser"] as const;
export type EndedKind = (typeof ENDED_KINDS)[number];
/** Prefixes of the index by time, for each kind of end. */
export const ENDED: Readonly<Record<EndedKind, string>> = { others: `${BY_TIME}o/`, byUser: `${BY_TIME}u/` };

export function keyOf(prefix: string, { id, hash }: RowKey): string {
	return `${prefix}${id.toString(36).padStart(ID_DIGITS, "0")}/${hash}`;
}

/** The reverse of {@link keyOf}. */
export function readKey(prefix: string, key: string): RowKey {
	const [id = "", hash = ""] = key.slice(prefix.length).split("/");
	return { id: Number.parseInt(id, 36), hash };
}

/**
 * The key of an ended row in the index by time. A row that ended before the chain's time was known
 * counts as the latest.
 */
export function indexKey(row: Row): string {
	const { hash, endedAt } = row;
	return timeKey(ENDED[isEndedByUser(row) ? "byUser" : "others"], endedAt === 0 ? LATEST_MS : endedAt, hash);
}

/** All keys that may exist for a row in this state. */
export function keysOf(row: Row): readonly string[] {
	if (isSettled(row)) return [archivedKey(row.hash), indexKey(row)];
	const state = keyOf(STATE, row);
	const keys = keepsBytes(row) ? [keyOf(BIRTH, row), state] : [state];
	return isLive(row) ? keys : [...keys, indexKey(row)];
}

/** The records to write for a row. `raw`: its bytes, if they are not on disk yet. */
export function recordsOf(row: Row, raw: Buffer | null): readonly Change[] {
	const isOver = isSettled(row);
	const key = isOver ? archivedKey(row.hash) : keyOf(raw === null ? STATE : BIRTH, row);
	const value = raw === null ? encodeState(row) : encodeBirth(row, raw);
	const record = { key, value, sender: isOver ? undefined : row.from };
	return isLive(row) ? [record] : [record, { key: indexKey(row), value: NOTHING }];
}

const NOTHING = Buffer.alloc(0);

/**
 * Whether both would be the same after a restart, and no attempt at the relay has begun. An attempt
 * is written: another instance that undoes its own must find that it was not the only one.
 */
export function isSameOnDisk(before: Row | null, row: Row | null): boolean {
	if (row === null || before === null) return false;
	return (
		before.desired === row.desired &&
		before.endedAt === row.endedAt &&
		before.bytes === row.bytes &&
		before.acknowledged === row.acknowledged &&
		before.aliveUntil === row.aliveUntil &&
		before.owners === row.owners &&
		before.ownersPending === row.ownersPending &&
		isUnanswered(before.at.fallback) === isUnanswered(row.at.fallback) &&
		before.at.fallback.askedAt === row.at.fallback.askedAt &&
		isSameState(before.at.relay, row.at.relay) &&
		isSameState(before.at.fallback, row.at.fallback)
	);
}

function isSameState(one: DeliveryState, other: DeliveryState): boolean {
	if (one === other) return true;
	return (
		one.replacementPending === other.replacementPending &&
		one.cancelPending === other.cancelPending &&
		one.attempts === other.attempts &&
		isHolder(one) === isHolder(other)
	);
}

/** A row as JSON bytes. */
export function encodeState(row: Row): Buffer {
	return Buffer.from(JSON.stringify(storedOf(row)), "utf8");
}

/** A row with its transaction's bytes. */
export function encodeBirth(row: Row, raw: Buffer): Buffer {
	return enveloped(storedOf(row), raw);
}

/**
 * The reverse of {@link encodeState}; `bytes`: the length of its transaction. Throws if the record
 * is malformed.
 */
export function decodeState(key: RowKey, value: Buffer, bytes: number): Row {
	return rowOf(key, JSON.parse(value.toString("utf8")), bytes);
}

/** The row in the archive. Throws if the record is malformed. */
export function decodeArchived(hash: string, value: Buffer): Row {
	const row = decodeState({ id: 0, hash }, value, 0);
	if (!isSettled(row)) throw new TypeError("not what was written");
	return row;
}

/**
 * The row in a birth record of `bytes` bytes, of which `value` may lack the transaction. Throws if
 * it is malformed.
 */
export function decodeBirth(key: RowKey, value: Buffer, bytes = value.length): Row {
	return rowOf(key, knownIn(value), rawBytesIn(value, bytes));
}

/** The length of the transaction in a birth record of `bytes` bytes. Throws if there is none. */
export function rawBytesIn(value: Buffer, bytes: number): number {
	return bytes - rawStart(value, bytes);
}

/** A copy of the raw transaction in a birth record. Throws if there is none. */
export function rawOfBirth(value: Buffer): Buffer {
	return Buffer.from(rawIn(value));
}

/** The stored form of a row; JSON leaves out undefined fields. */
function storedOf(row: Row): Stored {
	const { from, nonce, fields, path, address, desired, endedAt, at } = row;
	const both = {
		from,
		nonce: nonce.toString(),
		fields,
		path,
		address,
		owners: isPlain(row) ? undefined : row.owners.map(storedOwner),
		fallbackAskedAt: at.fallback.askedAt > 0 ? at.fallback.askedAt : undefined,
		attempts: attemptsOf(row),
		...(isLive(row) || keepsBytes(row) ? { open: openOf(row) } : { past: pastOf(row) }),
	};
	if (desired === "live") return both;
	const signed = row.bySender ? true : undefined;
	return { ...both, ending: desired, endedAt, cancelsPendingAt: cancelsPendingAt(row), signed };
}

/** Undefined: one at each upstream that has or may have it, as of most rows. */
function attemptsOf({ at }: Row): Stored["attempts"] {
	const isUsual = UPSTREAMS.every((by) => at[by].attempts === usualAttempts(at[by]));
	return isUsual ? undefined : { relay: at.relay.attempts, fallback: at.fallback.attempts };
}

function usualAttempts(state: DeliveryState): number {
	return isHolder(state) ? 1 : 0;
}

/** The stored fields of rows that ended and can't be reopened. */
function pastOf({ search, receivedAt, at }: Row): StoredPast {
	return { search, receivedAt, relay: at.relay.presence, fallback: at.fallback.presence };
}

/** The stored fields of live rows and of ended rows that can be reopened. */
function openOf(row: Row): StoredOpen {
	const { search, softCancellations, receivedAt, acknowledged, aliveUntil, ownersPending } = row;
	return {
		search,
		soft: softCancellations,
		receivedAt,
		request: row.requestId ?? undefined,
		replacementsPendingAt: UPSTREAMS.filter((by) => row.at[by].replacementPending),
		holders: holdersOf(row),
		fallbackUnsure: isUnanswered(row.at.fallback) ? true : undefined,
		unacknowledged: acknowledged ? undefined : true,
		ownersPending: ownersPending ? true : undefined,
		aliveUntil,
	};
}

/** Whether its owners follow from the row itself: none any more, or one that is its client. */
function isPlain({ owners, address }: Row): boolean {
	const [only] = owners;
	if (owners.length !== 1 || only === undefined) return owners.length === 0;
	return only.address === address && only.paths.length === 1 && !only.cancelled;
}

function readOwners(stored: readonly unknown[]): Row["owners"] {
	const owners = stored.map(readOwner);
	const isRead = owners.every((one) => one?.paths.every((path) => BOOST_PATHS.some((own) => own === path)));
	if (!isRead || owners.length === 0) throw new TypeError("not what was written");
	return owners as readonly Owner<BoostPath>[];
}

interface StoredOpen {
	readonly search: string;
	readonly soft: boolean;
	readonly receivedAt: number;
	readonly request?: string | undefined;
	readonly aliveUntil: number;
	readonly replacementsPendingAt: readonly UpstreamName[];
	readonly holders: readonly UpstreamName[];
	readonly fallbackUnsure?: true | undefined;
	readonly unacknowledged?: true | undefined;
	readonly ownersPending?: true | undefined;
}

/** `relay`, `fallback`: the presence at each upstream when the row ended. */
interface StoredPast extends Readonly<Record<UpstreamName, Presence>> {
	readonly search: string;
	readonly receivedAt: number;
}

interface Stored extends Pick<Row, "from" | "path" | "address"> {
	readonly nonce: string;
	readonly fields: ShownFields;
	readonly past?: StoredPast;
	readonly owners?: readonly unknown[] | undefined;
	readonly fallbackAskedAt?: number | undefined;
	readonly attempts?: Readonly<Record<UpstreamName, number>> | undefined;
	readonly signed?: true | undefined;
	readonly open?: StoredOpen | undefined;
	readonly ending?: Ending;
	readonly endedAt?: number;
	readonly cancelsPendingAt?: readonly UpstreamName[];
}

// Checked by hand. There may be a hundred thousand at the start, and a schema takes five times as
// long.
function isStored(read: unknown): read is Stored {
	const {
		from,
		nonce,
		fields,
		path,
		address,
		open,
		past = NO_PAST,
		ending,
		endedAt,
		cancelsPendingAt: cancelsAt,
		fallbackAskedAt,
		attempts,
	} = (read ?? {}) as Partial<Stored>;
	const { search, receivedAt, aliveUntil, replacementsPendingAt, holders } = open ?? { ...NOT_OPEN, ...past };
	const isEnded = ending !== undefined && ENDINGS.includes(ending) && areNames(cancelsAt);
	return (
		[from, nonce, address, search, fields?.to, fields?.gas, fields?.value].every(
			(one) => typeof one === "string",
		) &&
		[receivedAt, aliveUntil, endedAt ?? 0, fallbackAskedAt ?? 0].every((one) => typeof one === "number") &&
		(attempts === undefined || UPSTREAMS.every((by) => typeof attempts?.[by] === "number")) &&
		BOOST_PATHS.some((one) => one === path) &&
		UPSTREAMS.every((by) => PRESENCES.includes(past[by])) &&
		[replacementsPendingAt, holders].every(areNames) &&
		(isEnded ? endedAt !== undefined : ending === undefined && open !== undefined && open !== null)
	);
}

const NOT_OPEN = { search: "", receivedAt: 0, aliveUntil: 0, replacementsPendingAt: [], holders: [] };

const NO_PAST: StoredPast = { search: "", receivedAt: 0, relay: "absent", fallback: "absent" };

function areNames(value: unknown): boolean {
	return Array.isArray(value) && value.every((one) => UPSTREAMS.includes(one));
}

function rowOf({ id, hash }: RowKey, read: unknown, bytes: number): Row {
	if (!isStored(read)) throw new TypeError("not what was written");
	const { from, nonce, fields, path, address, ending = "live", endedAt = 0 } = read;
	const { past = NO_PAST } = read;
	// Without its bytes an ended row can't be reopened.
	const open = ending !== "live" && bytes === 0 ? undefined : read.open;
	const only =
		open === undefined
			? NO_OWNERS
			: [onlyOwner({ path, search: open.search, softCancellations: open.soft, address })];
	return {
		id,
		hash,
		from,
		nonce: BigInt(nonce),
		fields,
		path,
		search: (open ?? past).search,
		softCancellations: open?.soft === true,
		address,
		owners: read.owners === undefined ? only : readOwners(read.owners),
		ownersPending: open?.ownersPending === true,
		bySender: read.signed === true,
		receivedAt: (open ?? past).receivedAt,
		requestId: open?.request ?? null,
		aliveUntil: open?.aliveUntil ?? 0,
		acknowledged: open?.unacknowledged === undefined,
		bytes: open === undefined ? 0 : bytes,
		requests: 0,
		desired: ending,
		endedAt,
		at: statesOf(open ?? past, read),
		version: 0,
		notes: newNotes(0),
	};
}

/**
 * The earlier process may have ended before the fallback's verdict on a live row. Such a row is
 * sent again. A row that the fallback has acknowledged is not sent again. The fallback may refuse a
 * second copy, for example for lack of room. It would then no longer count as a holder, and a
 * cancel would miss it.
 */
function statesOf(
	stored: StoredOpen | StoredPast,
	{ cancelsPendingAt: cancelsAt = [], fallbackAskedAt = 0, attempts }: Stored,
): Row["at"] {
	const state = (by: UpstreamName): DeliveryState => {
		const one = {
			...ABSENT,
			presence: "holders" in stored ? presenceIn(stored, by) : stored[by],
			replacementPending: "holders" in stored && stored.replacementsPendingAt.includes(by),
			askedAt: by === "fallback" ? fallbackAskedAt : 0,
			cancelPending: cancelsAt.includes(by),
		};
		return { ...one, attempts: attempts?.[by] ?? usualAttempts(one) };
	};
	return statesAt(state("relay"), state("fallback"));
}

function presenceIn({ holders, fallbackUnsure }: StoredOpen, by: UpstreamName): Presence {
	if (!holders.includes(by)) return "absent";
	return by === "fallback" && fallbackUnsure === true ? "unanswered" : "has";
}
