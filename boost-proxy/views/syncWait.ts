// Who waits for the receipt of a transaction behind boost: a hash and a time come in, the receipt goes out, or the error
// that tells why there will be none soon (EIP-7966). It asks again and again, since its holder may change meanwhile, and
// submits nothing.

import type { Clock, Timer } from "../../shared/clock.ts";
import { type Waiting, WaitingRoom, type WaitingRoomLimits } from "../../shared/http/waitingRoom.ts";
import { notSoon, timedOut } from "../../shared/jsonrpc/sendSync.ts";
import type { RequestState } from "../domain/request.ts";

/** Who comes when there is no room is told at once that the time is up. */
export type SyncWaitsOptions = Partial<WaitingRoomLimits>;

export interface SyncWaitsDependencies {
	/** The receipt, null where there is none yet or nobody answers within `deadlineMs`. */
	readonly readReceipt: (hash: string, state: RequestState, deadlineMs: number) => Promise<unknown>;
	/** Why it can't be mined soon, in words for {@link notSoon}; null where it can, or nobody tells in time. */
	readonly whyNotSoon: (hash: string, deadlineMs: number) => Promise<string | null>;
	readonly clock: Clock;
}

/** What somebody waits for; times are in ms of the clock's monotonic reading. */
export interface SyncRequest extends Waiting {
	/** Of a transaction that was acknowledged, lower case. */
	readonly hash: string;
	/** When its call began. */
	readonly begun: number;
	/** When it must be answered. */
	readonly until: number;
	/** Of the request that it came with. */
	readonly state: RequestState;
}

/** Each wait asks every second: fewer than the relay's own, which is told. */
const LIMITS: WaitingRoomLimits = {
	maxWaits: 2_000,
	maxPerClient: 256,
	maxBytes: 64 * 1024 * 1024,
	maxBytesPerClient: 8 * 1024 * 1024,
};
/** How soon it is asked for the first time, how much later each time, and how late at most, in ms. */
const FIRST_MS = 250;
const GROWTH = 1.5;
const LATEST_MS = 1_000;
/** How long one question may take: who hangs shall not take the whole time. */
const QUESTION_MS = 3_000;

const STOPPING = "boost is shutting down, and the transaction is kept";
const TOO_MANY = "too many calls wait already, ask for its receipt";

/** All waits of the process. */
export class SyncWaits {
	readonly #dependencies: SyncWaitsDependencies;
	readonly #room: WaitingRoom;
	readonly #open = new Set<Wait>();
	#closed = false;

	constructor(options: SyncWaitsOptions, dependencies: SyncWaitsDependencies) {
		this.#dependencies = dependencies;
		this.#room = new WaitingRoom({ ...LIMITS, ...options });
	}

	/** How many wait. */
	get size(): number {
		return this.#open.size;
	}

	/**
	 * The receipt once the transaction is mined. Throws RpcError `timedOut` when the time is up, boost stops or the client
	 * has gone, and `notSoon` where it can't be mined soon: each with the hash as data. Nobody waits longer than asked
	 * for.
	 */
	wait(request: SyncRequest): Promise<unknown> {
		const { hash, begun, life } = request;
		const { clock } = this.#dependencies;
		const why = this.#closed ? STOPPING : this.#room.enter(request) ? null : TOO_MANY;
		if (why !== null) return Promise.reject(timedOut(hash, clock.monotonic() - begun, why));
		return new Promise((resolve, reject) => {
			const wait = new Wait(request, this.#dependencies, (end) => {
				this.#open.delete(wait);
				this.#room.leave(request);
				if (end.ok) resolve(end.receipt);
				else reject(end.thrown);
			});
			this.#open.add(wait);
			wait.begin();
			life.onGone(() => wait.stop("its client has gone"));
		});
	}

	/** Answers all that wait, and all that come later: boost stops. */
	close(): void {
		this.#closed = true;
		for (const wait of [...this.#open]) wait.stop(STOPPING);
	}
}

type End =
	| { readonly ok: true; readonly receipt: unknown }
	| { readonly ok: false; readonly thrown: unknown };

/** One wait. `begin` must be called once. */
class Wait {
	readonly #request: SyncRequest;
	readonly #dependencies: SyncWaitsDependencies;
	/** Called once. */
	readonly #onEnd: (end: End) => void;
	#deadline: Timer | null = null;
	#next: Timer | null = null;
	#delayMs = FIRST_MS;
	#asked = 0;
	#ended = false;

	constructor(request: SyncRequest, dependencies: SyncWaitsDependencies, onEnd: (end: End) => void) {
		this.#request = request;
		this.#dependencies = dependencies;
		this.#onEnd = onEnd;
	}

	begin(): void {
		const { hash, begun, until } = this.#request;
		const { clock } = this.#dependencies;
		this.#deadline = clock.after(Math.max(0, until - clock.monotonic()), () =>
			this.#fail(timedOut(hash, until - begun)),
		);
		this.#later();
	}

	/** Answers it now. */
	stop(why: string): void {
		const { hash, begun } = this.#request;
		this.#fail(timedOut(hash, this.#dependencies.clock.monotonic() - begun, why));
	}

	#later(): void {
		if (this.#ended) return;
		this.#next = this.#dependencies.clock.after(this.#delayMs, () => {
			this.#ask().then(
				() => this.#later(),
				(thrown: unknown) => this.#fail(thrown),
			);
		});
		this.#delayMs = Math.min(this.#delayMs * GROWTH, LATEST_MS);
	}

	/** Asks for the receipt, and every second time, not the first, why there is none: it has just come. */
	async #ask(): Promise<void> {
		const { readReceipt, whyNotSoon } = this.#dependencies;
		const { hash, state } = this.#request;
		const receipt = await readReceipt(hash, state, this.#questionMs());
		if (receipt !== null && receipt !== undefined) {
			this.#end({ ok: true, receipt });
			return;
		}
		this.#asked += 1;
		if (this.#ended || this.#asked % 2 === 1) return;
		const why = await whyNotSoon(hash, this.#questionMs());
		if (why !== null) this.#fail(notSoon(hash, why));
	}

	#questionMs(): number {
		const leftMs = this.#request.until - this.#dependencies.clock.monotonic();
		return Math.max(1, Math.min(QUESTION_MS, leftMs));
	}

	#fail(thrown: unknown): void {
		this.#end({ ok: false, thrown });
	}

	#end(end: End): void {
		if (this.#ended) return;
		this.#ended = true;
		this.#deadline?.cancel();
		this.#next?.cancel();
		this.#onEnd(end);
	}
}
