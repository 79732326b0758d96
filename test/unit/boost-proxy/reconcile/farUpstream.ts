// What is behind boost's HTTP client in the test of random lives: relay and fallback as real servers, which keep what they are
// given and cancel what they are told to; and a tap on all requests that leave this process by undici, as they are made.

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { LookupFunction } from "node:net";
import type { RpcCall } from "../../../../shared/jsonrpc/client.ts";
import { httpText, RawUpstream } from "../../../support/upstreams.ts";

/** How an upstream takes what it is sent: "breaks off" says nothing of whether it has it, "refuses" no connection. */
export const MANNERS = ["acknowledges", "rejects", "breaks off", "refuses"] as const;
export type Manner = (typeof MANNERS)[number];

const TYPE = ["content-type: application/json"];

/** One upstream, for all lives and all processes of boost. */
export class FarUpstream {
	/** The name that boost knows it by. */
	readonly name: string;
	/** Stages by hash; it has no record of others. */
	readonly stages = new Map<string, string>();
	manner: Manner = "acknowledges";
	/** The bodies that have arrived. */
	readonly arrived: string[] = [];
	readonly #hashOf: (raw: string) => string;
	#server: RawUpstream | null = null;

	constructor(name: string, hashOf: (raw: string) => string) {
		this.name = name;
		this.#hashOf = hashOf;
	}

	/** Forgets everything, and acknowledges. */
	reset(): void {
		this.stages.clear();
		this.arrived.length = 0;
		this.manner = "acknowledges";
	}

	async start(): Promise<void> {
		this.#server = await RawUpstream.start(({ socket }, request) => {
			const body = request.slice(request.indexOf("\r\n\r\n") + 4);
			this.arrived.push(body);
			if (this.manner === "breaks off") return void socket.destroy();
			const call = JSON.parse(body) as RpcCall;
			socket.write(
				httpText(JSON.stringify({ jsonrpc: "2.0", id: 1, ...this.#answer(call) }), "200 OK", TYPE),
			);
		});
	}

	get url(): string {
		return `http://${this.name}.test:${this.#server?.port}`;
	}

	async stop(): Promise<void> {
		await this.#server?.close();
	}

	/** Its address; none while it refuses connections. */
	readonly lookup: LookupFunction = (_name, { all }, callback) => {
		if (this.manner === "refuses")
			callback(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }), "");
		else if (all === true) callback(null, [{ address: "127.0.0.1", family: 4 }]);
		else callback(null, "127.0.0.1", 4);
	};

	#answer({ method, params }: RpcCall): object {
		const [of] = params;
		const hash = method === "eth_sendRawTransaction" ? this.#hashOf(String(of)) : String(of);
		const stage = this.stages.get(hash);
		switch (method) {
			case "eth_sendRawTransaction":
				if (this.manner === "rejects") return refusal("txpool is full");
				this.stages.set(hash, "BROADCAST");
				return { result: hash };
			case "eth_cancelTransaction":
				if (stage !== "BROADCAST") return refusal("transaction not found or no longer pending");
				this.stages.set(hash, "CANCELLED");
				return { result: true };
			case "service_transactionStatuses": {
				const hashes = of as readonly string[];
				return {
					result: hashes.map((one) => ({
						...{ hash: one, status: "UNKNOWN", stage: this.stages.get(one) ?? null },
					})),
				};
			}
			default:
				throw new Error(`${method} is not asked for`);
		}
	}
}

function refusal(message: string): object {
	return { error: { code: -32000, message } };
}

/** A request as undici makes it, whoever asks for it. */
interface Made {
	readonly origin: string;
	readonly body: Buffer;
}

/** All requests that leave this process by undici. */
export class Tap {
	/** Those that have no end yet. */
	readonly pending = new Set<object>();
	readonly #onMade: (made: Made) => void;

	/** `onMade` is called while a request is made, before anything else can change. */
	constructor(onMade: (made: Made) => void) {
		this.#onMade = onMade;
		subscribe("undici:request:create", this.#made);
		for (const end of ENDS) subscribe(end, this.#ended);
	}

	readonly #made = (message: unknown): void => {
		const { request } = message as { readonly request: Made };
		this.pending.add(request);
		this.#onMade(request);
	};

	readonly #ended = (message: unknown): void => {
		this.pending.delete((message as { readonly request: object }).request);
	};

	close(): void {
		unsubscribe("undici:request:create", this.#made);
		for (const end of ENDS) unsubscribe(end, this.#ended);
	}
}

const ENDS = ["undici:request:trailers", "undici:request:error"];
