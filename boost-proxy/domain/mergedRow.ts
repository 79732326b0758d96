// Merges what two boost instances know of one transaction, or of one nonce. Pure.

import { withOwner } from "../../shared/ownership.ts";
import { type DeliveryState, type Presence, statesAt } from "./deliveryState.ts";
import { isRevivable, routeOf } from "./owners.ts";
import type { UpstreamName } from "./request.ts";
import {
	cancelsPendingAt,
	endRow,
	holdersOf,
	isEndedByUser,
	isHolder,
	isLive,
	type Row,
	setCancelPending,
} from "./row.ts";

/** Presences at an upstream, from most to least informative. */
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
 * Merges what `other` knows of the same transaction into `own`; null if `other` as it is covers
 * both. If its user ended it, it stays ended and is cancelled wherever either instance has sent it.
 * Otherwise it is live if either row is live.
 */
export function mergedRow(own: Row, other: Row): Row | null {
	if (isLive(own) && isLive(other)) return bothLive(own, other);
	if (isEndedByUser(own)) return cancelledAt(own, [...holdersOf(other), ...cancelsPendingAt(other)]);
	if (isLive(own)) {
		if (!isEndedByUser(other)) return own;
		// Another address has submitted it again since.
		if (isRevivable(other) && own.receivedAt > other.endedAt) return own;
		const ended = endRow(own, other.desired as "cancelled" | "replaced", other.endedAt, holdersOf(own));
		return cancelledAt({ ...ended, bySender: other.bySender }, cancelsPendingAt(other));
	}
	return isLive(other) || isEndedByUser(other) ? null : own;
}

/** A row that another of its nonce replaced, and the upstreams that have only the replaced row. */
export interface ReplacedRow {
	readonly row: Row;
	readonly by: Row;
	readonly at: readonly UpstreamName[];
}

/**
 * Finds the replaced rows among an account's live `rows` (ordered by nonce and arrival). Two boost
 * instances may have accepted them independently. The last row of a nonce counts. An upstream that
 * has both decides itself, and reports it.
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
		// The instances may not both have told the relay.
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
