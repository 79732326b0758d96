// Cancels transactions by their hash or by a soft cancel (a self-transfer with a nonce that allows
// it). While a cancel is in progress, they are not sent to another upstream. After one succeeded
// anywhere, they never are. The reconciler cancels them at unreached upstreams.

import type { Clock } from "../../shared/clock.ts";
import { MINED_STAGES } from "../../shared/ethereum/statusRecord.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import {
	allTakenBack,
	NOT_CANCELLABLE,
	STILL_WANTED,
	STILL_WANTED_REASON,
	standingCount,
} from "../../shared/ownership.ts";
import { cancelReach } from "../domain/budget.ts";
import { markAbandoned } from "../domain/deliveries.ts";
import { isOwner, takeBackWish } from "../domain/owners.ts";
import type { OtherBoosts, Upstreams } from "../domain/ports.ts";
import { onBehalfOf, ownAddress, type RequestState, relayStages, stagesCall } from "../domain/request.ts";
import {
	beginRequest,
	endRequest,
	isAnyCancelOpen,
	isCancelOpen,
	isHolder,
	isLive,
	otherHolders,
	type Row,
	setCancelPending,
	shownFields,
} from "../domain/row.ts";
import type { CancelAsk, CancelOutcome } from "../reconcile/asks.ts";
import type { Reconciler } from "../reconcile/reconciler.ts";
import type { Rows } from "../rows/rows.ts";
import { type CancelAction, cancelAction, cancelEnd } from "./cancelTable.ts";
import { type Failover, unavailable, verdictError } from "./failover.ts";

export interface CancelsDependencies {
	readonly rows: Rows;
	readonly upstreams: Upstreams;
	readonly failover: Failover;
	/** Sends the cancels. */
	readonly reconciler: Reconciler;
	readonly others: OtherBoosts;
	readonly clock: Clock;
	/**
	 * Whether our relay accepts boost's information about clients. If not, it treats all of them as
	 * one client. Null: the relay has not responded yet.
	 */
	readonly relayKnowsClient: () => boolean | null;
}

/** The same text for a stranger's transaction and for one that only the relay may know. */
const NOT_HERE = `${NOT_CANCELLABLE}; the relay, which may know it, is down: cancel it again when the relay is back`;
const NOT_BELIEVED =
	"the relay does not trust boost's client addresses and refuses their cancels; its operator must correct BOOST_SECRET or TRUST_PROXY";
const NOT_ANSWERED = "the relay has not answered yet, and the journal does not have it";
const NO_ANSWER = "the relay does not answer, and the journal does not have it";
/** The error of a cancel whose end is in memory only. */
export const UNWRITTEN =
	"the journal can't be written, so a restart could forget the cancel: cancel it again";
/** The error of a cancel after which an earlier transaction of its nonce may have ended, or not. */
const MAY_HAVE_REPLACED =
	"it is cancelled, but the relay does not answer whether it had replaced an earlier transaction: cancel it again";
/** The error of a cancel while an upstream that may have the transaction has not answered it. */
export const UNREACHED =
	"the upstream that has it does not answer; boost sends it to no other, and cancels it there as soon as possible";

export class Cancels {
	readonly #dependencies: CancelsDependencies;

	constructor(dependencies: CancelsDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * Cancels `hash`. While the relay is available, it decides whether the client may. Otherwise the
	 * same rule applies to the row's address. Throws RpcError `rejected` if it is not pending, the
	 * client may not cancel it, or others still want it. Throws `unavailable` if no upstream that has
	 * it can be reached, or if the state of other boost instances is unknown.
	 */
	async cancel(hash: string, state: RequestState): Promise<true> {
		const row = await this.#find(hash, state);
		if (row !== null) return this.#cancelWithRows(row, hash, state);
		await this.#cancelHere(null, hash, state);
		// The relay has cancelled it. It may have been submitted in between, to go elsewhere too.
		const since = await this.#find(hash, state);
		return since === null ? true : this.#cancelWithRows(since, hash, state);
	}

	/** A row of this boost instance, or one of another that the client owns. */
	async #find(hash: string, { caller }: RequestState): Promise<Row | null> {
		const { rows, others } = this.#dependencies;
		// If its ended row is unreadable, the relay may still know it.
		const own = await rows.findIfReadable(hash);
		if (own !== null || others.isAlone) return own;
		const found = await others.find(hash, caller.address);
		// A stranger's request moves no rows of another boost instance.
		return found !== null && isOwner(found, caller) ? found : null;
	}

