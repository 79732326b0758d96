// Takes signed transactions: a client is told the hash once an upstream has acknowledged it and the journal holds it. Which
// upstream is asked first, and what the transaction means for those before it, is decided here; attempts are failover.ts's,
// soft cancels softCancels.ts's.

import type { Clock } from "../../shared/clock.ts";
import { type DecodedTransaction, decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { readSubmissionQuery } from "../../shared/http/submissionQuery.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { Logger } from "../../shared/log.ts";
import type { OverShare } from "../../shared/shares/shares.ts";
import { mayHave, type UpstreamName, type WireVerdict } from "../domain/delivery.ts";
import { isFinal, type OpenEntry } from "../domain/journalEntry.ts";
import type { Handover, Journal, Sendable, Upstream, Upstreams } from "../domain/ports.ts";
import type { RequestState } from "../domain/request.ts";
import { type Delivered, type Failover, unavailable, verdictError } from "./failover.ts";
import type { SoftCancels } from "./softCancels.ts";

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
	readonly journal: Journal;
	readonly upstreams: Upstreams;
	readonly failover: Failover;
	readonly softCancels: SoftCancels;
	readonly handover: Handover;
	readonly clock: Clock;
	readonly log: Logger;
	readonly onOutcome?: (path: string, outcome: SubmissionOutcome) => void;
}

