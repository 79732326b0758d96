// A row: the journal's record of one transaction, with the client's request and the delivery state
// at each upstream. Every change of a row, except of its notes, is a pure function here, named by a
// verb. So everything that can happen to a row can be read in one place.

import type { StatusRecord } from "../../shared/ethereum/statusRecord.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { Owner } from "../../shared/ownership.ts";
import { ABSENT, type DeliveryState, type DeliveryStates, NOWHERE, statesAt } from "./deliveryState.ts";
import { type BoostPath, UPSTREAMS, type UpstreamName } from "./request.ts";

/**
 * How a row can end. `dropped`: its nonce was used by another transaction, or every holder rejected
 * it for good.
 */
export const ENDINGS = ["mined", "replaced", "cancelled", "expired", "dropped"] as const;
export type Ending = (typeof ENDINGS)[number];

/** `live`: it should be mined. Cancelled and replaced ones should be removed everywhere. */
export type Desired = "live" | Ending;

/** The observers' notes on a row, in memory only and changed in place. Times are monotonic ms. */
export interface Notes {
	/** When it arrived, or was read from the journal. */
	readonly openedAt: number;
	/** When its life ends by this machine's clock; see {@link isLifeOver}. */
	aliveUntil: number;
	/** When the relay last reported a stage of it, or when it arrived. */
	relayAnsweredAt: number;
	/** Whether the relay has reported that builders have it. */
	isOut: boolean;
	/**
	 * How often in a row each upstream had no record of it, and how often it counted as lost there.
	 */
	readonly unknown: Record<UpstreamName, number>;
	readonly losses: Record<UpstreamName, number>;
	/** Live: when the chain was last asked. Ended by the chain: when it ended or was last checked. */
	checkedAt: number;
	/**
	 * How often in a row the chain contradicted the row. Live: its nonce was used, but it had no
	 * receipt. Ended by the chain: the chain did not confirm the end.
	 */
	contradictions: number;
	/** When the fallback's status page was last read. */
	pageReadAt: number;
	/** When the fallback got it, in ms since the epoch; 0: never, or before this process started. */
	fallbackSince: number;
	/** The chain ended it and the relay has no record: only the chain shows a reorganisation. */
	byChain: boolean;
}

/** Status fields besides sender and nonce, as decimal strings. `to` is empty for a creation. */
export type ShownFields = Pick<StatusRecord["transaction"], "to" | "gas" | "value">;

/** @see ShownFields */
export function shownFields({ to, gasLimit, value }: DecodedTransaction): ShownFields {
	return { to: to ?? "", gas: gasLimit.toString(), value: value.toString() };
}

/** A transaction as it is known on arrival. */
export interface NewRow {
	/** Lower case. */
	readonly hash: string;
	/** Sender, lower case. */
	readonly from: string;
	readonly nonce: bigint;
	readonly fields: ShownFields;
	readonly raw: Buffer;
	readonly path: BoostPath;
	/** The client's query, unchanged, without "?". */
	readonly search: string;
	/** Whether a self-transfer with its nonce cancels it for free. */
	readonly softCancellations: boolean;
	/** The network address of the client that is charged for it. */
	readonly address: string;
	/** That client as an owner, with its terms, and the owners of the transaction's past life. */
	readonly owners: readonly Owner<BoostPath>[];
	/** Ms since the epoch. */
	readonly receivedAt: number;
	/** The id of the request that first brought it, see shared/requestId.ts; null if unknown. */
	readonly requestId: string | null;
	/** The upstreams that have an earlier transaction of its nonce. */
	readonly replacesAtUpstreams: readonly UpstreamName[];
}

