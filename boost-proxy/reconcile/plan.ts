// Decides what boost does next for the rows of one sender (row: the journal's record of one
// transaction). Pure functions of the rows, the upstreams' health and the time. Every send and
// cancel of boost is decided here. plan decides what boost does by itself. planSubmission and
// planCancel decide what it does at once for a client's request. domain/row.ts defines a row's
// presences at an upstream (`has`, `given`, `lost`, …).

import { type Moment, NEXT_EPOCH } from "../domain/deliveries.ts";
import { type Fault, type Route, UPSTREAMS, type UpstreamName } from "../domain/request.ts";
import { isHolder, isLifeOver, isLive, needsWork, type Row } from "../domain/row.ts";
import type { CancelAsk, CancelOutcomes, SubmitAsk, Tried } from "./asks.ts";

/** The state of one upstream that the plan depends on. */
export interface UpstreamHealth {
	readonly isUnavailable: boolean;
	/**
	 * Until then (monotonic ms) no transaction is sent there, since it rate-limited boost itself.
	 * Cancels are sent.
	 */
	readonly pausedUntil: number;
	/**
	 * Whether it is our relay, which always gets a lost transaction again. A third party gets it only
	 * if no available upstream has it.
	 */
	readonly isOurs: boolean;
	/** Whether a transaction whose nonce has a gap may go there. */
	readonly acceptsNonceGaps: boolean;
	/** Whether it has a method to cancel a transaction by hash. */
	readonly canCancel: boolean;
	/** Whether a self-transfer cancels one of its transactions, for free. */
	readonly softCancels: boolean;
	/** Whether transactions of `route` may go there. */
	accepts(route: Route): boolean;
}

/** The configured upstreams. */
export type UpstreamHealths = Readonly<Partial<Record<UpstreamName, UpstreamHealth>>>;

/**
 * When the decision is made. An epoch of {@link Moment} ends when an upstream becomes unavailable,
 * or available again.
 */
export interface PlanTime extends Moment {
	/** Ms since the epoch by the chain. */
	readonly now: number;
}

/**
 * Why an upstream must get a row. `handover`: no available upstream has it. `replacement`: this one
 * has an earlier row of the nonce. `lost`: this one has lost it. `owners`: our relay has it, but
 * not from all of its owners.
 */
export type Need = "handover" | "replacement" | "lost" | "owners";

/**
 * Faults of a connection, of a proxy in front of the relay, or of a relay that has lost its core or
 * its database.
 */
const BROKEN: ReadonlySet<Fault> = new Set(["refused", "reset", "httpStatus", "internal"]);

/** The subject of an action: a row, at an upstream. */
interface At {
	readonly row: Row;
	readonly to: UpstreamName;
}
export type Send = At & { readonly kind: "send"; readonly need: Need };
/** `forget`: drop the pending replacement or cancel, which is impossible there. */
export type Cancel = At & { readonly kind: "cancel" | "forget" };
/**
 * The row is needed there, but not now. `byNonce`: only its nonce forbids it, since it is used or
 * leaves a gap. The retry can then be delayed.
 */
export type Wait = At & { readonly kind: "wait"; readonly byNonce: boolean };
export type Action = Send | Cancel | Wait;

/** Sends a client's transaction. `others`: whether another upstream can be tried after this one. */
export type Submit = At & { readonly kind: "submit"; readonly others: boolean };
/**
 * Sends a client's cancel: by hash (`cancel`), or by the self-transfer on the path and query of
 * `row` (`cancelSoftly`). Or sends nothing. `forget`: it can't be cancelled there. `unreached`: not
 * now, or not by this client.
 */
export type CancelNow = At & { readonly kind: "cancel" | "forget" | "cancelSoftly" | "unreached" };

/** The sender's progress through its nonces at one upstream, while the plan goes through them. */
interface UpstreamProgress {
	readonly name: UpstreamName;
	readonly health: UpstreamHealth;
	/** An earlier nonce must be delivered there first. */
	isBlocked: boolean;
	/**
	 * The lowest nonce, from the account's next one on the chain upwards, that this upstream lacks.
	 */
	firstMissing: bigint | null;
}

/**
 * The actions for `rows` (live ones by nonce and arrival, then ended ones), in order. After a
 * `send` the caller must plan again, since the following actions depend on its result. `nextNonce`:
 * the account's next nonce on the chain. Null if it is unreadable: upstreams that accept no nonce
 * gaps then get no handover. Undefined if it was not queried: nonces are then not checked.
 */
