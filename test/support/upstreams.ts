// Fake upstreams of boost on plain sockets, one of them a fallback: they record every received
// byte, and can send what no proper server would.

import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { callsIn, type WireCall } from "../faults/wireFaults.ts";
import { until } from "./until.ts";

/** A connection to the upstream. */
interface RawPeer {
	readonly socket: Socket;
	/** All received bytes, as latin1. */
	received: string;
	closed: boolean;
}

/**
 * Answers a request: called once for each complete request, with its text and its number among all
 * connections' requests.
 */
export type RawScript = (peer: RawPeer, request: string, nth: number) => void;

/** An upstream that answers by a script. */
export class RawUpstream {
	readonly peers: RawPeer[] = [];
	/** Complete requests, in the order of their ends. */
	readonly requests: string[] = [];
	readonly #server: Server;

	private constructor(script: RawScript) {
		this.#server = createServer((socket) => {
			const peer: RawPeer = { socket, received: "", closed: false };
			this.peers.push(peer);
			let rest = "";
			socket.on("data", (chunk) => {
				peer.received += chunk.toString("latin1");
				rest += chunk.toString("latin1");
				for (let end = endOf(rest); end !== null; end = endOf(rest)) {
					const request = rest.slice(0, end);
					rest = rest.slice(end);
					this.requests.push(request);
					script(peer, request, this.requests.length);
				}
			});
			socket.on("error", () => {});
			socket.on("close", () => {
				peer.closed = true;
			});
		});
	}

	static async start(script: RawScript = () => {}): Promise<RawUpstream> {
		const upstream = new RawUpstream(script);
		await new Promise<void>((resolve) => upstream.#server.listen(0, "127.0.0.1", resolve));
		return upstream;
	}

	get port(): number {
		return (this.#server.address() as AddressInfo).port;
	}

	get url(): string {
		return `http://127.0.0.1:${this.port}`;
	}

	/** All bytes of all connections. */
	get received(): string {
		return this.peers.map(({ received }) => received).join("");
	}

	/** Resolves once `count` complete requests were received. */
	async sawRequests(count: number): Promise<void> {
		await until(`${count} requests`, () => this.requests.length >= count);
	}

	async close(): Promise<void> {
		for (const { socket } of this.peers) socket.destroy();
		await new Promise<void>((resolve) => this.#server.close(() => resolve()));
	}
}

/** An HTTP answer with a content-length. */
export function httpText(body: string, status = "200 OK", headers: readonly string[] = []): string {
	const lines = [`HTTP/1.1 ${status}`, ...headers, `content-length: ${Buffer.byteLength(body)}`];
	return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** The end of the first request in `text`; null if it is not complete. */
function endOf(text: string): number | null {
	const blank = text.indexOf("\r\n\r\n");
	if (blank === -1) return null;
	const length = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, blank))?.[1] ?? 0);
	const end = blank + 4 + length;
	return text.length < end ? null : end;
}

/** A recorded request; boost's own requests for chain id and head are not recorded. */
export interface RecordedPost {
	/** All its bytes, as latin1. */
	readonly text: string;
	/** Its path with the query. */
	readonly target: string;
	/** The header lines. */
	readonly lines: readonly string[];
	readonly body: string;
	readonly calls: readonly WireCall[];
}

/** Returns a complete HTTP answer, null for no answer, or undefined for the default one. */
export type Script = (request: RecordedPost) => string | null | undefined;

export type RecordingFallback = Awaited<ReturnType<typeof startRecordingFallback>>;

const CHAIN: Readonly<Record<string, string>> = { eth_chainId: "0x7a69", eth_blockNumber: "0x0" };
const JSON_HEAD = ["content-type: application/json"];

/** Starts a fallback on loopback. */
export async function startRecordingFallback() {
	const posts: RecordedPost[] = [];
	let script: Script = () => undefined;
	const server = await RawUpstream.start((peer, text) => {
		const post = read(text);
		const isProbe = post.calls.length === 1 && post.calls.every(({ method }) => method in CHAIN);
		if (!isProbe) posts.push(post);
		const told = isProbe ? undefined : script(post);
		if (told === null) return;
		peer.socket.write(told ?? httpText(answerTo(post), "200 OK", JSON_HEAD));
	});
	return {
		url: server.url,
		/** Oldest first. */
		posts,
		/** The methods of {@link posts}. */
		get methods() {
			return posts.flatMap(({ calls }) => calls.map(({ method }) => method));
		},
		/** Answers requests by `next` from now on. */
		answerWith(next: Script): void {
			script = next;
		},
		/** Forgets the requests and the script. */
		reset(): void {
			posts.length = 0;
			script = () => undefined;
		},
		stop: (): Promise<void> => server.close(),
	};
}

/** The default answer to a call. */
function answered({ id, method, params }: WireCall): unknown {
	const result = method === "eth_sendRawTransaction" ? hashOf(String(params[0])) : CHAIN[method];
	if (result !== undefined) return { jsonrpc: "2.0", id, result };
	return { jsonrpc: "2.0", id, error: { code: -32601, message: `${method} is not served` } };
}

function answerTo({ calls, body }: RecordedPost): string {
	const answers = calls.map(answered);
	return JSON.stringify(body.startsWith("[") ? answers : (answers[0] ?? {}));
}

function hashOf(raw: string): string {
	const decoded = decodeTransaction(Buffer.from(raw.slice(2), "hex"));
	if (!decoded.ok) throw new Error("boost sent on what is no transaction");
	return decoded.tx.hash;
}

function read(text: string): RecordedPost {
	const end = text.indexOf("\r\n\r\n");
	const [first = "", ...lines] = text.slice(0, end).split("\r\n");
	const body = text.slice(end + 4);
	return { text, target: first.split(" ")[1] ?? "", lines, body, calls: callsIn(body) };
}
