// Sends JSON-RPC calls to a builder, signed with ethers as relays sign them. For the dev builder's
// tests; the relay has its own client.

import { id, type Wallet } from "ethers";
import { request } from "undici";
import { systemClock, withDeadline } from "../../shared/clock.ts";

/** The HTTP answer. */
interface BuilderReply {
	readonly status: number;
	readonly text: string;
}

const REPLY_MS = 10_000;

/** A client that looks like a relay to a builder. */
export class BuilderClient {
	readonly #url: string;
	readonly #wallet: Wallet;

	constructor(options: { readonly url: string; readonly wallet: Wallet }) {
		this.#url = options.url;
		this.#wallet = options.wallet;
	}

	/** The signer's address, checksummed. */
	get address(): string {
		return this.#wallet.address;
	}

	/** The result of a call. Throws an error with the builder's code and message if it refuses. */
	async call(method: string, ...params: unknown[]): Promise<unknown> {
		const { text } = await this.post(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
		const answer = JSON.parse(text) as { result?: unknown; error?: { code: number; message: string } };
		if (answer.error) throw new Error(`${answer.error.code} ${answer.error.message}`);
		return answer.result;
	}

	/** Posts a body, signed unless `signature` says otherwise (null: without the header). */
	async post(body: string, signature?: string | null): Promise<BuilderReply> {
		const header = signature === undefined ? await this.sign(body) : signature;
		const headers = { "content-type": "application/json" };
		const signed = header === null ? headers : { ...headers, "x-flashbots-signature": header };
		return withDeadline(systemClock, "dev builder", REPLY_MS, async (signal) => {
			const answer = await request(this.#url, { method: "POST", headers: signed, body, signal });
			return { status: answer.statusCode, text: await answer.body.text() };
		});
	}

	/**
	 * The header's value for `body`: the signature is over the hex text of the body's hash, not over
	 * its bytes.
	 */
	async sign(body: string): Promise<string> {
		return `${this.#wallet.address}:${await this.#wallet.signMessage(id(body))}`;
	}
}
