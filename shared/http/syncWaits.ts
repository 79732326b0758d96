// Calls that wait for a receipt (EIP-7966): who may wait, for how long, and what ends a wait. How the receipt is found is
// plugged in, since relay and boost find it differently and must wait alike.

import type { Clock } from "../clock.ts";
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

/** Resolves with the receipt of `call`, or rejects with why there will be none soon. `signal` ends the search. */
export type FindReceipt<Call extends SyncCall> = (call: Call, signal: AbortSignal) => Promise<unknown>;

interface SyncWaitsOptions {
	/** How many may wait; a limit that is left out is that of {@link ROOM}. */
	readonly limits: Pick<WaitingRoomLimits, "maxWaits"> & Partial<WaitingRoomLimits>;
	/** The reason that waiting calls are given when the process stops. */
	readonly stopping: string;
}

interface SyncWaitsDependencies<Call extends SyncCall> {
	readonly find: FindReceipt<Call>;
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
	/** Each ends one wait, with the reason. */
	readonly #open = new Set<(why: string) => void>();
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
	 * there is no room, the process stops or the client has gone; and what the search rejects with. No call waits longer
	 * than it asked for.
	 */
	wait(call: Call): Promise<unknown> {
		const { hash, begun, until, life } = call;
		const { find, clock } = this.#with;
		const ended = (why: string) => timedOut(hash, clock.monotonic() - begun, why);
		const why = this.#closed ? this.#stopping : this.#room.enter(call) ? null : TOO_MANY;
		if (why !== null) return Promise.reject(ended(why));
		const search = new AbortController();
		return new Promise((resolve, reject) => {
			const end = (settle: () => void): void => {
				if (!this.#open.delete(stop)) return;
				this.#room.leave(call);
				deadline.cancel();
				search.abort();
				settle();
			};
			const stop = (why: string) => end(() => reject(ended(why)));
			this.#open.add(stop);
			const deadline = clock.after(Math.max(0, until - clock.monotonic()), () =>
				end(() => reject(timedOut(hash, until - begun))),
			);
			find(call, search.signal).then(
				(receipt) => end(() => resolve(receipt)),
				(thrown: unknown) => end(() => reject(thrown)),
			);
			life.onGone(() => stop("its client has gone"));
		});
	}

	/** Answers all that wait, and all that come later: the process stops. What they wait for is kept, and lives on. */
	close(): void {
		this.#closed = true;
		for (const stop of [...this.#open]) stop(this.#stopping);
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
