// The only place from which transactions and cancels leave boost. It carries out the plan's
// decisions, and changes the rows by their outcomes.

import type { EndsTransactions } from "../../shared/client.ts";
import type { Clock } from "../../shared/clock.ts";
import type { RpcAnswer } from "../../shared/jsonrpc/client.ts";
import { RPC_ERRORS } from "../../shared/jsonrpc/errors.ts";
import type { Logger } from "../../shared/log.ts";
import { NOT_CANCELLABLE, STILL_WANTED_REASON, standingCount } from "../../shared/ownership.ts";
import { withAgain } from "../../shared/submissionQuery.ts";
import { attemptMs, cancelReach, leftMs } from "../domain/budget.ts";
import {
	type Attempt,
	delayRetry,
	MAX_WAIT_MS,
	markAnswered,
	markAsBefore,
	markAsked,
	markGiven,
	markHeld,
	markRejected,
	markUnanswered,
	mayStillCome,
} from "../domain/deliveries.ts";
import { ABSENT } from "../domain/deliveryState.ts";
import { isEndedBySome, markOwnersReported } from "../domain/owners.ts";
import {
	type Claim,
	LostRaceError,
	type OtherBoosts,
	type Sendable,
	UnknownElsewhereError,
	type Upstream,
	type Upstreams,
} from "../domain/ports.ts";
import {
	type BoostPath,
	type Caller,
	type Delivery,
	mayHave,
	onBehalfOf,
	type RequestState,
	type UpstreamName,
	type WireVerdict,
} from "../domain/request.ts";
import {
	isAttemptedSince,
	isHolder,
	isLive,
	type Row,
	setCancelPending,
	setReplacementPending,
} from "../domain/row.ts";
import type { Rows } from "../rows/rows.ts";
import type { CancelAsk, CancelOutcome, SubmitAsk, Tried } from "./asks.ts";
import { type Cancel, type CancelNow, countsAsThere, type Send, type Submit } from "./plan.ts";
import type { Situation } from "./situation.ts";

/** Result of a delivery by the reconciler; `failed`: no verdict. */
export const HANDOVER_OUTCOMES = ["acknowledged", "rejected", "failed"] as const;
export type HandoverOutcome = (typeof HANDOVER_OUTCOMES)[number];

export interface SenderDependencies {
	readonly rows: Rows;
	readonly upstreams: Upstreams;
	readonly others: OtherBoosts;
	readonly clock: Clock;
	readonly log: Logger;
	readonly onHandover?: (handover: { readonly to: UpstreamName; readonly outcome: HandoverOutcome }) => void;
}

/** The shortest pause for an upstream that rate-limits boost, in ms. */
const PAUSE_MS = 1_000;
/** Rate limit and internal error: no verdict on the transaction. */
const LIMIT = RPC_ERRORS.limit.code;
const INTERNAL = RPC_ERRORS.internal.code;
/** The first byte of a blob transaction. */
const BLOB_TYPE = 3;
const CANCEL_METHOD = "eth_cancelTransaction";
/** The meaning of a fallback's answer to a cancel other than true. */
const NOT_CANCELLED = { code: -32000, message: NOT_CANCELLABLE };

export class Sender {
	/** The total time of a request, in ms. */
	readonly #budgetMs: number;
	readonly #dependencies: SenderDependencies;
	readonly #situation: Situation;
	#stopped = false;

	constructor(
		options: { readonly budgetMs: number },
		dependencies: SenderDependencies,
		situation: Situation,
	) {
		this.#budgetMs = options.budgetMs;
		this.#dependencies = dependencies;
		this.#situation = situation;
	}

	/** Starts nothing more for boost itself. */
	stop(): void {
		this.#stopped = true;
	}

