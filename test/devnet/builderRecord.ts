// Records every JSON-RPC call that a dev builder received, with its answer, for tests to search and wait for. It is
// bounded, and never looks into a call.

import { systemClock, withDeadline } from "../../shared/clock.ts";

/** One JSON-RPC call as it was received. */
export interface RecordedRequest {
	/** 1 for the first; grows by one a call. */
	readonly seq: number;
	/** When it was received, Unix ms. */
	readonly at: number;
	/** Empty where the call had none. A body that is no JSON at all is not recorded. */
	readonly method: string;
	readonly params: readonly unknown[];
	/** Its JSON-RPC id. */
	readonly id: unknown;
	/** Who signed the HTTP request, checksummed; null where it was not signed, or wrongly. */
	readonly signer: string | null;
	/** Of the HTTP request; lower-case names. */
	readonly headers: Readonly<Record<string, string>>;
	/** Path and query of the HTTP request. */
	readonly path: string;
	/** Place in its JSON-RPC batch; null outside of one. */
	readonly batchIndex: number | null;
	/** The JSON-RPC answer; null where a fault kept it back. */
	readonly answer: RecordedAnswer | null;
	/** The fault it met, if any: a name of `Faults`. */
	readonly fault: string | null;
	/** What it did, for people to read: "order 3 taken", "order 2 replaced". */
	readonly effects: readonly string[];
}

/** An answer as it was given. */
export type RecordedAnswer =
	| { readonly result: unknown }
	| { readonly error: { readonly code: number; readonly message: string } };

/** A method's name, or a predicate. */
export type RequestFilter = string | ((request: RecordedRequest) => boolean);

/** The record of one builder: it keeps `limit` requests at least, and twice as many at most. */
export class BuilderRecord {
	readonly #limit: number;
	#requests: RecordedRequest[] = [];
	#seq = 0;
	readonly #waiting = new Set<(request: RecordedRequest) => void>();

	constructor(limit: number) {
		this.#limit = limit;
	}

	/** Adds one and wakes who waits for it. */
	add(request: Omit<RecordedRequest, "seq">): void {
		const kept = { seq: ++this.#seq, ...request };
		this.#requests.push(kept);
		if (this.#requests.length > 2 * this.#limit) this.#requests = this.#requests.slice(-this.#limit);
		for (const wake of this.#waiting) wake(kept);
	}

	/** Those that `filter` takes, oldest first. */
	list(filter: RequestFilter = () => true): RecordedRequest[] {
		return this.#requests.filter(predicateOf(filter));
	}

	/** The first that `filter` takes, now or within `timeoutMs`. Rejects when the time is up. */
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

	/** Forgets all requests; who waits, waits on. */
	clear(): void {
		this.#requests = [];
	}
}

function predicateOf(filter: RequestFilter): (request: RecordedRequest) => boolean {
	return typeof filter === "string" ? (request) => request.method === filter : filter;
}
