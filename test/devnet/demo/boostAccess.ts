// Boost as a user and an operator see it: submits, asks, and tells who gave each answer. It keeps nothing.

import { systemClock, withDeadline } from "../../../shared/clock.ts";

/** What boost says of a submission. */
export interface Boosted {
	/** Of the transaction; null where it was refused. */
	readonly hash: string | null;
	/** `X-Boost-Upstream`. */
	readonly by: string;
	/** `X-Boost-Breaker`: of the relay. */
	readonly breaker: string;
	/** The refusal; "" where there was none. */
	readonly why: string;
}

/** `GET /status`, as far as the demo reads it. */
export interface BoostStatus {
	readonly relay: { readonly state: string; readonly reason: string | null };
	readonly fallback: { readonly state: string };
	readonly journal: { readonly depth: number };
}

const CALL_MS = 10_000;

/** Submits a signed transaction on `path`. */
export function submitBoosted(url: string, path: string, raw: string): Promise<Boosted> {
	const call = { jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] };
	return withDeadline(systemClock, "boost", CALL_MS, async (signal) => {
		const answer = await fetch(`${url}${path}`, {
			...{ method: "POST", signal, body: JSON.stringify(call) },
			headers: { "content-type": "application/json" },
		});
		const { result, error } = (await answer.json()) as {
			readonly result?: string;
			readonly error?: { readonly message: string };
		};
		const header = (name: string): string => answer.headers.get(name) ?? "";
		return {
			hash: result ?? null,
			by: header("x-boost-upstream"),
			breaker: header("x-boost-breaker"),
			why: error?.message ?? "",
		};
	});
}

/** How boost sees its relay, and how much it answers for. */
export function boostStatus(url: string): Promise<BoostStatus> {
	return withDeadline(systemClock, "boost", CALL_MS, async (signal) => {
		const answer = await fetch(`${url}/status`, { signal });
		return (await answer.json()) as BoostStatus;
	});
}