	/** Sends a row for boost itself. */
	async send({ row, need, to }: Send, raw: Buffer, deadlineMs: number): Promise<void> {
		const { onHandover, log } = this.#dependencies;
		const { hash } = row;
		const request = row.requestId ?? undefined;
		const upstream = this.#upstream(to);
		if (need === "owners") return this.#tellOwners(upstream, row, raw, deadlineMs);
		const caller = inNameOf(row, firstStanding(row));
		const attempt = await this.#claimed(row, to);
		if (attempt === null) return;
		const delivery = await upstream.deliver(sendable(row, raw, upstream), { deadlineMs, caller });
		this.#end(hash, attempt, delivery);
		if (delivery?.kind === "acknowledged" && upstream.dialect === null && row.owners.length > 1) {
			// The relay does not know the owners that have cancelled, so only the others count.
			this.#dependencies.rows.changeLive(hash, (one) => ({
				...one,
				ownersPending: standingCount(one.owners) > 1,
			}));
		}
		const time = this.#situation.time();
		if (delivery === null) {
			this.#dependencies.rows.changeLive(hash, (one) => delayRetry(one, to, time));
		} else if (delivery.kind === "acknowledged") {
			onHandover?.({ to, outcome: "acknowledged" });
			log.info("transaction forwarded", { hash, request, upstream: to });
			this.#markReached(to, row, (one) => setReplacementPending(markHeld(one, to), to, false));
		} else if (delivery.kind === "rejected" && delivery.error.code !== LIMIT) {
			onHandover?.({ to, outcome: "rejected" });
			const { code } = delivery.error;
			log.warn("upstream rejected a forwarded transaction", {
				upstream: to,
				hash,
				request,
				reason: need,
				code,
			});
			this.#dependencies.rows.changeLive(hash, (one) => markRejected(one, to, time));
		} else {
			onHandover?.({ to, outcome: "failed" });
			this.#markFailed(upstream, row, delivery);
		}
	}

	/**
	 * Sends a client's transaction within its time. An acknowledgement also changes the row's owners
	 * and siblings, so the request handles it.
	 */
	async submit({ to, others }: Submit, { tx, agreed, nonce, state }: SubmitAsk): Promise<Tried> {
		const { rows, clock } = this.#dependencies;
		const { caller, routing } = state;
		const { hash } = tx;
		const attempt = this.#begin(hash, to, markGiven);
		const claim = rows.claimed(hash);
		if (claim !== "won") await this.#mustHave(claim, hash, attempt);
		// The upstream verifies blobs first, which takes seconds.
		const kind = tx.raw[0] === BLOB_TYPE ? "read" : "submission";
		const deadlineMs = attemptMs(kind, this.#budgetMs, leftMs(state, clock.monotonic()), others);
		// The relay may not have got yet what this replaces.
		const earlier = rows.liveOf(tx.from, nonce).filter((row) => row.hash !== hash);
		const ends = earlier.length === 0 ? undefined : ended("replaces", earlier);
		const options = { deadlineMs, caller, routing, ends };
		const delivery = await this.#upstream(to).deliver(to === "relay" ? tx : agreed, options);
		if (delivery?.kind === "acknowledged" || delivery?.kind === "rejected") routing.answeredBy.add(to);
		if (delivery?.kind === "acknowledged") return { by: to, delivery, attempt };
		this.#end(hash, attempt, delivery);
		// Its user may have ended it in between. It must then be cancelled there.
		if (delivery !== null && mayHave(delivery))
			rows.change(hash, (row) => markGiven(row, to, row.at[to].askedAt));
		return { by: to, delivery };
	}

	/**
	 * Resolves when a client's transaction may be sent. Throws LostRaceError if another instance has
	 * written its account, and UnknownElsewhereError if one may have.
	 */
	async #mustHave(claiming: Claim | Promise<Claim>, hash: string, attempt: Attempt): Promise<void> {
		const { rows } = this.#dependencies;
		const claim = await claiming;
		if (this.#maySend(claim)) return;
		if (claim === "lost") throw new LostRaceError();
		rows.change(hash, (row) => markAsBefore(row, attempt));
		throw new UnknownElsewhereError("this transaction");
	}

	/**
	 * An attempt of boost itself; null: it may not send the row. The attempt is on disk first, so
	 * that a cancel at any boost instance goes there too. Our relay remembers a cancel, so it is
	 * enough that it gets one; a fallback remembers none.
	 */
	async #claimed({ hash, at }: Row, to: UpstreamName): Promise<Attempt | null> {
		const { rows } = this.#dependencies;
		if (to === "relay" && isHolder(at.relay)) return this.#begin(hash, to, markGiven);
		const attempt = this.#begin(hash, to, markAsked);
		const claim = await rows.claimed(hash);
		if (this.#maySend(claim)) return attempt;
		if (claim === "failed")
			rows.changeLive(hash, (one) => delayRetry(markAsBefore(one, attempt), to, this.#situation.time()));
		return null;
	}

	/** Begins an attempt, by `begun`. */
	#begin(
		hash: string,
		to: UpstreamName,
		begun: (row: Row, to: UpstreamName, askedAt: number) => Row,
	): Attempt {
		const { rows, clock } = this.#dependencies;
		const attempt = { by: to, askedAt: 0, before: ABSENT };
		// Made again if another boost instance was faster: what it has done there is not undone.
		rows.change(hash, (row) => {
			attempt.before = row.at[to];
			attempt.askedAt = Math.max(clock.now(), row.at[to].askedAt + 1);
			return begun(row, to, attempt.askedAt);
		});
		return attempt;
	}

	/** Ends an attempt, unless the upstream may have got it without an answer. */
	#end(hash: string, attempt: Attempt, delivery: Delivery | null): void {
		if (delivery !== null && mayHave(delivery)) return;
		const isAnswered = delivery?.kind === "acknowledged";
		this.#dependencies.rows.change(hash, (row) =>
			isAnswered ? markAnswered(row, attempt) : markAsBefore(row, attempt),
		);
	}

	/** An instance that no other one was known beside carries on while the database fails. */
	#maySend(claim: Claim): boolean {
		return claim === "won" || (claim === "failed" && this.#dependencies.others.wasAlone);
	}

	/** Carries out the plan for an ended row. A cancel is repeated until the upstream answers. */
	async cancel({ kind, row, to }: Cancel, deadlineMs: number): Promise<void> {
		const isOver = kind === "forget" || (await this.#cancel(this.#upstream(to), row, deadlineMs));
		const time = this.#situation.time();
		this.#dependencies.rows.change(row.hash, (one) => {
			if (isLive(one)) return one;
			if (!isOver) return delayRetry(one, to, time);
			// Another boost instance may have sent it there since.
			const isAgain = kind === "cancel" && isAttemptedSince(one, row, to);
			return isAgain ? one : setCancelPending(one, to, false);
		});
	}

	/** Sends a client's cancel within its time. Changes no row. */
	async cancelNow({ kind, row, to }: CancelNow, ask: CancelAsk): Promise<CancelOutcome> {
		const { tx, byRight, state } = ask;
		if (kind === "unreached") return { kind };
		if (kind === "forget") return { kind: "cannot" };
		const { caller, routing } = state;
		const upstream = this.#upstream(to);
		if (kind === "cancel") {
			const path = to === "relay" ? state.path : row.path;
			const own = byRight ? row : null;
			const outcome = await this.cancelByHash(to, { hash: row.hash, path, row: own }, state);
			// For another client only our relay's consent counts, and it gave none.
			return outcome.kind === "unsure" && !byRight ? { kind: "unreached" } : outcome;
		}
		if (tx === null) throw new TypeError("a soft cancel needs its transaction");
		const { path, search } = to === "relay" ? state : row;
		const sendable = { hash: tx.hash, from: tx.from, raw: tx.raw, path, search };
		const deadlineMs = this.#leftMs(state) / 2;
		const options = { deadlineMs, caller, routing, ends: ended("cancels", ask.rows) };
		const outcome = outcomeOf(await upstream.deliver(sendable, options));
		if (outcome.kind === "done" || outcome.kind === "rejected") routing.answeredBy.add(to);
		return outcome;
	}

	/** Sends a client's cancel by hash. `row`: its row, if the client owns it. */
	async cancelByHash(
		to: UpstreamName,
		{ hash, path, row }: { readonly hash: string; readonly path: BoostPath; readonly row: Row | null },
		state: RequestState,
	): Promise<CancelOutcome> {
		const upstream = this.#upstream(to);
		const { caller, routing } = state;
		const { deadlineMs, anyway } = cancelReach(upstream.breaker.isUnavailable, this.#leftMs(state));
		const ends = row === null ? undefined : ended("cancels", [row]);
		const options = { deadlineMs, anyway, caller, routing, path, ends };
		const answer = await this.#callCancel(upstream, hash, options);
		if (answer === null) return { kind: anyway ? "unreached" : "unsure" };
		routing.answeredBy.add(to);
		const isOurs = upstream.dialect === null;
		if (!answer.ok) {
			const { data } = answer.error;
			const { reason } = (data ?? {}) as { readonly reason?: unknown };
			const isStillWanted = isOurs && reason === STILL_WANTED_REASON;
			return isStillWanted ? { kind: "done", isStillWanted } : { kind: "rejected", error: answer.error };
		}
		const isTaken = isOurs || answer.result === true;
		return isTaken ? DONE : { kind: "rejected", error: NOT_CANCELLED };
	}

	#leftMs(state: RequestState): number {
		return leftMs(state, this.#dependencies.clock.monotonic());
	}

	#upstream(name: UpstreamName): Upstream {
		const upstream = this.#dependencies.upstreams[name];
		if (upstream === null) throw new TypeError(`there is no ${name}`);
		return upstream;
	}

	/**
	 * Submits it at our relay on behalf of each owner, on the path that applies to all of them. Then
	 * cancels for the owners that have withdrawn. Requests that the relay already knows change
	 * nothing there.
	 */
	async #tellOwners(relay: Upstream, row: Row, raw: Buffer, deadlineMs: number): Promise<void> {
		const { hash, owners } = row;
		for (const owner of [...owners].sort((one, other) => Number(one.cancelled) - Number(other.cancelled))) {
			if (this.#stopped) return;
			const caller = inNameOf(row, owner);
			const options = { deadlineMs, caller };
			const delivery = owner.cancelled ? null : await relay.deliver(sendable(row, raw, relay), options);
			const isOver = owner.cancelled
				? await this.#cancelAs(relay, row, caller, deadlineMs)
				: delivery?.kind === "acknowledged" ||
					(delivery?.kind === "rejected" && isFinalVerdict(delivery.error));
			if (isOver) continue;
			const time = this.#situation.time();
			this.#dependencies.rows.changeLive(hash, (one) => delayRetry(one, "relay", time));
			return;
		}
		this.#dependencies.rows.changeLive(hash, (one) => markHeld(markOwnersReported(one, owners), "relay"));
	}

	#markFailed({ name, dialect }: Upstream, row: Row, delivery: Delivery): void {
		const { retryAfterS = 0, fault = null } = delivery.kind === "failed" ? delivery : {};
		const retryMs = retryAfterS * 1_000;
		const time = this.#situation.time();
		if (mayHave(delivery)) this.#markReached(name, row, (one) => markUnanswered(one, name, time, retryMs));
		else this.#dependencies.rows.changeLive(row.hash, (one) => delayRetry(one, name, time, retryMs));
		// A fallback's limit concerns boost, not one client.
		if (fault === "limited" && dialect !== null)
			this.#situation.pause(name, Math.min(Math.max(retryMs, PAUSE_MS), MAX_WAIT_MS));
	}

	/**
	 * The upstream has or may have it, so it must also get a cancel or replacement that arrived in
	 * between.
	 */
	#markReached(by: UpstreamName, sent: Row, change: (row: Row) => Row): void {
		const { rows } = this.#dependencies;
		const row = rows.get(sent.hash);
		this.#dependencies.rows.changeLive(sent.hash, change);
		if (row !== null && row.desired !== "live" && row.desired !== "mined") {
			rows.end(row, row.desired, [by]);
		}
		for (const one of rows.liveOf(sent.from, sent.nonce)) {
			const isLater = one.hash !== sent.hash && one.receivedAt >= sent.receivedAt;
			if (!isLater || countsAsThere(one, by)) continue;
			this.#dependencies.rows.changeLive(one.hash, (sibling) => setReplacementPending(sibling, by, true));
		}
	}

	/**
	 * Whether the upstream gave a final answer; otherwise the cancel is sent again. Our relay gets
	 * the cancel on behalf of each owner, or of the sender, whose own replacement counts as a
	 * signature.
	 */
	async #cancel(upstream: Upstream, row: Row, deadlineMs: number): Promise<boolean> {
		if (upstream.dialect !== null) return this.#cancelAs(upstream, row, null, deadlineMs);
		if (row.bySender || row.desired === "replaced")
			return this.#cancelAs(upstream, row, onBehalfOf(row, { signer: row.from }), deadlineMs);
		if (row.owners.length === 0) return this.#cancelAs(upstream, row, onBehalfOf(row), deadlineMs);
		for (const owner of row.owners)
			if (!(await this.#cancelAs(upstream, row, inNameOf(row, owner), deadlineMs))) return false;
		return true;
	}

	/** A live row is cancelled for one of its owners only, so the relay keeps no end of it. */
	async #cancelAs(upstream: Upstream, row: Row, caller: Caller | null, deadlineMs: number): Promise<boolean> {
		const { hash, path } = row;
		const hasEnded = !isLive(row);
		const ends = hasEnded ? ended("cancels", [row]) : undefined;
		const options = { deadlineMs, caller, path, ends };
		const answer = await this.#callCancel(upstream, hash, options);
		const { rows, clock } = this.#dependencies;
		const isCancelled = answer?.ok === true && answer.result === true;
		// Another boost instance may have sent it there, too.
		const came = { asked: [row], isCancelled, isSoft: false, now: clock.now() };
		if (hasEnded && mayStillCome([rows.get(hash) ?? row], upstream.name, came)) return false;
		return answer?.ok === true || (answer?.ok === false && isFinalVerdict(answer.error));
	}

	#callCancel(
		upstream: Upstream,
		hash: string,
		options: Parameters<Upstream["call"]>[1],
	): Promise<RpcAnswer | null> {
		const { dialect } = upstream;
		const method = dialect === null ? CANCEL_METHOD : (dialect.cancelMethod ?? "");
		return upstream.call({ method, params: [hash] }, options);
	}
}

