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
	/** The relay said something of it, or it is new. */
	heardAt: number;
	/** How often in a row each upstream had no record of it, and how often it got it again because of that. */
	readonly unknown: Record<UpstreamName, number>;
	readonly losses: Record<UpstreamName, number>;
	/** The chain was asked. */
	chainAt: number;
	/** How often in a row its nonce was used without a receipt; of a mined one, how often its receipt was gone. */
	misses: number;
	/** The fallback's page was asked. */
	pageAt: number;
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
const HAS: Standing = Object.freeze({ ...ABSENT, presence: "has" });
const GIVEN: Standing = Object.freeze({ ...ABSENT, presence: "maybe", retryAt: NEVER });
const SHARED = [ABSENT, HAS, GIVEN];
const SHARED_PAIRS: readonly Row["at"][] = [
	{ relay: HAS, fallback: ABSENT },
	{ relay: ABSENT, fallback: HAS },
	{ relay: GIVEN, fallback: ABSENT },
	{ relay: ABSENT, fallback: ABSENT },
].map((at) => Object.freeze(at));

/** How a row stands at both. */
export function standings(relay: Standing, fallback: Standing): Row["at"] {
	const at = { relay: shared(relay), fallback: shared(fallback) };
	return SHARED_PAIRS.find((one) => one.relay === at.relay && one.fallback === at.fallback) ?? at;
}

function shared(one: Standing): Standing {
	if (one.faults > 0 || one.epoch !== null || one.replacementPending || one.cancelPending) return one;
	return SHARED.find(({ presence, retryAt }) => presence === one.presence && retryAt === one.retryAt) ?? one;
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
		heardAt: monotonic,
		unknown: { relay: 0, fallback: 0 },
		losses: { relay: 0, fallback: 0 },
		chainAt: never,
		misses: 0,
		pageAt: never,
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
	const opened = (by: UpstreamName): Standing => {
		const given = first === by && !isHolder(was[by]) ? GIVEN : was[by];
		return { ...given, replacementPending: was[by].replacementPending || replacesAt.includes(by) };
	};
	return {
		bytes: raw.length,
		aliveUntil: known.receivedAt + ttlMs,
		acknowledged: true,
		requests: (before?.requests ?? 0) + 1,
		desired: "live",
		endedAt: 0,
		at: standings(opened("relay"), opened("fallback")),
		notes: newNotes(monotonic),
		// Last: behind a spread, further properties would give each row a hidden class of its own in V8.
		...known,
	};
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
	const { replacementPending } = row.at[by];
	return isLive(row) ? standingAt(row, by, { ...HAS, replacementPending }) : alsoCancelledAt(row, by);
}

/** A request gave it to `by` and heard nothing: it is followed there, and not sent again. */
export function mayHaveIt(row: Row, by: UpstreamName): Row {
	if (!isLive(row)) return alsoCancelledAt(row, by);
	if (isHolder(row.at[by])) return row;
	return standingAt(row, by, { presence: "maybe", retryAt: NEVER, epoch: null });
}

function alsoCancelledAt(row: Row, by: UpstreamName): Row {
	return isEndedByUser(row) ? withCancelPending(row, by, true) : row;
}

/** A delivery to `by` brought no verdict: it may have it, and gets it again until it says so. */
export function unanswered(row: Row, by: UpstreamName, moment: Moment, atLeastMs = 0): Row {
	const maybe = standingAt(row, by, { presence: "maybe", replacementPending: false });
	return delayedAt(maybe, by, moment, atLeastMs);
}

/** A delivery to `by` failed, and it does not have it because of that. It waits longer each time, but at least `atLeastMs`. */
export function delayedAt(row: Row, by: UpstreamName, moment: Moment, atLeastMs = 0): Row {
	const { faults, epoch } = row.at[by];
	const before = epoch === moment.epoch ? faults : 0;
	const waitMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(before, 10), MAX_WAIT_MS);
	const retryAt = moment.monotonic + Math.max(waitMs, Math.min(atLeastMs, MAX_WAIT_MS));
	return standingAt(row, by, { faults: before + 1, retryAt, epoch: moment.epoch });
}

/** `by`, though well, has no record of what it acknowledged. */
export function lost(row: Row, by: UpstreamName): Row {
	if (!isLive(row)) return row;
	const isRequests = row.at[by].retryAt === NEVER;
	return standingAt(row, by, { presence: "lost", ...(isRequests ? { retryAt: 0 } : {}) });
}

/** `by` does not have it. */
export function notHeld(row: Row, by: UpstreamName): Row {
	const { replacementPending } = row.at[by];
	return isLive(row) && isHolder(row.at[by]) ? standingAt(row, by, { ...ABSENT, replacementPending }) : row;
}

