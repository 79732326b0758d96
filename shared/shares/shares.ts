// Counts each client's usage of a limited resource (connections, bytes, waits), with a limit for
// all clients and one for each. Also merges equal calls of one client into one job. clientOf
// (client.ts) identifies the clients.

import type { FairScheduler, JobOptions } from "./scheduler.ts";

export interface SharesOptions {
	/** For all clients. */
	readonly total: number;
	/** For one client. */
	readonly perClient: number;
}

/** Which limit is exceeded: the client's or the total. */
export type OverShare = "client" | "total";

/** Labels for metrics. */
export const FULLNESS_OF = ["all", "client"] as const;
export type Fullness = Readonly<Record<(typeof FULLNESS_OF)[number], number>>;

/** The maximum of several, for each label. */
export function fullest(many: readonly Fullness[]): Fullness {
	const most = (of: keyof Fullness) => Math.max(0, ...many.map((one) => one[of]));
	return { all: most("all"), client: most("client") };
}

/** The usage of one resource by client. */
export class Shares {
	readonly #options: SharesOptions;
	/** Clients with usage above 0. */
	readonly #held = new Map<string, number>();
	#taken = 0;

	constructor(options: SharesOptions) {
		this.#options = options;
	}

	/** Usage of all clients together. */
	get taken(): number {
		return this.#taken;
	}

	/** Usage of `client`. */
	of(client: string): number {
		return this.#held.get(client) ?? 0;
	}

	/** The limit that `client` would exceed with `amount` more, or null. */
	exceeded(client: string, amount: number): OverShare | null {
		if (this.of(client) + amount > this.#options.perClient) return "client";
		return this.#taken + amount > this.#options.total ? "total" : null;
	}

	/** Takes `amount` for `client`, or returns the limit that it would exceed. */
	take(client: string, amount: number): OverShare | null {
		const over = this.exceeded(client, amount);
		if (over === null) this.takeAnyway(client, amount);
		return over;
	}

	/**
	 * Takes `amount` regardless of limits, for example for transactions that were acknowledged
	 * before a restart.
	 */
	takeAnyway(client: string, amount: number): void {
		this.#taken += amount;
		this.#held.set(client, this.of(client) + amount);
	}

	/** Releases `amount` that was taken. */
	release(client: string, amount: number): void {
		this.#taken -= amount;
		const left = this.of(client) - amount;
		if (left > 0) this.#held.set(client, left);
		else this.#held.delete(client);
	}

	/**
	 * Usage as a fraction of the limits, for metrics: of all clients, and of the client with the
	 * most. 1 is full.
	 */
	get fullness(): Fullness {
		const { total, perClient } = this.#options;
		return { all: this.#taken / total, client: this.of(this.largest() ?? "") / perClient };
	}

	/** The client with the highest usage, or null if there is none. */
	largest(): string | null {
		let largest: string | null = null;
		for (const client of this.#held.keys()) {
			if (largest === null || this.of(client) > this.of(largest)) largest = client;
		}
		return largest;
	}
}

/** Limits the bytes in use. Callers can wait for free bytes. */
export class ByteBudget {
	readonly #shares: Shares;
	readonly #blocked = new Set<() => void>();

	constructor(options: SharesOptions) {
		this.#shares = new Shares(options);
	}

	/**
	 * Takes `bytes` for `client`. If they don't fit, returns false, and `retry` is called once bytes
	 * are released.
	 */
	take(client: string, bytes: number, retry: () => void): boolean {
		const over = this.#shares.exceeded(client, bytes);
		// More bytes than the whole budget are allowed if nothing else uses it.
		const held = over === "client" ? this.#shares.of(client) : this.#shares.taken;
		if (over !== null && held > 0) {
			this.#blocked.add(retry);
			return false;
		}
		this.#shares.takeAnyway(client, bytes);
		return true;
	}

	/** Releases `bytes` that were taken. */
	release(client: string, bytes: number): void {
		this.#shares.release(client, bytes);
		const blocked = [...this.#blocked];
		this.#blocked.clear();
		for (const retry of blocked) retry();
	}

	/** Cancels a retry. */
	forget(retry: () => void): void {
		this.#blocked.delete(retry);
	}
}

/** One caller's membership in a job. */
interface JobShare<T> {
	/** The job's result; rejects like {@link FairScheduler.run}, and with {@link AbandonedError}. */
	readonly answer: Promise<T>;
	/** May be called at any time and repeatedly; a running job continues. */
	readonly leave: () => void;
}

/** Rejects a job that all its callers have left before it started. */
export class AbandonedError extends Error {
	readonly code = "ABANDONED";
	constructor() {
		super("abandoned before it started");
		this.name = "AbandonedError";
	}
}

interface Waiting<T> {
	readonly answer: Promise<T>;
	/** Callers that have not left. */
	callers: number;
	readonly abandon: () => void;
}

/** Jobs of `scheduler`, each of which may serve several calls of one client. */
export class SharedJobs<T> {
	readonly #scheduler: FairScheduler;
	readonly #waiting = new Map<string, Waiting<T>>();

	constructor(scheduler: FairScheduler) {
		this.#scheduler = scheduler;
	}

	/** Joins the client's queued job of this name, or queues `work` under the name. */
	join(name: string, options: JobOptions, work: () => Promise<T>): JobShare<T> {
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

	#wait(key: string, options: JobOptions, work: () => Promise<T>): Waiting<T> {
		let waits = true;
		const ends = (): void => {
			if (waits) this.#waiting.delete(key);
			waits = false;
		};
		const { result: answer, withdraw } = this.#scheduler.queue(options, () => {
			ends();
			return work();
		});
		const abandon = (): void => {
			ends();
			withdraw(new AbandonedError());
		};
		const waiting = { answer, callers: 0, abandon };
		if (waits) {
			this.#waiting.set(key, waiting);
			answer.catch(ends);
		}
		return waiting;
	}
}
