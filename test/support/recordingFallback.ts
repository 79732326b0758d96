// A third party as boost's fallback, made of bare sockets: keeps requests byte by byte, accepts transactions, and
// answers the rest as the test says. It mines nothing.

import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { callsIn, type WireCall } from "../faults/wireFaults.ts";
import { httpText, RawUpstream } from "./rawUpstream.ts";

/** A request that is none of boost's own questions for chain and head. */
export interface RecordedPost {
	/** All its bytes, as latin1. */
	readonly text: string;
	/** Its path with the query. */
	readonly target: string;
	/** The header lines behind the request line. */
	readonly lines: readonly string[];
	readonly body: string;
	readonly calls: readonly WireCall[];
}

/** What is answered instead of the usual: a whole HTTP answer, or null for nothing at all. */
export type Script = (request: RecordedPost) => string | null | undefined;

export interface RecordingFallback {
	readonly url: string;
	/** Oldest first. */
	readonly posts: readonly RecordedPost[];
	/** Calls of {@link posts}, by name. */
	readonly methods: readonly string[];
	/** From now on; undefined is answered as usual. */
	answerWith(script: Script): void;
	/** Forgets what came, and the script. */
	reset(): void;
	stop(): Promise<void>;
}

const CHAIN: Readonly<Record<string, string>> = { eth_chainId: "0x7a69", eth_blockNumber: "0x0" };
const JSON_HEAD = ["content-type: application/json"];

/** Starts one on loopback. */
export async function startRecordingFallback(): Promise<RecordingFallback> {
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
		posts,
		get methods() {
			return posts.flatMap(({ calls }) => calls.map(({ method }) => method));
		},
		answerWith(next) {
			script = next;
		},
		reset() {
			posts.length = 0;
			script = () => undefined;
		},
		stop: () => server.close(),
	};
}

/** The usual answer to one call. */
export function answered({ id, method, params }: WireCall): unknown {
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
