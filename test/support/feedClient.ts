// A searcher's websocket for tests: matches answers to calls by id, and keeps in order what each subscription was
// told, with every raw frame.

import type { ClientOptions } from "ws";
import { until } from "./until.ts";
import { WsClient } from "./wsClient.ts";

/** A message of the server's. */
interface Frame {
	readonly id?: unknown;
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string };
	readonly method?: string;
	readonly params?: { readonly subscription: string; readonly result: unknown };
}

/** What one subscription was told. */
export type Told = Readonly<Record<string, unknown>>;

/** A connection that is open. */
export class FeedClient {
	readonly ws: WsClient;
	/** Every text that came, in order. */
	readonly texts: string[] = [];
	readonly #frames: Frame[] = [];
	#id = 0;

	private constructor(ws: WsClient) {
		this.ws = ws;
		ws.socket.on("message", (data) => {
			this.texts.push(String(data));
			this.#frames.push(JSON.parse(String(data)) as Frame);
		});
	}

	static async open(url: string, options: ClientOptions = {}): Promise<FeedClient> {
		return new FeedClient(await WsClient.open(url, options));
	}

	/** One call's whole answer. */
	async ask(method: string, params: readonly unknown[]): Promise<Frame> {
		this.#id += 1;
		return this.say(JSON.stringify({ jsonrpc: "2.0", id: this.#id, method, params }));
	}

	/** The whole answer to a request as it stands, whose id may have been used before. */
	async say(request: string): Promise<Frame> {
		const { id } = JSON.parse(request) as Frame;
		const before = this.#frames.length;
		this.ws.send(request);
		return until(`the answer to ${request}`, () =>
			this.#frames.find((frame, i) => i >= before && frame.id === id),
		);
	}

	/** One call's result; throws with the code and message of an error. */
	async call(method: string, params: readonly unknown[]): Promise<unknown> {
		const { result, error } = await this.ask(method, params);
		if (error !== undefined) throw new Error(`${error.code} ${error.message}`);
		return result;
	}

	/** The id of a new subscription. */
	async subscribe(...params: readonly unknown[]): Promise<string> {
		return String(await this.call("eth_subscribe", params));
	}

	/** What `subscription` was told so far. */
	told(subscription: string): readonly Told[] {
		return this.#frames.flatMap(({ params }) =>
			params?.subscription === subscription ? [params.result as Told] : [],
		);
	}

	/** How often `subscription` was told of the transaction with this hash. */
	times(subscription: string, hash: string): number {
		return this.told(subscription).filter((one) => one.hash === hash).length;
	}

	/** The first that `subscription` is told with this hash. */
	shown(subscription: string, hash: string): Promise<Told> {
		return until(`${hash} on the feed`, () => this.told(subscription).find((one) => one.hash === hash));
	}

	/** Places among all frames: of the answer that named `subscription`, and of its first notification. */
	order(subscription: string): { readonly answer: number; readonly first: number } {
		return {
			answer: this.#frames.findIndex(({ result }) => result === subscription),
			first: this.#frames.findIndex(({ params }) => params?.subscription === subscription),
		};
	}

	close(): void {
		this.ws.terminate();
	}
}