export function* plan(
	rows: readonly Row[],
	health: UpstreamHealths,
	time: PlanTime,
	nextNonce?: bigint | null,
): Generator<Action, void, undefined> {
	const everywhere = progressAtUpstreams(health, nextNonce ?? null);
	for (let start = 0; start < rows.length; ) {
		const row = rows[start] as Row;
		let end = start + 1;
		if (isLive(row)) while (rows[end]?.nonce === row.nonce && isLive(rows[end] as Row)) end += 1;
		if (!isLive(row)) yield* planEnded(row, health, time);
		else if (end - start > 1 || row.requests > 0 || mayNeedAction(row, health, time)) {
			yield* planNonce(rows.slice(start, end), everywhere, health, time, nextNonce);
		} else {
			for (const progress of everywhere) advance(progress, row.nonce, countsAsThere(row, progress.name));
		}
		start = end;
	}
}

/**
 * The next step for a client's submission, until an upstream has acknowledged or rejected it; null:
 * nothing is left to try. It goes to one upstream after another. While the relay is unavailable,
 * the account's lower nonces go to the fallback first, as in {@link plan}, which also defines
 * `nextNonce`. `came`: the outcomes at the upstreams that were tried. `rows`: the account's live
 * ones by nonce and arrival.
 */
export function planSubmission(
	{ agreed, nonce }: SubmitAsk,
	came: readonly Tried[],
	rows: readonly Row[],
	health: UpstreamHealths,
	time: PlanTime,
	nextNonce?: bigint | null,
): Send | Submit | null {
	const kind = came.at(-1)?.delivery?.kind;
	if (kind === "acknowledged" || kind === "rejected") return null;
	// From the end, since most come in the order of their nonces.
	const row = rows.findLast((one) => one.hash === agreed.hash);
	const to = firstFor(agreed, nonce, came, rows, health) ?? repeated(came, health);
	if (row === undefined || to === null) return null;
	if (to === "fallback" && !isAvailable(health.relay)) {
		const lower = rows.slice(
			0,
			rows.findIndex((one) => one.nonce >= nonce),
		);
		for (const action of plan(lower, health, time, nextNonce)) if (action.kind === "send") return action;
	}
	return { kind: "submit", row, to, others: isOpenFor(otherThan(to), agreed, came, health) };
}

/**
 * The first upstream for a transaction, among the available ones that were not tried; null: there
 * is none. An account stays with the fallback while some of its rows are only there, and none only
 * at the relay. Only the other rows of the nonce count, or all rows if there are none.
 */
function firstFor(
	agreed: SubmitAsk["agreed"],
	nonce: bigint,
	came: readonly Tried[],
	rows: readonly Row[],
	health: UpstreamHealths,
): UpstreamName | null {
	const mayGoToRelay = isOpenFor("relay", agreed, came, health);
	if (!isOpenFor("fallback", agreed, came, health)) return mayGoToRelay ? "relay" : null;
	if (!mayGoToRelay) return "fallback";
	const siblings = rows.filter((one) => one.nonce === nonce && one.hash !== agreed.hash);
	const known = siblings.length > 0 ? siblings : rows;
	return isAnyOnlyAt("fallback", known) && !isAnyOnlyAt("relay", known) ? "fallback" : "relay";
}

/**
 * Tries the relay once more if nobody else can accept the transaction and the relay failed at once.
 * One of several relays behind a balancer may just have ended, or follow another one that has.
 * Sending the same bytes to it twice has no effect.
 */
function repeated(came: readonly Tried[], health: UpstreamHealths): UpstreamName | null {
	const [first, second] = came;
	if (first?.by !== "relay" || second !== undefined || !isAvailable(health.relay)) return null;
	const { delivery } = first;
	return delivery?.kind === "failed" && BROKEN.has(delivery.fault) ? "relay" : null;
}

function isAnyOnlyAt(name: UpstreamName, rows: readonly Row[]): boolean {
	return rows.some(({ at }) => isHolder(at[name]) && !isHolder(at[otherThan(name)]));
}

function otherThan(name: UpstreamName): UpstreamName {
	return name === "relay" ? "fallback" : "relay";
}

function isOpenFor(
	name: UpstreamName,
	route: Route,
	came: readonly Tried[],
	health: UpstreamHealths,
): boolean {
	const upstream = health[name];
	return isAvailable(upstream) && upstream.accepts(route) && !came.some(({ by }) => by === name);
}

