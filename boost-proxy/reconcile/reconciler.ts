// Carries out the plan. When triggered, it goes through all rows and sends and cancels as needed, a
// few accounts at a time. It depends only on the current rows and health, not on past events, so a
// restart is no special case. A client's request is carried out at once, within the request's time,
// and the outcomes are returned.

import { type Background, Loop, type Pass } from "../../shared/background.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import { leftMs } from "../domain/budget.ts";
import { delayRetry } from "../domain/deliveries.ts";
import type { ChainReads } from "../domain/ports.ts";
import type { RequestState, UpstreamName } from "../domain/request.ts";
import { isLive, type Row, setReplacementPending } from "../domain/row.ts";
import type { CancelAsk, CancelOutcome, CancelResult, SubmitAsk, Tried } from "./asks.ts";
import { mayNeedAction, plan, planCancel, planSubmission, type Send } from "./plan.ts";
import { Sender, type SenderDependencies } from "./sender.ts";
import { Situation } from "./situation.ts";

export interface ReconcilerOptions {
	/** The total time of a request, in ms. */
	readonly budgetMs: number;
	/** Deadline of one request of boost's own, in ms. It bounds the shutdown. */
	readonly deadlineMs: number;
	/** Delay before the next pass while any work is left, in ms. */
	readonly tickMs: number;
}

export interface ReconcilerDependencies extends SenderDependencies {
	readonly chain: ChainReads;
	readonly background: Background;
}

/**
 * Number of accounts and ended rows handled at a time. The transactions of one account are sent one
 * after another.
 */
const CONCURRENCY = 16;
/** The share of a request's time for each lower nonce that is sent before its transaction. */
const LOWER_PART = 1 / 4;

/**
 * Once started, runs whenever a row or the health of an upstream changes. Serves requests before
 * that, too.
 */
export class Reconciler {
	readonly #deadlineMs: number;
	readonly #dependencies: ReconcilerDependencies;
	readonly #situation: Situation;
	readonly #sender: Sender;
	readonly #loop: Loop;
	/** Queued work and work in progress: accounts, and hashes of ended rows. */
	readonly #queued = new Set<string>();
	readonly #running = new Map<string, Promise<void>>();
	/** Accounts that are left alone, and how many callers require it. */
	readonly #held = new Map<string, number>();
	#started = false;
	#stopped = false;

	constructor({ budgetMs, deadlineMs, tickMs }: ReconcilerOptions, dependencies: ReconcilerDependencies) {
		this.#deadlineMs = deadlineMs;
		this.#dependencies = dependencies;
		const { rows, upstreams } = dependencies;
		this.#situation = new Situation(upstreams, dependencies);
		this.#sender = new Sender({ budgetMs }, dependencies, this.#situation);
		this.#loop = new Loop({ task: "reconcile", tickMs }, dependencies, async () => this.#pass());
		rows.onWork(() => this.trigger());
		for (const upstream of [upstreams.relay, upstreams.fallback])
			upstream?.breaker.onChange(() => this.trigger());
	}

	/** From now on, carries out the plan by itself. */
	start(): void {
		this.#started = true;
		this.trigger();
	}

