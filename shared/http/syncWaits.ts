// Calls that wait for a receipt (EIP-7966). What knows of receipts is plugged in; room, time and the ends of a wait are
// kept here, since relay and boost must keep them alike.

import type { Clock, Timer } from "../clock.ts";
import { timedOut } from "../jsonrpc/sendSync.ts";
import { Shares } from "../shares/shares.ts";
import type { RequestLife } from "./callContext.ts";

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

interface SyncWaitsOptions {
	/** How many may wait; a limit that is left out is that of {@link ROOM}. */
	readonly limits: Pick<WaitingRoomLimits, "maxWaits"> & Partial<WaitingRoomLimits>;
	/** The reason that waiting calls are given when the process stops. */
	readonly stopping: string;
}

interface SyncWaitsDependencies<Call extends SyncCall> {
	/** Starts to look for the receipt of `call`, and ends the wait with it. Returns what stops the look, called once. */
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
	 * The receipt once the transaction is mined. Throws RpcError `timedOut`, with the hash as data, when the time is up,
	 * there is no room, the process stops or the client has gone; and what the look passes to `fail`. No call waits longer
	 * than it asked for.
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

export interface WaitingRoomLimits {
	/** Waits at a time at most, of all and of one client: fewer than there may be requests, and no client has all. */
	readonly maxWaits: number;
	readonly maxPerClient: number;
	/** Bytes of the requests that are held at most, of all and of one client. */
	readonly maxBytes: number;
	readonly maxBytesPerClient: number;
}

/** A call that waits. */
interface Waiting {
	/** Whose wait it is, as limits count. */
	readonly client: string;
	/** What it came with, which is held while it waits. */
	readonly life: RequestLife;
}

/** Counts who waits; whoever was let in must be let go once. */
export class WaitingRoom {
	readonly #waits: Shares;
	readonly #bytes: Shares;
	/** Waits of each request: a batch is held once, however many of its calls wait. */
	readonly #byRequest = new Map<RequestLife, number>();

	constructor({ maxWaits, maxPerClient, maxBytes, maxBytesPerClient }: WaitingRoomLimits) {
		this.#waits = new Shares({ total: maxWaits, perClient: maxPerClient });
		this.#bytes = new Shares({ total: maxBytes, perClient: maxBytesPerClient });
	}

	/** Takes room for one more; false where there is none. */
	enter({ client, life }: Waiting): boolean {
		const ofRequest = this.#byRequest.get(life) ?? 0;
		const bytes = ofRequest === 0 ? life.bytes : 0;
		if (this.#waits.refusal(client, 1) !== null || this.#bytes.refusal(client, bytes) !== null) return false;
		this.#waits.force(client, 1);
		this.#bytes.force(client, bytes);
		this.#byRequest.set(life, ofRequest + 1);
		return true;
	}

	/** Gives back what {@link enter} took. */
	leave({ client, life }: Waiting): void {
		const ofRequest = (this.#byRequest.get(life) ?? 1) - 1;
		if (ofRequest === 0) this.#byRequest.delete(life);
		else this.#byRequest.set(life, ofRequest);
		this.#waits.give(client, 1);
		this.#bytes.give(client, ofRequest === 0 ? life.bytes : 0);
	}
}
