// The relay as a user sees it, and boost as a user and an operator do: submits and asks over HTTP, and tells who gave each
// answer. It keeps nothing.

import { systemClock, withDeadline } from "../../../shared/clock.ts";

/** `GET /tx/{hash}`, as far as the demo reads it. */
export interface StatusAnswer {
	readonly status: string;
	readonly stage?: string;
	readonly shared: boolean;
	readonly backruns: number;
	/** ETH. */
	readonly refund: number;
}

/** The event `refunded` of `GET /tx/{hash}/events`: wei as decimal text, addresses lower case. */
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

/** How builders took a cancel, as `GET /tx/{hash}/events` says it. */
export interface Confirmations {
	/** That have had it. */
	readonly builders: number;
	readonly confirmed: number;
	/** "5 of 7 builders confirmed" */
	readonly summary: string;
}

const CALL_MS = 10_000;

/** Submits a signed transaction on `path`; its hash, as the relay says it. Throws with the relay's refusal. */
export async function submit(url: string, path: string, raw: string): Promise<string> {
	return (await call(`${url}${path}`, "eth_sendRawTransaction", [raw])) as string;
}

/** Takes a transaction back; whether the relay says true. Throws with the relay's refusal. */
export async function takeBack(url: string, hash: string): Promise<boolean> {
	return (await call(`${url}/fast`, "eth_cancelTransaction", [hash])) === true;
}

/** What builders have said to that; null where nobody took it back. */
export async function confirmations(url: string, hash: string): Promise<Confirmations | null> {
	const { cancels } = (await ask(`${url}/tx/${hash}/events`)) as { cancels?: Confirmations };
	return cancels ?? null;
}

/** The next nonce of an account, with what is pending. */
export async function pendingNonce(url: string, address: string): Promise<number> {
	return Number(await call(`${url}/fast`, "eth_getTransactionCount", [address, "pending"]));
}

/** The transaction as wallets ask for it. */
export function transactionByHash(url: string, hash: string): Promise<unknown> {
	return call(`${url}/fast`, "eth_getTransactionByHash", [hash]);
}

/** The status of a transaction. */
export async function status(url: string, hash: string): Promise<StatusAnswer> {
	return (await ask(`${url}/tx/${hash}`)) as StatusAnswer;
}

/** What came of the backrun behind it; null while the relay does not say. */
export async function refunded(url: string, hash: string): Promise<RefundedEvent | null> {
	const { events } = (await ask(`${url}/tx/${hash}/events`)) as { events: { readonly type: string }[] };
	const event = events.find(({ type }) => type === "refunded");
	return event === undefined ? null : (event as RefundedEvent);
}

/** One call's result. Throws with the relay's refusal. */
async function call(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
	const answer = (await ask(url, { jsonrpc: "2.0", id: 1, method, params })) as {
		readonly result?: unknown;
		readonly error?: { readonly message: string };
	};
	if (answer.error !== undefined) throw new Error(`the relay refuses it: ${answer.error.message}`);
	return answer.result;
}

function ask(url: string, body?: object): Promise<unknown> {
	return withDeadline(systemClock, "the relay", CALL_MS, async (signal) => {
		const headers = { "content-type": "application/json" };
		const post = body === undefined ? {} : { method: "POST", headers, body: JSON.stringify(body) };
		const answer = await fetch(url, { ...post, signal });
		return answer.json();
	});
}

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