	/** A row or the health of an upstream has changed. */
	trigger(): void {
		if (this.#started) this.#loop.trigger();
	}

	/**
	 * Leaves an account alone until the returned function is called. Resolves once no send of it is
	 * in progress.
	 */
	async hold(from: string): Promise<() => void> {
		this.#held.set(from, (this.#held.get(from) ?? 0) + 1);
		await this.#running.get(from);
		return () => {
			const count = (this.#held.get(from) ?? 1) - 1;
			if (count > 0) this.#held.set(from, count);
			else this.#held.delete(from);
			this.trigger();
		};
	}

	/** Sends nothing more, and waits for requests in progress. */
	async stop(): Promise<void> {
		this.#stopped = true;
		this.#sender.stop();
		this.#queued.clear();
		await this.#loop.stop();
		await Promise.all(this.#running.values());
	}

	/**
	 * Sends a client's transaction with a row until an upstream acknowledges or rejects it, or its
	 * time is over.
	 */
	async submitNow(ask: SubmitAsk): Promise<readonly Tried[]> {
		const { rows } = this.#dependencies;
		const came: Tried[] = [];
		let nextNonce: bigint | null | undefined;
		for (let left = this.#leftMs(ask); left > 0 && !this.#stopped; left = this.#leftMs(ask)) {
			const known = rows.liveOf(ask.tx.from);
			const time = this.#situation.time();
			const next = planSubmission(ask, came, known, this.#situation.health, time, nextNonce);
			if (next === null) break;
			if (next.kind === "submit") {
				came.push(await this.#sender.submit(next, ask));
			} else if (nextNonce === undefined && this.#dependsOnNonce(next)) {
				nextNonce = await this.#nextNonce(ask.tx.from, left * LOWER_PART);
			} else await this.#send(next, known, left * LOWER_PART);
		}
		return came;
	}

	/** Sends a client's cancel to all upstreams concerned. The rows stay unchanged. */
	async cancelNow(ask: CancelAsk): Promise<CancelResult> {
		const { rows } = this.#dependencies;
		const came = new Map<UpstreamName, CancelOutcome>();
		const asked = new Map<UpstreamName, readonly Row[]>();
		for (;;) {
			// An upstream may get the transaction while another one is asked.
			const known = ask.rows.map((row) => rows.live(row.hash) ?? row);
			const next = planCancel(ask, came, known, this.#situation.health);
			if (next === null) return { outcomes: came, asked };
			asked.set(next.to, known);
			came.set(next.to, await this.#sender.cancelNow(next, ask));
		}
	}

	/**
	 * Sends a client's cancel to our relay only, which may have the transaction from others. `row`:
	 * the transaction's row, if the client owns it.
	 */
	cancelAtRelay(hash: string, row: Row | null, state: RequestState): Promise<CancelOutcome> {
		return this.#sender.cancelByHash("relay", { hash, path: state.path, row }, state);
	}

	#leftMs({ state }: Pick<SubmitAsk, "state">): number {
		return leftMs(state, this.#dependencies.clock.monotonic());
	}

	#pass(): Pass {
		const { rows, clock } = this.#dependencies;
		if (this.#stopped) return { left: true, scanMs: 0 };
		const begun = clock.monotonic();
		const { health } = this.#situation;
		const time = this.#situation.time();
		for (const row of rows.allLive()) if (mayNeedAction(row, health, time)) this.#queued.add(row.from);
		for (const row of rows.pendingCancels()) if (mayNeedAction(row, health, time)) this.#queued.add(row.hash);
		const scanMs = clock.monotonic() - begun;
		const left = this.#queued.size > 0;
		this.#startQueued();
		return { left, scanMs };
	}

	#startQueued(): void {
		for (const key of this.#queued) {
			if (this.#stopped || this.#running.size >= CONCURRENCY) return;
			// A key that is being handled, or whose account is left alone, stays queued.
			if (this.#running.has(key) || this.#held.has(key)) continue;
			this.#queued.delete(key);
			const run = new Promise<void>((resolve) => {
				this.#dependencies.background.run("reconcile", () => this.#reconcile(key).finally(resolve));
			});
			this.#running.set(key, run);
			void run.then(() => {
				this.#running.delete(key);
				this.#startQueued();
			});
		}
	}

	/** `key`: an account, or the hash of an ended row. */
	async #reconcile(key: string): Promise<void> {
		const row = this.#dependencies.rows.get(key);
		if (row === null) await this.#reconcileAccount(key);
		// A row that was opened again in between is handled with its account.
		else if (!isLive(row)) await this.#reconcileEnded(row);
	}

	async #reconcileEnded(row: Row): Promise<void> {
		const cancels: Promise<void>[] = [];
		for (const action of [...plan([row], this.#situation.health, this.#situation.time())]) {
			if (this.#stopped || action.kind === "wait" || action.kind === "send") continue;
			cancels.push(this.#sender.cancel(action, this.#deadlineMs));
		}
		await Promise.all(cancels);
	}

	/**
	 * Sends one transaction after another and plans again each time, since the plan depends on the
	 * last result.
	 */
	async #reconcileAccount(from: string): Promise<void> {
		const { rows } = this.#dependencies;
		let nextNonce: bigint | null | undefined;
		while (!this.#stopped) {
			const known = rows.liveOf(from);
			const send = this.#nextSend(known, nextNonce);
			if (send === null || this.#isForOthers(send)) return;
			if (nextNonce === undefined && this.#dependsOnNonce(send))
				nextNonce = await this.#nextNonce(from, this.#deadlineMs);
			else await this.#send(send, known, this.#deadlineMs);
		}
	}

	/** The first `send` of the plan. Carries out the actions before it. */
	#nextSend(rows: readonly Row[], nextNonce: bigint | null | undefined): Send | null {
		const time = this.#situation.time();
		for (const action of plan(rows, this.#situation.health, time, nextNonce)) {
			const { kind, to } = action;
			const { hash } = action.row;
			if (kind === "send") return action;
			// The replacement may not go there, so that upstream keeps the earlier transaction.
			if (kind === "forget")
				this.#dependencies.rows.changeLive(hash, (row) => setReplacementPending(row, to, false));
			else if (kind === "wait" && action.byNonce)
				this.#dependencies.rows.changeLive(hash, (row) => delayRetry(row, to, time));
		}
		return null;
	}

	/**
	 * Sends one of an account's rows, which were `known` to the plan. Sends nothing if they, or the
	 * upstreams' availability, change before its bytes are read.
	 */
	async #send(send: Send, known: readonly Row[], deadlineMs: number): Promise<void> {
		const { rows } = this.#dependencies;
		const { hash, from } = send.row;
		const { epoch } = this.#situation;
		const raw = await rows.raw(hash).catch(() => null);
		if (rows.liveOf(from) !== known || this.#situation.epoch !== epoch || this.#stopped) return;
		if (raw === null)
			this.#dependencies.rows.changeLive(hash, (row) => delayRetry(row, send.to, this.#situation.time()));
		else await this.#sender.send(send, raw, deadlineMs);
	}

	/** Whether another boost instance reaches the relay, and so takes the account over. */
	#isForOthers({ to, need }: Send): boolean {
		return to === "fallback" && need === "handover" && this.#dependencies.others.doOthersReach;
	}

	/**
	 * Whether it may go there only after the account's next nonce on the chain, or after the
	 * upstream's own rows.
	 */
	#dependsOnNonce({ to, need }: Send): boolean {
		return need === "handover" && this.#situation.health[to]?.acceptsNonceGaps === false;
	}

	/** The next nonce of an account on the chain; null if it can't be read in time. */
	async #nextNonce(from: string, deadlineMs: number): Promise<bigint | null> {
		const call = { method: "eth_getTransactionCount", params: [from, "latest"] };
		const [count] = (await this.#dependencies.chain.batch([call], deadlineMs)) ?? [];
		return count?.ok === true ? parseNodeQuantity(count.result) : null;
	}
}
