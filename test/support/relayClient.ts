// A plain client of a relay: JSON-RPC over HTTP, the status routes and the metrics. It hides no
// error and retries nothing.

import { Agent, request } from "undici";

/** A JSON-RPC answer. */
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
	/** Wei, as a decimal string. */
	readonly refundWei?: string;
	readonly blockNumber?: number | null;
	readonly stage?: string;
	readonly state?: string;
	readonly reason?: string | null;
	readonly nextStep?: string | null;
	/** For a transaction that was in a block that is gone. */
	readonly exposed?: object;
}

/** One event of `/tx/{hash}/events`. */
export type WireEvent = Readonly<Record<string, unknown>> & { readonly type: string; readonly at: string };

/**
 * Below the 256 connections that a relay accepts from one client. Its `request` takes half of the
 * CPU time of `fetch`.
 */
const dispatcher = new Agent({ connections: 200 });

/** Talks to one relay. */
export class RelayClient {
	readonly url: string;
	readonly #headers: Readonly<Record<string, string>>;
	#id = 0;

	/** `headers` are added to each call. */
	constructor(url: string, headers: Readonly<Record<string, string>> = {}) {
		this.url = url;
		this.#headers = headers;
	}

	/** Makes a call, and returns the whole answer. */
	async ask(method: string, params: readonly unknown[], path = "/"): Promise<WireAnswer> {
		this.#id += 1;
		const { body } = await request(`${this.url}${path}`, {
			dispatcher,
			method: "POST",
			headers: { "content-type": "application/json", ...this.#headers },
			body: JSON.stringify({ jsonrpc: "2.0", id: this.#id, method, params }),
		});
		return (await body.json()) as WireAnswer;
	}

	/** Makes a call, and returns its result; throws with the code and message of an error. */
	async call(method: string, params: readonly unknown[], path = "/"): Promise<unknown> {
		const { result, error } = await this.ask(method, params, path);
		if (error !== undefined) throw new Error(`${error.code} ${error.message}`);
		return result;
	}

	/** Submits a raw transaction on `path` ("/fast?referrer=x"), and returns its hash. */
	async send(raw: string, path = "/fast"): Promise<string> {
		return (await this.call("eth_sendRawTransaction", [raw], path)) as string;
	}

	async status(hash: string): Promise<WireStatus> {
		const { body } = await request(`${this.url}/tx/${hash}`, { dispatcher });
		return (await body.json()) as WireStatus;
	}

	/** The stage, or undefined for an unknown hash. */
	async stage(hash: string): Promise<string | undefined> {
		return (await this.status(hash)).stage;
	}

	async events(hash: string): Promise<readonly WireEvent[]> {
		const { body } = await request(`${this.url}/tx/${hash}/events`, { dispatcher });
		return ((await body.json()) as { events: WireEvent[] }).events;
	}
}

/** The setting ADMIN_TOKEN in tests, of relays and boosts. */
export const ADMIN_TOKEN = "what opens a breaker";
/** The setting METRICS_TOKEN in tests. */
export const METRICS_TOKEN = "the operator of a test";

/**
 * The refusal of a relay whose core is gone, or whose database takes too long: code and message.
 */
export const REFUSED_WITHOUT_CORE: RegExp = /^-32603 internal error: (no core|nothing can be stored now)/;

/** The headers of an operator. */
export const AUTHORIZED = { authorization: `Bearer ${METRICS_TOKEN}` };

/** The text of the metrics at `url`. Throws unless the status is 200. */
export async function metricsOf(url: string): Promise<string> {
	const { statusCode, body } = await request(`${url}/metrics`, { dispatcher, headers: AUTHORIZED });
	const text = await body.text();
	if (statusCode !== 200) throw new Error(`/metrics answers ${statusCode}`);
	return text;
}

/** The value of a metric without labels at `url`; NaN if it is absent. */
export async function figureOf(url: string, name: string): Promise<number> {
	return Number(new RegExp(`^${name} (-?\\d+)$`, "m").exec(await metricsOf(url))?.[1] ?? Number.NaN);
}
