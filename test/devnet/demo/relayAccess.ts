// The relay as a user sees it: submissions and questions go in, answers come out, over HTTP. It keeps nothing.

import { systemClock, withDeadline } from "../../../shared/clock.ts";

/** `GET /tx/{hash}`, as far as the demo reads it. */
export interface StatusAnswer {
	readonly status: string;
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

const CALL_MS = 10_000;

/** Submits a signed transaction on `path`; its hash, as the relay says it. Throws with the relay's refusal. */
export async function submit(url: string, path: string, raw: string): Promise<string> {
	const body = { jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] };
	const answer = (await ask(`${url}${path}`, body)) as { result?: string; error?: { message: string } };
	if (answer.result === undefined) throw new Error(`the relay refuses it: ${answer.error?.message}`);
	return answer.result;
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

function ask(url: string, body?: object): Promise<unknown> {
	return withDeadline(systemClock, "the relay", CALL_MS, async (signal) => {
		const headers = { "content-type": "application/json" };
		const post = body === undefined ? {} : { method: "POST", headers, body: JSON.stringify(body) };
		const answer = await fetch(url, { ...post, signal });
		return answer.json();
	});
}
