// Decides what boost does with a cancel by hash, from four facts: the owner, the row's state, its
// upstreams, and whether the relay trusts boost. Also decides what follows from the upstreams'
// answers. Pure functions.

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

/** The facts that decide a cancel by hash. */
export interface CancelFacts {
	/** Boost's row of the transaction; null if there is none. */
	readonly row: Row | null;
	readonly caller: Caller;
	/**
	 * Whether our relay trusts boost's information about clients. Null until the relay has responded
	 * once.
	 */
	readonly relayKnowsClient: boolean | null;
	readonly isRelayOut: boolean;
}

export type CancelAction =
	/** The relay decides, because boost has no row of this client. */
	| "askRelay"
	/**
	 * The client may be an owner at the relay only. The relay decides first; the owners here keep
	 * their transaction.
	 */
	| "askRelayFirst"
	/** Cancels the transaction at every upstream that has it. */
	| "cancelEverywhere"
	/** Withdraws this client's request. Other owners still want the transaction. */
	| "takeBackWish"
	/**
	 * The transaction has ended here. The sender's signature also ends it for the other owners at the
	 * relay.
	 */
	| "cancelForAll"
	| "isCancelled"
	/**
	 * Refusals. `notHere`: the relay may know it, but is down. `notBelieved`: the relay does not
	 * trust boost. `notAnswered`: it has not answered yet whether it does.
	 */
	| "notPending"
	| "notHere"
	| "notBelieved"
	| "notAnswered";

/** Returns the action for a cancel by hash. */
export function cancelAction({ row, caller, relayKnowsClient, isRelayOut }: CancelFacts): CancelAction {
	const unanswered = isRelayOut ? "notHere" : "notAnswered";
	const unbelieved = relayKnowsClient === null ? unanswered : "notBelieved";
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

/** The result of a cancel at all upstreams. */
export interface CancelEnd {
	/**
	 * Upstreams that cancelled, while another one cannot. They do not receive the transactions again.
	 */
	readonly abandonedBy: readonly UpstreamName[];
	/** Upstreams to cancel at later, if the transactions have ended. Null if they stay live. */
	readonly laterAt: readonly UpstreamName[] | null;
	/** The client's answer; an upstream's error is passed on unchanged. */
	readonly answer: "done" | "cannot" | "stillWanted" | "unreached" | "holderIsOut" | WireVerdict;
}

/**
 * Returns the result for `rows` (one sender and nonce, as they are after the cancel). `byRight`:
 * the client owns them, so they end even if no upstream can be reached. `bySender`: the cancel is
 * in the sender's name.
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
