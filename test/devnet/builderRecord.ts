// Records the JSON-RPC calls that a dev builder received, with their answers, so that tests can
// search and await them. The record is bounded. It does not interpret calls.

import { systemClock, withDeadline } from "../../shared/clock.ts";

/** A received JSON-RPC call. */
export interface RecordedRequest {
	/** 1 for the first call, 2 for the second, and so on. */
	readonly seq: number;
	/** Time of arrival, in Unix ms. */
	readonly at: number;
	/** Empty if the call had none. A body that is not JSON is not recorded. */
	readonly method: string;
	readonly params: readonly unknown[];
	/** Its JSON-RPC id. */
	readonly id: unknown;
	/** The signer of the HTTP request, checksummed; null without a valid signature. */
	readonly signer: string | null;
	/** Headers of the HTTP request, with lower-case names. */
	readonly headers: Readonly<Record<string, string>>;
	/** Path and query of the HTTP request. */
	readonly path: string;
	/** Index in its JSON-RPC batch; null if it was in none. */
	readonly batchIndex: number | null;
	/** The JSON-RPC answer; null if a fault prevented it. */
	readonly answer: RecordedAnswer | null;
	/** The fault that was applied to it, a name of `Faults`, or null. */
	readonly fault: string | null;
	/** Its effects as text, for people: "order 3 taken", "order 2 replaced". */
	readonly effects: readonly string[];
}

/** A JSON-RPC answer. */
export type RecordedAnswer =
	| { readonly result: unknown }
	| { readonly error: { readonly code: number; readonly message: string } };

/** A method's name, or a predicate. */
export type RequestFilter = string | ((request: RecordedRequest) => boolean);

/**
 * The record of one builder: it keeps at least the last `limit` requests, and at most twice as
 * many.
 */
export class BuilderRecord {
	readonly #limit: number;
	#requests: RecordedRequest[] = [];
	#seq = 0;
	readonly #waiting = new Set<(request: RecordedRequest) => void>();

	constructor(limit: number) {
		this.#limit = limit;
	}

	/** Adds a request, and wakes those that wait for it. */
	add(request: Omit<RecordedRequest, "seq">): void {
		const kept = { seq: ++this.#seq, ...request };
		this.#requests.push(kept);
		if (this.#requests.length > 2 * this.#limit) this.#requests = this.#requests.slice(-this.#limit);
		for (const wake of this.#waiting) wake(kept);
	}

	/** The requests that match `filter`, oldest first. */
	list(filter: RequestFilter = () => true): RecordedRequest[] {
		return this.#requests.filter(predicateOf(filter));
	}

	/**
	 * The first request that matches `filter`, now or within `timeoutMs`. Rejects after that time.
	 */
	async wait(filter: RequestFilter, timeoutMs: number): Promise<RecordedRequest> {
		const takes = predicateOf(filter);
		let wake = (_: RecordedRequest): void => {};
		const coming = new Promise<RecordedRequest>((resolve) => {
			wake = (request) => takes(request) && resolve(request);
		});
		this.#waiting.add(wake);
		for (const request of this.#requests) wake(request);
		const what = typeof filter === "string" ? `a request of ${filter}` : "the request waited for";
		try {
			return await withDeadline(systemClock, what, timeoutMs, () => coming);
		} finally {
			this.#waiting.delete(wake);
		}
	}

	/** Forgets all requests; waits go on. */
	clear(): void {
		this.#requests = [];
	}
}

function predicateOf(filter: RequestFilter): (request: RecordedRequest) => boolean {
	return typeof filter === "string" ? (request) => request.method === filter : filter;
}
