// Decides what boost does with a cancel by hash, from four facts: the owner, the row's state, its
// upstreams, and whether the relay trusts boost. Also decides what follows from the upstreams'
// answers. Pure functions.

import { standingCount, withoutWish } from "../../shared/ownership.ts";
import { mayStillCome } from "../domain/deliveries.ts";
import { isOwner } from "../domain/owners.ts";
import {
	type Caller,
	ownAddress,
	UPSTREAMS,
	type UpstreamName,
	type WireVerdict,
} from "../domain/request.ts";
import { isCancelOpen, isHolder, isLive, type Row } from "../domain/row.ts";
import type { CancelAsk, CancelOutcomes, CancelResult } from "../reconcile/asks.ts";

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
	/** It has ended here, but an upstream that may have it has not answered the cancel. */
	| "isUnreached"
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
		if (bySender && !row.bySender) return "cancelForAll";
		return isCancelOpen(row) ? "isUnreached" : "isCancelled";
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

/** `bySender`: in the sender's name. `isSoft`: by a self-transfer. `now`: ms since the epoch. */
interface CancelNature extends Pick<CancelAsk, "byRight">, Pick<CancelResult, "asked"> {
	readonly bySender: boolean;
	readonly isSoft: boolean;
	readonly now: number;
}

/**
 * Returns the result for `rows` (one sender and nonce, as they are after the cancel). `byRight`:
 * the client owns them, so they end even if no upstream can be reached. The answer is `done` only
 * if no upstream can send them any more.
 */
export function cancelEnd(
	rows: readonly Row[],
	outcomes: CancelOutcomes,
	{ byRight, bySender, isSoft, asked, now }: CancelNature,
): CancelEnd {
	const all = [...outcomes.values()];
	const done = UPSTREAMS.filter((name) => outcomes.get(name)?.kind === "done");
	if (all.some(({ kind }) => kind === "cannot"))
		return { abandonedBy: done, laterAt: null, answer: "cannot" };
	const isUnsure = all.some(({ kind }) => kind === "unsure");
	const isUnsettled = (name: UpstreamName): boolean => {
		const kind = outcomes.get(name)?.kind;
		if (kind === undefined) return rows.some(({ at }) => isHolder(at[name]));
		if (kind === "unreached" || kind === "unsure") return true;
		return mayStillCome(rows, name, {
			asked: asked.get(name) ?? [],
			...{ isCancelled: kind === "done", isSoft, now },
		});
	};
	// The relay may not know yet that the other owners have cancelled too.
	const isLater = (name: UpstreamName): boolean =>
		isUnsettled(name) || (name === "relay" && !bySender && rows.some(({ ownersPending }) => ownersPending));
	const isOpen = UPSTREAMS.some((name) => isUnsettled(name) && rows.some(({ at }) => isHolder(at[name])));
	// A fallback may reject a cancel before the attempt that brings the transaction, and does not
	// know whether the relay has it.
	const decides = (name: UpstreamName): boolean => name === "relay" || !byRight || !isOpen;
	const rejected = UPSTREAMS.filter(decides)
		.map((name) => outcomes.get(name))
		.find((one) => one?.kind === "rejected");
	const hasEnded = done.length > 0 || isUnsure || (byRight && rejected === undefined);
	const isOver = (done.length > 0 || all.length === 0) && !isOpen;
	const answered = (): CancelEnd["answer"] => {
		const relays = outcomes.get("relay");
		if (relays?.kind === "done" && relays.isStillWanted) return "stillWanted";
		if (byRight ? isOver : done.length > 0) return "done";
		if (rejected !== undefined && done.length === 0) return rejected.error;
		return byRight || isUnsure ? "unreached" : "holderIsOut";
	};
	return { abandonedBy: [], laterAt: hasEnded ? UPSTREAMS.filter(isLater) : null, answer: answered() };
}
