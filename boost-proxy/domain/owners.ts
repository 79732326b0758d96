// The owners of rows: who may cancel one, what holds for all of them, and what changes when one joins or takes its wish back.
// Who owns what is decided as at the relay (shared/ownership.ts). Pure.

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

/** Whether `caller` may cancel it: its sender, by a signature, or one who submitted it. The relay's rule. */
export function isOwner(row: Row, caller: Caller): boolean {
	return caller.signer === row.from || hasSubmitted(row, ownAddress(caller));
}

/** Whether one who submitted it has this network address; null: none of its own. */
export function hasSubmitted({ address, owners }: Row, own: string | null): boolean {
	return owners.length === 0 ? own !== null && own === address : isOwnedBy(owners, own);
}

/** Whether the addresses that submitted it have ended it, and its sender has not: another one may submit it anew. */
export function isRevivable({ desired, bySender, owners }: Row): boolean {
	return desired === "cancelled" && !bySender && owners.length > 0 && standingCount(owners) === 0;
}

/** The owners of its next life, with `owner`, of what `past` has ended; null: it is new. */
export function ownersAnew(past: Row | null, owner: Owner<BoostPath>): readonly Owner<BoostPath>[] {
	if (past === null) return [owner];
	const endedBy = past.owners.flatMap(({ address }) => address ?? []);
	return withOwner(pastOwners(past.owners, endedBy), owner);
}

/** The only owner of a row of which nothing else is kept, as of most rows on disk. */
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

/** The path and query that hold for these owners. */
export function routeOf(
	owners: readonly Owner<BoostPath>[],
): Pick<Row, "path" | "search" | "softCancellations"> {
	const terms = termsOf(owners);
	const { path, softCancellations } = terms;
	return { path, search: submissionQuery(terms), softCancellations };
}

/** `owner` has submitted it too, and `by` has acknowledged that. */
export function joinRow(row: Row, owner: Owner<BoostPath>, by: UpstreamName): Row {
	// A fallback sends what it has accepted at once.
	const isOut = row.notes.isOut || row.at.fallback.presence === "has";
	const joins = isOut ? lateOwner(row.owners, owner) : owner;
	const owners = withOwner(row.owners, joins);
	if (owners === row.owners) return row;
	// The relay works out by itself what holds, if it has had all the others' wishes.
	const isTold = by === "relay" && row.at.relay.presence === "has";
	return { ...row, ...routeOf(owners), owners, ownersPending: row.ownersPending || !isTold };
}

/** The owner with this address has taken its wish back; `isTold`: and the relay knows, or has nothing of it. */
export function takeBackWish(row: Row, address: string, isTold: boolean): Row {
	const owners = withoutWish(row.owners, address);
	return { ...row, owners, ownersPending: row.ownersPending || !isTold };
}

/** The relay was told of `told`, which were all owners; more may have come since. */
export function markOwnersTold(row: Row, told: Row["owners"]): Row {
	return row.owners === told && row.ownersPending ? { ...row, ownersPending: false } : row;
}
