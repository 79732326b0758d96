// Changes of a row by its delivery to an upstream: attempts to send it there, their answers, and
// the waits between them.

import { ABSENT, type DeliveryState, isUnanswered, mayArrive, type Presence } from "./deliveryState.ts";
import { UPSTREAMS, type UpstreamName } from "./request.ts";
import {
	changeState,
	isAttemptedSince,
	isEndedByUser,
	isHolder,
	isLive,
	type Row,
	setCancelPending,
	setReplacementPending,
} from "./row.ts";

/** As `retryAt`: not again in this epoch, unless as a replacement. */
export const NEXT_EPOCH = Number.POSITIVE_INFINITY;

/** The first wait after a failed delivery, doubling, and the longest one, in ms. */
const FIRST_WAIT_MS = 1_000;
export const MAX_WAIT_MS = 30_000;

/** A point in time, for retries. */
export interface Moment {
	/** Monotonic ms. */
	readonly monotonic: number;
	/** A new epoch begins when an upstream goes down or comes back. Failed deliveries then retry. */
	readonly epoch: number;
}

/** An attempt to bring a row to an upstream. */
export interface Attempt {
	readonly by: UpstreamName;
	/** When it began, in ms since the epoch; no other attempt of the row has the same time. */
	readonly askedAt: number;
	/** The state there before it. */
	readonly before: DeliveryState;
}

/** `by` acknowledged it. `attempt`: one that was answered by this. */
export function markHeld(row: Row, by: UpstreamName, attempt: Attempt | null = null): Row {
	if (!isLive(row)) return cancelIfEndedByUser(attempt === null ? row : markAnswered(row, attempt), by);
	return withPresence(row, by, "has", attempt === null ? undefined : askedAtWithout(row, attempt));
}

/** A client's request sends it to `by`; `askedAt`: now, in ms since the epoch. */
export function markGiven(row: Row, by: UpstreamName, askedAt: number): Row {
	if (!isLive(row)) return cancelIfEndedByUser(row, by);
	const { attempts, askedAt: last } = row.at[by];
	const begun = { askedAt, attempts: askedAt === last ? attempts : attempts + 1 };
	if (isHolder(row.at[by])) return changeState(row, by, begun);
	return changeState(row, by, { presence: "given", retryAt: 0, epoch: null, ...begun });
}

/** The reconciler is about to send it to `by`; `askedAt`: now, in ms since the epoch. */
export function markAsked(row: Row, by: UpstreamName, askedAt: number): Row {
	const attempts = row.at[by].attempts + 1;
	return isLive(row) ? changeState(row, by, { presence: "unanswered", askedAt, attempts }) : row;
}

/** The attempt was answered. A later one, also of another boost instance, may still arrive. */
export function markAnswered(row: Row, attempt: Attempt): Row {
	const askedAt = askedAtWithout(row, attempt);
	return row.at[attempt.by].askedAt === askedAt ? row : changeState(row, attempt.by, { askedAt });
}

function askedAtWithout({ at }: Row, { by, askedAt, before }: Attempt): number {
	return at[by].askedAt === askedAt ? before.askedAt : at[by].askedAt;
}

/**
 * The attempt has left nothing there: the state is as before, unless another attempt has begun
 * since, or was answered.
 */
export function markAsBefore(row: Row, attempt: Attempt): Row {
	const { by, askedAt, before } = attempt;
	const state = row.at[by];
	const { replacementPending, attempts } = state;
	return isLive(row) && isUnanswered(state) && state.askedAt === askedAt
		? changeState(row, by, { ...before, replacementPending, attempts })
		: markAnswered(row, attempt);
}

/**
 * Whether an attempt may bring one of `rows` to an upstream after its answer to a cancel, or has.
 * Our relay remembers what it has cancelled. A fallback does not: only if it has cancelled by hash,
 * an only attempt has come. `asked`: the rows as they were when it was asked. `now`: ms since the
 * epoch.
 */
export function mayStillCome(
	rows: readonly Row[],
	to: UpstreamName,
	{
		asked,
		isCancelled,
		isSoft,
		now,
	}: {
		readonly asked: readonly Row[];
		readonly isCancelled: boolean;
		readonly isSoft: boolean;
		readonly now: number;
	},
): boolean {
	if (to === "relay" && isCancelled) return false;
	const hadIt = isCancelled && !isSoft;
	// An attempt that has an answer now may have come after the cancel.
	const isSince = (was: Row): boolean =>
		rows.some((one) => one.hash === was.hash && isAttemptedSince(one, was, to));
	return (
		asked.some(isSince) ||
		[...rows, ...asked].some(({ at }) => mayArrive(at[to], now) && !(hadIt && at[to].presence === "given"))
	);
}

function cancelIfEndedByUser(row: Row, by: UpstreamName): Row {
	return isEndedByUser(row) ? setCancelPending(row, by, true) : row;
}

/** The reconciler sent it to `by` and got no verdict. `atLeastMs`: the shortest wait. */
export function markUnanswered(row: Row, by: UpstreamName, moment: Moment, atLeastMs = 0): Row {
	const unanswered = changeState(row, by, { presence: "unanswered", replacementPending: false });
	return delayRetry(unanswered, by, moment, atLeastMs);
}

/**
 * A delivery to `by` failed without reaching it. The wait grows with each failure, and is at least
 * `atLeastMs`.
 */
export function delayRetry(row: Row, by: UpstreamName, moment: Moment, atLeastMs = 0): Row {
	const { faults, epoch } = row.at[by];
	const before = epoch === moment.epoch ? faults : 0;
	const waitMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(before, 10), MAX_WAIT_MS);
	const retryAt = moment.monotonic + Math.max(waitMs, Math.min(atLeastMs, MAX_WAIT_MS));
	return changeState(row, by, { faults: before + 1, retryAt, epoch: moment.epoch });
}

/** `by` has no record of it although it acknowledged it. */
export function markLost(row: Row, by: UpstreamName): Row {
	return isLive(row) ? changeState(row, by, { presence: "lost" }) : row;
}

/** `by` does not have it. */
export function markNotHeld(row: Row, by: UpstreamName): Row {
	return isLive(row) && isHolder(row.at[by]) ? withPresence(row, by, "absent") : row;
}

/**
 * `by` rejected it. If the other upstream still has it, `by` gets it again only after an upstream's
 * health changes. If neither has it, `by` gets it again after a wait.
 */
export function markRejected(row: Row, by: UpstreamName, moment: Moment): Row {
	if (row.at[by].presence === "abandoned") return setReplacementPending(row, by, false);
	const otherHasIt = UPSTREAMS.some(
		(one) => one !== by && isHolder(row.at[one]) && row.at[one].presence !== "lost",
	);
	const rejected = {
		presence: "rejected",
		replacementPending: false,
		...(otherHasIt ? { retryAt: NEXT_EPOCH } : {}),
	} as const;
	return changeState(delayRetry(row, by, moment), by, rejected);
}

/** `by` has given it up or cancelled it. */
export function markAbandoned(row: Row, by: UpstreamName): Row {
	const { askedAt, attempts } = row.at[by];
	return isLive(row) ? changeState(row, by, { ...ABSENT, presence: "abandoned", askedAt, attempts }) : row;
}

/** A new state there, except for what is pending and under way. */
function withPresence(row: Row, by: UpstreamName, presence: Presence, askedAt = row.at[by].askedAt): Row {
	const { replacementPending, attempts } = row.at[by];
	return changeState(row, by, { ...ABSENT, presence, replacementPending, askedAt, attempts });
}
