// Calls that wait for a receipt: a hash and a time come in, the receipt goes out, or the error that tells why there will
// be none soon (EIP-7966). Who knows of receipts is plugged in; room, time and the ends of a wait are kept here.

import type { Clock, Timer } from "../clock.ts";
import { timedOut } from "../jsonrpc/sendSync.ts";
import { type Waiting, WaitingRoom, type WaitingRoomLimits } from "./waitingRoom.ts";

/** What somebody waits for; times are in ms of the clock's monotonic reading. */
export interface SyncCall extends Waiting {
	/** Of a transaction that was acknowledged, lower case. */
	readonly hash: string;
	/** When its call began. */
	readonly begun: number;
	/** When it must be answered. */
	readonly until: number;
}

/** Ends a wait; what comes after its first end is passed over. */
export interface SyncEnd {
	/** Whether it has ended: by its time or its client, too. */
	readonly ended: boolean;
	mined(receipt: unknown): void;
	fail(thrown: unknown): void;
}

export interface SyncWaitsOptions {
	/** How many may wait; what else is left out is {@link ROOM}. */
	readonly limits: Pick<WaitingRoomLimits, "maxWaits"> & Partial<WaitingRoomLimits>;
	/** What who waits is told when the process stops. */
	readonly stopping: string;
}

export interface SyncWaitsDependencies<Call extends SyncCall> {
	/** Looks for the receipt of `call`, and ends the wait by it. What it gives back is called once the wait has ended. */
	readonly look: (call: Call, end: SyncEnd) => () => void;
	readonly clock: Clock;
}

/** A wait holds its request, of up to 2 MiB, for long: what servers take in at a time must not be full of such. */
const ROOM = {
	maxPerClient: 256,
	maxBytes: 64 * 1024 * 1024,
	maxBytesPerClient: 8 * 1024 * 1024,
};

const TOO_MANY = "too many calls wait already, ask for its receipt";

/** All waits of the process. */
export class SyncWaits<Call extends SyncCall = SyncCall> {
	readonly #stopping: string;
	readonly #with: SyncWaitsDependencies<Call>;
	readonly #room: WaitingRoom;
	readonly #open = new Set<Wait<Call>>();
	#closed = false;

	constructor({ limits, stopping }: SyncWaitsOptions, dependencies: SyncWaitsDependencies<Call>) {
		this.#stopping = stopping;
		this.#with = dependencies;
		this.#room = new WaitingRoom({ ...ROOM, ...limits });
	}

	/** How many wait. */
	get size(): number {
		return this.#open.size;
	}

	/**
	 * The receipt once the transaction is mined. Throws RpcError `timedOut` when the time is up, there is no room, the
	 * process stops or the client has gone, and what else the look for it fails with: each with the hash as data. Nobody
	 * waits longer than asked for, whatever those who are asked do.
	 */
	wait(call: Call): Promise<unknown> {
		const { hash, begun, life } = call;
		const why = this.#closed ? this.#stopping : this.#room.enter(call) ? null : TOO_MANY;
		if (why !== null) return Promise.reject(timedOut(hash, this.#with.clock.monotonic() - begun, why));
		return new Promise((resolve, reject) => {
			const wait = new Wait(call, this.#with, (answer) => {
				this.#open.delete(wait);
				this.#room.leave(call);
				answer(resolve, reject);
			});
			this.#open.add(wait);
			wait.begin();
			life.onGone(() => wait.stop("its client has gone"));
		});
	}

	/** Answers all that wait, and all that come later: the process stops. What they wait for is kept, and lives on. */
	close(): void {
		this.#closed = true;
		for (const wait of [...this.#open]) wait.stop(this.#stopping);
	}
}

type Answer = (resolve: (receipt: unknown) => void, reject: (thrown: unknown) => void) => void;

/** One wait. `begin` must be called once. */
class Wait<Call extends SyncCall> implements SyncEnd {
	readonly #call: Call;
	readonly #with: SyncWaitsDependencies<Call>;
	/** Called once. */
	readonly #onEnd: (answer: Answer) => void;
	#deadline: Timer | null = null;
	#stopLooking: (() => void) | null = null;
	#ended = false;

	constructor(call: Call, dependencies: SyncWaitsDependencies<Call>, onEnd: (answer: Answer) => void) {
		this.#call = call;
		this.#with = dependencies;
		this.#onEnd = onEnd;
	}

	get ended(): boolean {
		return this.#ended;
	}

	begin(): void {
		const { hash, begun, until } = this.#call;
		const { look, clock } = this.#with;
		this.#deadline = clock.after(Math.max(0, until - clock.monotonic()), () =>
			this.fail(timedOut(hash, until - begun)),
		);
		this.#stopLooking = look(this.#call, this);
		if (this.#ended) this.#stopLooking();
	}

	/** Answers it now. */
	stop(why: string): void {
		const { hash, begun } = this.#call;
		this.fail(timedOut(hash, this.#with.clock.monotonic() - begun, why));
	}

	mined(receipt: unknown): void {
		this.#end((resolve) => resolve(receipt));
	}

	fail(thrown: unknown): void {
		this.#end((_, reject) => reject(thrown));
	}

	#end(answer: Answer): void {
		if (this.#ended) return;
		this.#ended = true;
		this.#deadline?.cancel();
		this.#stopLooking?.();
		this.#onEnd(answer);
	}
}