/** Immutable: `Rows` replaces it. Path, query and `softCancellations` apply to all owners. */
export interface Row extends Omit<NewRow, "raw" | "replacesAtUpstreams" | "owners"> {
	/**
	 * Those who submitted it. Empty once it has ended, if its only owner has the row's address and
	 * has not ended it.
	 */
	readonly owners: readonly Owner<BoostPath>[];
	/** The relay has it, but not all owners' requests and cancels, so it must get them all. */
	readonly ownersPending: boolean;
	/** Ended by its sender, for all owners. */
	readonly bySender: boolean;
	/**
	 * Its place on disk, after those of all rows that were there when it was opened; 0 if it was read
	 * from the archive.
	 */
	readonly id: number;
	/** Length of the signed transaction; 0 if that is no longer kept. */
	readonly bytes: number;
	/**
	 * When it expires unless the relay reports it as live, in ms since the epoch by the chain. {@link
	 * UNDATED} until the chain's time is known.
	 */
	readonly aliveUntil: number;
	/**
	 * False if its client got an error although an upstream may have it: it is observed, but never
	 * sent again.
	 */
	readonly acknowledged: boolean;
	/**
	 * Client requests about it in progress; the reconciler leaves it alone until they end. In memory
	 * only.
	 */
	readonly requests: number;
	readonly desired: Desired;
	/**
	 * Ms since the epoch by the chain or the machine, the later; 0 while it is live, and until the
	 * chain's time is known.
	 */
	readonly endedAt: number;
	readonly at: DeliveryStates;
	/**
	 * The life of its transaction: a new number whenever it arrives or is opened again, so that
	 * answers about an earlier life are recognized. 0 once it has ended for good. In memory only.
	 */
	readonly version: number;
	readonly notes: Notes;
}

/** As `aliveUntil`: the life has not begun, since the chain's time is not known. */
export const UNDATED = Number.MAX_SAFE_INTEGER;

export function newNotes(monotonic: number, aliveUntil = monotonic): Notes {
	const never = Number.NEGATIVE_INFINITY;
	return {
		openedAt: monotonic,
		aliveUntil,
		relayAnsweredAt: monotonic,
		isOut: false,
		unknown: { relay: 0, fallback: 0 },
		losses: { relay: 0, fallback: 0 },
		checkedAt: never,
		contradictions: 0,
		pageReadAt: never,
		fallbackSince: 0,
		byChain: false,
	};
}

/**
 * The row of a transaction that arrived, with its request in progress; `before` is what is known of
 * its hash.
 */
export function openRow(
	entry: NewRow,
	before: Row | null,
	{
		id,
		version,
		aliveUntil,
		notBefore,
		notes,
	}: {
		readonly id: number;
		readonly version: number;
		readonly aliveUntil: number;
		/** Arrival of the latest row of its nonce. This one is later, even if the clock went back. */
		readonly notBefore: number;
		readonly notes: Notes;
	},
): Row {
	const was = before !== null && isLive(before) ? before.at : NOWHERE;
	// One literal: a spread would take ten times as long.
	return {
		id,
		hash: entry.hash,
		from: entry.from,
		nonce: entry.nonce,
		fields: entry.fields,
		path: entry.path,
		search: entry.search,
		softCancellations: entry.softCancellations,
		address: entry.address,
		owners: entry.owners,
		ownersPending: false,
		bySender: false,
		receivedAt: Math.max(entry.receivedAt, notBefore),
		requestId: entry.requestId,
		bytes: entry.raw.length,
		aliveUntil,
		acknowledged: true,
		requests: (before?.requests ?? 0) + 1,
		desired: "live",
		endedAt: 0,
		at: statesAt(
			opened(was.relay, entry.replacesAtUpstreams.includes("relay")),
			opened(was.fallback, entry.replacesAtUpstreams.includes("fallback")),
		),
		version,
		notes,
	};
}

function opened(was: DeliveryState, replaces: boolean): DeliveryState {
	return was.replacementPending || !replaces ? was : { ...was, replacementPending: true };
}

export function isLive({ desired }: Row): boolean {
	return desired === "live";
}

/**
 * Whether a live row's life has been over for `graceMs`: by the chain's time (`now`, ms since the
 * epoch) and by this machine's (`monotonic`, ms). A head with a timestamp far ahead ends no row.
 */
export function isLifeOver(
	{ aliveUntil, notes }: Row,
	{ now, monotonic }: { readonly now: number; readonly monotonic: number },
	graceMs = 0,
): boolean {
	return now >= aliveUntil + graceMs && monotonic >= notes.aliveUntil + graceMs;
}

