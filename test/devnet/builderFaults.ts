// Decides which fault, if any, the next HTTP request meets. builderServer.ts acts on it.

/**
 * Faults that can be switched on. Several at once: of down, hang, httpError, nonsense, reject, odd the first counts,
 * and `slow` goes with any.
 */
export interface Faults {
	/** Answers this many ms late; the request takes effect at once. */
	readonly slow?: number;
	/** Destroys the socket of every request; nothing is recorded. */
	readonly down?: boolean;
	/** Records the request and never answers; it takes no effect. */
	readonly hang?: boolean;
	/** 500 with a text body; no effect. */
	readonly httpError?: boolean;
	/** 200 with an HTML page, or with half of a JSON answer; no effect. */
	readonly nonsense?: "html" | "truncated";
	/** A JSON-RPC error to each call (true: -32000); no effect. */
	readonly reject?: boolean | { readonly code: number; readonly message: string };
	/** Takes effect, with one of builders' odd real answers: `{"result":200,"error":null}`, a null result, text. */
	readonly odd?: "number" | "null" | "text";
	/** Only requests that hold one of these methods are treated so. */
	readonly only?: readonly string[];
	/** The faults lift after so many requests that met them. */
	readonly times?: number;
}

/** What one request meets. */
export type MetFault =
	| { readonly kind: "down" | "hang" | "httpError"; readonly slowMs: number }
	| { readonly kind: "nonsense"; readonly slowMs: number; readonly body: "html" | "truncated" }
	| { readonly kind: "reject"; readonly slowMs: number; readonly error: { code: number; message: string } }
	| { readonly kind: "odd"; readonly slowMs: number; readonly answer: "number" | "null" | "text" }
	/** Nothing but late. */
	| { readonly kind: "slow"; readonly slowMs: number };

const KEYS = ["slow", "down", "hang", "httpError", "nonsense", "reject", "odd", "only", "times"] as const;

/** The faults of one builder. */
export class FaultSwitch {
	#faults: Faults = {};
	#left = Number.POSITIVE_INFINITY;

	/** Those that are on. */
	get on(): Faults {
		return this.#faults;
	}

	/** Replaces what is on; `{}` lifts all. Throws for a key that is none. */
	set(faults: Faults): void {
		const unknown = Object.keys(faults).find((key) => !KEYS.some((known) => known === key));
		if (unknown !== undefined) throw new Error(`no such fault: ${unknown}`);
		this.#faults = faults;
		this.#left = faults.times ?? Number.POSITIVE_INFINITY;
	}

	/** What a request with `methods` meets, null for nothing; it counts as one of `times`. */
	meet(methods: readonly string[]): MetFault | null {
		const { only } = this.#faults;
		if (only !== undefined && !methods.some((method) => only.includes(method))) return null;
		const met = metBy(this.#faults);
		if (met === null) return null;
		this.#left -= 1;
		if (this.#left <= 0) this.set({});
		return met;
	}
}

function metBy(faults: Faults): MetFault | null {
	const slowMs = faults.slow ?? 0;
	if (faults.down === true) return { kind: "down", slowMs };
	if (faults.hang === true) return { kind: "hang", slowMs };
	if (faults.httpError === true) return { kind: "httpError", slowMs };
	if (faults.nonsense !== undefined) return { kind: "nonsense", slowMs, body: faults.nonsense };
	if (faults.reject === true) return { kind: "reject", slowMs, error: { code: -32000, message: "rejected" } };
	if (typeof faults.reject === "object") return { kind: "reject", slowMs, error: faults.reject };
	if (faults.odd !== undefined) return { kind: "odd", slowMs, answer: faults.odd };
	return slowMs > 0 ? { kind: "slow", slowMs } : null;
}
