// Accepts signed transactions: a client gets the hash once an upstream has acknowledged it and its row is on disk (or the
// journal fails or takes too long, which is logged). Replaces earlier transactions of the nonce; the reconciler does the rest.

import { type Clock, DeadlineError, withDeadline } from "../../shared/clock.ts";
import {
	type DecodedTransaction,
	decodeTransaction,
	isSelfTransfer,
} from "../../shared/ethereum/transaction.ts";
import { readSubmissionQuery } from "../../shared/http/submissionQuery.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { LogFields, Logger } from "../../shared/log.ts";
import type { OverShare } from "../../shared/shares/shares.ts";
import type { Upstream, Upstreams } from "../domain/ports.ts";
import { mayHave, type RequestState, type UpstreamName, type WireVerdict } from "../domain/request.ts";
import {
	endRequest,
	holdersOf,
	isFinal,
	isHolder,
	markHeld,
	markMaybeHeld,
	markNotHeld,
	type Row,
	setReplacementPending,
} from "../domain/row.ts";
import { isFallbackFirst, mustComeBefore } from "../reconcile/plan.ts";
import type { Rows } from "../rows/rows.ts";
import type { Cancels } from "./cancels.ts";
import { type Failover, unavailable, verdictError } from "./failover.ts";

/** An accepted transaction. */
export interface Submitted {
	readonly tx: DecodedTransaction;
	/** True for a soft cancel, which is never mined itself. */
	readonly cancels: boolean;
}

/** How a submission ended, for the metrics. */
export const SUBMISSION_OUTCOMES = ["acknowledged", "known", "cancels", "rejected", "unavailable"] as const;
export type SubmissionOutcome = (typeof SUBMISSION_OUTCOMES)[number];

const LOG_LINES: Readonly<Record<SubmissionOutcome, string>> = {
	acknowledged: "transaction accepted",
	known: "transaction known",
	cancels: "soft cancel taken",
	rejected: "transaction refused",
	unavailable: "transaction refused: no relay available",
};

export interface SubmissionsDependencies {
	readonly rows: Rows;
	readonly upstreams: Upstreams;
	readonly failover: Failover;
	readonly cancels: Cancels;
	readonly clock: Clock;
	readonly log: Logger;
	readonly onOutcome?: (path: string, outcome: SubmissionOutcome) => void;
}

/** The relay's message for its pool. */
const CLIENT_FULL = "too many pending transactions from this client";
/** How long the journal is waited for once an upstream has acknowledged, in ms. */
const JOURNAL_MS = 2_000;

export class Submissions {
	readonly #dependencies: SubmissionsDependencies;
	/** By hash: concurrent submissions of the same bytes share one result. */
	readonly #running = new Map<string, Promise<Submitted>>();
	/** By sender and nonce: submissions of one nonce are handled one after another. */
	readonly #nonces = new Map<string, Promise<unknown>>();

