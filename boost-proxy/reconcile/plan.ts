// Decides what boost does next for the journal rows of one sender: a pure function of the rows, the upstreams' health and
// the time. All deliveries and cancels that boost makes by itself are decided here, so that "why was this sent there?" has
// one answer.

import { type BoostPath, UPSTREAMS, type UpstreamName } from "../domain/request.ts";
import { holdersOf, isHolder, isLive, type Moment, NO_RETRY, needsWork, type Row } from "../domain/row.ts";

/** What the plan depends on for one upstream. */
export interface UpstreamHealth {
	readonly isUnavailable: boolean;
	/** Nothing is sent there before, in monotonic ms: it has rate-limited boost itself. */
	readonly pausedUntil: number;
	/** Our relay gets lost transactions again in any case, a third party only if no available upstream has them. */
	readonly isOurs: boolean;
	/** Whether a transaction whose nonce has a gap may go there. */
	readonly takesGaps: boolean;
	/** Whether it has a method to cancel a transaction by hash. */
	readonly cancels: boolean;
	/** Whether transactions of `path` may go there. */
	mayHave(path: BoostPath): boolean;
}

/** The configured upstreams. */
export type Health = Readonly<Partial<Record<UpstreamName, UpstreamHealth>>>;

export interface PlanTime extends Moment {
	/** Ms since the epoch. */
	readonly now: number;
}

/** Why an upstream must get a row: no other has it, it holds an earlier one of the nonce, or it has lost it. */
export type Need = "handover" | "replacement" | "lost";

/**
 * The next action for a row at an upstream. `forget`: drop the pending replacement or cancel, which can't be done there.
 * `wait`: nothing now, and the sender's later nonces wait too. `gap`: it waits for earlier nonces of the account.
 */
export type Action =
	| { readonly kind: "send"; readonly row: Row; readonly to: UpstreamName; readonly need: Need }
	| { readonly kind: "cancel" | "forget"; readonly row: Row; readonly to: UpstreamName }
	| { readonly kind: "wait"; readonly row: Row; readonly to: UpstreamName; readonly gap: boolean };

/** The state of an upstream while the plan goes through a sender's nonces. */
interface Lane {
	readonly to: UpstreamName;
	readonly health: UpstreamHealth;
	/** An earlier nonce must be delivered there first. */
	isBlocked: boolean;
	/** The lowest nonce, from the account's next one on the chain upwards, that this upstream lacks. */
	firstMissing: bigint | null;
}

/**
 * The actions for `rows` (live ones by nonce and arrival, then ended ones), in the order in which to do them. After a `send`
 * the caller must plan again, since what follows depends on its result. `latest`: the account's next nonce on the chain, null
 * if it can't be read, undefined if it was not asked for: then no nonce counts as a gap.
 */
export function* plan(
	rows: readonly Row[],
	health: Health,
	time: PlanTime,
	latest?: bigint | null,
): Generator<Action, void, undefined> {
	const lanes = lanesOf(health, latest ?? null);
	for (let at = 0; at < rows.length; ) {
		const row = rows[at] as Row;
		let end = at + 1;
		if (isLive(row)) while (rows[end]?.nonce === row.nonce && isLive(rows[end] as Row)) end += 1;
		if (!isLive(row)) yield* ofEnded(row, health, time);
		else if (end - at > 1 || row.requests > 0 || wants(row, health, time)) {
			yield* ofNonce(rows.slice(at, end), lanes, health, time, latest);
		} else for (const lane of lanes) pass(lane, row.nonce, countsAsThere(row, lane.to));
		at = end;
	}
}

/**
 * Whether an account's next transaction goes to the fallback first: if only the fallback has its `known` ones, so that an
 * account does not alternate between the two.
 */
export function isFallbackFirst(known: readonly Row[]): boolean {
	const isAloneAt = (by: UpstreamName) => known.some((row) => holdersOf(row).join() === by);
	return isAloneAt("fallback") && !isAloneAt("relay");
}

/** Whether `row` must be delivered to `to` before `nonce` is. */
export function mustComeBefore(row: Row, nonce: bigint, to: UpstreamName): boolean {
	return row.nonce < nonce && row.acknowledged && row.requests === 0 && !isHolder(row.at[to]);
}

/** Whether a row may need an action: a cheap filter before the plan is made. */
export function wants(row: Row, health: Health, time: PlanTime): boolean {
	if (!isLive(row)) return needsWork(row) && UPSTREAMS.some((by) => canNotify(row, by, health));
	if (!row.acknowledged) return false;
	if (!hasLiveHolder(row, health)) return time.now < row.aliveUntil;
	return isWantedAt(row, "relay", health) || isWantedAt(row, "fallback", health);
}

/** Whether an available upstream must get a row although another one has it. */
function isWantedAt(row: Row, by: UpstreamName, health: Health): boolean {
	if (health[by]?.isUnavailable !== false) return false;
	return row.at[by].replacementPending || isLostAt(row, by, health);
}