/** Whether its bytes are still needed: it is live, or the chain ended it and it can be reopened. */
export function keepsBytes(row: Row | null): boolean {
	return row !== null && row.bytes > 0;
}

/** Whether its user ended it. Such a row is never sent again. */
export function isEndedByUser({ desired }: Pick<Row, "desired">): boolean {
	return desired === "cancelled" || desired === "replaced";
}

/** Whether it needs no work and can't be reopened. It is archived, and later only on disk. */
export function isSettled(row: Row): boolean {
	return !isLive(row) && row.bytes === 0 && !row.at.relay.cancelPending && !row.at.fallback.cancelPending;
}

/** Whether it was mined or ended by its user: submitting the same bytes again has no effect. */
export function isFinal(row: Row): boolean {
	return row.desired === "mined" || isEndedByUser(row);
}

/** Whether an upstream has, may have or had it. A lost one is still queried and cancelled there. */
export function isHolder({ presence }: DeliveryState): boolean {
	return presence === "has" || presence === "given" || presence === "unanswered" || presence === "lost";
}

/** The holders besides `by`. */
export function otherHolders(row: Row, by: UpstreamName): readonly UpstreamName[] {
	return holdersOf(row).filter((name) => name !== by);
}

/** Whether an attempt to bring it to `by` has begun since it was as `asked`, by any instance. */
export function isAttemptedSince(row: Row, asked: Row, by: UpstreamName): boolean {
	return row.at[by].attempts !== asked.at[by].attempts;
}

/** The upstreams that have, may have or had it. */
export function holdersOf({ at }: Pick<Row, "at">): readonly UpstreamName[] {
	return UPSTREAMS.filter((by) => isHolder(at[by]));
}

/** The holders that have become one, or were sent it again, since it was as `asked`; null: all. */
export function holdersSince(row: Row, asked: Row | null): readonly UpstreamName[] {
	return holdersOf(row).filter(
		(by) => asked === null || !isHolder(asked.at[by]) || isAttemptedSince(row, asked, by),
	);
}

/** The upstreams that must still receive a cancel of it. */
export function cancelsPendingAt({ at }: Row): readonly UpstreamName[] {
	return UPSTREAMS.filter((by) => at[by].cancelPending);
}

/** Whether an upstream that has or may have it must still receive its cancel. */
export function isCancelOpen({ at }: Row): boolean {
	return UPSTREAMS.some((by) => at[by].cancelPending && isHolder(at[by]));
}

/** Whether {@link isCancelOpen} holds for another one of `rows` with this sender and nonce. */
export function isAnyCancelOpen(
	rows: Iterable<Row>,
	{ hash, from, nonce }: Pick<Row, "hash" | "from" | "nonce">,
): boolean {
	for (const row of rows)
		if (row.nonce === nonce && row.from === from && row.hash !== hash && isCancelOpen(row)) return true;
	return false;
}

/** Whether anything is left to do for it, now or later. */
export function needsWork(row: Row): boolean {
	const { relay, fallback } = row.at;
	if (relay.cancelPending || fallback.cancelPending) return true;
	// A request in progress with it decides what is left when it ends.
	if (!isLive(row) || !row.acknowledged || row.requests > 0) return false;
	if (relay.replacementPending || fallback.replacementPending) return true;
	if (row.ownersPending && isHolder(relay)) return true;
	if (relay.presence === "lost" || fallback.presence === "lost") return true;
	return !isHolder(relay) && !isHolder(fallback);
}

export function setReplacementPending(row: Row, by: UpstreamName, replacementPending: boolean): Row {
	return row.at[by].replacementPending === replacementPending
		? row
		: changeState(row, by, { replacementPending });
}

export function setCancelPending(row: Row, by: UpstreamName, cancelPending: boolean): Row {
	if (row.at[by].cancelPending === cancelPending) return row;
	// The retry waits of deliveries do not apply to the cancel.
	return changeState(row, by, { cancelPending, faults: 0, retryAt: 0, epoch: null });
}

