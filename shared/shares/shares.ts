// What each client holds of one scarce thing: connections, bytes, places. Every bound on what one client may take from the
// others is kept by this table; who is one client is clientOf's to say (http/callContext.ts). Where calls of one client ask for
// the same, they share one turn.

import type { FairScheduler, JobOptions } from "./scheduler.ts";

export interface SharesOptions {
	/** What there is in all. */
	readonly total: number;
	/** What one client may hold at most. */
	readonly perClient: number;
}

/** Why nothing was taken: the client has its share, or all of it is taken. */
export type OverShare = "client" | "total";

/** What the metrics tell of shares. */
export const FULLNESS_OF = ["all", "client"] as const;
export type Fullness = Readonly<Record<(typeof FULLNESS_OF)[number], number>>;

/** The fuller of several, in each respect. */
export function fullest(many: readonly Fullness[]): Fullness {
	const most = (of: keyof Fullness) => Math.max(0, ...many.map((one) => one[of]));
	return { all: most("all"), client: most("client") };
}

/** What is held of one thing, by client. */
export class Shares {
	readonly #options: SharesOptions;
	/** Only clients that hold something. */
	readonly #held = new Map<string, number>();
	#taken = 0;

	constructor(options: SharesOptions) {
		this.#options = options;
	}

	/** What all clients hold. */
	get taken(): number {
		return this.#taken;
	}

	/** What `client` holds. */
	of(client: string): number {
		return this.#held.get(client) ?? 0;
	}

	/** What stands against `client` taking `amount` more, or null. */
	refusal(client: string, amount: number): OverShare | null {
		if (this.of(client) + amount > this.#options.perClient) return "client";
		return this.#taken + amount > this.#options.total ? "total" : null;
	}

	/** Takes `amount` for `client`, or nothing: then the answer says why. */
	take(client: string, amount: number): OverShare | null {
		const refusal = this.refusal(client, amount);
		if (refusal === null) this.force(client, amount);
		return refusal;
	}

	/** Takes `amount` whatever the bounds say: for what was acknowledged before, as at a start. */
	force(client: string, amount: number): void {
		this.#taken += amount;
		this.#held.set(client, this.of(client) + amount);
	}

	/** Gives back what was taken. */
	give(client: string, amount: number): void {
		this.#taken -= amount;
		const left = this.of(client) - amount;
		if (left > 0) this.#held.set(client, left);
		else this.#held.delete(client);
	}

	/** How full it is, for metrics: of all that there is, and of one client's part by whoever holds the most; 1 is full. */
	get fullness(): Fullness {
		const { total, perClient } = this.#options;
		return { all: this.#taken / total, client: this.of(this.largest() ?? "") / perClient };
	}

	/** The client that holds the most, or null where nobody holds anything. */
	largest(): string | null {
		let largest: string | null = null;
		for (const client of this.#held.keys()) {
			if (largest === null || this.of(client) > this.of(largest)) largest = client;
		}
		return largest;
	}
}

/** So many bytes may be taken at a time. */
export class ByteBudget {
	readonly #shares: Shares;
	readonly #blocked = new Set<() => void>();

	constructor(options: SharesOptions) {
		this.#shares = new Shares(options);
	}

	/** Takes `bytes` for `client`; where they don't fit nothing is taken, and `again` is called once some are given back. */
	take(client: string, bytes: number, again: () => void): boolean {
		const refusal = this.#shares.refusal(client, bytes);
		// What is more than the whole budget goes alone.
		const held = refusal === "client" ? this.#shares.of(client) : this.#shares.taken;
		if (refusal !== null && held > 0) {
			this.#blocked.add(again);
			return false;
		}
		this.#shares.force(client, bytes);
		return true;
	}

	/** Gives back what was taken. */
	give(client: string, bytes: number): void {
		this.#shares.give(client, bytes);
		const blocked = [...this.#blocked];
		this.#blocked.clear();
		for (const again of blocked) again();
	}

	/** Forgets one that waits: it has ended. */
	forget(again: () => void): void {
		this.#blocked.delete(again);
	}
}

/** One call for a job. */
interface Turn<T> {
	/** What the job answers; rejects as {@link FairScheduler.run} does, and with {@link GivenUpError}. */
	readonly answer: Promise<T>;
	/** Leaves. May be called at any time, and again; a job that runs goes on. */
	readonly leave: () => void;
}

/** Rejects a job that all its callers have left before its turn. */
export class GivenUpError extends Error {
	readonly code = "GIVEN_UP";
	constructor() {
		super("given up before its turn");
		this.name = "GivenUpError";
	}
}

interface Waiting<T> {
	readonly answer: Promise<T>;
	/** Those who have not left. */
	callers: number;
	readonly abandon: () => void;
}

/** Turns at what `scheduler` runs. */
export class SharedTurns<T> {
	readonly #scheduler: FairScheduler;
	readonly #waiting = new Map<string, Waiting<T>>();

	constructor(scheduler: FairScheduler) {
		this.#scheduler = scheduler;
	}

	/** Asks for the job of this name, which is `work` unless the client waits for it already. */
	join(name: string, options: Omit<JobOptions, "signal">, work: () => Promise<T>): Turn<T> {
		const key = `${options.client} ${options.urgent === true} ${name}`;
		const waiting = this.#waiting.get(key) ?? this.#wait(key, options, work);
		waiting.callers += 1;
		let left = false;
		return {
			answer: waiting.answer,
			leave() {
				if (left) return;
				left = true;
				waiting.callers -= 1;
				if (waiting.callers === 0) waiting.abandon();
			},
		};
	}

	#wait(key: string, options: Omit<JobOptions, "signal">, work: () => Promise<T>): Waiting<T> {
		const abort = new AbortController();
		let waits = true;
		const ends = (): void => {
			if (waits) this.#waiting.delete(key);
			waits = false;
		};
		const answer = this.#scheduler.run({ signal: abort.signal, ...options }, () => {
			ends();
			return work();
		});
		const abandon = (): void => {
			ends();
			abort.abort(new GivenUpError());
		};
		const waiting = { answer, callers: 0, abandon };
		if (waits) {
			this.#waiting.set(key, waiting);
			answer.catch(ends);
		}
		return waiting;
	}
}
