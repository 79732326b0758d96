// The one row of a transaction that boost answers for: what its client wants of it, and how it stands at each upstream.
// Every change of a row is a pure function here, so that there is one place to read what can happen to it.

import { type BoostPath, UPSTREAMS, type UpstreamName } from "./request.ts";

/** How a row can end. `dropped`: its nonce was used by another one, or everybody who may have it refused it for good. */
export const ENDINGS = ["mined", "replaced", "cancelled", "expired", "dropped"] as const;
export type Ending = (typeof ENDINGS)[number];

/** What is to become of it: to be mined, or to be nowhere any more. Mined, expired and dropped ones are done. */
export type Desired = "live" | Ending;

/**
 * Whether an upstream has it. `maybe`: no verdict came. `has`: it acknowledged it. `lost`: it did, and knows nothing of
 * it now. `refused`: by a verdict, or given up there.
 */
export type Presence = "absent" | "maybe" | "has" | "lost" | "refused";

/** How a row stands at one upstream. */
export interface Standing {
	readonly presence: Presence;
	/** When it may be sent there again, in ms of the monotonic clock. A `maybe` of {@link NEVER} counts as there. */
	readonly retryAt: number;
	/** The epoch of health in which `retryAt` counts; null: in all. */
	readonly epoch: number | null;
	/** Failed deliveries in a row, in this epoch. */
	readonly faults: number;
	/** It holds an earlier transaction of the nonce, which this one replaces: it must get this one. */
	readonly replacementPending: boolean;
	/** It may have it, and was not told yet that its user ended it. */
	readonly cancelPending: boolean;
}

/** What observers remember of a row, in memory alone; they change it in place. Times are of the monotonic clock, in ms. */
export interface Notes {
	/** The round of questions to the relay in which it was asked for. */
	round: number;
	/** The relay said something of it, or it is new. */
	heardAt: number;
	/** How often in a row the relay had no record of it, and how often it got it again because of that. */
	nulls: number;
	losses: number;
	/** The chain was asked. */
	chainAt: number;
	/** How often in a row its nonce was used without a receipt; of a mined one, how often its receipt was gone. */
	misses: number;
	/** The fallback's page was asked; how often in a row it was blank, and how often that was a loss. */
	pageAt: number;
	blanks: number;
	pageLosses: number;
	/** Of a mined one: the relay has no record, so that only the chain can tell of a reorganisation. */
	byChain: boolean;
}

/** What is known of a transaction when it comes. */
export interface NewRow {
	/** Lower case. */
	readonly hash: string;
	/** Sender, lower case. */
	readonly from: string;
	readonly nonce: bigint;
	readonly raw: Buffer;
	readonly path: BoostPath;
	/** The query as it came, without "?". */
	readonly search: string;
	/** Whether a self-transfer of its nonce ends it for free. */
	readonly softCancellations: boolean;
	/** The client's network address: who may cancel it. */
	readonly address: string;
	/** Ms since the epoch. */
	readonly receivedAt: number;
	/** Who holds an earlier transaction of its nonce. */
	readonly replacesAt: readonly UpstreamName[];
}

/** A row. Read-only: `Rows` puts another one in its place. */
export interface Row extends Omit<NewRow, "raw" | "replacesAt"> {
	/** Length of the signed transaction; 0 where that is kept no more. */
	readonly bytes: number;
	/** When it is given up unless the relay still follows it, in ms since the epoch. */
	readonly aliveUntil: number;
	/** False where its client was told of an error although an upstream may have it: it is followed, and never sent. */
	readonly acknowledged: boolean;
	/** Requests about it that are under way: they see to it, and nobody else. In memory alone. */
	readonly requests: number;
	readonly desired: Desired;
	/** Ms since the epoch; 0 while it is live. */
	readonly endedAt: number;
	readonly at: Readonly<Record<UpstreamName, Standing>>;
	readonly notes: Notes;
}

/** Later than any time. */
export const NEVER = Number.POSITIVE_INFINITY;

/** The first wait after a failed delivery, doubling, and the longest one, in ms. */
const FIRST_WAIT_MS = 1_000;
export const MAX_WAIT_MS = 30_000;

