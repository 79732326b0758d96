// Waits for the receipt of a transaction (EIP-7966). It asks again and again, since the holder may change meanwhile, and
// submits nothing.

import type { Clock, Timer } from "../../shared/clock.ts";
import {
	type SyncCall,
	type SyncEnd,
	SyncWaits,
	type WaitingRoomLimits,
} from "../../shared/http/syncWaits.ts";
import { notSoon } from "../../shared/jsonrpc/sendSync.ts";
import type { RequestState } from "../domain/request.ts";

export interface SyncWaitDependencies {
	/** The receipt, null where there is none yet or nobody answers within `deadlineMs`. */
	readonly readReceipt: (hash: string, state: RequestState, deadlineMs: number) => Promise<unknown>;
	/** Why it can't be mined soon, in words for {@link notSoon}; null where it can, or nobody tells in time. */
	readonly whyNotSoon: (hash: string, deadlineMs: number) => Promise<string | null>;
	readonly clock: Clock;
}

/** What somebody waits for. */
export interface SyncRequest extends SyncCall {
	/** Of the request that it came with. */
	readonly state: RequestState;
}

/** Each wait asks every second: fewer than the relay's own, which is told. */
const MAX_WAITS = 2_000;
/** How soon it is asked for the first time, how much later each time, and how late at most, in ms. */
const FIRST_MS = 250;
const GROWTH = 1.5;
const LATEST_MS = 1_000;
/** How long one question may take: who hangs shall not take the whole time. */
const QUESTION_MS = 3_000;

const STOPPING = "boost is shutting down, and the transaction is kept";

/** All waits of the process. `options`: who comes when there is no room is told at once that the time is up. */
export function createSyncWaits(
	options: Partial<WaitingRoomLimits>,
	dependencies: SyncWaitDependencies,
): SyncWaits<SyncRequest> {
	return new SyncWaits(
		{ limits: { maxWaits: MAX_WAITS, ...options }, stopping: STOPPING },
		{
			clock: dependencies.clock,
			look(request, end) {
				const questions = new Questions(request, dependencies, end);
				questions.later();
				return () => questions.stop();
			},
		},
	);
}

/** The questions of one wait. */
class Questions {
	readonly #request: SyncRequest;
	readonly #dependencies: SyncWaitDependencies;
	readonly #end: SyncEnd;
	#next: Timer | null = null;
	#delayMs = FIRST_MS;
	#asked = 0;

	constructor(request: SyncRequest, dependencies: SyncWaitDependencies, end: SyncEnd) {
		this.#request = request;
		this.#dependencies = dependencies;
		this.#end = end;
	}

	/** Asks in a while, and again until the wait has ended. */
	later(): void {
		if (this.#end.ended) return;
		this.#next = this.#dependencies.clock.after(this.#delayMs, () => {
			this.#ask().then(
				() => this.later(),
				(thrown: unknown) => this.#end.fail(thrown),
			);
		});
		this.#delayMs = Math.min(this.#delayMs * GROWTH, LATEST_MS);
	}

	stop(): void {
		this.#next?.cancel();
	}

	/** Asks for the receipt, and every second time, not the first, why there is none: it has just come. */
	async #ask(): Promise<void> {
		const { readReceipt, whyNotSoon } = this.#dependencies;
		const { hash, state } = this.#request;
		const receipt = await readReceipt(hash, state, this.#questionMs());
		if (receipt !== null && receipt !== undefined) {
			this.#end.mined(receipt);
			return;
		}
		this.#asked += 1;
		if (this.#end.ended || this.#asked % 2 === 1) return;
		const why = await whyNotSoon(hash, this.#questionMs());
		if (why !== null) this.#end.fail(notSoon(hash, why));
	}

	#questionMs(): number {
		const leftMs = this.#request.until - this.#dependencies.clock.monotonic();
		return Math.max(1, Math.min(QUESTION_MS, leftMs));
	}
}