const DONE = { kind: "done", isStillWanted: false } as const;

function ended(how: EndsTransactions["how"], rows: readonly Row[]): EndsTransactions {
	const carried = rows.map(({ hash, from, nonce, fields: { to, gas, value } }) => {
		return { hash, from, nonce: nonce.toString(), to, gas, value };
	});
	return { how, carried };
}

/** The outcome of delivering a self-transfer that cancels. */
function outcomeOf(delivery: Delivery | null): CancelOutcome {
	if (delivery === null) return { kind: "unreached" };
	if (delivery.kind === "acknowledged") return DONE;
	if (delivery.kind === "rejected") return { kind: "rejected", error: delivery.error };
	return { kind: delivery.sent ? "unsure" : "unreached" };
}

function isFinalVerdict({ code }: WireVerdict): boolean {
	return code !== LIMIT && code !== INTERNAL;
}

type RowOwner = Row["owners"][number];

/**
 * The row as an upstream gets it. If some owners have ended it, the query marks it as submitted
 * again for our relay.
 */
function sendable(row: Row, raw: Buffer, { dialect }: Upstream): Sendable {
	if (dialect !== null || !isEndedBySome(row)) return { ...row, raw };
	return { ...row, raw, search: withAgain(row.search, row.hash) };
}

/** The first owner that has not cancelled. */
function firstStanding({ owners }: Row): RowOwner | undefined {
	return owners.find(({ cancelled }) => !cancelled);
}

/**
 * The caller on whose behalf the relay gets a row. A caller that owns nothing is charged as the
 * row's client.
 */
function inNameOf(row: Row, owner: RowOwner | undefined): Caller {
	const { address = row.address } = owner ?? {};
	const { requestId } = row;
	return onBehalfOf({ address: address ?? row.address, requestId }, { owns: address !== null });
}
