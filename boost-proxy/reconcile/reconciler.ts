// Carries out the plan: when triggered, it goes through all rows and sends and cancels what is needed, a few accounts at a
// time. It depends on the current rows and health alone, not on past events, so that a restart is no special case.

import { type Background, Loop, type Pass } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { Logger } from "../../shared/log.ts";
import { standingCount } from "../../shared/ownership.ts";
import { markOwnersTold } from "../domain/owners.ts";
import type { ChainReads, Upstream, Upstreams } from "../domain/ports.ts";
import {
	type Caller,
	type Delivery,
	mayHave,
	onBehalfOf,
	type UpstreamName,
	type WireVerdict,
} from "../domain/request.ts";
import {
	delayRetry,
	isLive,
	MAX_WAIT_MS,
	markHeld,
	markRejected,
	markUnanswered,
	type Row,
	setCancelPending,
	setReplacementPending,
} from "../domain/row.ts";
import type { Rows } from "../rows/rows.ts";
import {
	type Action,
	countsAsThere,
	mayNeedAction,
	type PlanTime,
	plan,
	type UpstreamHealth,
	type UpstreamHealths,
} from "./plan.ts";

/** Result of a delivery by the reconciler; `failed`: no verdict. */
export const HANDOVER_OUTCOMES = ["acknowledged", "rejected", "failed"] as const;
export type HandoverOutcome = (typeof HANDOVER_OUTCOMES)[number];

export interface ReconcilerOptions {
	/** Deadline of one request, in ms. It bounds the shutdown. */
	readonly deadlineMs: number;
	/** Until the next pass while anything is left to do, in ms. */
	readonly tickMs: number;
}

export interface ReconcilerDependencies {
	readonly rows: Rows;
	readonly upstreams: Upstreams;
	readonly chain: ChainReads;
	readonly clock: Clock;
	readonly background: Background;
	readonly log: Logger;
	readonly onHandover?: (handover: { readonly to: UpstreamName; readonly outcome: HandoverOutcome }) => void;
}

type Send = Extract<Action, { kind: "send" }>;

/** Accounts and ended rows handled at a time; the transactions of one account are sent one after another. */
const CONCURRENCY = 16;
/** The shortest pause of an upstream that rate-limits boost, in ms. */
const PAUSE_MS = 1_000;
/** Rate limit and internal error: no verdict on the transaction. */
const LIMITED_CODE = -32005;
const INTERNAL_CODE = -32603;

/** Runs on {@link trigger}, and whenever a row or the health of an upstream changes. */
export class Reconciler {
	readonly #deadlineMs: number;
	readonly #dependencies: ReconcilerDependencies;
	readonly #loop: Loop;
	readonly #upstreams: readonly Upstream[];
	/** What is queued and what is being handled: accounts, and hashes of ended rows. */
	readonly #queued = new Set<string>();
	readonly #running = new Map<string, Promise<void>>();
	readonly #pausedUntil: Record<UpstreamName, number> = { relay: 0, fallback: 0 };
	#epoch = 1;
	/** The unavailable upstreams at the last check. */
	#unavailable = "";
	#stopped = false;

