// A plain client of a relay: JSON-RPC over HTTP, the status pages and the metrics, with nothing between. It hides no error
// and retries nothing.

import { Agent, fetch } from "undici";

/** A JSON-RPC answer as it came. */
export interface WireAnswer {
	readonly jsonrpc: string;
	readonly id: unknown;
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** The status record with `stage`. */
export interface WireStatus {
	readonly status: string;
	readonly hash: string;
	readonly rpc_timestamp: string | null;
	readonly transaction: Readonly<Record<string, string>>;
	readonly fastMode: boolean;
	readonly shared: boolean;
	readonly simulationError: { code: string; message: string; data?: string } | null;
	readonly backruns: number;
	readonly referrer: string | null;
	readonly refundRecipient: string | null;
	readonly refund: number;
	readonly stage?: string;
}

/** One event of `/tx/{hash}/events`. */
export type WireEvent = Readonly<Record<string, unknown>> & { readonly type: string; readonly at: string };

/** A relay takes 256 connections from one client. */
const dispatcher = new Agent({ connections: 200 });

/** Talks to one relay. */
export class RelayClient {
	readonly url: string;
	readonly #headers: Readonly<Record<string, string>>;
	#id = 0;

	/** `headers` go with each call. */
	constructor(url: string, headers: Readonly<Record<string, string>> = {}) {
		this.url = url;
		this.#headers = headers;
	}

	/** One call; the whole answer. */
	async ask(method: string, params: readonly unknown[], path = "/"): Promise<WireAnswer> {
		this.#id += 1;
		const response = await fetch(`${this.url}${path}`, {
			dispatcher,
			method: "POST",
			headers: { "content-type": "application/json", ...this.#headers },
			body: JSON.stringify({ jsonrpc: "2.0", id: this.#id, method, params }),
		});
		return (await response.json()) as WireAnswer;
	}

	/** One call's result; throws with the code and message of an error. */
	async call(method: string, params: readonly unknown[], path = "/"): Promise<unknown> {
		const { result, error } = await this.ask(method, params, path);
		if (error !== undefined) throw new Error(`${error.code} ${error.message}`);
		return result;
	}

	/** Submits a raw transaction on `path` ("/fast?referrer=x"); its hash. */
	async send(raw: string, path = "/fast"): Promise<string> {
		return (await this.call("eth_sendRawTransaction", [raw], path)) as string;
	}

	async status(hash: string): Promise<WireStatus> {
		const response = await fetch(`${this.url}/tx/${hash}`, { dispatcher });
		return (await response.json()) as WireStatus;
	}

	/** The stage, or undefined for a hash that is not known. */
	async stage(hash: string): Promise<string | undefined> {
		return (await this.status(hash)).stage;
	}

	async events(hash: string): Promise<readonly WireEvent[]> {
		const response = await fetch(`${this.url}/tx/${hash}/events`, { dispatcher });
		return ((await response.json()) as { events: WireEvent[] }).events;
	}
}

/** The setting METRICS_TOKEN of the processes of tests. */
export const METRICS_TOKEN = "the operator of a test";

/** What an operator sends. */
export const AUTHORIZED = { authorization: `Bearer ${METRICS_TOKEN}` };

/** The text of the page at `url`. Throws for anything but 200. */
export async function metricsOf(url: string): Promise<string> {
	const answer = await fetch(`${url}/metrics`, { headers: AUTHORIZED });
	if (answer.status !== 200) throw new Error(`/metrics answers ${answer.status}`);
	return answer.text();
}

/** One figure without labels of the metrics at `url`; NaN where there is none. */
export async function figureOf(url: string, name: string): Promise<number> {
	return Number(new RegExp(`^${name} (-?\\d+)$`, "m").exec(await metricsOf(url))?.[1] ?? Number.NaN);
}
