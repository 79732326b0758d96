// Counterparts that the benchmarks measure boost and the relay against, each run by its name in its
// own process. A server that only answers, barest proxies and a relay that does nothing print their
// ports. The parts of a submission alone print their CPU times in µs as one line of JSON.

import { mkdtempSync, rmSync } from "node:fs";
import {
	Agent,
	createServer,
	type IncomingMessage,
	type RequestListener,
	type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import httpProxy from "http-proxy";
import { type Dispatcher, Pool } from "undici";
import { WebSocket } from "ws";
import { hexToBytes } from "../../shared/ethereum/hex.ts";
import { createBodySigner, createKey, keccak256 } from "../../shared/ethereum/signatures.ts";
import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { openLmdb } from "../../shared/kv/lmdb.ts";
import { benchAccounts, benchTransaction, callOf } from "./load.ts";

const { TARGET_URL = "", SINK_URL = "", DATA_DIR = "" } = process.env;
const COUNT = 6_000;
/** As many submissions share a commit as arrive together over 64 connections. */
const GROUP = 64;
/** A transaction of 200 bytes, and what is known of it at first: in the relay, in boost. */
const [RELAY_RECORD_BYTES, BOOST_RECORD_BYTES] = [360, 560];
const JSON_HEADERS = { "content-type": "application/json" };

const PARTS: Readonly<Record<string, () => void | Promise<void>>> = {
	/**
	 * COUNT searchers on the feed of a relay. Prints for each transaction when the one in the middle
	 * and the last one had it.
	 */
	async searchers() {
		const [count, arrivals] = [Number(process.env.COUNT), new Map<string, number[]>()];
		for (let i = 0; i < count; i += 1) {
			// One client may only have a limited number open.
			const localAddress = `127.0.${1 + Math.floor(i / 200)}.${1 + (i % 200)}`;
			await subscribed(TARGET_URL.replace("http", "ws"), localAddress, (hash) => {
				const at = arrivals.get(hash) ?? [];
				arrivals.set(hash, at);
				at.push(performance.timeOrigin + performance.now());
				if (at.length < count) return;
				arrivals.delete(hash);
				process.stdout.write(`told ${hash} ${at[Math.floor(count / 2)]} ${at.at(-1)}\n`);
			});
		}
		process.stdout.write("searchers ready\n");
	},
	/** COUNT edges that do nothing but take the core's news, which they show SECRET. */
	async edges() {
		for (let i = 0; i < Number(process.env.COUNT); i += 1) {
			const headers = { authorization: `Bearer ${process.env.SECRET}` };
			const socket = new WebSocket(`${TARGET_URL.replace("http", "ws")}/internal`, { headers });
			await new Promise((resolve) => socket.once("open", resolve));
			socket.send(JSON.stringify([{ jsonrpc: "2.0", id: 1, method: "core_feed", params: [null] }]));
			// The core closes one that gives no sign.
			setInterval(() => socket.ping(), 200);
		}
		process.stdout.write("edges ready\n");
	},
	/**
	 * Parses a JSON body and answers a fixed result: what any relay in Node must at least spend on a
	 * request.
	 */
	echo() {
		const answer = JSON.stringify({ jsonrpc: "2.0", id: 1, result: `0x${"0".repeat(64)}` });
		serve(async (request, response) => {
			JSON.parse((await bodyOf(request)).toString("utf8"));
			reply(response, answer);
		});
	},
	/**
	 * A relay that does nothing but give right JSON-RPC answers at the lowest cost. Its own time is
	 * not measured.
	 */
	relayStub() {
		const answerOf = (call: Call) => ({ jsonrpc: "2.0", id: call.id, result: resultOf(call) });
		serve(async (request, response) => {
			const body = (await bodyOf(request)).toString("utf8");
			const calls = body === "" ? {} : (JSON.parse(body) as Call | readonly Call[]);
			reply(response, JSON.stringify(Array.isArray(calls) ? calls.map(answerOf) : answerOf(calls as Call)));
		}).keepAliveTimeout = 60_000;
	},
	/** The barest proxy that the package http-proxy makes: kept connections, no rules. */
	httpProxy() {
		const agent = new Agent({ keepAlive: true, maxSockets: 256 });
		const proxy = httpProxy.createProxyServer({ target: TARGET_URL, agent });
		proxy.on("error", () => process.exit(1));
		serve((request, response) => proxy.web(request, response));
	},
	/**
	 * The barest proxy that node:http and undici make: a body is read, sent on and its answer passed
	 * back.
	 */
	undici() {
		const pool = new Pool(TARGET_URL, { connections: 256 });
		serve(async (request, response) => {
			const body = await bodyOf(request);
			pool.dispatch(postOf(request, body), new PassingBack(response));
		});
	},
	/**
	 * The same, and what boost does with a submission beside: decodes it, recovers its sender, and
	 * keeps it in a journal.
	 */
	async boostParts() {
		const pool = new Pool(TARGET_URL, { connections: 256 });
		const store = await openLmdb(DATA_DIR);
		let count = 0;
		serve(async (request, response) => {
			const body = await bodyOf(request);
			const text = body.toString("latin1");
			const start = text.indexOf("0x");
			decode([text.slice(start, text.indexOf('"', start))]);
			const key = `b/${String(count++).padStart(75, "0")}`;
			const kept = store.write([{ key, value: Buffer.alloc(BOOST_RECORD_BYTES, count) }]);
			pool.dispatch(postOf(request, body), new PassingBack(response, kept));
		});
	},
	async relayParts() {
		const raws = rawTransactions();
		tell({
			decodeMicros: await micros(() => decode(raws)),
			putMicros: await micros(() => put(RELAY_RECORD_BYTES)),
			signMicros: await micros(() => sign(raws)),
			postMicros: await micros(() => post(raws)),
		});
	},
};

function serve(handle: RequestListener) {
	const server = createServer(handle);
	server.listen(0, "127.0.0.1", () => {
		process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`);
	});
	process.on("SIGTERM", () => process.exit(0));
	return server;
}

function bodyOf(request: IncomingMessage): Promise<Buffer> {
	return new Promise((resolve) => {
		const chunks: Buffer[] = [];
		request.on("data", (chunk: Buffer) => chunks.push(chunk));
		request.on("end", () => resolve(Buffer.concat(chunks)));
	});
}

function postOf({ url = "/" }: IncomingMessage, body: Buffer): Dispatcher.DispatchOptions {
	return { method: "POST", path: url, headers: JSON_HEADERS, body };
}

function reply(response: ServerResponse, body: string | Buffer, status = 200): void {
	const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
	response.writeHead(status, headers).end(body);
}

/** A searcher on the feed; `told` is called with each hash. */
async function subscribed(url: string, localAddress: string, told: (hash: string) => void): Promise<void> {
	const socket = new WebSocket(url, { localAddress, perMessageDeflate: false, skipUTF8Validation: true });
	await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
	const params = ["service_partialPendingTransactions"];
	socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params }));
	await new Promise((resolve) => socket.once("message", resolve));
	socket.on("message", (data: Buffer) => {
		const hash = /"hash":"(0x\w{64})"/.exec(data.toString("latin1"))?.[1];
		if (hash !== undefined) told(hash);
	});
}

interface Call {
	readonly id: unknown;
	readonly method: string;
	readonly params?: readonly unknown[];
}

function resultOf({ method, params: [first] = [] }: Call): unknown {
	if (method === "eth_sendRawTransaction") {
		const raw = hexToBytes(String(first)) ?? Buffer.alloc(0);
		return `0x${Buffer.from(keccak256(raw)).toString("hex")}`;
	}
	if (method === "service_transactionStatuses") {
		return (first as string[]).map((hash) => ({ hash, status: "UNKNOWN", stage: "BROADCAST" }));
	}
	return method === "eth_chainId" ? "0x7a69" : "0x1234";
}

/** Collects an answer, and passes it back whole once `ready`. */
class PassingBack implements Dispatcher.DispatchHandler {
	readonly #response: ServerResponse;
	readonly #ready: Promise<void> | null;
	readonly #chunks: Buffer[] = [];
	#status = 0;

	constructor(response: ServerResponse, ready: Promise<void> | null = null) {
		this.#response = response;
		this.#ready = ready;
	}

	onRequestStart(): void {}

	onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number): void {
		this.#status = statusCode;
	}

	onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
		this.#chunks.push(chunk);
	}

	onResponseEnd(): void {
		const body = Buffer.concat(this.#chunks);
		if (this.#ready === null) reply(this.#response, body, this.#status);
		else void this.#ready.then(() => reply(this.#response, body, this.#status));
	}

	onResponseError(): void {
		process.exit(1);
	}
}

/** Signed transactions, as hex. */
function rawTransactions(): readonly string[] {
	const accounts = benchAccounts(100);
	return Array.from({ length: COUNT }, (_, i) => benchTransaction(accounts[i % 100], Math.floor(i / 100)));
}

/** CPU time of `work` for each transaction, in µs: a first run warms up, the second is measured. */
async function micros(work: () => Promise<void> | void): Promise<number> {
	await work();
	const before = process.cpuUsage();
	await work();
	const { user, system } = process.cpuUsage(before);
	return (user + system) / COUNT;
}

/** Decodes all, and recovers their senders. */
function decode(raws: readonly string[]): void {
	for (const raw of raws) {
		const decoded = decodeTransaction(hexToBytes(raw) ?? Buffer.alloc(0));
		if (!decoded.ok) throw new Error(decoded.message);
	}
}

/** Keeps `bytes` for each in a new store. */
async function put(bytes: number): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-bench-"));
	const store = await openLmdb(folder);
	for (let i = 0; i < COUNT; i += GROUP) {
		const group = Array.from({ length: Math.min(GROUP, COUNT - i) }, (_, k) =>
			store.write([{ key: `p/${String(i + k).padStart(66, "0")}`, value: Buffer.alloc(bytes, k) }]),
		);
		await Promise.all(group);
	}
	await store.close();
	rmSync(folder, { recursive: true });
}

/** Signs the body that a builder is sent for each. */
function sign(raws: readonly string[]): void {
	const signer = createBodySigner(createKey());
	for (const raw of raws) signer.sign(callOf("eth_sendPrivateRawTransaction", raw));
}

async function post(raws: readonly string[]): Promise<void> {
	const pool = new Pool(SINK_URL, { connections: 8 });
	let next = 0;
	const work = async (): Promise<void> => {
		for (let i = next++; i < raws.length; i = next++) {
			const body = callOf("eth_sendPrivateRawTransaction", raws[i] ?? "");
			const answer = await pool.request({ method: "POST", path: "/", headers: JSON_HEADERS, body });
			await answer.body.text();
		}
	};
	await Promise.all(Array.from({ length: 8 }, work));
	await pool.close();
}

function tell(times: Readonly<Record<string, number>>): void {
	process.stdout.write(`parts ${JSON.stringify(times)}\n`);
}

await PARTS[process.argv[2] ?? ""]?.();