/**
 * The next step for a client's cancel of `rows`, until all upstreams concerned have answered
 * (`came`); null: nothing. A cancel by hash also goes to an unavailable upstream, which may still
 * be alive. Only our relay may let another client cancel. A self-transfer goes only where it is
 * free.
 */
export function planCancel(
	{ tx, asksRelay, byRight }: CancelAsk,
	came: CancelOutcomes,
	rows: readonly Row[],
	health: UpstreamHealths,
): CancelNow | null {
	for (const to of UPSTREAMS) {
		const upstream = health[to];
		const isAsked = (to === "relay" && asksRelay) || rows.some((row) => isHolder(row.at[to]));
		const [row] = rows;
		if (upstream === undefined || row === undefined || !isAsked || came.has(to)) continue;
		const { isOurs, isUnavailable, softCancels, canCancel } = upstream;
		if (tx === null) {
			if (!isOurs && !byRight) return { kind: "unreached", row, to };
			return { kind: canCancel ? "cancel" : "forget", row, to };
		}
		if (isUnavailable) return { kind: "unreached", row, to };
		if (!softCancels) return { kind: "forget", row, to };
		// At a fallback it is free on the path and query of the earlier transaction.
		const route = isOurs ? row : rows.find(({ softCancellations }) => softCancellations);
		return route === undefined ? { kind: "unreached", row, to } : { kind: "cancelSoftly", row: route, to };
	}
	return null;
}

/** Whether a row may need an action: a cheap filter before the plan is made. */
export function mayNeedAction(row: Row, health: UpstreamHealths, time: PlanTime): boolean {
	if (!isLive(row)) return needsWork(row) && UPSTREAMS.some((name) => isCancelReady(row, name, health));
	if (!row.acknowledged) return false;
	if (!hasLiveHolder(row, health)) return !isLifeOver(row, time);
	return isAlsoNeededAt(row, "relay", health) || isAlsoNeededAt(row, "fallback", health);
}

/** Whether an available upstream must get a row although another one has it. */
function isAlsoNeededAt(row: Row, name: UpstreamName, health: UpstreamHealths): boolean {
	if (!isAvailable(health[name])) return false;
	return row.at[name].replacementPending || isLostAt(row, name, health) || lacksOwners(row, name);
}

/**
 * Plans one nonce at each upstream. Only the last acknowledged one of its rows is sent: it replaces
 * those before it.
 */
function* planNonce(
	rowsOfNonce: readonly Row[],
	everywhere: readonly UpstreamProgress[],
	health: UpstreamHealths,
	time: PlanTime,
	nextNonce: bigint | null | undefined,
): Generator<Action> {
	const nonce = rowsOfNonce[0]?.nonce ?? 0n;
	const row = rowsOfNonce.findLast(({ acknowledged }) => acknowledged);
	const isBusy = rowsOfNonce.some(({ requests }) => requests > 0);
	let isSent = false;
	for (const progress of everywhere) {
		const to = progress.name;
		const isThere = rowsOfNonce.some((one) => countsAsThere(one, to));
		// A client's request in progress handles the nonce itself.
		const need = row === undefined || isBusy ? null : needOf(row, to, health, time);
		if (row === undefined || need === null) {
			advance(progress, nonce, isThere);
			if (!isThere && isBusy) progress.isBlocked = true;
			continue;
		}
		if (need === "replacement" && !progress.health.accepts(row)) {
			advance(progress, nonce, isThere);
			yield { kind: "forget", row, to };
			continue;
		}
		// No second upstream gets it before the first one's answer, unless it has an earlier row of the
		// nonce.
		if (need !== "replacement" && isSent) {
			progress.isBlocked = true;
			continue;
		}
		const isChecked = need === "handover" && nextNonce !== undefined;
		const problem = isChecked ? nonceProblem(row, progress, nextNonce) : null;
		const mayGo =
			!isPaused(to, health, time) &&
			!waitsForRetry(row, to, time) &&
			(need === "replacement" || !progress.isBlocked);
		if (mayGo && problem === null) {
			isSent = true;
			yield { kind: "send", row, to, need };
		} else yield { kind: "wait", row, to, byNonce: mayGo };
		if (isThere) advance(progress, nonce, true);
		else if (problem !== "used") progress.isBlocked = true;
	}
}

/**
 * Goes past a nonce. If it is missing and nonce gaps are not accepted, later nonces are blocked.
 */
function advance(progress: UpstreamProgress, nonce: bigint, isThere: boolean): void {
	if (isThere && nonce === progress.firstMissing) progress.firstMissing += 1n;
	if (!isThere && !progress.health.acceptsNonceGaps) progress.isBlocked = true;
}