/** Nothing is known of it there. */
export const ABSENT: Standing = Object.freeze({
	presence: "absent",
	retryAt: 0,
	epoch: null,
	faults: 0,
	replacementPending: false,
	cancelPending: false,
});

// Most rows stand in one of few ways: they share these, which is less to keep, and to go through.
export const HAS: Standing = Object.freeze({ ...ABSENT, presence: "has" });
const GIVEN: Standing = Object.freeze({ ...ABSENT, presence: "maybe", retryAt: NEVER });
const SHARED: readonly Row["at"][] = [
	{ relay: HAS, fallback: ABSENT },
	{ relay: ABSENT, fallback: HAS },
	{ relay: GIVEN, fallback: ABSENT },
	{ relay: ABSENT, fallback: ABSENT },
].map((at) => Object.freeze(at));

/** How a row stands at both. */
export function standings(relay: Standing, fallback: Standing): Row["at"] {
	return SHARED.find((at) => at.relay === relay && at.fallback === fallback) ?? { relay, fallback };
}

/** When something happens, for the waits that follow from it. */
export interface Moment {
	/** Ms of the monotonic clock. */
	readonly monotonic: number;
	/** Counts how often an upstream went out or came back: what failed before that is tried once more. */
	readonly epoch: number;
}

export function newNotes(monotonic: number): Notes {
	const never = Number.NEGATIVE_INFINITY;
	return {
		round: 0,
		heardAt: monotonic,
		nulls: 0,
		losses: 0,
		chainAt: never,
		misses: 0,
		pageAt: never,
		blanks: 0,
		pageLosses: 0,
		byChain: false,
	};
}

/** A row that comes, with its request under way; `before` is what is known of its hash already. */
export function openedRow(
	{ raw, replacesAt, ...known }: NewRow,
	first: UpstreamName,
	before: Row | null,
	{ ttlMs, monotonic }: { readonly ttlMs: number; readonly monotonic: number },
): Row {
	const was = before !== null && isLive(before) ? before.at : NOWHERE;
	const relay = opened(was.relay, first === "relay", replacesAt.includes("relay"));
	const fallback = opened(was.fallback, first === "fallback", replacesAt.includes("fallback"));
	return {
		bytes: raw.length,
		aliveUntil: known.receivedAt + ttlMs,
		acknowledged: true,
		requests: (before?.requests ?? 0) + 1,
		desired: "live",
		endedAt: 0,
		at: standings(relay, fallback),
		notes: newNotes(monotonic),
		// Last: behind a spread, further properties would give each row a hidden class of its own in V8.
		...known,
	};
}

function opened(was: Standing, isFirst: boolean, isReplacing: boolean): Standing {
	const replacementPending = was.replacementPending || isReplacing;
	const given = isFirst && !isHolder(was) ? GIVEN : was;
	return given.replacementPending === replacementPending ? given : { ...given, replacementPending };
}

export function isLive({ desired }: Row): boolean {
	return desired === "live";
}

/** Whether its user ended it: such a one is never sent again. */
export function isEndedByUser({ desired }: Row): boolean {
	return desired === "cancelled" || desired === "replaced";
}

/** Whether it was mined or ended by its user: the same bytes mean nothing more. */
export function isFinal(row: Row): boolean {
	return row.desired === "mined" || isEndedByUser(row);
}

/** Whether an upstream has it, may have it, or had it. */
export function isHolder({ presence }: Standing): boolean {
	return presence === "has" || presence === "maybe" || presence === "lost";
}

/** Who has it, or may have it. */
export function holdersOf({ at }: Row): readonly UpstreamName[] {
	return UPSTREAMS.filter((by) => isHolder(at[by]));
}

/** Who must hear that its user ended it. */
export function cancelsPendingAt({ at }: Row): readonly UpstreamName[] {
	return UPSTREAMS.filter((by) => at[by].cancelPending);
}

/** Whether there is something to do for it, wherever it is; not whether that can be done now. */
export function needsWork(row: Row): boolean {
	const { relay, fallback } = row.at;
	if (relay.cancelPending || fallback.cancelPending) return true;
	if (!isLive(row) || !row.acknowledged) return false;
	if (relay.replacementPending || fallback.replacementPending) return true;
	if (relay.presence === "lost" || fallback.presence === "lost") return true;
	return !isHolder(relay) && !isHolder(fallback);
}