	async #cancelWithRows(row: Row, hash: string, state: RequestState): Promise<true> {
		const { rows, others, failover } = this.#dependencies;
		const request = { from: row.from, hash, ms: failover.leftMs(state) / 2, isCareful: true };
		return others.withRowsOf(request, async () => {
			const now = others.isAlone ? row : await rows.findIfReadable(hash);
			return this.#cancelHere(now ?? row, hash, state);
		});
	}

	async #cancelHere(row: Row | null, hash: string, state: RequestState): Promise<true> {
		const { upstreams, relayKnowsClient } = this.#dependencies;
		const { caller } = state;
		const isRelayOut = upstreams.relay.breaker.isUnavailable;
		const action = cancelAction({ row, caller, relayKnowsClient: relayKnowsClient(), isRelayOut });
		if (["notPending", "isCancelled", "cancelForAll"].includes(action))
			state.routing.answeredBy.add("journal");
		const refusal = refusalOf(action);
		if (refusal !== null) throw refusal;
		if (row === null || action === "askRelay") return this.#askRelay(hash, state);
		if (!isLive(row)) {
			if (await this.#isMined(row, state)) throw notPending();
			if (action === "cancelForAll") await this.#cancelForAll(row, state);
			return this.#reached(row, state);
		}
		if (action === "takeBackWish" && (await this.#takesBackOne(row, state))) return true;
		// The relay has ended it for all owners that it knew.
		if (action === "askRelayFirst" && (await this.#askRelay(hash, state)) && row.ownersPending) return true;
		const bySender = caller.signer === row.from;
		const byRight = action !== "askRelayFirst";
		await this.#cancelEverywhere([row], { tx: null, byRight, asksRelay: bySender }, bySender, state);
		return this.#reached(row, state);
	}

	/**
	 * True once the end of a cancelled row is on disk, no upstream has a cancel outstanding for
	 * another transaction with its nonce, which it may have replaced, and those that it has replaced
	 * at the relay have ended too. Throws RpcError `unavailable` otherwise.
	 */
	async #reached(row: Row, state: RequestState): Promise<true> {
		const { rows } = this.#dependencies;
		if (!(await rows.written(row.hash))) throw unavailable(UNWRITTEN);
		await this.#endReplaced(row, state);
		if (isAnyCancelOpen(rows.pendingCancels(), row)) throw unavailable(UNREACHED);
		return true;
	}

	/**
	 * Ends the earlier transactions of its nonce that it has replaced at the relay, also those that
	 * did not go there. The boost instance that got the relay's answer may have lost the database
	 * before it could end them. Throws RpcError `unavailable` if the relay does not answer.
	 */
	async #endReplaced(row: Row, state: RequestState): Promise<void> {
		const { rows } = this.#dependencies;
		if (row.at.relay.attempts === 0) return;
		for (const { hash, receivedAt } of rows.liveOf(row.from, row.nonce)) {
			if (receivedAt > row.receivedAt) continue;
			const stage = await this.#stageAtRelay({ hash }, state);
			if (stage === undefined) throw unavailable(MAY_HAVE_REPLACED);
			const now = rows.live(hash);
			if (now === null || stage !== "REPLACED") continue;
			rows.end(now, "replaced", otherHolders(now, "relay"));
			if (!(await rows.written(hash))) throw unavailable(UNWRITTEN);
		}
	}

	/**
	 * The sender signs a cancel of a transaction that its owners here have cancelled, since the relay
	 * may have it from others. Throws RpcError `unavailable` if the relay can't be reached, which
	 * then gets the cancel later.
	 */
	async #cancelForAll(ended: Row, state: RequestState): Promise<void> {
		const { rows, reconciler } = this.#dependencies;
		const { hash } = ended;
		rows.change(hash, (row) =>
			isLive(row) ? row : setCancelPending({ ...row, bySender: true }, "relay", true),
		);
		const { kind } = await reconciler.cancelAtRelay(hash, ended, state);
		const isOver = kind === "done" || kind === "rejected";
		if (isOver) rows.change(hash, (row) => (isLive(row) ? row : setCancelPending(row, "relay", false)));
		await rows.written(hash);
		if (!isOver || this.#isOpenNow(hash)) throw unavailable(UNREACHED);
	}

	/** Whether an upstream that has or may have it must still receive its cancel. */
	#isOpenNow(hash: string): boolean {
		const row = this.#dependencies.rows.get(hash);
		return row !== null && !isLive(row) && isCancelOpen(row);
	}

	/**
	 * Withdraws the client's own request. Returns whether that is all. If not, no owner wants the
	 * transaction any more. Throws RpcError `rejected` if others still want it.
	 */
	async #takesBackOne(row: Row, state: RequestState): Promise<boolean> {
		const { rows } = this.#dependencies;
		const { hash } = row;
		const own = ownAddress(state.caller) ?? "";
		rows.change(hash, beginRequest);
		try {
			const isHeld = isHolder(row.at.relay);
			const outcome = isHeld ? await this.#takenBackAtRelay(row, state) : null;
			if (outcome?.kind === "rejected") throw verdictError(outcome.error);
			const isReported = outcome === null || (outcome.kind === "done" && !row.ownersPending);
			rows.changeLive(hash, (one) => takeBackWish(one, own, isReported));
			await rows.written(hash);
		} finally {
			rows.change(hash, (one) => endRequest(one));
		}
		// The other owners may have withdrawn in between.
		const now = rows.live(hash);
		if (now !== null && standingCount(now.owners) > 0) throw stillWanted();
		return now === null;
	}

	/**
	 * Cancels `siblings` by `tx`. It is sent only to upstreams that have them, in a form that is free
	 * there, and is never kept. Throws as {@link cancel} does, also if the end is not on disk.
	 */
	async soft(tx: DecodedTransaction, siblings: readonly Row[], state: RequestState): Promise<void> {
		const { rows } = this.#dependencies;
		try {
			await this.#cancelEverywhere(siblings, { tx, byRight: true, asksRelay: false }, true, state);
		} finally {
			// The same bytes, if sent again, get their hash as the answer: sending them could cost the
			// user gas.
			if (siblings.some(({ hash }) => rows.get(hash)?.desired === "cancelled")) {
				const { hash, from, nonce } = tx;
				const { path, caller } = state;
				const own = { hash, from, nonce, fields: shownFields(tx), path, address: caller.address };
				rows.end(own, "cancelled");
				await rows.written(hash);
			}
		}
		if (!(await rows.written(tx.hash))) throw unavailable(UNWRITTEN);
	}

	/**
	 * Lets the reconciler cancel `siblings` (of one sender and nonce). Ends them if an upstream has
	 * cancelled them or may have. `byRight` (the client may end them itself): also ends them if no
	 * upstream that has them can be reached. The reconciler then cancels them later, in the sender's
	 * name if it is `bySender`.
	 *
	 * Resolves when the end is on disk and at least one upstream has cancelled them, or none has
	 * them. Throws the verdict if all that answered rejected it, else RpcError `unavailable` with the
	 * reason.
	 */
	async #cancelEverywhere(
		siblings: readonly Row[],
		ask: Pick<CancelAsk, "tx" | "byRight" | "asksRelay">,
		bySender: boolean,
		state: RequestState,
	): Promise<void> {
		const { rows, reconciler, clock } = this.#dependencies;
		const change = (how: (row: Row) => Row): void => {
			for (const { hash } of siblings) rows.change(hash, how);
		};
		change(beginRequest);
		try {
			const { outcomes: all, asked } = await reconciler.cancelNow({ rows: siblings, ...ask, state });
			const outcomes = new Map(all);
			const [row] = siblings;
			const relays = outcomes.get("relay");
			if (row !== undefined && relays !== undefined && ask.tx === null && ask.byRight)
				outcomes.set("relay", await this.#checked(relays, row, state));
			const now = siblings.map((one) => rows.live(one.hash) ?? one);
			const isSoft = ask.tx !== null;
			const nature = { byRight: ask.byRight, bySender, isSoft, asked, now: clock.now() };
			const { abandonedBy, laterAt, answer } = cancelEnd(now, outcomes, nature);
			for (const name of abandonedBy) change((one) => markAbandoned(one, name));
			if (laterAt !== null) {
				const isOwners = ask.byRight && !bySender;
				change((one) => ({ ...one, bySender, owners: isOwners ? allTakenBack(one.owners) : one.owners }));
				for (const one of siblings) rows.end(one, "cancelled", laterAt);
				const written = await Promise.all(siblings.map(({ hash }) => rows.written(hash)));
				if (written.includes(false)) throw unavailable(UNWRITTEN);
			}

			if (answer === "cannot") throw cannotCancel(siblings, ask.tx);
			if (answer === "stillWanted") throw stillWanted();
			if (answer === "unreached") throw unavailable(UNREACHED);
			if (answer === "holderIsOut") throw unavailable("the upstream that has it is down");
			if (answer !== "done") throw verdictError(answer);
			// Another boost instance may have sent them elsewhere in between.
			if (siblings.some(({ hash }) => this.#isOpenNow(hash))) throw unavailable(UNREACHED);
		} finally {
			change((row) => endRequest(row));
		}
	}

	/**
	 * Withdraws one of several requests at the relay. A relay that does not have the transaction
	 * keeps no record of an end, since the other owners want it.
	 */
	async #takenBackAtRelay(row: Row, state: RequestState): Promise<CancelOutcome> {
		const outcome = await this.#dependencies.reconciler.cancelAtRelay(row.hash, null, state);
		if (outcome.kind !== "rejected") return outcome;
		// It did not know this owner. It gets the owners with the next report, followed by the cancel.
		if (this.#wereOwnersPending(row)) return { kind: "unsure" };
		const isUnknown = (await this.#stageAtRelay(row, state)) === null;
		return isUnknown ? { kind: "done", isStillWanted: true } : outcome;
	}

	/**
	 * Whether the relay may not have known all owners when it was asked. `row`: as it was then, since
	 * they may have been reported meanwhile.
	 */
	#wereOwnersPending(row: Row): boolean {
		return row.ownersPending || this.#dependencies.rows.live(row.hash)?.ownersPending === true;
	}

	/**
	 * Interprets the relay's answer to the last owner that wants the transaction. The relay may not
	 * have known this owner, or not know yet that the others have withdrawn. Then it is cancelled for
	 * each of them, while the reconciler reports no owners.
	 */
	async #checked(outcome: CancelOutcome, row: Row, state: RequestState): Promise<CancelOutcome> {
		const { rows, reconciler } = this.#dependencies;
		const { hash, from } = row;
		const { requestId } = state.caller;
		const wasUnknown = outcome.kind === "rejected" && this.#wereOwnersPending(row);
		if (!wasUnknown && !(outcome.kind === "done" && outcome.isStillWanted)) return outcome;
		const release = await reconciler.hold(from);
		try {
			let last = outcome;
			for (const { address } of rows.live(hash)?.owners ?? row.owners) {
				if (address === null) continue;
				const caller = onBehalfOf({ address, requestId });
				const next = await reconciler.cancelAtRelay(hash, null, { ...state, caller });
				if (next.kind === "done" && (last.kind !== "done" || last.isStillWanted)) last = next;
			}
			// It gets the owners with the next report, followed by the cancel.
			const isUnknown = last.kind === "rejected" && rows.live(hash)?.ownersPending === true;
			return isUnknown ? { kind: "unsure" } : last;
		} finally {
			release();
		}
	}

	/**
	 * Forwards the cancel to the relay, which may know the hash from a direct submission or from
	 * another path.
	 */
	async #askRelay(hash: string, state: RequestState): Promise<true> {
		const outcome = await this.#dependencies.reconciler.cancelAtRelay(hash, null, state);
		if (outcome.kind === "rejected") throw verdictError(outcome.error);
		if (outcome.kind === "unsure") throw unavailable(NO_ANSWER);
		if (outcome.kind !== "done") throw new RpcError("rejected", NOT_HERE);
		if (outcome.isStillWanted) throw stillWanted();
		return true;
	}

	/** Whether the relay reports that a builder has mined the cancelled transaction. */
	async #isMined(row: Row, state: RequestState): Promise<boolean> {
		if (this.#dependencies.upstreams.relay.breaker.isUnavailable) return false;
		const stage = await this.#stageAtRelay(row, state);
		return MINED_STAGES.some((mined) => mined === stage);
	}

	/** Its stage at the relay: null if the relay has no record, undefined without an answer. */
	async #stageAtRelay({ hash }: Pick<Row, "hash">, state: RequestState): Promise<string | null | undefined> {
		const { upstreams, failover } = this.#dependencies;
		const { relay } = upstreams;
		const { caller, routing } = state;
		const { deadlineMs, anyway } = cancelReach(relay.breaker.isUnavailable, failover.leftMs(state));
		const answer = await relay.call(stagesCall([hash]), { deadlineMs, anyway, caller, routing });
		return relayStages(answer)?.[0]?.stage;
	}
}

/** Why a cancel at the fallback is impossible. Only a fallback may have no cancel. */
function cannotCancel([row]: readonly Row[], tx: DecodedTransaction | null): RpcError {
	return tx === null
		? new RpcError("rejected", `the fallback has it: send a self-transfer with nonce ${row?.nonce}`)
		: unavailable("the fallback has it and offers no free cancel");
}

function stillWanted(): RpcError {
	return new RpcError("rejected", STILL_WANTED, { reason: STILL_WANTED_REASON });
}

/** Returns the error for a refusing `action`; null for any other. */
function refusalOf(action: CancelAction): RpcError | null {
	switch (action) {
		case "notPending":
			return notPending();
		case "notHere":
			return new RpcError("rejected", NOT_HERE);
		case "notBelieved":
			return unavailable(NOT_BELIEVED);
		case "notAnswered":
			return unavailable(NOT_ANSWERED);
		case "isUnreached":
			return unavailable(UNREACHED);
	}
	return null;
}

/** The answer for a hash that this client may not cancel. */
function notPending(): RpcError {
	return new RpcError("rejected", NOT_CANCELLABLE);
}
