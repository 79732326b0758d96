// The relay and boost over HTTP, as a user and an operator see them. It keeps nothing.

import { systemClock, withDeadline } from "../../../shared/clock.ts";

/** `GET /tx/{hash}`, as far as the demo reads it. */
export interface StatusAnswer {
	readonly status: string;
	readonly stage?: string;
	readonly backruns: number;
	/** ETH. */
	readonly refund: number;
}

/** `GET /tx/{hash}/events`, as far as the demo reads it. */
export interface EventsAnswer {
	readonly events: readonly ({ readonly type: string } | RefundedEvent)[];
	/** How builders took a cancel; `summary` is "5 of 7 builders confirmed". */
	readonly cancels?: { readonly builders: number; readonly confirmed: number; readonly summary: string };
}

/** The event `refunded`: wei as decimal text, addresses lower case. */
export interface RefundedEvent {
	readonly type: "refunded";
	readonly block: number;
	readonly bundle: string;
	readonly backrun: string;
	readonly bid: string;
	readonly brought: string;
	readonly cost: string;
	readonly owed: string;
	readonly paid: string;
	readonly payer: string;
	readonly recipient: string;
}

/** Boost's `GET /status`, as far as the demo reads it. */
export interface BoostStatus {
	readonly relay: { readonly state: string; readonly reason: string | null };
	readonly fallback: { readonly state: string };
	readonly journal: { readonly depth: number };
}

/** What is said to a submission. */
export interface Submitted {
	/** Of the transaction; null where it was refused. */
	readonly hash: string | null;
	/** `X-Boost-Upstream` and `X-Boost-Breaker`. */
	readonly by: string;
	readonly breaker: string;
	/** The refusal; "" where there was none. */
	readonly why: string;
}

const CALL_MS = 10_000;

/** Submits a signed transaction at `url`, whose path is an endpoint. */
export async function submit(url: string, raw: string): Promise<Submitted> {
	const { headers, json } = await fetched(url, callOf("eth_sendRawTransaction", [raw]));
	const { result = null, error } = json as { result?: string; error?: { message: string } };
	const header = (name: string): string => headers.get(name) ?? "";
	const [by, breaker] = [header("x-boost-upstream"), header("x-boost-breaker")];
	return { hash: result, by, breaker, why: error?.message ?? "" };
}

/** One call's result. Throws with the relay's refusal. */
export async function call(url: string, method: string, ...params: readonly unknown[]): Promise<unknown> {
	const { json } = await fetched(`${url}/fast`, callOf(method, params));
	const { result, error } = json as { result?: unknown; error?: { message: string } };
	if (error !== undefined) throw new Error(`the relay refuses it: ${error.message}`);
	return result;
}

/** A page's JSON. */
export async function page<T>(url: string): Promise<T> {
	return (await fetched(url)).json as T;
}

/** What came of the backrun behind it; null while the relay does not say. */
export async function refunded(url: string, hash: string): Promise<RefundedEvent | null> {
	const { events } = await page<EventsAnswer>(`${url}/tx/${hash}/events`);
	return events.find((one): one is RefundedEvent => one.type === "refunded") ?? null;
}

function callOf(method: string, params: readonly unknown[]): RequestInit {
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
	return { method: "POST", headers: { "content-type": "application/json" }, body };
}

function fetched(url: string, init?: RequestInit): Promise<{ headers: Headers; json: unknown }> {
	return withDeadline(systemClock, `the answer of ${url}`, CALL_MS, async (signal) => {
		const answer = await fetch(url, { ...init, signal });
		return { headers: answer.headers, json: await answer.json() };
	});
}