/** `by` acknowledged it. */
export function has(row: Row, by: UpstreamName): Row {
	if (!isLive(row)) return alsoCancelledAt(row, by);
	const { replacementPending } = row.at[by];
	return withStanding(row, by, replacementPending ? { ...HAS, replacementPending } : HAS);
}

/** A request gave it to `by` and heard nothing: it is followed there, and not sent again. */
export function mayHaveIt(row: Row, by: UpstreamName): Row {
	if (!isLive(row)) return alsoCancelledAt(row, by);
	if (isHolder(row.at[by])) return row;
	return standingAt(row, by, { presence: "maybe", retryAt: NEVER, epoch: null });
}

/** A delivery to `by` brought no verdict: it may have it, and gets it again until it says so. */
export function unanswered(row: Row, by: UpstreamName, moment: Moment, atLeastMs = 0): Row {
	const { faults, retryAt, epoch } = delayed(row.at[by], moment, atLeastMs);
	return standingAt(row, by, { presence: "maybe", faults, retryAt, epoch, replacementPending: false });
}

/** A delivery to `by` failed, and it does not have it because of that. It waits longer each time, but at least `atLeastMs`. */
export function delayedAt(row: Row, by: UpstreamName, moment: Moment, atLeastMs = 0): Row {
	return standingAt(row, by, delayed(row.at[by], moment, atLeastMs));
}

/** `by`, though well, has no record of what it acknowledged. */
export function lost(row: Row, by: UpstreamName): Row {
	if (!isLive(row)) return row;
	const isRequests = row.at[by].retryAt === NEVER;
	return standingAt(row, by, { presence: "lost", ...(isRequests ? { retryAt: 0 } : {}) });
}

/** `by` does not have it. */
export function notHeld(row: Row, by: UpstreamName): Row {
	if (!isLive(row) || !isHolder(row.at[by])) return row;
	const { replacementPending } = row.at[by];
	return withStanding(row, by, replacementPending ? { ...ABSENT, replacementPending } : ABSENT);
}

/**
 * `by` refused it. Where somebody else has it still, that one may come back, and `by` is not asked until an upstream does;
 * where nobody has it, everybody is asked again now and then.
 */
export function refusedBy(row: Row, by: UpstreamName, moment: Moment): Row {
	const { presence, epoch: until } = row.at[by];
	if (presence === "refused" && until === null) return replacementDelivered(row, by);
	const others = UPSTREAMS.some(
		(one) => one !== by && isHolder(row.at[one]) && row.at[one].presence !== "lost",
	);
	const { faults, retryAt, epoch } = delayed(row.at[by], moment, 0);
	return standingAt(row, by, {
		...{ presence: "refused", replacementPending: false, faults, epoch },
		retryAt: others ? NEVER : retryAt,
	});
}

/** `by` has given it up or taken it back, or may never have it: it gets it never again. */
export function abandonedBy(row: Row, by: UpstreamName): Row {
	return isLive(row) ? standingAt(row, by, { ...ABSENT, presence: "refused", retryAt: NEVER }) : row;
}

/** `by` holds an earlier transaction of the nonce. */
export function replacementPendingAt(row: Row, by: UpstreamName): Row {
	return standingAt(row, by, { replacementPending: true });
}

/** `by` has it, or will never have it. */
export function replacementDelivered(row: Row, by: UpstreamName): Row {
	return row.at[by].replacementPending ? standingAt(row, by, { replacementPending: false }) : row;
}

/** One more request about it, or one less. */
export function underWay(row: Row, isBegun: boolean): Row {
	return { ...row, requests: Math.max(0, row.requests + (isBegun ? 1 : -1)) };
}

/** The request that brought it is over. */
export function requestOver(row: Row, acknowledged: boolean): Row {
	if (!isLive(row)) return underWay(row, false);
	return { ...row, requests: Math.max(0, row.requests - 1), acknowledged };
}

