// Accepts signed transactions: writes the row, and lets the reconciler send it. A client gets the
// hash once an upstream has acknowledged it and its row is on disk. If the journal fails or takes
// too long, the client gets it anyway and that is logged. Earlier transactions of the nonce end as
// replaced. The reconciler sends the transaction to the upstreams that still need it.
//
// A soft cancel is a self-transfer with the nonce of a pending transaction that was submitted with
// `softCancellations`. It cancels that transaction at the upstreams that have it, goes only there,
// and is never mined itself.

import { type Clock, DeadlineError, within } from "../../shared/clock.ts";
import type { Fork } from "../../shared/ethereum/forks.ts";
import {
	belowIntrinsicGas,
	nonceAtMax,
	outsideFloorGas,
	tipAboveFeeCap,
	wrongChain,
} from "../../shared/ethereum/protocolRules.ts";
import {
	type DecodedTransaction,
	decodeTransaction,
	isSelfTransfer,
} from "../../shared/ethereum/transaction.ts";
import { readError } from "../../shared/jsonrpc/answers.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { LogFields, Logger } from "../../shared/log.ts";
import { CANCELLED_BY_OTHER, cancelledByOther, cancelsSoftly, type Owner } from "../../shared/ownership.ts";
import type { OverShare } from "../../shared/shares/shares.ts";
import { NO_QUERY, readSubmissionQuery, withoutAgain } from "../../shared/submissionQuery.ts";
import type { Traces } from "../../shared/tracing/traces.ts";
import { markHeld } from "../domain/deliveries.ts";
import { mayArrive } from "../domain/deliveryState.ts";
import { hasSubmitted, isRevivable, joinRow, ownersAnew, routeOf } from "../domain/owners.ts";
import { LostRaceError, type OtherBoosts, UnknownElsewhereError, type Upstreams } from "../domain/ports.ts";
import { type BoostPath, ownAddress, type RequestState, type Route } from "../domain/request.ts";
import {
	endRequest,
	holdersOf,
	isAnyCancelOpen,
	isFinal,
	isLive,
	type Row,
	setReplacementPending,
	shownFields,
} from "../domain/row.ts";
import type { Tried } from "../reconcile/asks.ts";
import type { Reconciler } from "../reconcile/reconciler.ts";
import type { Rows } from "../rows/rows.ts";
import { type Cancels, UNREACHED, UNWRITTEN } from "./cancels.ts";
import { type Failover, unavailable, verdictError } from "./failover.ts";

/** An accepted transaction. */
export interface Submitted {
	readonly tx: DecodedTransaction;
	/** True for a soft cancel. */
	readonly cancels: boolean;
}

/** A client's terms for a transaction. */
interface Wish {
	readonly owner: Owner<BoostPath>;
	/**
	 * The hash of a transaction that it submits again though another owner has cancelled it; null:
	 * none.
	 */
	readonly again: string | null;
}

/** How a submission ended, for the metrics. */
export const SUBMISSION_OUTCOMES = ["acknowledged", "known", "cancels", "rejected", "unavailable"] as const;
export type SubmissionOutcome = (typeof SUBMISSION_OUTCOMES)[number];

const LOG_LINES: Readonly<Record<SubmissionOutcome, string>> = {
	acknowledged: "transaction accepted",
	known: "transaction known",
	cancels: "soft cancel accepted",
	rejected: "transaction refused",
	unavailable: "transaction refused: no relay available",
};

export interface SubmissionsDependencies {
	readonly rows: Rows;
	readonly upstreams: Upstreams;
	readonly failover: Failover;
	/** Sends the transactions. */
	readonly reconciler: Reconciler;
	readonly cancels: Cancels;
	readonly others: OtherBoosts;
	/** Null until it is known. */
	readonly chainId: () => bigint | null;
	/** The fork whose rules apply in the next block. */
	readonly fork: () => Fork;
	readonly clock: Clock;
	readonly log: Logger;
	readonly traces: Traces;
	readonly onOutcome?: (path: string, outcome: SubmissionOutcome) => void;
}

