// What two boosts had of one transaction, or of one nonce, as one boost has it. Pure.

import { withOwner } from "../../shared/ownership.ts";
import { isRevivable, routeOf } from "./owners.ts";
import type { UpstreamName } from "./request.ts";
import {
	cancelsPendingAt,
	type DeliveryState,
	endRow,
	holdersOf,
	isEndedByUser,
	isHolder,
	isLive,
	type Presence,
	type Row,
	setCancelPending,
	statesAt,
} from "./row.ts";

/** What an upstream has of it, by the boost that knows most. */
const MOST_KNOWN: readonly Presence[] = [
	"has",
	"given",
	"unanswered",
	"lost",
	"abandoned",
	"rejected",
	"absent",
];

/**
 * `own` with what `other` knows of the same transaction; null: `other` as it is holds all of it. What its user has ended is over,
 * and is cancelled wherever either boost has given it; else it is live if one of them has it live.
 */
export function mergedRow(own: Row, other: Row): Row | null {
	if (isLive(own) && isLive(other)) return bothLive(own, other);
	if (isEndedByUser(own)) return cancelledAt(own, [...holdersOf(other), ...cancelsPendingAt(other)]);
	if (isLive(own)) {
		if (!isEndedByUser(other)) return own;
		// Another address has submitted it anew since.
		if (isRevivable(other) && own.receivedAt > other.endedAt) return own;
		const ended = endRow(own, other.desired as "cancelled" | "replaced", other.endedAt, holdersOf(own));
		return cancelledAt({ ...ended, bySender: other.bySender }, cancelsPendingAt(other));
	}
	return isLive(other) || isEndedByUser(other) ? null : own;
}

/** A row that another one of its nonce has replaced, and the upstreams that have it alone. */
export interface ReplacedRow {
	readonly row: Row;
	readonly by: Row;
	readonly at: readonly UpstreamName[];
}

/**
 * Which of an account's live `rows` (by nonce and arrival) are replaced, though two boosts took them without each other: the last
 * of a nonce counts. An upstream that has both decides itself, and tells.
 */
export function replacedAmong(rows: readonly Row[]): readonly ReplacedRow[] {
	const settled = rows.filter(({ acknowledged, requests }) => acknowledged && requests === 0);
	return settled.flatMap((row) => {
		const by = settled.findLast(({ nonce }) => nonce === row.nonce) ?? row;
		const at = holdersOf(row).filter((name) => !isHolder(by.at[name]));
		return by === row || at.length === 0 ? [] : [{ row, by, at }];
	});
}

function cancelledAt(row: Row, at: readonly UpstreamName[]): Row {
	return at.reduce((one, by) => setCancelPending(one, by, true), row);
}

function bothLive(own: Row, other: Row): Row {
	const owners = other.owners.reduce(withOwner, own.owners);
	const isJoined = owners !== own.owners;
	return {
		...own,
		...(isJoined ? routeOf(owners) : {}),
		owners,
		// The relay may not have been told by both.
		ownersPending: own.ownersPending || other.ownersPending || isJoined,
		receivedAt: Math.min(own.receivedAt, other.receivedAt),
		aliveUntil: Math.max(own.aliveUntil, other.aliveUntil),
		acknowledged: own.acknowledged || other.acknowledged,
		at: statesAt(mostKnown(own.at.relay, other.at.relay), mostKnown(own.at.fallback, other.at.fallback)),
	};
}

function mostKnown(own: DeliveryState, other: DeliveryState): DeliveryState {
	const knowsMore = MOST_KNOWN.indexOf(other.presence) < MOST_KNOWN.indexOf(own.presence);
	const replacementPending = own.replacementPending || other.replacementPending;
	return { ...(knowsMore ? other : own), replacementPending };
}