/** It is on its way until `until`. */
export function aliveTo(row: Row, until: number): Row {
	return isLive(row) && until > row.aliveUntil ? { ...row, aliveUntil: until } : row;
}

/**
 * It ends, and `notify` must hear of that. Of one that has ended the first end stays, but for `expired` and `dropped`,
 * which give way to any other.
 */
export function ended(row: Row, ending: Ending, now: number, notify: readonly UpstreamName[] = []): Row {
	if (isLive(row)) return endedRow(row, ending, now, notify);
	const givesWay = row.desired === "expired" || row.desired === "dropped";
	const all = [...cancelsPendingAt(row), ...notify];
	if (givesWay && ending !== row.desired) return endedRow(row, ending, now, all);
	return notify.reduce<Row>((one, by) => withCancelPending(one, by, true), row);
}

/** `by` was told that it ended. */
export function notified(row: Row, by: UpstreamName): Row {
	return withCancelPending(row, by, false);
}

/** A mined one is not in the chain any more. */
export function reopened(row: Row, aliveUntil: number, monotonic: number): Row {
	return notified(
		notified({ ...row, desired: "live", endedAt: 0, aliveUntil, notes: newNotes(monotonic) }, "relay"),
		"fallback",
	);
}

/** What must be known of one that has ended. */
export type EndedOne = Pick<Row, "hash" | "from" | "nonce" | "path" | "address"> & Partial<Row>;

/** The row of one that ends; it need not have been live here: a soft cancel's own never is. */
export function endedRow(row: EndedOne, ending: Ending, now: number, notify: readonly UpstreamName[]): Row {
	const isOpenable = ending === "mined" && row.bytes !== undefined && row.bytes > 0;
	const kept = isOpenable ? (row as Row) : closed(row);
	const done = { ...kept, desired: ending, endedAt: now };
	return UPSTREAMS.reduce<Row>((one, by) => withCancelPending(one, by, notify.includes(by)), done);
}

/** Nobody looks at the notes of these. */
const NO_NOTES: Notes = Object.freeze(newNotes(0));
const NOWHERE = standings(ABSENT, ABSENT);

/** What is remembered of one that has ended, and can't be opened again: restarts bring back no more. */
export function closed(row: EndedOne): Row {
	const { hash, from, nonce, path, address, requests = 0, desired = "dropped", endedAt = 0, at } = row;
	const plain: Row = {
		hash,
		from,
		nonce,
		path,
		search: "",
		softCancellations: false,
		address,
		receivedAt: 0,
		bytes: 0,
		aliveUntil: 0,
		acknowledged: true,
		requests,
		desired,
		endedAt,
		at: NOWHERE,
		notes: NO_NOTES,
	};
	return UPSTREAMS.reduce<Row>(
		(one, by) => withCancelPending(one, by, at?.[by].cancelPending ?? false),
		plain,
	);
}

function alsoCancelledAt(row: Row, by: UpstreamName): Row {
	return isEndedByUser(row) ? withCancelPending(row, by, true) : row;
}

function withCancelPending(row: Row, by: UpstreamName, cancelPending: boolean): Row {
	if (row.at[by].cancelPending === cancelPending) return row;
	// The waits of its deliveries are none of its cancel's.
	return standingAt(row, by, { cancelPending, faults: 0, retryAt: 0, epoch: null });
}

function standingAt(row: Row, by: UpstreamName, change: Partial<Standing>): Row {
	return withStanding(row, by, { ...row.at[by], ...change });
}

function withStanding(row: Row, by: UpstreamName, standing: Standing): Row {
	const { relay, fallback } = row.at;
	return { ...row, at: by === "relay" ? standings(standing, fallback) : standings(relay, standing) };
}

function delayed(
	{ faults, epoch }: Standing,
	now: Moment,
	atLeastMs: number,
): Pick<Standing, "faults" | "retryAt" | "epoch"> {
	const before = epoch === now.epoch ? faults : 0;
	const waitMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(before, 10), MAX_WAIT_MS);
	const retryAt = now.monotonic + Math.max(waitMs, Math.min(atLeastMs, MAX_WAIT_MS));
	return { faults: before + 1, retryAt, epoch: now.epoch };
}