	constructor(dependencies: SubmissionsDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * Accepts `raw`. Throws RpcError `rejected` or ForeignRpcError for a verdict, `invalidParams` for a bad query, `limit` if the
	 * client has used up its share of the journal, `unavailable` if no upstream gave a verdict or the journal is full.
	 */
	async submit(raw: Uint8Array, state: RequestState): Promise<Submitted> {
		const softCancellations = softCancellable(state);
		const decoded = decodeTransaction(raw);
		if (!decoded.ok) {
			const { message, reason: detail } = decoded;
			const data = detail === "oversized" ? { reason: "OVERSIZED" } : { reason: "UNDECODABLE", detail };
			throw new RpcError("rejected", message, data);
		}
		const { tx } = decoded;
		const running = this.#running.get(tx.hash);
		if (running !== undefined) {
			state.routing.answeredBy.add("journal");
			return running;
		}
		const submission = this.#submit(tx, softCancellations, state);
		this.#running.set(tx.hash, submission);
		try {
			return await submission;
		} finally {
			this.#running.delete(tx.hash);
		}
	}

	async #submit(tx: DecodedTransaction, softCancellations: boolean, state: RequestState): Promise<Submitted> {
		const key = `${tx.from} ${tx.nonce}`;
		// One at a time for each nonce, so that the second finds the first one in the journal.
		for (let before = this.#nonces.get(key); before !== undefined; before = this.#nonces.get(key)) {
			if (!(await this.#ended(before, this.#dependencies.failover.leftMs(state)))) {
				throw unavailable("another transaction of the same nonce is still under way");
			}
		}
		const submission = this.#submitAlone(tx, softCancellations, state);
		const settled = submission.catch(() => {}).then(() => this.#nonces.delete(key));
		this.#nonces.set(key, settled);
		return submission;
	}

	async #submitAlone(
		tx: DecodedTransaction,
		softCancellations: boolean,
		state: RequestState,
	): Promise<Submitted> {
		const { rows, cancels } = this.#dependencies;
		const known = rows.get(tx.hash);
		// The same bytes do not revive a transaction that its user ended or that was mined.
		if (known !== null && isFinal(known)) {
			state.routing.answeredBy.add("journal");
			this.#note(state, tx.hash, "known");
			return { tx, cancels: known.desired === "cancelled" };
		}
		const siblings = rows.liveOf(tx.from, tx.nonce).filter(({ hash }) => hash !== tx.hash);
		if (siblings.some((one) => one.softCancellations) && isSelfTransfer(tx)) {
			await cancels.soft(tx, siblings, state);
			this.#note(state, tx.hash, "cancels");
			return { tx, cancels: true };
		}
		await this.#send(tx, siblings, softCancellations, state);
		return { tx, cancels: false };
	}

	/** Sends it to one upstream after another until one gives a verdict. */
	async #send(
		tx: DecodedTransaction,
		siblings: readonly Row[],
		softCancellations: boolean,
		state: RequestState,
	): Promise<void> {
		const { rows, failover, clock } = this.#dependencies;
		const { path, search, caller, routing, whole } = state;
		const { hash, from, nonce, raw } = tx;
		const order = this.#order(tx, siblings, state);
		const earlier = rows.live(hash);
		const row = {
			hash,
			from,
			nonce,
			raw,
			path,
			search,
			softCancellations,
			address: caller.address,
			receivedAt: clock.now(),
			replacesAtUpstreams: siblings.flatMap(holdersOf),
		};
		// A transaction that the journal has no room for is not sent.
		const refusal = rows.refusal(row);
		if (refusal !== null) throw this.#noRoom(state, hash, refusal);
		const isNew = earlier?.acknowledged !== true;
		const isAbsentAt = (by: UpstreamName): void => {
			if (earlier === null || !isHolder(earlier.at[by])) rows.change(hash, (one) => markNotHeld(one, by));
		};
		rows.add(row, order[0].name);
		let error: WireVerdict | null = null;
		for (const [i, upstream] of order.entries()) {
			const { name } = upstream;
			await this.#deliverLowerNonces(tx, upstream, state);
			// Its user may have ended it meanwhile.
			const now = rows.get(hash);
			if (now !== null && isFinal(now)) {
				this.#requestOver(hash, isNew, true);
				this.#note(state, hash, "known");
				return;
			}
			const deadlineMs = failover.shareMs("submission", order, i, state);
			const options = { deadlineMs, caller, routing, whole };
			const delivering = deadlineMs === 0 ? Promise.resolve(null) : upstream.deliver(row, options);
			const delivery = await delivering.catch((thrown: unknown) => {
				// A fault of ours; while a request counts as under way nobody else sees to the row.
				this.#requestOver(hash, isNew, false);
				throw thrown;
			});
			if (delivery?.kind === "acknowledged") {
				routing.answeredBy.add(name);
				await this.#acknowledged(tx, siblings, name, isNew);
				this.#note(state, hash, "acknowledged", { upstream: name });
				return;
			}
			if (delivery?.kind === "rejected") {
				routing.answeredBy.add(name);
				isAbsentAt(name);
				await this.#refused(hash, isNew);
				this.#note(state, hash, "rejected", { upstream: name, code: delivery.error.code });
				throw verdictError(delivery.error);
			}
			if (delivery !== null && mayHave(delivery)) rows.change(hash, (one) => markMaybeHeld(one, name));
			else isAbsentAt(name);
			if (delivery?.kind === "failed" && delivery.error !== undefined) error = delivery.error;
		}
		await this.#refused(hash, isNew);
		throw this.#noVerdict(state, hash, error);
	}