/** The relay's own message when a client has used up its quota of the pool. */
const CLIENT_FULL = "too many pending transactions from this client";
const NOT_REPLACED =
	"it was cancelled before an upstream accepted it, so the transaction that it would replace stays";
/** Reasons in a transaction's own fields why no block can include it. */
const OWN_FAULTS = [tipAboveFeeCap, belowIntrinsicGas, outsideFloorGas, nonceAtMax];
/** The share of a request's time in which it may lose its account to other boost instances. */
const RACE_PART = 1 / 2;
/** How long a client's answer waits for the journal after an upstream's verdict, in ms. */
const JOURNAL_MS = 2_000;

export class Submissions {
	readonly #dependencies: SubmissionsDependencies;
	/** By hash, client and terms: concurrent equal submissions of one client get one result. */
	readonly #running = new Map<string, Promise<Submitted>>();
	/** By sender and nonce: submissions of one nonce are handled one after another. */
	readonly #nonces = new Map<string, Promise<unknown>>();

	constructor(dependencies: SubmissionsDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * Accepts `raw`. Throws RpcError `rejected` or ForeignRpcError for a verdict, and `invalidParams`
	 * for a bad query. Throws `limit` if the client has used up its quota of the journal. Throws
	 * `unavailable` if no upstream gave a final answer, the journal is full, or the state of other
	 * boost instances is unknown.
	 */
	async submit(raw: Uint8Array, state: RequestState): Promise<Submitted> {
		const query = state.search === "" ? NO_QUERY : readSubmissionQuery(new URLSearchParams(state.search));
		const decoded = decodeTransaction(raw);
		if (!decoded.ok) {
			const { message, reason: detail } = decoded;
			const data = detail === "oversized" ? { reason: "OVERSIZED" } : { reason: "UNDECODABLE", detail };
			throw new RpcError("rejected", message, data);
		}
		const { tx } = decoded;
		const { path, search, caller } = state;
		const owner: Owner<BoostPath> = {
			address: ownAddress(caller),
			paths: ONE_PATH[path],
			// The relay heeds it only on this path.
			softCancellations: query.softCancellations && path === "noreverts",
			refundRecipient: query.refundRecipient,
			referrer: query.referrer,
			isHidden: query.isHidden,
			builders: query.builders,
			cancelled: false,
		};
		const key = `${tx.hash} ${owner.address} ${path}?${search}`;
		const running = this.#running.get(key);
		if (running !== undefined) {
			state.routing.answeredBy.add("journal");
			return running;
		}
		const span = this.#dependencies.traces.submission("boost.submission", tx.hash, null);
		const submission = this.#submitInTurn(tx, { owner, again: query.again }, state);
		this.#running.set(key, submission);
		let outcome = "failed";
		try {
			const submitted = await submission;
			outcome = submitted.cancels ? "cancels" : "acknowledged";
			return submitted;
		} catch (thrown) {
			const stated = readError(thrown)?.outcome ?? outcome;
			// An upstream's own error.
			outcome = stated === "foreign" ? "rejected" : stated;
			throw thrown;
		} finally {
			this.#running.delete(key);
			span?.end({ request: caller.requestId ?? undefined, hash: tx.hash, path, outcome });
		}
	}

	async #submitInTurn(tx: DecodedTransaction, wish: Wish, state: RequestState): Promise<Submitted> {
		const key = `${tx.from} ${tx.nonce}`;
		// One at a time for each nonce, so that the second finds the first one's row.
		for (let before = this.#nonces.get(key); before !== undefined; before = this.#nonces.get(key)) {
			const leftMs = this.#dependencies.failover.leftMs(state);
			if (!(await this.#settlesWithin("the earlier submission", leftMs, before))) {
				throw unavailable("another transaction of the same nonce is still under way");
			}
		}
		const submission = this.#submitExclusively(tx, wish, state);
		this.#nonces.set(key, submission);
		try {
			return await submission;
		} finally {
			this.#nonces.delete(key);
		}
	}

	/** With the rows of its sender, again if another boost instance writes them in between. */
	async #submitExclusively(tx: DecodedTransaction, wish: Wish, state: RequestState): Promise<Submitted> {
		const { others, failover } = this.#dependencies;
		const { from, hash } = tx;
		const ms = failover.leftMs(state) * RACE_PART;
		// A soft cancel may end what another instance has sent.
		const isCareful = isSelfTransfer(tx);
		try {
			return await others.withRowsOf({ from, hash, ms, isCareful }, () => this.#submitHere(tx, wish, state));
		} catch (thrown) {
			if (thrown instanceof UnknownElsewhereError) this.#report(state, hash, "unavailable");
			throw thrown;
		}
	}

	async #submitHere(tx: DecodedTransaction, wish: Wish, state: RequestState): Promise<Submitted> {
		const { rows, cancels } = this.#dependencies;
		const { owner, again } = wish;
		const found = rows.find(tx.hash);
		const stored = found instanceof Promise ? await this.#recalled(found, tx.hash, state) : found;
		const siblings = rows.liveOf(tx.from, tx.nonce).filter(({ hash }) => hash !== tx.hash);
		const past = stored !== null && isFinal(stored) ? stored : null;
		// The same bytes do not revive a transaction that its user ended or that was mined. An end by
		// addresses applies only to them, unless the sender has replaced it since.
		const isAnothers =
			past !== null && isRevivable(past) && siblings.length === 0 && !hasSubmitted(past, owner.address);
		if (isAnothers && (again !== tx.hash || owner.address === null)) {
			state.routing.answeredBy.add("journal");
			this.#report(state, tx.hash, "rejected", { code: CANCELLED_BY_OTHER });
			throw new RpcError("rejected", cancelledByOther(tx.hash, owner.address), {
				reason: CANCELLED_BY_OTHER,
			});
		}
		if (past !== null && !isAnothers) {
			state.routing.answeredBy.add("journal");
			// A repeated soft cancel, whose first request an upstream may not have answered.
			const isSoftCancel = past.desired === "cancelled" && isSelfTransfer(tx);
			const isOpen = isSoftCancel && isAnyCancelOpen(rows.pendingCancels(), tx);
			if (isOpen || (isSoftCancel && !rows.isDurable)) {
				this.#report(state, tx.hash, "unavailable");
				throw unavailable(isOpen ? UNREACHED : UNWRITTEN);
			}
			this.#report(state, tx.hash, "known");
			return { tx, cancels: past.desired === "cancelled" };
		}
		this.#check(tx, siblings.length > 0, state);
		if (siblings.some((one) => cancelsSoftly(one.owners, owner.address)) && isSelfTransfer(tx)) {
			await cancels.soft(tx, siblings, state);
			this.#report(state, tx.hash, "cancels");
			return { tx, cancels: true };
		}
		await this.#send(tx, wish, { siblings, past }, state);
		return { tx, cancels: false };
	}