	constructor({ deadlineMs, tickMs }: ReconcilerOptions, dependencies: ReconcilerDependencies) {
		this.#deadlineMs = deadlineMs;
		this.#dependencies = dependencies;
		const { relay, fallback } = dependencies.upstreams;
		this.#upstreams = fallback === null ? [relay] : [relay, fallback];
		this.#loop = new Loop({ task: "reconcile", tickMs }, dependencies, async () => this.#pass());
		dependencies.rows.onWork(() => this.trigger());
		for (const { breaker } of this.#upstreams) breaker.onChange(() => this.trigger());
	}

	/** Something changed: a row, or the health of an upstream. */
	trigger(): void {
		this.#loop.trigger();
	}

	/** Sends nothing more, and waits for requests in progress. */
	async stop(): Promise<void> {
		this.#stopped = true;
		this.#queued.clear();
		await this.#loop.stop();
		await Promise.all(this.#running.values());
	}

	#pass(): Pass {
		const { rows, clock } = this.#dependencies;
		const begun = clock.monotonic();
		const { health, time } = this.#healthAndTime();
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
			// Queued again while it is handled: it stays queued.
			if (this.#running.has(key)) continue;
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
		// A row that was opened again meanwhile is handled with its account.
		else if (!isLive(row)) {
			const { health, time } = this.#healthAndTime();
			const actions = [...plan([row], health, time)];
			await Promise.all(actions.map((action) => this.#actOnEnded(action)));
		}
	}

	/** Sends one transaction after another and plans anew each time, since the plan depends on the last result. */
	async #reconcileAccount(from: string): Promise<void> {
		const { rows } = this.#dependencies;
		let nextNonce: bigint | null | undefined;
		while (!this.#stopped) {
			const before = rows.liveOf(from);
			const send = this.#nextSend(before, nextNonce);
			if (send === null) return;
			const upstream = this.#dependencies.upstreams[send.to] as Upstream;
			if (
				upstream.dialect?.acceptsNonceGaps === false &&
				send.need === "handover" &&
				nextNonce === undefined
			) {
				nextNonce = await this.#nextNonce(from);
				continue;
			}
			const { hash } = send.row;
			const raw = await rows.raw(hash).catch(() => null);
			// A row of the account changed meanwhile.
			if (rows.liveOf(from) !== before) continue;
			if (this.#stopped) return;
			if (raw === null) this.#changeLive(hash, (row) => delayRetry(row, send.to, this.#healthAndTime().time));
			else await this.#send(upstream, send, raw);
		}
	}

	/** The first `send` of the plan; earlier actions are done here. */
	#nextSend(rows: readonly Row[], nextNonce: bigint | null | undefined): Send | null {
		const { health, time } = this.#healthAndTime();
		for (const action of plan(rows, health, time, nextNonce)) {
			const { kind, to } = action;
			const { hash } = action.row;
			if (kind === "send") return action;
			// The replacement may not go there: that upstream keeps the earlier transaction.
			if (kind === "forget") this.#changeLive(hash, (row) => setReplacementPending(row, to, false));
			else if (kind === "wait" && action.byNonce) this.#changeLive(hash, (row) => delayRetry(row, to, time));
		}
		return null;
	}

	async #send(upstream: Upstream, { row, need }: Send, raw: Buffer): Promise<void> {
		const { onHandover, log } = this.#dependencies;
		const { hash } = row;
		const { name } = upstream;
		if (need === "owners") return this.#tellOwners(upstream, row, raw);
		const caller = upstream.dialect === null ? inNameOf(row, firstStanding(row)) : null;
		const options = { deadlineMs: this.#deadlineMs, caller, whole: null };
		const delivery = await upstream.deliver({ ...row, raw }, options);
		if (delivery?.kind === "acknowledged" && upstream.dialect === null && row.owners.length > 1) {
			// Those who have cancelled are not known there yet.
			this.#changeLive(hash, (one) => ({ ...one, ownersPending: standingCount(one.owners) > 1 }));
		}
		const { time } = this.#healthAndTime();
		if (delivery === null) {
			this.#changeLive(hash, (one) => delayRetry(one, name, time));
		} else if (delivery.kind === "acknowledged") {
			onHandover?.({ to: name, outcome: "acknowledged" });
			log.info("transaction handed over", { hash, upstream: name });
			this.#markReached(name, row, (one) => setReplacementPending(markHeld(one, name), name, false));
		} else if (delivery.kind === "rejected" && delivery.error.code !== LIMITED_CODE) {
			onHandover?.({ to: name, outcome: "rejected" });
			const { code } = delivery.error;
			log.warn("what was handed over is refused", { upstream: name, hash, reason: need, code });
			this.#changeLive(hash, (one) => markRejected(one, name, time));
		} else {
			onHandover?.({ to: name, outcome: "failed" });
			this.#markFailed(upstream, row, delivery, time);
		}
	}

	/**
	 * Submits it at our relay in the name of each owner, on the path that holds for all of them, and then cancels for those who
	 * have taken their wish back. What the relay knows already changes nothing there.
	 */
	async #tellOwners(relay: Upstream, row: Row, raw: Buffer): Promise<void> {
		const { hash, owners } = row;
		for (const owner of [...owners].sort((one, other) => Number(one.cancelled) - Number(other.cancelled))) {
			if (this.#stopped) return;
			const caller = inNameOf(row, owner);
			const options = { deadlineMs: this.#deadlineMs, caller, whole: null };
			const delivery = owner.cancelled ? null : await relay.deliver({ ...row, raw }, options);
			const isOver = owner.cancelled
				? await this.#cancelAs(relay, row, caller)
				: delivery?.kind === "acknowledged" ||
					(delivery?.kind === "rejected" && isFinalVerdict(delivery.error));
			if (isOver) continue;
			const { time } = this.#healthAndTime();
			this.#changeLive(hash, (one) => delayRetry(one, "relay", time));
			return;
		}
		this.#changeLive(hash, (one) => markHeld(markOwnersTold(one, owners), "relay"));
	}

	#markFailed({ name, dialect }: Upstream, row: Row, delivery: Delivery, time: PlanTime): void {
		const { retryAfterS = 0, fault = null } = delivery.kind === "failed" ? delivery : {};
		const retryMs = retryAfterS * 1_000;
		if (mayHave(delivery)) this.#markReached(name, row, (one) => markUnanswered(one, name, time, retryMs));
		else this.#changeLive(row.hash, (one) => delayRetry(one, name, time, retryMs));
		// A fallback's limit is about us, not about one client.
		if (fault === "limited" && dialect !== null) {
			const waitMs = Math.min(Math.max(retryMs, PAUSE_MS), MAX_WAIT_MS);
			this.#pausedUntil[name] = time.monotonic + waitMs;
		}
	}

	/** The upstream has or may have it: it must also get a cancel or replacement that arrived meanwhile. */
	#markReached(by: UpstreamName, sent: Row, change: (row: Row) => Row): void {
		const { rows } = this.#dependencies;
		const row = rows.get(sent.hash);
		this.#changeLive(sent.hash, change);
		if (row !== null && row.desired !== "live" && row.desired !== "mined") {
			rows.end(row, row.desired, [by]);
		}
		for (const one of rows.liveOf(sent.from, sent.nonce)) {
			const isLater = one.hash !== sent.hash && one.receivedAt >= sent.receivedAt;
			if (!isLater || countsAsThere(one, by)) continue;
			this.#changeLive(one.hash, (sibling) => setReplacementPending(sibling, by, true));
		}
	}

	/** Does the plan's action for an ended row. A cancel is sent again and again until the upstream answers. */
	async #actOnEnded({ kind, row, to }: Action): Promise<void> {
		if (kind === "wait" || this.#stopped) return;
		const isOver =
			kind === "forget" || (await this.#cancel(this.#dependencies.upstreams[to] as Upstream, row));
		const { time } = this.#healthAndTime();
		this.#dependencies.rows.change(row.hash, (one) => {
			if (isLive(one)) return one;
			return isOver ? setCancelPending(one, to, false) : delayRetry(one, to, time);
		});
	}

	/**
	 * Whether the upstream answered for good; otherwise the cancel is sent again. Our relay is told so in the name of each owner,
	 * or of the sender, whose own replacement counts as a signature.
	 */
	async #cancel(upstream: Upstream, row: Row): Promise<boolean> {
		if (upstream.dialect !== null) return this.#cancelAs(upstream, row, null);
		if (row.bySender || row.desired === "replaced")
			return this.#cancelAs(upstream, row, onBehalfOf(row, { signer: row.from }));
		if (row.owners.length === 0) return this.#cancelAs(upstream, row, onBehalfOf(row));
		for (const owner of row.owners)
			if (!(await this.#cancelAs(upstream, row, inNameOf(row, owner)))) return false;
		return true;
	}

	async #cancelAs(upstream: Upstream, row: Row, caller: Caller | null): Promise<boolean> {
		const { dialect } = upstream;
		const method = dialect === null ? "eth_cancelTransaction" : (dialect.cancelMethod ?? "");
		const options = { deadlineMs: this.#deadlineMs, caller, path: row.path };
		const answer = await upstream.call({ method, params: [row.hash] }, options);
		return answer?.ok === true || (answer?.ok === false && isFinalVerdict(answer.error));
	}

	/** The next nonce of an account on the chain; null if it can't be read. */
	async #nextNonce(from: string): Promise<bigint | null> {
		const call = { method: "eth_getTransactionCount", params: [from, "latest"] };
		const [count] = (await this.#dependencies.chain.batch([call], this.#deadlineMs)) ?? [];
		return count?.ok === true ? parseNodeQuantity(count.result) : null;
	}

	/** Health and time as of now. An upstream that becomes unavailable or available begins a new epoch. */
	#healthAndTime(): { readonly health: UpstreamHealths; readonly time: PlanTime } {
		const { clock } = this.#dependencies;
		const unavailable = this.#upstreams
			.flatMap(({ name, breaker }) => (breaker.isUnavailable ? [name] : []))
			.join();
		if (unavailable !== this.#unavailable) {
			this.#unavailable = unavailable;
			this.#epoch += 1;
		}
		const health = Object.fromEntries(
			this.#upstreams.map((upstream) => [
				upstream.name,
				healthOf(upstream, this.#pausedUntil[upstream.name]),
			]),
		);
		// While the chain's time is not known, what looks old by the machine's clock is kept, but not handed over.
		const now = this.#dependencies.rows.chainNow ?? clock.now();
		return { health, time: { now, monotonic: clock.monotonic(), epoch: this.#epoch } };
	}

	/** Changes a row only while it is live. */
	#changeLive(hash: string, change: (row: Row) => Row): void {
		this.#dependencies.rows.change(hash, (row) => (isLive(row) ? change(row) : row));
	}
}

function isFinalVerdict({ code }: WireVerdict): boolean {
	return code !== LIMITED_CODE && code !== INTERNAL_CODE;
}

type RowOwner = Row["owners"][number];

/** The first owner that still wants it. */
function firstStanding({ owners }: Row): RowOwner | undefined {
	return owners.find(({ cancelled }) => !cancelled);
}

/** The caller in whose name the relay gets a row. One that owns nothing is charged as the row's client. */
function inNameOf(row: Row, owner: RowOwner | undefined): Caller {
	const { address = row.address, signed = false } = owner ?? {};
	const signer = signed ? row.from : null;
	return onBehalfOf({ address: address ?? row.address }, { signer, owns: address !== null });
}

function healthOf(upstream: Upstream, pausedUntil: number): UpstreamHealth {
	const { breaker, dialect } = upstream;
	return {
		isUnavailable: breaker.isUnavailable,
		pausedUntil,
		isOurs: dialect === null,
		acceptsNonceGaps: dialect?.acceptsNonceGaps ?? true,
		canCancel: dialect === null || dialect.cancelMethod !== null,
		acceptsPath: (path) => upstream.refusal(path) === null,
	};
}