/** The relay says the same of its pool. */
const CLIENT_FULL = "too many pending transactions from this client";
/** How long the journal may take beyond the relay's word before that is enough, in ms. */
const JOURNAL_MS = 2_000;

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
		const { journal, softCancels } = this.#dependencies;
		const ended = journal.ended(tx.hash);
		// What the user ended is not revived by the same bytes, and what was mined is done.
		if (isFinal(ended)) {
			state.trail.answeredBy.add("journal");
			this.#note(state, "known");
			return { tx, cancels: ended.ending === "cancelled" };
		}
		const siblings = journal.of(tx.from).filter((one) => one.nonce === tx.nonce && one.hash !== tx.hash);
		if (softCancels.isOne(tx, siblings)) {
			await softCancels.take(tx, siblings, state);
			this.#note(state, "cancels");
			return { tx, cancels: true };
		}
		await this.#send(tx, siblings, softCancellations, state);
		return { tx, cancels: false };
	}

	async #send(
		tx: DecodedTransaction,
		siblings: readonly OpenEntry[],
		softCancellations: boolean,
		state: RequestState,
	): Promise<void> {
		const { journal, failover, clock } = this.#dependencies;
		const { path, search, asker } = state;
		const sendable: Sendable = { hash: tx.hash, from: tx.from, raw: tx.raw, path, search };
		const order = this.#order(tx, siblings, state);
		const [first] = order;
		if (first === undefined) throw this.#nobody(state, null);
		const earlier = journal.get(tx.hash);
		const entry = {
			...{ hash: tx.hash, from: tx.from, nonce: tx.nonce, raw: tx.raw, path, search, softCancellations },
			address: asker.address,
			receivedAt: clock.now(),
			owed: [...new Set(siblings.flatMap(({ holders }) => holders))],
		};
		// What could not be written down is not sent either.
		const refusal = journal.refusal(entry);
		if (refusal !== null) throw this.#noRoom(state, refusal);
		const written = journal.add(entry, first.name).catch(() => false);
		// Nobody waits for it where the transaction is refused.
		const tell = (by: UpstreamName, tried: "absent" | "doubtful"): void => {
			if (tried === "doubtful") this.#keep(journal.held(tx.hash, by));
			else if (earlier?.holders.includes(by) !== true) this.#keep(journal.notHeld(tx.hash, by));
		};
		const before = async (upstream: Upstream): Promise<boolean> => {
			await this.#bringLower(tx, upstream, state);
			// Its user may have ended it meanwhile: then it goes nowhere any more.
			return !isFinal(journal.ended(tx.hash));
		};
		let delivered: Delivered;
		try {
			delivered = await failover.deliver(sendable, order, state, tell, before, () => this.#mayOverflow(tx));
		} catch (thrown) {
			this.#keep(journal.settle(tx.hash, earlier?.acknowledged ?? false));
			throw thrown;
		}
		if (delivered.kind === "acknowledged") {
			await this.#acknowledged(tx, siblings, delivered.by, written);
			this.#note(state, "acknowledged");
			return;
		}
		if (delivered.kind === "stopped") {
			// Who may have it is to hear of its end.
			this.#dependencies.handover.wake();
			this.#note(state, "known");
			return;
		}
		if (delivered.kind === "rejected") {
			if (earlier?.holders.includes(delivered.by) !== true) {
				this.#keep(journal.notHeld(tx.hash, delivered.by));
			}
			await this.#unwritten(tx.hash, earlier);
			this.#note(state, "rejected");
			throw verdictError(delivered.error);
		}
		await this.#unwritten(tx.hash, earlier);
		throw this.#nobody(state, delivered.error);
	}

	/** What must be on disk before its client hears of it. */
	async #acknowledged(
		tx: DecodedTransaction,
		siblings: readonly OpenEntry[],
		by: UpstreamName,
		written: Promise<boolean>,
	): Promise<void> {
		const { journal, handover, log } = this.#dependencies;
		const writes: Promise<unknown>[] = [written, journal.held(tx.hash, by)];
		if (siblings.length > 0) {
			writes.push(journal.paid(tx.hash, by));
			for (const { hash, holders } of siblings) {
				const others = holders.filter((name) => name !== by);
				writes.push(journal.end(hash, "replaced", others));
			}
		}
		this.#keep(journal.settle(tx.hash, true));
		// The relay's word is enough where the journal fails, or takes too long.
		const inTime = await this.#ended(Promise.allSettled(writes), JOURNAL_MS);
		if (!inTime || !journal.isDurable || journal.get(tx.hash) === null) {
			log.error("acknowledged without the journal", { hash: tx.hash });
		}
		if (siblings.length > 0 || journal.get(tx.hash) === null) handover.wake();
	}

	/** What was refused must not be on disk as taken when its client hears of that: a restart would send it again. */
	async #unwritten(hash: string, earlier: OpenEntry | null): Promise<void> {
		const settled = this.#dependencies.journal.settle(hash, earlier?.acknowledged ?? false);
		await this.#ended(
			settled.catch(() => {}),
			JOURNAL_MS,
		);
	}

	/** Whether `work`, which never rejects, ended within `ms`. */
	#ended(work: Promise<unknown>, ms: number): Promise<boolean> {
		return new Promise((resolve) => {
			const timer = this.#dependencies.clock.after(ms, () => resolve(false));
			void work.then(() => {
				timer.cancel();
				resolve(true);
			});
		});
	}

	/**
	 * Who is asked, in order: the relay first, unless the fallback alone has the account's nonce or what stands before
	 * it, so that an account does not flip between the two.
	 */
	#order(tx: DecodedTransaction, siblings: readonly OpenEntry[], state: RequestState): readonly Upstream[] {
		const { journal, upstreams } = this.#dependencies;
		const { relay, fallback } = upstreams;
		if (fallback === null || fallback.refusal(state.path) !== null) return [relay];
		const only = (name: UpstreamName) => (entry: OpenEntry) =>
			entry.holders.includes(name) && entry.holders.length === 1;
		const known = siblings.length > 0 ? siblings : journal.of(tx.from);
		const elsewhere = known.some(only("fallback")) && !known.some(only("relay"));
		return elsewhere && !fallback.breaker.isOut ? [fallback, relay] : [relay, fallback];
	}

	/** Whether the fallback has what the relay has of the account, or can be brought it as what stands before. */
	#mayOverflow(tx: DecodedTransaction): boolean {
		const { journal, upstreams } = this.#dependencies;
		const { fallback } = upstreams;
		if (fallback === null) return false;
		const isThere = ({ hash, holders }: OpenEntry) => hash === tx.hash || holders.includes("fallback");
		return journal.of(tx.from).every((entry) => isThere(entry) || canBring(entry, tx, fallback));
	}

	/** What stands before it must be at an upstream first that is not the account's own. */
	async #bringLower(tx: DecodedTransaction, upstream: Upstream, state: RequestState): Promise<void> {
		const { journal, failover, upstreams } = this.#dependencies;
		if (upstream.name !== "fallback" || upstream.breaker.isOut) return;
		for (const entry of journal.of(tx.from)) {
			if (entry.holders.includes(upstream.name) || !canBring(entry, tx, upstream)) continue;
			if (!upstreams.relay.breaker.isOut && !upstreams.relay.breaker.isChoked) continue;
			const raw = await journal.raw(entry.hash).catch(() => null);
			if (raw === null || journal.get(entry.hash) === null) continue;
			const { hash, from, path, search } = entry;
			const deadlineMs = failover.leftMs(state) / 4;
			const sendable = { hash, from, raw, path, search };
			const delivery = await upstream.deliver(sendable, { deadlineMs, asker: null, whole: null });
			if (delivery === null || (delivery.kind !== "acknowledged" && !mayHave(delivery))) return;
			this.#keep(journal.held(hash, upstream.name));
			// It may have ended meanwhile, and whoever has it now is to hear of that.
			if (journal.get(hash) === null) this.#dependencies.handover.wake();
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
	#keep(write: Promise<unknown>): void {
		write.catch(() => {});
	}

	#note({ path }: RequestState, outcome: SubmissionOutcome): void {
		this.#dependencies.onOutcome?.(path, outcome);
	}
}

/** Whether `entry` stands before `tx`, and `upstream` may be brought it. */
function canBring(entry: OpenEntry, tx: DecodedTransaction, upstream: Upstream): boolean {
	const isBefore = entry.nonce < tx.nonce && entry.acknowledged && !entry.underWay;
	return isBefore && upstream.refusal(entry.path) === null;
}

/** Whether a self-transfer of its nonce ends it for free. Throws RpcError `invalidParams` for a bad query. */
function softCancellable({ path, search }: RequestState): boolean {
	if (search === "") return false;
	return readSubmissionQuery(new URLSearchParams(search)).softCancellations && path === "noreverts";
}