	/** A refusal must be on disk before its client gets it: otherwise a restart would send the transaction again. */
	async #refused(hash: string, isNew: boolean): Promise<void> {
		this.#requestOver(hash, isNew, false);
		await this.#written([{ hash }]);
	}

	/** A transaction that was acknowledged before stays acknowledged, whatever the result of this request. */
	#requestOver(hash: string, isNew: boolean, acknowledged: boolean): void {
		if (isNew) this.#dependencies.rows.change(hash, (one) => endRequest(one, acknowledged));
	}

	/** Marks it acknowledged and its siblings replaced, and waits for the journal. */
	async #acknowledged(
		tx: DecodedTransaction,
		siblings: readonly Row[],
		by: UpstreamName,
		isNew: boolean,
	): Promise<void> {
		const { rows, log } = this.#dependencies;
		rows.change(tx.hash, (one) => {
			const held = setReplacementPending(markHeld(one, by), by, false);
			return isNew ? endRequest(held, true) : held;
		});
		for (const sibling of siblings) {
			const others = holdersOf(rows.get(sibling.hash) ?? sibling).filter((name) => name !== by);
			rows.end(sibling, "replaced", others);
		}
		// If the journal fails or takes too long, the client still gets the hash.
		const inTime = await this.#written([tx, ...siblings]);
		if (!inTime || !rows.isDurable || rows.live(tx.hash) === null) {
			log.error("acknowledged without the journal", { hash: tx.hash });
		}
	}

	/** Waits for the journal; false if that takes too long. */
	#written(rows: readonly { readonly hash: string }[]): Promise<boolean> {
		return this.#ended(
			Promise.all(rows.map(({ hash }) => this.#dependencies.rows.written(hash))),
			JOURNAL_MS,
		);
	}

	/** Whether `work` settled within `ms`. */
	#ended(work: Promise<unknown>, ms: number): Promise<boolean> {
		return withDeadline(this.#dependencies.clock, "it", ms, () => work).then(
			() => true,
			(thrown) => !(thrown instanceof DeadlineError),
		);
	}

	/** The upstreams to try, in order. It depends on the rows of the same nonce, or else on the account's other rows. */
	#order(
		tx: DecodedTransaction,
		siblings: readonly Row[],
		state: RequestState,
	): readonly [Upstream, ...Upstream[]] {
		const { rows, upstreams } = this.#dependencies;
		const { relay, fallback } = upstreams;
		if (fallback === null || fallback.refusal(state.path) !== null) return [relay];
		const known = siblings.length > 0 ? siblings : rows.liveOf(tx.from);
		return isFallbackFirst(known) && !fallback.breaker.isUnavailable ? [fallback, relay] : [relay, fallback];
	}

	/** Before the fallback gets `tx` in place of an unavailable relay, it gets the account's lower nonces. */
	async #deliverLowerNonces(tx: DecodedTransaction, upstream: Upstream, state: RequestState): Promise<void> {
		const { rows, failover, upstreams } = this.#dependencies;
		const { name } = upstream;
		if (name !== "fallback" || upstream.breaker.isUnavailable) return;
		for (const row of rows.liveOf(tx.from)) {
			if (!upstreams.relay.breaker.isUnavailable) return;
			if (!mustComeBefore(row, tx.nonce, name) || upstream.refusal(row.path) !== null) continue;
			const raw = await rows.raw(row.hash).catch(() => null);
			if (raw === null || rows.live(row.hash) === null) continue;
			const options = { deadlineMs: failover.leftMs(state) / 4, caller: null, whole: null };
			const delivery = await upstream.deliver({ ...row, raw }, options);
			if (delivery === null || (delivery.kind !== "acknowledged" && !mayHave(delivery))) return;
			const isSure = delivery.kind === "acknowledged";
			rows.change(row.hash, (one) => (isSure ? markHeld(one, name) : markMaybeHeld(one, name)));
		}
	}

	#noVerdict(state: RequestState, hash: string, error: WireVerdict | null): Error {
		this.#note(state, hash, "unavailable");
		const { relay, fallback } = this.#dependencies.upstreams;
		if (error !== null) return verdictError(error);
		const refusal = fallback?.refusal(state.path) ?? null;
		if (fallback === null) return unavailable("the relay is out, and there is no fallback");
		if (refusal !== null) return unavailable(refusal);
		return unavailable(
			relay.breaker.isUnavailable && fallback.breaker.isUnavailable
				? "the relay and the fallback are out"
				: "neither the relay nor the fallback gave a verdict",
		);
	}

	#noRoom(state: RequestState, hash: string, refusal: OverShare): RpcError {
		this.#note(state, hash, refusal === "client" ? "rejected" : "unavailable");
		return refusal === "client"
			? new RpcError("limit", CLIENT_FULL, { reason: "CLIENT_FULL", scope: "client" })
			: unavailable("the journal is full");
	}

	#note({ path }: RequestState, hash: string, outcome: SubmissionOutcome, by: LogFields = {}): void {
		const { onOutcome, log } = this.#dependencies;
		onOutcome?.(path, outcome);
		log.info(LOG_LINES[outcome], { hash, path, ...by });
	}
}

/** Whether a self-transfer with its nonce cancels it for free. Throws RpcError `invalidParams` for a bad query. */
function softCancellable({ path, search }: RequestState): boolean {
	if (search === "") return false;
	return readSubmissionQuery(new URLSearchParams(search)).softCancellations && path === "noreverts";
}
