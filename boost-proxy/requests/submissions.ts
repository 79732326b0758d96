// Takes signed transactions: a client is told the hash once an upstream has acknowledged it and its row is on disk. Which
// upstream is asked first, and what the transaction means for those before it, is decided here; attempts are failover.ts's,
// and whatever is left to do afterwards is the reconciler's.

import type { Clock } from "../../shared/clock.ts";
import { type DecodedTransaction, decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { readSubmissionQuery } from "../../shared/http/submissionQuery.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { Logger } from "../../shared/log.ts";
import type { OverShare } from "../../shared/shares/shares.ts";
import { mayHave, type UpstreamName, type WireVerdict } from "../domain/delivery.ts";
import type { Rows, Sendable, Upstream, Upstreams } from "../domain/ports.ts";
import type { RequestState } from "../domain/request.ts";
import {
	has,
	holdersOf,
	isFinal,
	isHolder,
	mayHaveIt,
	notHeld,
	type Row,
	replacementDelivered,
	settled,
} from "../domain/row.ts";
import type { Cancels } from "./cancels.ts";
import { type Delivered, type Failover, unavailable, verdictError } from "./failover.ts";

/** A transaction that was taken. */
export interface Submitted {
	readonly tx: DecodedTransaction;
	/** True for a soft cancel: it is never mined itself. */
	readonly cancels: boolean;
}

/** How a submission ended, for the metrics. */
export const SUBMISSION_OUTCOMES = ["acknowledged", "known", "cancels", "rejected", "unavailable"] as const;
export type SubmissionOutcome = (typeof SUBMISSION_OUTCOMES)[number];

export interface SubmissionsDependencies {
	readonly rows: Rows;
	readonly upstreams: Upstreams;
	readonly failover: Failover;
	readonly cancels: Cancels;
	readonly clock: Clock;
	readonly log: Logger;
	readonly onOutcome?: (path: string, outcome: SubmissionOutcome) => void;
}

/** The relay says the same of its pool. */
const CLIENT_FULL = "too many pending transactions from this client";
/** How long the journal may take beyond the relay's word before that is enough, in ms. */
const JOURNAL_MS = 2_000;
const UNCHANGED = (row: Row): Row => row;

/** Takes transactions. */
export class Submissions {
	readonly #dependencies: SubmissionsDependencies;
	/** By hash: the same bytes at the same time are one submission. */
	readonly #running = new Map<string, Promise<Submitted>>();
	/** By sender and nonce: two of one nonce go one after another. */
	readonly #nonces = new Map<string, Promise<unknown>>();

	constructor(dependencies: SubmissionsDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * Takes `raw`. Throws RpcError `rejected` or ForeignRpcError for a verdict, `invalidParams` for a bad query, `limit`
	 * where the client has its share of the journal, `unavailable` where no upstream can be had or the journal is full.
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
			state.trail.answeredBy.add("journal");
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
		// One nonce at a time: who comes second shall find the first one in the journal.
		for (let before = this.#nonces.get(key); before !== undefined; before = this.#nonces.get(key)) {
			if (!(await this.#ended(before, this.#dependencies.failover.leftMs(state)))) {
				throw unavailable("another transaction of the same nonce is still under way");
			}
		}
		const turn = this.#inTurn(tx, softCancellations, state);
		const settled = turn.catch(() => {}).then(() => this.#nonces.delete(key));
		this.#nonces.set(key, settled);
		return turn;
	}

	async #inTurn(tx: DecodedTransaction, softCancellations: boolean, state: RequestState): Promise<Submitted> {
		const { rows, cancels } = this.#dependencies;
		const known = rows.get(tx.hash);
		// What the user ended is not revived by the same bytes, and what was mined is done.
		if (known !== null && isFinal(known)) {
			state.trail.answeredBy.add("journal");
			this.#note(state, "known");
			return { tx, cancels: known.desired === "cancelled" };
		}
		const siblings = rows.of(tx.from).filter((one) => one.nonce === tx.nonce && one.hash !== tx.hash);
		if (cancels.isSoft(tx, siblings)) {
			await cancels.soft(tx, siblings, state);
			this.#note(state, "cancels");
			return { tx, cancels: true };
		}
		await this.#send(tx, siblings, softCancellations, state);
		return { tx, cancels: false };
	}

	async #send(
		tx: DecodedTransaction,
		siblings: readonly Row[],
		softCancellations: boolean,
		state: RequestState,
	): Promise<void> {
		const { rows, failover, clock } = this.#dependencies;
		const { path, search, asker } = state;
		const sendable: Sendable = { hash: tx.hash, from: tx.from, raw: tx.raw, path, search };
		const order = this.#order(tx, siblings, state);
		const [first] = order;
		if (first === undefined) throw this.#nobody(state, null);
		const earlier = rows.live(tx.hash);
		const row = {
			address: asker.address,
			receivedAt: clock.now(),
			replacesAt: siblings.flatMap(holdersOf),
			...{ hash: tx.hash, from: tx.from, nonce: tx.nonce, raw: tx.raw, path, search, softCancellations },
		};
		// What could not be written down is not sent either.
		const refusal = rows.refusal(row);
		if (refusal !== null) throw this.#noRoom(state, refusal);
		const isNew = earlier?.acknowledged !== true;
		const written = rows.add(row, first.name).catch(() => false);
		let delivered: Delivered;
		try {
			delivered = await failover.deliver(
				...([sendable, order, state] as const),
				// Nobody waits for it where the transaction is refused.
				(by, tried) => {
					if (tried === "doubtful") this.#change(tx.hash, (one) => mayHaveIt(one, by));
					else this.#isAbsentAt(tx.hash, earlier, by);
				},
				async (upstream) => {
					await this.#bringLower(tx, upstream, state);
					// Its user may have ended it meanwhile: then it goes nowhere any more.
					const now = rows.get(tx.hash);
					return now === null || !isFinal(now);
				},
			);
		} catch (thrown) {
			this.#settle(tx.hash, isNew, false).catch(() => {});
			throw thrown;
		}
		switch (delivered.kind) {
			case "acknowledged":
				await this.#acknowledged(tx, siblings, delivered.by, written, isNew);
				this.#note(state, "acknowledged");
				return;
			case "stopped":
				this.#settle(tx.hash, isNew, true).catch(() => {});
				this.#note(state, "known");
				return;
			case "rejected":
				this.#isAbsentAt(tx.hash, earlier, delivered.by);
				await this.#inTime(this.#settle(tx.hash, isNew, false));
				this.#note(state, "rejected");
				throw verdictError(delivered.error);
			default:
				// What was refused must not be on disk as taken when its client hears of that: a restart would send it again.
				await this.#inTime(this.#settle(tx.hash, isNew, false));
				throw this.#nobody(state, delivered.error);
		}
	}

	/** One that was acknowledged before stays so, whatever becomes of this request. */
	#settle(
		hash: string,
		isNew: boolean,
		acknowledged: boolean,
		change: (row: Row) => Row = UNCHANGED,
	): Promise<void> {
		const { rows } = this.#dependencies;
		return rows.change(hash, (one) => (isNew ? settled(change(one), acknowledged) : change(one)));
	}

	#isAbsentAt(hash: string, earlier: Row | null, by: UpstreamName): void {
		if (earlier === null || !isHolder(earlier.at[by])) this.#change(hash, (one) => notHeld(one, by));
	}

	/** What must be on disk before its client hears of it. */
	async #acknowledged(
		tx: DecodedTransaction,
		siblings: readonly Row[],
		by: UpstreamName,
		written: Promise<unknown>,
		isNew: boolean,
	): Promise<void> {
		const { rows, log } = this.#dependencies;
		const acknowledged = this.#settle(tx.hash, isNew, true, (one) => replacementDelivered(has(one, by), by));
		const replaced = siblings.map((sibling) => {
			const others = holdersOf(rows.get(sibling.hash) ?? sibling).filter((name) => name !== by);
			return rows.end(sibling, "replaced", others);
		});
		// The relay's word is enough where the journal fails, or takes too long.
		const inTime = await this.#inTime(Promise.allSettled([written, acknowledged, ...replaced]));
		if (!inTime || !rows.isDurable || rows.live(tx.hash) === null) {
			log.error("acknowledged without the journal", { hash: tx.hash });
		}
	}

	/** Whether the journal's `work` ended in time. */
	#inTime(work: Promise<unknown>): Promise<boolean> {
		return this.#ended(work, JOURNAL_MS);
	}

	/** Whether `work` ended within `ms`, well or not. */
	#ended(work: Promise<unknown>, ms: number): Promise<boolean> {
		return new Promise((resolve) => {
			const timer = this.#dependencies.clock.after(ms, () => resolve(false));
			void work
				.catch(() => {})
				.then(() => {
					timer.cancel();
					resolve(true);
				});
		});
	}

	/**
	 * Who is asked, in order: the relay first, unless the fallback alone has the account's nonce or what stands before
	 * it, so that an account does not flip between the two.
	 */
	#order(tx: DecodedTransaction, siblings: readonly Row[], state: RequestState): readonly Upstream[] {
		const { rows, upstreams } = this.#dependencies;
		const { relay, fallback } = upstreams;
		if (fallback === null || fallback.refusal(state.path) !== null) return [relay];
		const only = (name: UpstreamName, other: UpstreamName) => (row: Row) =>
			isHolder(row.at[name]) && !isHolder(row.at[other]);
		const known = siblings.length > 0 ? siblings : rows.of(tx.from);
		const elsewhere = known.some(only("fallback", "relay")) && !known.some(only("relay", "fallback"));
		return elsewhere && !fallback.breaker.isOut ? [fallback, relay] : [relay, fallback];
	}

	/** What stands before it must be at an upstream first that is not the account's own. */
	async #bringLower(tx: DecodedTransaction, upstream: Upstream, state: RequestState): Promise<void> {
		const { rows, failover, upstreams } = this.#dependencies;
		const { name } = upstream;
		if (name !== "fallback" || upstream.breaker.isOut) return;
		for (const row of rows.of(tx.from)) {
			if (isHolder(row.at[name]) || !canBring(row, tx, upstream)) continue;
			if (!upstreams.relay.breaker.isOut) continue;
			const raw = await rows.raw(row.hash).catch(() => null);
			if (raw === null || rows.live(row.hash) === null) continue;
			const { hash, from, path, search } = row;
			const deadlineMs = failover.leftMs(state) / 4;
			const sendable = { hash, from, raw, path, search };
			const delivery = await upstream.deliver(sendable, { deadlineMs, asker: null, whole: null });
			if (delivery === null || (delivery.kind !== "acknowledged" && !mayHave(delivery))) return;
			const isSure = delivery.kind === "acknowledged";
			this.#change(hash, (one) => (isSure ? has(one, name) : mayHaveIt(one, name)));
		}
	}

	#nobody(state: RequestState, error: WireVerdict | null): Error {
		this.#note(state, "unavailable");
		const { relay, fallback } = this.#dependencies.upstreams;
		if (error !== null) return verdictError(error);
		const refusal = fallback?.refusal(state.path) ?? null;
		if (fallback === null) return unavailable("the relay is out, and there is no fallback");
		if (refusal !== null) return unavailable(refusal);
		return unavailable(
			relay.breaker.isOut && fallback.breaker.isOut
				? "the relay and the fallback are out"
				: "neither the relay nor the fallback gave a verdict",
		);
	}

	#noRoom(state: RequestState, refusal: OverShare): RpcError {
		this.#note(state, refusal === "client" ? "rejected" : "unavailable");
		return refusal === "client"
			? new RpcError("limit", CLIENT_FULL, { reason: "CLIENT_FULL", scope: "client" })
			: unavailable("the journal is full");
	}

	/** The journal says itself where it fails, and goes on in memory. */
	#change(hash: string, change: (row: Row) => Row): void {
		this.#dependencies.rows.change(hash, change).catch(() => {});
	}

	#note({ path }: RequestState, outcome: SubmissionOutcome): void {
		this.#dependencies.onOutcome?.(path, outcome);
	}
}

/** Whether `row` stands before `tx`, and `upstream` may be brought it. */
function canBring(row: Row, tx: DecodedTransaction, upstream: Upstream): boolean {
	const isBefore = row.nonce < tx.nonce && row.acknowledged && row.requests === 0;
	return isBefore && upstream.refusal(row.path) === null;
}

/** Whether a self-transfer of its nonce ends it for free. Throws RpcError `invalidParams` for a bad query. */
function softCancellable({ path, search }: RequestState): boolean {
	if (search === "") return false;
	return readSubmissionQuery(new URLSearchParams(search)).softCancellations && path === "noreverts";
}
