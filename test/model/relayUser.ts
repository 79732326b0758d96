// The relay's users in the model: make calls from a given address, web page and signer, and read the relay's pages.
// Nothing is retried.

import { Pool } from "undici";
import { createBodySigner } from "../../shared/ethereum/signatures.ts";
import { AUTHORIZED, type WireAnswer, type WireEvent, type WireStatus } from "../support/relayClient.ts";

/** Who calls. */
export interface Caller {
	/** Network address. */
	readonly address: string;
	/** Key (0x hex) that signs the request. */
	readonly key?: string;
	/** The web page, where one makes the call. */
	readonly origin?: string;
}

/** A call of a batch. */
export interface Call {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** Longer than any answer takes on a busy machine, in ms. */
const ANSWER_MS = 20_000;
const POOL = { connections: 8, headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS };
const READER: Caller = { address: "10.200.0.1" };

export class RelayUser {
	readonly #url: string;
	#pool: Pool;

	constructor(url: string) {
		this.#url = url;
		this.#pool = new Pool(url, POOL);
	}

	/** To be called when the relay was started again: connections to the old one are gone. */
	async reconnect(): Promise<void> {
		await this.#pool.destroy();
		this.#pool = new Pool(this.#url, POOL);
	}

	/** One call by `caller` on `path` ("/fast?referrer=x"). */
	async ask(caller: Caller, path: string, { method, params }: Call): Promise<WireAnswer> {
		const body = { jsonrpc: "2.0", id: 1, method, params };
		return (await this.#post(caller, path, JSON.stringify(body))) as WireAnswer;
	}

	/** The results of many reads. Throws where one is an error. */
	async reads(calls: readonly Call[]): Promise<unknown[]> {
		if (calls.length === 0) return [];
		const body = calls.map((call, id) => ({ jsonrpc: "2.0", id, ...call }));
		const answers = (await this.#post(READER, "/", JSON.stringify(body))) as WireAnswer[];
		return answers.map(({ result, error }, i) => {
			if (error !== undefined) throw new Error(`${calls[i]?.method}: ${error.code} ${error.message}`);
			return result;
		});
	}

	async status(hash: string): Promise<WireStatus> {
		return JSON.parse(await this.#get(`/tx/${hash}`)) as WireStatus;
	}

	async events(hash: string): Promise<readonly WireEvent[]> {
		return (JSON.parse(await this.#get(`/tx/${hash}/events`)) as { events: WireEvent[] }).events;
	}

	/** Of the relay's own figures the ones by these names. */
	async figures<K extends string>(names: readonly K[]): Promise<Readonly<Record<K, number>>> {
		const text = await this.#get("/metrics");
		const read = (name: string) => Number(new RegExp(`^${name} (-?\\d+)$`, "m").exec(text)?.[1]);
		return Object.fromEntries(names.map((name) => [name, read(name)])) as Record<K, number>;
	}

	async close(): Promise<void> {
		await this.#pool.destroy();
	}

	async #post({ address, key, origin }: Caller, path: string, body: string): Promise<unknown> {
		const answer = await this.#pool.request({
			method: "POST",
			path,
			headers: {
				"content-type": "application/json",
				"x-forwarded-for": address,
				...(key === undefined ? {} : { "x-flashbots-signature": createBodySigner(key).sign(body) }),
				...(origin === undefined ? {} : { origin }),
			},
			body,
		});
		return answer.body.json();
	}

	async #get(path: string): Promise<string> {
		const answer = await this.#pool.request({ method: "GET", path, headers: AUTHORIZED });
		return answer.body.text();
	}
}
