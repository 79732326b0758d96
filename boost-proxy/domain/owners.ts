// The owners of rows: who may cancel a row, and which terms apply to all owners. Also how rows
// change as owners join or withdraw. The relay uses the same rules of ownership
// (shared/ownership.ts). Pure.

import { UNKNOWN_ADDRESS } from "../../shared/client.ts";
import {
	isOwnedBy,
	lateOwner,
	type Owner,
	pastOwners,
	standingCount,
	termsOf,
	withOwner,
	withoutWish,
} from "../../shared/ownership.ts";
import { keptQuery, NO_QUERY, submissionQuery } from "../../shared/submissionQuery.ts";
import { type BoostPath, type Caller, ownAddress, type UpstreamName } from "./request.ts";
import type { NewRow, Row } from "./row.ts";

/** Whether some owners have withdrawn their requests. */
export function isEndedBySome({ owners }: Pick<Row, "owners">): boolean {
	return owners.some(({ cancelled }) => cancelled);
}

/**
 * Whether `caller` may cancel the row: its sender, by a signature, or a submitter. The relay's
 * rule.
 */
export function isOwner(row: Row, caller: Caller): boolean {
	return caller.signer === row.from || hasSubmitted(row, ownAddress(caller));
}

/** Whether a submitter has this network address; null: the caller has no address of its own. */
export function hasSubmitted({ address, owners }: Row, own: string | null): boolean {
	return owners.length === 0 ? own !== null && own === address : isOwnedBy(owners, own);
}

/**
 * Whether all submitting addresses have ended it but its sender has not. Another address may then
 * submit it again.
 */
export function isRevivable({ desired, bySender, owners }: Row): boolean {
	return desired === "cancelled" && !bySender && owners.length > 0 && standingCount(owners) === 0;
}

/**
 * The owners of a transaction's next life: `owner`, and those of `past`, which have ended it. Null
 * `past`: the transaction is new.
 */
export function ownersAnew(past: Row | null, owner: Owner<BoostPath>): readonly Owner<BoostPath>[] {
	if (past === null) return [owner];
	const endedBy = past.owners.flatMap(({ address }) => address ?? []);
	return withOwner(pastOwners(past.owners, endedBy), owner);
}

/** The only owner of a row that stores no other owner, like most rows on disk. */
export function onlyOwner({
	path,
	search,
	softCancellations,
	address,
}: Pick<NewRow, "path" | "search" | "softCancellations" | "address">): Owner<BoostPath> {
	const { refundRecipient, referrer, isHidden, builders } = keptQuery(search) ?? NO_QUERY;
	return {
		address: address === UNKNOWN_ADDRESS ? null : address,
		paths: [path],
		softCancellations,
		refundRecipient,
		referrer,
		isHidden,
		builders,
		cancelled: false,
	};
}

/** The path and query that apply to these owners together. */
export function routeOf(
	owners: readonly Owner<BoostPath>[],
): Pick<Row, "path" | "search" | "softCancellations"> {
	const terms = termsOf(owners);
	const { path, softCancellations } = terms;
	return { path, search: submissionQuery(terms), softCancellations };
}

/** `owner` has submitted the transaction too, and `by` has acknowledged that. */
export function joinRow(row: Row, owner: Owner<BoostPath>, by: UpstreamName): Row {
	// A fallback sends an accepted transaction at once.
	const isOut = row.notes.isOut || row.at.fallback.presence === "has";
	const joins = isOut ? lateOwner(row.owners, owner) : owner;
	const owners = withOwner(row.owners, joins);
	if (owners === row.owners) return row;
	// The relay derives the terms itself, if it has received the requests of all other owners.
	const isReported = by === "relay" && row.at.relay.presence === "has";
	return { ...row, ...routeOf(owners), owners, ownersPending: row.ownersPending || !isReported };
}

/**
 * The owner with this address has withdrawn its request. `isReported`: the relay knows that, or has
 * nothing of it.
 */
export function takeBackWish(row: Row, address: string, isReported: boolean): Row {
	const owners = withoutWish(row.owners, address);
	return { ...row, owners, ownersPending: row.ownersPending || !isReported };
}

/**
 * The relay has received `reported`, which were all owners at the time. More may have joined since.
 */
export function markOwnersReported(row: Row, reported: Row["owners"]): Row {
	return row.owners === reported && row.ownersPending ? { ...row, ownersPending: false } : row;
}