/** One nonce at each upstream. Only its last acknowledged row is sent: it replaces those before it. */
function* ofNonce(
	siblings: readonly Row[],
	lanes: readonly Lane[],
	health: Health,
	time: PlanTime,
	latest: bigint | null | undefined,
): Generator<Action> {
	const nonce = siblings[0]?.nonce ?? 0n;
	const row = siblings.findLast(({ acknowledged }) => acknowledged);
	const isBusy = siblings.some(({ requests }) => requests > 0);
	let isSent = false;
	for (const lane of lanes) {
		const { to } = lane;
		const isThere = siblings.some((one) => countsAsThere(one, to));
		// While a client's request is in progress, the nonce is left to it.
		const need = row === undefined || isBusy ? null : needOf(row, to, health, time);
		if (row === undefined || need === null) {
			pass(lane, nonce, isThere);
			if (!isThere && isBusy) lane.isBlocked = true;
			continue;
		}
		if (need === "replacement" && !lane.health.mayHave(row.path)) {
			pass(lane, nonce, isThere);
			yield { kind: "forget", row, to };
			continue;
		}
		// It is sent to one upstream at a time, which may take it.
		if (need !== "replacement" && isSent) {
			lane.isBlocked = true;
			continue;
		}
		const gap = need === "handover" && latest !== undefined ? gapOf(row, lane, latest) : null;
		const mayGo = isDue(row, to, health, time) && (need === "replacement" || !lane.isBlocked);
		if (mayGo && gap === null) {
			isSent = true;
			yield { kind: "send", row, to, need };
		} else yield { kind: "wait", row, to, gap: mayGo };
		if (isThere) pass(lane, nonce, true);
		else if (gap !== "used") lane.isBlocked = true;
	}
}

/** Skips a nonce that needs nothing at an upstream. If the upstream takes no gaps, a missing nonce blocks later ones. */
function pass(lane: Lane, nonce: bigint, isThere: boolean): void {
	if (isThere && nonce === lane.firstMissing) lane.firstMissing += 1n;
	if (!isThere && !lane.health.takesGaps) lane.isBlocked = true;
}

/** Cancels an ended row at each upstream that is not notified yet. */
function* ofEnded(row: Row, health: Health, time: PlanTime): Generator<Action> {
	for (const to of UPSTREAMS) {
		if (!canNotify(row, to, health)) continue;
		if (health[to]?.cancels !== true) yield { kind: "forget", row, to };
		else if (isDue(row, to, {}, time)) yield { kind: "cancel", row, to };
		else yield { kind: "wait", row, to, gap: false };
	}
}

/** Why `to` must get a live row; null if it need not or must not. */
function needOf(row: Row, to: UpstreamName, health: Health, time: PlanTime): Need | null {
	const one = health[to];
	if (one === undefined || one.isUnavailable) return null;
	if (row.at[to].replacementPending) return "replacement";
	if (isLostAt(row, to, health)) return "lost";
	if (countsAsThere(row, to) || hasLiveHolder(row, health)) return null;
	const isRefused = row.at[to].presence === "refused" && !isRetried(row, to, time);
	if (isRefused || !one.mayHave(row.path)) return null;
	return time.now < row.aliveUntil ? "handover" : null;
}

/** Why an upstream that takes no gaps would reject it: its nonce is used, or an earlier one is missing there. */
function gapOf({ nonce }: Row, { health, firstMissing }: Lane, latest: bigint | null): "used" | "gap" | null {
	if (health.takesGaps) return null;
	if (latest !== null && nonce < latest) return "used";
	return latest === null || firstMissing === null || nonce > firstMissing ? "gap" : null;
}

/** Whether the upstream is treated as having it. What a client's request sent there counts until the upstream denies it. */
export function countsAsThere({ at }: Row, to: UpstreamName): boolean {
	const { presence, retryAt } = to === "relay" ? at.relay : at.fallback;
	return presence === "has" || (presence === "maybe" && retryAt === NO_RETRY);
}

/** Whether an available upstream has it. */
function hasLiveHolder(row: Row, health: Health): boolean {
	if (health.relay?.isUnavailable === false && countsAsThere(row, "relay")) return true;
	return health.fallback?.isUnavailable === false && countsAsThere(row, "fallback");
}

function isLostAt(row: Row, by: UpstreamName, health: Health): boolean {
	if (row.at[by].presence !== "lost") return false;
	return health[by]?.isOurs === true || !hasLiveHolder(row, health);
}

/** Whether no pause or retry wait forbids a delivery now. */
function isDue(row: Row, to: UpstreamName, health: Health, time: PlanTime): boolean {
	if ((health[to]?.pausedUntil ?? 0) > time.monotonic) return false;
	return row.at[to].retryAt === NO_RETRY || isRetried(row, to, time);
}

function isRetried({ at }: Row, by: UpstreamName, { monotonic, epoch }: PlanTime): boolean {
	const { retryAt, epoch: counts } = at[by];
	return retryAt <= monotonic || (counts !== null && counts !== epoch);
}

/** Whether the cancel pending at `to` can be sent, or dropped because that upstream is no longer configured. */
function canNotify(row: Row, to: UpstreamName, health: Health): boolean {
	return row.at[to].cancelPending && health[to]?.isUnavailable !== true;
}

function lanesOf(health: Health, latest: bigint | null): readonly Lane[] {
	return UPSTREAMS.flatMap((to) => {
		const one = health[to];
		return one === undefined ? [] : [{ to, health: one, isBlocked: false, firstMissing: latest }];
	});
}
