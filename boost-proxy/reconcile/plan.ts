// What boost, the failover proxy, does next for one sender's journal rows (one for each transaction), worked out from nothing
// but the rows, the upstreams' health and the time. Who is asked first for a new one, and all that boost sends beside its
// clients' requests, is decided here, so that "why was this sent there?" has one answer.

import { type BoostPath, UPSTREAMS, type UpstreamName } from "../domain/request.ts";
import { holdersOf, isHolder, isLive, type Moment, NEVER, needsWork, type Row } from "../domain/row.ts";

/** What the plan needs to know of an upstream. */
export interface UpstreamHealth {
	/** It takes no requests now. */
	readonly isUnavailable: boolean;
	/** Nothing goes there before, in ms of the monotonic clock: it has set boost itself a limit. */
	readonly pausedUntil: number;
	/** Our relay is given again what it has lost whoever else has it, a third party only where nobody else has it. */
	readonly isOurs: boolean;
	/** Whether a transaction whose nonce has a gap may go there. */
	readonly takesGaps: boolean;
	/** Whether there is a way to take a transaction back there by its hash. */
	readonly cancels: boolean;
	/** Whether what came on `path` may go there. */
	mayHave(path: BoostPath): boolean;
}

/** The upstreams that there are. */
export type Health = Readonly<Partial<Record<UpstreamName, UpstreamHealth>>>;

/** When the plan is made. */
export interface PlanTime extends Moment {
	/** Ms since the epoch. */
	readonly now: number;
}

/** Why an upstream must get a row: nobody else has it, it holds an earlier one of the nonce, or it has lost it. */
export type Need = "handover" | "replacement" | "lost";

/**
 * What is to be done for a row at an upstream. `send` it; `cancel` it there; `forget` what is open there, as nothing can be
 * done about it; `wait`: not now, and what stands behind it waits too. `gap`: it waits for an account's earlier nonces.
 */
export type Action =
	| { readonly kind: "send"; readonly row: Row; readonly to: UpstreamName; readonly need: Need }
	| { readonly kind: "cancel" | "forget"; readonly row: Row; readonly to: UpstreamName }
	| { readonly kind: "wait"; readonly row: Row; readonly to: UpstreamName; readonly gap: boolean };

/** What is known of an upstream while the nonces are gone through. */
interface Lane {
	readonly to: UpstreamName;
	readonly health: UpstreamHealth;
	/** An earlier nonce is not there yet. */
	isHeldUp: boolean;
	/** The lowest nonce, from the account's next one on the chain upwards, that this upstream lacks. */
	firstMissing: bigint | null;
}

/**
 * The actions for `rows`, live ones by nonce and arrival, ended ones behind them; in the order in which they are to be done.
 * After a `send` the caller must make a new plan, since what comes next depends on what became of it. `latest`: the account's
 * next nonce on the chain, null where nobody says it, undefined where it was not asked for: then no nonce counts as a gap.
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
 * Whether what an account sends goes to the fallback first: where that alone has what is `known` of it, so that an account
 * does not flip between the two.
 */
export function isFallbackFirst(known: readonly Row[]): boolean {
	const isAloneAt = (by: UpstreamName) => known.some((row) => holdersOf(row).join() === by);
	return isAloneAt("fallback") && !isAloneAt("relay");
}

/** Whether `row` must first be delivered to `to`, since the upstream that holds it is unavailable, before a later nonce is. */
export function mustComeBefore(row: Row, nonce: bigint, to: UpstreamName): boolean {
	return row.nonce < nonce && row.acknowledged && row.requests === 0 && !isHolder(row.at[to]);
}

/** Whether there is anything to do for a row, now or later: a quick look at one of many. */
export function wants(row: Row, health: Health, time: PlanTime): boolean {
	if (!isLive(row)) return needsWork(row) && UPSTREAMS.some((by) => canTell(row, by, health));
	if (!row.acknowledged) return false;
	if (!hasLiveHolder(row, health)) return time.now < row.aliveUntil;
	return isWantedAt(row, "relay", health) || isWantedAt(row, "fallback", health);
}

/** Whether an upstream that is well must get a row although another one has it. */
function isWantedAt(row: Row, by: UpstreamName, health: Health): boolean {
	if (health[by]?.isUnavailable !== false) return false;
	return row.at[by].replacementPending || isLostAt(row, by, health);
}

