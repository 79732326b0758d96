// What boost does with a cancel by hash, by what it knows (whose is it, is it live, who has it, does the relay believe boost about
// clients), and what follows from the holders' answers to a cancel. Pure functions.

import { standingCount, withoutWish } from "../../shared/ownership.ts";
import { isOwner } from "../domain/owners.ts";
import {
	type Caller,
	ownAddress,
	UPSTREAMS,
	type UpstreamName,
	type WireVerdict,
} from "../domain/request.ts";
import { isHolder, isLive, type Row } from "../domain/row.ts";
import type { CancelAsk, CancelOutcomes } from "../reconcile/asks.ts";

/** What decides over a cancel by hash. */
export interface CancelFacts {
	/** Boost's record of the transaction; null: it has none. */
	readonly row: Row | null;
	readonly caller: Caller;
	/** Whether our relay believes boost about clients; otherwise it takes all of them for one. Null: it has not been heard yet. */
	readonly relayKnowsClient: boolean | null;
	readonly isRelayOut: boolean;
}

export type CancelAction =
	/** The relay decides: boost has no record, or one that is not this client's. */
	| "askRelay"
	/** The client may be an owner at the relay alone, which decides; what the owners here want stays. */
	| "askRelayFirst"
	/** It is cancelled wherever it is. */
	| "cancelEverywhere"
	/** Others still want it. */
	| "takeBackWish"
	/** It has ended here; the sender's signature ends it at the relay for the others there, too. */
	| "cancelForAll"
	| "isCancelled"
	/** Refusals. `notHere`: the relay, which may know it, is out; `notBelieved`, `notHeard`: by it, as far as boost knows. */
	| "notPending"
	| "notHere"
	| "notBelieved"
	| "notHeard";

/** What boost does with the cancel. */
export function cancelAction({ row, caller, relayKnowsClient, isRelayOut }: CancelFacts): CancelAction {
	const unheard = isRelayOut ? "notHere" : "notHeard";
	const unbelieved = relayKnowsClient === null ? unheard : "notBelieved";
	const asks = relayKnowsClient === true ? "askRelay" : unbelieved;
	if (row === null) return asks;
	const isHeld = isHolder(row.at.relay);
	if (!isOwner(row, caller)) {
		const mayOwnThere = isLive(row) && isHeld && relayKnowsClient === true && !isRelayOut;
		return mayOwnThere ? "askRelayFirst" : asks;
	}
	const bySender = caller.signer === row.from;
	if (!isLive(row)) {
		if (row.desired !== "cancelled") return "notPending";
		return bySender && !row.bySender ? "cancelForAll" : "isCancelled";
	}
	if (relayKnowsClient === false && isHeld) return "notBelieved";
	const isLast = standingCount(withoutWish(row.owners, ownAddress(caller) ?? "")) === 0;
	return bySender || isLast ? "cancelEverywhere" : "takeBackWish";
}

/** What follows from a cancel at all holders. */
export interface CancelEnd {
	/** They stay at the holder that can't cancel, and may be mined: these have cancelled, and do not get them again. */
	readonly abandonedBy: readonly UpstreamName[];
	/** They have ended, and are cancelled at these later; null: they stay. */
	readonly laterAt: readonly UpstreamName[] | null;
	/** The client's answer, or the verdict that it gets. */
	readonly answer: "done" | "cannot" | "stillWanted" | "unreached" | "holderIsOut" | WireVerdict;
}

/**
 * What follows for `rows` (of one sender and nonce, as they are after the cancel) from the holders' answers. `byRight`: the client
 * may end them; then they also end where no holder can be reached. `bySender`: in the sender's name.
 */
export function cancelEnd(
	rows: readonly Row[],
	outcomes: CancelOutcomes,
	{ byRight, bySender }: Pick<CancelAsk, "byRight"> & { readonly bySender: boolean },
): CancelEnd {
	const all = [...outcomes.values()];
	const done = UPSTREAMS.filter((name) => outcomes.get(name)?.kind === "done");
	if (all.some(({ kind }) => kind === "cannot"))
		return { abandonedBy: done, laterAt: null, answer: "cannot" };
	const rejected = all.find((one) => one.kind === "rejected");
	const isUnsure = all.some(({ kind }) => kind === "unsure");
	const hasEnded = done.length > 0 || isUnsure || (byRight && rejected === undefined);
	const isLater = (name: UpstreamName): boolean => {
		const kind = outcomes.get(name)?.kind;
		if (kind === undefined) return rows.some(({ at }) => isHolder(at[name]));
		if (kind === "unreached" || kind === "unsure") return true;
		// The relay may not know yet that the other owners have cancelled too.
		return name === "relay" && !bySender && rows.some(({ ownersPending }) => ownersPending);
	};
	const answered = (): CancelEnd["answer"] => {
		const relays = outcomes.get("relay");
		if (relays?.kind === "done" && relays.isStillWanted) return "stillWanted";
		if (done.length > 0 || (byRight && all.length === 0)) return "done";
		if (rejected !== undefined) return rejected.error;
		return byRight || isUnsure ? "unreached" : "holderIsOut";
	};
	return { abandonedBy: [], laterAt: hasEnded ? UPSTREAMS.filter(isLater) : null, answer: answered() };
}