/** Changes its state at one upstream. */
export function changeState(row: Row, by: UpstreamName, change: Partial<DeliveryState>): Row {
	const { relay, fallback } = row.at;
	const state = { ...row.at[by], ...change };
	return { ...row, at: by === "relay" ? statesAt(state, fallback) : statesAt(relay, state) };
}

export function beginRequest(row: Row): Row {
	return { ...row, requests: row.requests + 1 };
}

/**
 * One request less. `acknowledged`: set by the request that submitted it: whether its client got a
 * success.
 */
export function endRequest(row: Row, acknowledged = row.acknowledged): Row {
	const requests = Math.max(0, row.requests - 1);
	return { ...row, requests, acknowledged: isLive(row) ? acknowledged : row.acknowledged };
}

/** The minimum to know of a transaction that ended. */
export type EndedOne = Pick<Row, "id" | "hash" | "from" | "nonce" | "fields" | "path" | "address"> &
	Partial<Row>;

/**
 * Ends the row and cancels it at `cancelAt`. It need not have been live: a soft cancel's
 * self-transfer never is. The first ending stays, but any other overwrites `expired` and `dropped`.
 */
export function endRow(
	one: EndedOne,
	ending: Ending,
	now: number,
	cancelAt: readonly UpstreamName[] = [],
): Row {
	const { desired = "live" } = one;
	const givesWay = desired === "live" || desired === "expired" || desired === "dropped";
	const isNewEnding = givesWay && desired !== ending;
	// A reorganisation may undo both of these endings.
	const isByChain =
		ending === "mined" || (ending === "dropped" && holdersOf({ at: one.at ?? NOWHERE }).length > 0);
	const canReopen = isByChain && one.bytes !== undefined && one.bytes > 0;
	const kept = canReopen || !isNewEnding ? (one as Row) : stripRow(one);
	const done = isNewEnding ? { ...kept, desired: ending, endedAt: now } : kept;
	return cancelAt.reduce<Row>((row, by) => setCancelPending(row, by, true), done);
}

/** The block that ended it is no longer in the chain. */
export function reopenRow(
	row: Row,
	{ aliveUntil, version, notes }: Pick<Row, "aliveUntil" | "version" | "notes">,
): Row {
	const live: Row = { ...row, desired: "live", endedAt: 0, aliveUntil, version, notes };
	return UPSTREAMS.reduce<Row>((one, by) => setCancelPending(one, by, false), live);
}

export const NO_OWNERS: Row["owners"] = Object.freeze([]);
/** Interned: the notes of rows that ended for good are not used. */
const NO_NOTES: Notes = Object.freeze(newNotes(0));

/** Keeps the fields needed after an end that can't be undone. A restart restores the same. */
export function stripRow(one: EndedOne): Row {
	const { id, hash, from, nonce, fields, path, requests = 0, desired = "dropped", endedAt = 0 } = one;
	const { owners = NO_OWNERS, bySender = false, search = "", receivedAt = 0, at = NOWHERE } = one;
	// Most rows have one owner, and only its address is needed. A web page's has none.
	const [only] = owners;
	const alone = owners.length === 1 ? (only?.address ?? null) : null;
	const state = ({ presence, askedAt, attempts, cancelPending }: DeliveryState) => {
		return { ...ABSENT, presence, askedAt, attempts, cancelPending };
	};
	// One literal: all rows then share a V8 hidden class. There may be hundreds of thousands.
	return {
		id,
		hash,
		from,
		nonce,
		fields,
		path,
		search,
		softCancellations: false,
		address: alone ?? one.address,
		owners: alone !== null && only?.cancelled !== true ? NO_OWNERS : owners,
		ownersPending: false,
		bySender,
		receivedAt,
		requestId: null,
		bytes: 0,
		aliveUntil: 0,
		acknowledged: true,
		requests,
		desired,
		endedAt,
		at: statesAt(state(at.relay), state(at.fallback)),
		version: 0,
		notes: NO_NOTES,
	};
}