/**
 * Cancels an ended row at each upstream where that is pending. Pauses apply to transactions only.
 */
function* planEnded(row: Row, health: UpstreamHealths, time: PlanTime): Generator<Action> {
	for (const to of UPSTREAMS) {
		if (!isCancelReady(row, to, health)) continue;
		if (health[to]?.canCancel !== true) yield { kind: "forget", row, to };
		else if (!waitsForRetry(row, to, time)) yield { kind: "cancel", row, to };
		else yield { kind: "wait", row, to, byNonce: false };
	}
}

/** Why `name` must get a live row; null if it need not or must not. */
function needOf(row: Row, name: UpstreamName, health: UpstreamHealths, time: PlanTime): Need | null {
	const upstream = health[name];
	if (upstream === undefined || upstream.isUnavailable) return null;
	if (row.at[name].replacementPending) return "replacement";
	if (isLostAt(row, name, health)) return "lost";
	if (lacksOwners(row, name)) return "owners";
	if (countsAsThere(row, name) || hasLiveHolder(row, health)) return null;
	const { presence } = row.at[name];
	if (presence === "abandoned" || (presence === "rejected" && !isRetryDue(row, name, time))) return null;
	if (!upstream.accepts(row)) return null;
	return isLifeOver(row, time) ? null : "handover";
}

/**
 * Why an upstream without nonce gaps would reject the row: its nonce is used, or an earlier one is
 * missing there.
 */
function nonceProblem(
	{ nonce }: Row,
	{ health, firstMissing }: UpstreamProgress,
	nextNonce: bigint | null,
): "used" | "gap" | null {
	if (health.acceptsNonceGaps) return null;
	if (nextNonce !== null && nonce < nextNonce) return "used";
	return nextNonce === null || firstMissing === null || nonce > firstMissing ? "gap" : null;
}

/**
 * Whether an upstream counts as having a row: it acknowledged the row, or a client's request sent
 * it and got no verdict.
 */
export function countsAsThere({ at }: Row, name: UpstreamName): boolean {
	// Named, since `at[name]` is slower and each pass checks every row.
	const { presence } = name === "relay" ? at.relay : at.fallback;
	return presence === "has" || presence === "given";
}

/** Whether an available upstream has it. */
function hasLiveHolder(row: Row, health: UpstreamHealths): boolean {
	if (isAvailable(health.relay) && countsAsThere(row, "relay")) return true;
	return isAvailable(health.fallback) && countsAsThere(row, "fallback");
}

/** Whether an upstream is configured and available. */
function isAvailable(upstream: UpstreamHealth | undefined): upstream is UpstreamHealth {
	return upstream?.isUnavailable === false;
}

/** Whether our relay has it but must still receive all its owners. */
function lacksOwners(row: Row, name: UpstreamName): boolean {
	return name === "relay" && row.ownersPending && countsAsThere(row, name);
}

function isLostAt(row: Row, name: UpstreamName, health: UpstreamHealths): boolean {
	if (row.at[name].presence !== "lost") return false;
	return health[name]?.isOurs === true || !hasLiveHolder(row, health);
}

function isPaused(name: UpstreamName, health: UpstreamHealths, time: PlanTime): boolean {
	return (health[name]?.pausedUntil ?? 0) > time.monotonic;
}

/** Whether a planned retry is not due yet. */
function waitsForRetry(row: Row, name: UpstreamName, time: PlanTime): boolean {
	return row.at[name].retryAt !== NEXT_EPOCH && !isRetryDue(row, name, time);
}

/**
 * Whether the retry wait is over, or was for an earlier epoch: an upstream has become unavailable
 * or available since.
 */
function isRetryDue({ at }: Row, name: UpstreamName, { monotonic, epoch }: PlanTime): boolean {
	const { retryAt, epoch: validIn } = at[name];
	return retryAt <= monotonic || (validIn !== null && validIn !== epoch);
}

/**
 * Whether the cancel pending at `name` can be sent, or dropped because that upstream is no longer
 * configured.
 */
function isCancelReady(row: Row, name: UpstreamName, health: UpstreamHealths): boolean {
	return row.at[name].cancelPending && health[name]?.isUnavailable !== true;
}

function progressAtUpstreams(health: UpstreamHealths, nextNonce: bigint | null): readonly UpstreamProgress[] {
	return UPSTREAMS.flatMap((name) => {
		const upstream = health[name];
		return upstream === undefined
			? []
			: [{ name, health: upstream, isBlocked: false, firstMissing: nextNonce }];
	});
}