/** One nonce at each upstream. The last acknowledged one counts: those before it are replaced. */
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
	let isOnItsWay = false;
	for (const lane of lanes) {
		const { to } = lane;
		const isThere = siblings.some((one) => countsAsThere(one, to));
		// What becomes of the nonce is being decided.
		const need = row === undefined || isBusy ? null : needOf(row, to, health, time);
		if (row === undefined || need === null) {
			pass(lane, nonce, isThere);
			if (!isThere && isBusy) lane.isHeldUp = true;
			continue;
		}
		if (need === "replacement" && !lane.health.mayHave(row.path)) {
			pass(lane, nonce, isThere);
			yield { kind: "forget", row, to };
			continue;
		}
		// Whoever is asked first may take it.
		if (need !== "replacement" && isOnItsWay) {
			lane.isHeldUp = true;
			continue;
		}
		const gap = need === "handover" && latest !== undefined ? gapOf(row, lane, latest) : null;
		const mayGo = isDue(row, to, health, time) && (need === "replacement" || !lane.isHeldUp);
		if (mayGo && gap === null) {
			isOnItsWay = true;
			yield { kind: "send", row, to, need };
		} else yield { kind: "wait", row, to, gap: mayGo };
		if (isThere) pass(lane, nonce, true);
		else if (gap !== "used") lane.isHeldUp = true;
	}
}

/** Goes past a nonce that needs nothing at an upstream. An upstream that takes no gaps takes nothing behind a missing nonce. */
function pass(lane: Lane, nonce: bigint, isThere: boolean): void {
	if (isThere && nonce === lane.firstMissing) lane.firstMissing += 1n;
	if (!isThere && !lane.health.takesGaps) lane.isHeldUp = true;
}

/** One that has ended, at each upstream that must hear of that. */
function* ofEnded(row: Row, health: Health, time: PlanTime): Generator<Action> {
	for (const to of UPSTREAMS) {
		if (!canTell(row, to, health)) continue;
		if (health[to]?.cancels !== true) yield { kind: "forget", row, to };
		else if (isDue(row, to, {}, time)) yield { kind: "cancel", row, to };
		else yield { kind: "wait", row, to, gap: false };
	}
}

/** Why `to` must get a live row; null where it need not, or must not. */
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

/** Whether an upstream that takes no gaps can't be given it: its nonce is used, or one before it is missing there. */
function gapOf({ nonce }: Row, { health, firstMissing }: Lane, latest: bigint | null): "used" | "gap" | null {
	if (health.takesGaps) return null;
	if (latest !== null && nonce < latest) return "used";
	return latest === null || firstMissing === null || nonce > firstMissing ? "gap" : null;
}

/** Whether the upstream has it, as far as is known: what a request delivered is followed until the upstream says otherwise. */
export function countsAsThere({ at }: Row, to: UpstreamName): boolean {
	const { presence, retryAt } = to === "relay" ? at.relay : at.fallback;
	return presence === "has" || (presence === "maybe" && retryAt === NEVER);
}

/** Whether one that has it takes requests. */
function hasLiveHolder(row: Row, health: Health): boolean {
	if (health.relay?.isUnavailable === false && countsAsThere(row, "relay")) return true;
	return health.fallback?.isUnavailable === false && countsAsThere(row, "fallback");
}

function isLostAt(row: Row, by: UpstreamName, health: Health): boolean {
	if (row.at[by].presence !== "lost") return false;
	return health[by]?.isOurs === true || !hasLiveHolder(row, health);
}

/** Whether no delivery failed there so recently that the next one must wait. */
function isDue(row: Row, to: UpstreamName, health: Health, time: PlanTime): boolean {
	if ((health[to]?.pausedUntil ?? 0) > time.monotonic) return false;
	return row.at[to].retryAt === NEVER || isRetried(row, to, time);
}

function isRetried({ at }: Row, by: UpstreamName, { monotonic, epoch }: PlanTime): boolean {
	const { retryAt, epoch: counts } = at[by];
	return retryAt <= monotonic || (counts !== null && counts !== epoch);
}

/** Whether `to` must hear that it ended, and can; where there is no such upstream any more, that is over at once. */
function canTell(row: Row, to: UpstreamName, health: Health): boolean {
	return row.at[to].cancelPending && health[to]?.isUnavailable !== true;
}

function lanesOf(health: Health, latest: bigint | null): readonly Lane[] {
	return UPSTREAMS.flatMap((to) => {
		const one = health[to];
		return one === undefined ? [] : [{ to, health: one, isHeldUp: false, firstMissing: latest }];
	});
}