	/**
	 * A row that ended long ago is looked up on disk. Throws RpcError `unavailable` if that fails,
	 * since a transaction that its user ended must not be sent again.
	 */
	async #recalled(found: Promise<Row | null>, hash: string, state: RequestState): Promise<Row | null> {
		try {
			return await found;
		} catch {
			this.#report(state, hash, "unavailable");
			throw unavailable("the journal can't be read, in which this transaction has ended");
		}
	}

	/**
	 * Throws RpcError `rejected` for a transaction of another chain, which anybody may submit here.
	 * If it `ends` an earlier transaction, a block must be able to include it. Boost trusts no
	 * upstream about that, and waits until the chain is known.
	 */
	#check(tx: DecodedTransaction, ends: boolean, state: RequestState): void {
		const chainId = this.#dependencies.chainId();
		if (chainId === null && ends) {
			this.#report(state, tx.hash, "unavailable");
			throw unavailable("the chain id is not known yet, so a cancel or replacement can't be checked");
		}
		let rejected = chainId === null ? null : wrongChain(tx, chainId);
		if (ends) for (const rule of OWN_FAULTS) rejected ??= rule(tx, this.#dependencies.fork());
		if (rejected === null) return;
		state.routing.answeredBy.add("boost");
		this.#report(state, tx.hash, "rejected", { code: rejected.code });
		throw new RpcError("rejected", rejected.message, { reason: rejected.code });
	}

	/** Writes its row and lets the reconciler send it. The client gets the outcome. */
	async #send(
		tx: DecodedTransaction,
		{ owner, again }: Wish,
		/** `past`: its row, which other addresses have ended. */
		{ siblings, past }: { readonly siblings: readonly Row[]; readonly past: Row | null },
		state: RequestState,
	): Promise<void> {
		const { rows, reconciler, clock } = this.#dependencies;
		const { path, caller } = state;
		const { hash, from, nonce, raw } = tx;
		const stored = rows.live(hash);
		const search = again === null ? state.search : withoutAgain(state.search);
		const { softCancellations } = owner;
		const owners = ownersAnew(past, owner);
		const entry = {
			hash,
			from,
			nonce,
			fields: shownFields(tx),
			raw,
			...(past === null ? { path, search, softCancellations } : routeOf(owners)),
			address: caller.address,
			owners,
			receivedAt: clock.now(),
			requestId: caller.requestId,
			replacesAtUpstreams: siblings.flatMap(holdersOf),
		};
		// A transaction for which the journal has no room is not sent.
		const over = rows.exceeded(entry);
		if (over !== null) throw this.#noRoom(state, hash, over);
		// The relay derives the terms of all owners. A fallback gets the transaction with those terms.
		const route = stored?.acknowledged === true ? joinRow(stored, owner, "relay") : entry;
		const agreed = { hash, from, raw, path: route.path, search: route.search };
		// False if it was acknowledged before and is submitted again. It then stays acknowledged,
		// whatever the outcome.
		const opened = rows.add(entry) ? (rows.live(hash)?.id ?? null) : null;
		const version = rows.live(hash)?.version;
		const ask = {
			tx: { hash, from, raw, path, search: state.search },
			agreed,
			nonce,
			state,
		};
		const came = await reconciler.submitNow(ask).catch((thrown: unknown) => {
			// Otherwise the reconciler would leave the row alone for good. If another instance was
			// faster, its row does not count this request.
			const now = rows.live(hash);
			const isAnothers = thrown instanceof LostRaceError && now !== null && now.version !== version;
			if (!isAnothers) this.#endRequest(hash, opened, false, past);
			throw thrown;
		});
		const last = came.at(-1);
		if (last?.delivery?.kind === "acknowledged") {
			await this.#acknowledge(tx, siblings, last, opened === null ? owner : null);
			this.#report(state, hash, "acknowledged", { upstream: last.by });
			return;
		}
		if (last?.delivery?.kind === "rejected") {
			const { error } = last.delivery;
			await this.#endUnacknowledged(hash, opened, past);
			this.#report(state, hash, "rejected", { upstream: last.by, code: error.code });
			throw verdictError(error);
		}
		const now = rows.get(hash);
		if (now !== null && isFinal(now)) {
			// Its user has ended it in between.
			this.#endRequest(hash, opened, true, past);
			if (siblings.some((one) => rows.live(one.hash) !== null)) {
				this.#report(state, hash, "unavailable");
				throw unavailable(NOT_REPLACED);
			}
			this.#report(state, hash, "known");
			return;
		}
		await this.#endUnacknowledged(hash, opened, past);
		throw this.#noVerdict(state, hash, agreed, came);
	}

	/**
	 * An error must be on disk before its client gets it: otherwise a restart would send the
	 * transaction again.
	 */
	async #endUnacknowledged(hash: string, opened: number | null, past: Row | null): Promise<void> {
		this.#endRequest(hash, opened, false, past);
		await this.#written([{ hash }]);
	}

	/**
	 * Ends this request for the row that it opened, by its id; null: it opened none. `acknowledged`:
	 * whether its client gets a success. If not, the row that others had ended (`past`) is restored.
	 */
	#endRequest(hash: string, opened: number | null, acknowledged: boolean, past: Row | null): void {
		if (opened === null) return;
		this.#dependencies.rows.change(hash, (one) => {
			// Another boost instance has opened its own.
			if (isLive(one) && one.id !== opened) return one;
			const ended = endRequest(one, acknowledged);
			const isAsBefore = past !== null && isLive(ended) && !acknowledged && holdersOf(ended).length === 0;
			return isAsBefore ? { ...past, id: ended.id, requests: ended.requests } : ended;
		});
	}

	/**
	 * Marks it acknowledged and its siblings replaced, and waits for the journal. `joins`: the owner
	 * that joins an existing row; null: this request has opened the row.
	 */
	async #acknowledge(
		tx: DecodedTransaction,
		siblings: readonly Row[],
		{ by, attempt }: Tried,
		joins: Owner<BoostPath> | null,
	): Promise<void> {
		const { rows, log, clock } = this.#dependencies;
		rows.change(tx.hash, (one) => {
			const own = joins === null || !isLive(one) ? one : joinRow(one, joins, by);
			const held = setReplacementPending(markHeld(own, by, attempt), by, false);
			return joins === null ? endRequest(held, true) : held;
		});
		const isContested = rows.live(tx.hash)?.requests !== 0;
		for (const sibling of siblings) {
			const now = rows.get(sibling.hash) ?? sibling;
			// It has replaced nothing if its own cancel was faster. An attempt without an answer is late.
			const mayBeThere = isContested || mayArrive(now.at[by], clock.now());
			const cancelAt = holdersOf(now).filter((name) => name !== by || mayBeThere);
			rows.end(sibling, "replaced", cancelAt);
		}
		// If the journal fails or takes too long, the client still gets the hash.
		const inTime = await this.#written([tx, ...siblings]);
		if (!inTime || !rows.isDurable || rows.live(tx.hash) === null) {
			log.error("acknowledged without the journal", { hash: tx.hash });
		}
	}

	/** Waits for the journal; false if that takes too long. */
	#written(rows: readonly { readonly hash: string }[]): Promise<boolean> {
		const writes = rows.map(({ hash }) => this.#dependencies.rows.written(hash));
		if (writes.every((written) => written === true)) return Promise.resolve(true);
		return this.#settlesWithin("the journal", JOURNAL_MS, Promise.all(writes));
	}

	/** Whether `work` settled within `ms`. */
	#settlesWithin(label: string, ms: number, work: Promise<unknown>): Promise<boolean> {
		return within(this.#dependencies.clock, label, ms, work).then(
			() => true,
			(thrown) => !(thrown instanceof DeadlineError),
		);
	}

	/** The error of the last upstream that gave a reason, if any did. */
	#noVerdict(state: RequestState, hash: string, route: Route, came: readonly Tried[]): Error {
		this.#report(state, hash, "unavailable");
		const { relay, fallback } = this.#dependencies.upstreams;
		for (const { delivery } of came.toReversed())
			if (delivery?.kind === "failed" && delivery.error !== undefined) return verdictError(delivery.error);
		const unfit = fallback?.whyUnfit(route) ?? null;
		if (fallback === null) return unavailable("the relay is down, and there is no fallback");
		if (unfit !== null) return unavailable(unfit);
		return unavailable(
			relay.breaker.isUnavailable && fallback.breaker.isUnavailable
				? "the relay and the fallback are down"
				: "neither the relay nor the fallback accepted or rejected it",
		);
	}

	#noRoom(state: RequestState, hash: string, over: OverShare): RpcError {
		this.#report(state, hash, over === "client" ? "rejected" : "unavailable");
		return over === "client"
			? new RpcError("limit", CLIENT_FULL, { reason: "CLIENT_FULL", scope: "client" })
			: unavailable("the journal is full");
	}

	#report(
		{ path, caller }: RequestState,
		hash: string,
		outcome: SubmissionOutcome,
		by: LogFields = {},
	): void {
		const { onOutcome, log } = this.#dependencies;
		onOutcome?.(path, outcome);
		log.info(LOG_LINES[outcome], { hash, request: caller.requestId ?? undefined, path, ...by });
	}
}

/** Interned for all owners. */
const ONE_PATH: Readonly<Record<BoostPath, readonly BoostPath[]>> = {
	fast: ["fast"],
	noreverts: ["noreverts"],
};