/**
 * `by` refused it. Where somebody else has it still, that one may come back, and `by` is not asked until an upstream does;
 * where nobody has it, everybody is asked again now and then.
 */
export function refusedBy(row: Row, by: UpstreamName, moment: Moment): Row {
	const { presence, epoch } = row.at[by];
	if (presence === "refused" && epoch === null) return withReplacementPending(row, by, false);
	const others = UPSTREAMS.some(
		(one) => one !== by && isHolder(row.at[one]) && row.at[one].presence !== "lost",
	);
	const refused = {
		presence: "refused",
		replacementPending: false,
		...(others ? { retryAt: NEVER } : {}),
	} as const;
	return standingAt(delayedAt(row, by, moment), by, refused);
}

/** `by` has given it up or taken it back, or may never have it: it gets it never again. */
export function abandonedBy(row: Row, by: UpstreamName): Row {
	return isLive(row) ? standingAt(row, by, { ...ABSENT, presence: "refused", retryAt: NEVER }) : row;
}

/** Whether `by` holds an earlier transaction of the nonce, and must get this one in its place. */
export function withReplacementPending(row: Row, by: UpstreamName, replacementPending: boolean): Row {
	return row.at[by].replacementPending === replacementPending
		? row
		: standingAt(row, by, { replacementPending });
}

/** Whether `by` must hear that it ended. */
export function withCancelPending(row: Row, by: UpstreamName, cancelPending: boolean): Row {
	if (row.at[by].cancelPending === cancelPending) return row;
	// The waits of its deliveries are none of its cancel's.
	return standingAt(row, by, { cancelPending, faults: 0, retryAt: 0, epoch: null });
}

function standingAt(row: Row, by: UpstreamName, change: Partial<Standing>): Row {
	const { relay, fallback } = row.at;
	const standing = { ...row.at[by], ...change };
	return { ...row, at: by === "relay" ? standings(standing, fallback) : standings(relay, standing) };
}

/** One more request about it. */
export function requestBegun(row: Row): Row {
	return { ...row, requests: row.requests + 1 };
}

/** One request less. The one that brought it says whether its client was told of success. */
export function requestOver(row: Row, acknowledged = row.acknowledged): Row {
	const requests = Math.max(0, row.requests - 1);
	return { ...row, requests, acknowledged: isLive(row) ? acknowledged : row.acknowledged };
}

/** What must be known of one that has ended. */
export type EndedOne = Pick<Row, "hash" | "from" | "nonce" | "path" | "address"> & Partial<Row>;

/**
 * It ends, and `notify` must hear of that; it need not have been live here: a soft cancel's own never is. Of one that has
 * ended the first end stays, but for `expired` and `dropped`, which give way to any other.
 */
export function ended(one: EndedOne, ending: Ending, now: number, notify: readonly UpstreamName[] = []): Row {
	const { desired = "live" } = one;
	const givesWay = desired === "live" || desired === "expired" || desired === "dropped";
	const isAnew = givesWay && desired !== ending;
	const isOpenable = ending === "mined" && one.bytes !== undefined && one.bytes > 0;
	const kept = isOpenable || !isAnew ? (one as Row) : closed(one);
	const done = isAnew ? { ...kept, desired: ending, endedAt: now } : kept;
	return notify.reduce<Row>((row, by) => withCancelPending(row, by, true), done);
}

/** A mined one is not in the chain any more. */
export function reopened(row: Row, aliveUntil: number, monotonic: number): Row {
	const live: Row = { ...row, desired: "live", endedAt: 0, aliveUntil, notes: newNotes(monotonic) };
	return UPSTREAMS.reduce<Row>((one, by) => withCancelPending(one, by, false), live);
}

const NOWHERE = standings(ABSENT, ABSENT);
/** Nobody looks at the notes of what has ended for good. */
const NO_NOTES: Notes = Object.freeze(newNotes(0));

/** What is remembered of one that has ended, and can't be opened again: restarts bring back no more. */
export function closed(one: EndedOne): Row {
	const { hash, from, nonce, path, address, requests = 0, desired = "dropped", endedAt = 0, at } = one;
	const isPending = (by: UpstreamName) => at?.[by].cancelPending ?? false;
	const standing = (by: UpstreamName): Standing => ({ ...ABSENT, cancelPending: isPending(by) });
	// One literal, so that all of them share a hidden class of V8: there may be hundreds of thousands.
	return {
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
		at: standings(standing("relay"), standing("fallback")),
		notes: NO_NOTES,
	};
}
