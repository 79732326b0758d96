// A proxy between two real parts that can be given the faults of networks and servers at any time.
// It records the requests; without a fault it changes nothing.

import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { Pool } from "undici";
import { systemClock } from "../../shared/clock.ts";
import { freePort } from "../devnet/freePort.ts";
import { resetSocket } from "../support/tcpProxy.ts";
import {
	callsIn,
	happensToConnections,
	pass,
	type RealAnswer,
	suffer,
	swallows,
	type WireCall,
	type WireFault,
} from "./wireFaults.ts";

/** One HTTP request as it came. */
export interface WireRequest {
	/** Ms, monotonic. */
	readonly at: number;
	/** The HTTP method. */
	readonly verb: string;
	/** With the query. */
	readonly target: string;
	/** JSON-RPC calls in it. */
	readonly calls: readonly WireCall[];
	readonly headers: Readonly<Record<string, string | string[] | undefined>>;
	/** The fault it met. */
	readonly met: WireFault["kind"] | null;
}

export interface FaultyWire {
	readonly port: number;
	/** http://127.0.0.1:port */
	readonly url: string;
	/**
	 * Requests that came, oldest first, without those of connections that were never made or read.
	 */
	requests(): readonly WireRequest[];
	/** Connections that came, those of a refusing or swallowing wire not counted. */
	readonly connections: number;
	/**
	 * Everything meets `fault` from when this resolves on; null: the wire is healthy again. `only`:
	 * requests that hold a submission meet it, and all else goes through (not for faults of
	 * connections).
	 */
	set(fault: WireFault | null, only?: "submissions"): Promise<void>;
	stop(): Promise<void>;
}

const SUBMISSION = /"eth_sendRawTransaction/;
const HOP = new Set(["host", "connection", "keep-alive", "transfer-encoding", "content-length", "expect"]);
/** To the real server, so that the wire is never the narrow part. */
const CONNECTIONS = 256;
/** Requests kept. */
const MAX_RECORD = 100_000;

/**
 * Starts one in front of `target` (http://host:port). Requests are recorded unless that is not
 * wanted.
 */
export async function startFaultyWire(
	target: string,
	options: { readonly records?: boolean } = {},
): Promise<FaultyWire> {
	const pool = new Pool(target, { connections: CONNECTIONS, headersTimeout: 0, bodyTimeout: 0 });
	const own = await freePort();
	const sockets = new Set<Socket>();
	const record: WireRequest[] = [];
	let connections = 0;
	let fault: WireFault | null = null;
	let since = 0;
	let only: "submissions" | undefined;
	let hole: BlackHole | null = null;

	/** The current fault. */
	const current = (): WireFault | null => {
		if (fault?.kind !== "flapping") return fault;
		const turns = Math.floor((systemClock.monotonic() - since) / fault.everyMs);
		return turns % 2 === 0 ? { kind: "resetOnAccept" } : null;
	};

	const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
		const chunks: Buffer[] = [];
		for await (const chunk of incoming) chunks.push(chunk as Buffer);
		const bytes = Buffer.concat(chunks);
		const body = bytes.toString();
		const spared = only === "submissions" && !SUBMISSION.test(body);
		const met = spared ? null : current();
		const { url = "/", method = "GET", headers } = incoming;
		if (options.records !== false && record.length < MAX_RECORD) {
			const at = systemClock.monotonic();
			record.push({ at, verb: method, target: url, calls: callsIn(body), headers, met: met?.kind ?? null });
		}
		const forward = () => ask(pool, incoming, bytes);
		if (met === null) pass(await forward(), response);
		else await suffer(met, { incoming, response, body }, forward);
	};
	const http = createHttpServer({ keepAliveTimeout: 95_000 }, (incoming, response) => {
		serve(incoming, response).catch(() => resetSocket(incoming.socket));
	});
	const onConnection = (socket: Socket): void => {
		connections += 1;
		sockets.add(socket);
		socket.on("error", () => {});
		socket.on("close", () => sockets.delete(socket));
		const now = only === undefined ? current() : null;
		if (now?.kind === "resetOnAccept" || now?.kind === "refuse") resetSocket(socket);
		// A connection that is never read stays like that when the wire is healthy again.
		else if (now === null || !swallows(now)) http.emit("connection", socket);
	};
	let server: Server | null = await listening(own, onConnection);

	const set = async (next: WireFault | null, which?: "submissions"): Promise<void> => {
		if (which !== undefined && next !== null && happensToConnections(next))
			throw new Error(`${next.kind} can't be met by submissions alone`);
		const prepared = next?.kind === "blackHole" ? await prepareBlackHole(own) : null;
		fault = next;
		only = which;
		since = systemClock.monotonic();
		if (next?.kind === "refuse" || prepared !== null) {
			const closing = server;
			server = null;
			closing?.close();
		}
		if (prepared !== null) hole = prepared.open();
		if (next?.kind === "refuse" || next?.kind === "resetOnAccept" || next?.kind === "flapping")
			for (const socket of sockets) resetSocket(socket);
		if (next?.kind !== "blackHole") {
			await hole?.close();
			hole = null;
		}
		if (next?.kind !== "refuse" && next?.kind !== "blackHole") server ??= await listening(own, onConnection);
	};
	return {
		port: own,
		url: `http://127.0.0.1:${own}`,
		requests: () => record,
		get connections() {
			return connections;
		},
		set,
		async stop() {
			await hole?.close();
			const closing = server;
			const closed = closing === null ? null : new Promise((resolve) => closing.close(resolve));
			for (const socket of sockets) socket.destroy();
			await closed;
			http.close();
			await pool.destroy();
		},
	};
}

function listening(port: number, onConnection: (socket: Socket) => void): Promise<Server> {
	const server = createServer({ allowHalfOpen: true, noDelay: true }, onConnection);
	return new Promise((resolve, reject) => {
		server.once("error", reject);
		server.listen(port, "127.0.0.1", () => resolve(server));
	});
}

async function ask(pool: Pool, incoming: IncomingMessage, bytes: Buffer): Promise<RealAnswer> {
	const { url = "/", method = "GET" } = incoming;
	const headers = Object.fromEntries(Object.entries(incoming.headers).filter(([name]) => !HOP.has(name)));
	const verb = method as "GET" | "POST";
	const answer = await pool.request({
		path: url,
		method: verb,
		headers,
		body: bytes.length === 0 ? null : bytes,
	});
	return {
		status: answer.statusCode,
		headers: answer.headers,
		body: Buffer.from(await answer.body.arrayBuffer()),
	};
}

/** A port that swallows. */
interface BlackHole {
	/** The port is free again. */
	close(): Promise<void>;
}

/** A black hole that is not there yet. */
interface ReadyHole {
	/**
	 * Listens, and holds up this thread until it does, so that nothing of it meets a port that nobody
	 * has. The port must be free.
	 */
	open(): BlackHole;
}

const WAITS = 0;
const OPENS = 1;
const OPEN = 2;
const CLOSES = 3;
/** More than the queue of a listener with a backlog of one has room for, on any system. */
const FILLERS = 6;
const OPEN_MS = 5_000;

/**
 * Plain JavaScript, so that the thread needs no loader. It sleeps but for the moment in which it
 * starts to listen.
 */
const THREAD = `
const { createServer } = require("node:net");
const { parentPort, workerData } = require("node:worker_threads");
const lock = new Int32Array(workerData.lock);
parentPort.postMessage("ready");
Atomics.wait(lock, 0, ${WAITS});
const server = createServer(() => {});
server.listen({ port: workerData.port, host: "127.0.0.1", backlog: 1 }, () => {
	Atomics.store(lock, 0, ${OPEN});
	Atomics.notify(lock, 0);
	Atomics.wait(lock, 0, ${OPEN});
	process.exit();
});
`;

/**
 * Prepares a port that never completes a connection, as if packets were dropped: a listener with a
 * full queue that accepts nothing. It runs in a thread that sleeps on a lock, because in this one
 * node would accept. Opening it then takes a moment only.
 */
async function prepareBlackHole(port: number): Promise<ReadyHole> {
	const shared = new SharedArrayBuffer(4);
	const lock = new Int32Array(shared);
	const worker = new Worker(THREAD, { eval: true, workerData: { port, lock: shared }, execArgv: [] });
	const gone = new Promise((resolve) => worker.once("exit", resolve));
	await new Promise((resolve, reject) => {
		worker.once("message", resolve);
		worker.once("error", reject);
	});
	return {
		open() {
			Atomics.store(lock, 0, OPENS);
			Atomics.notify(lock, 0);
			if (Atomics.wait(lock, 0, OPENS, OPEN_MS) === "timed-out") throw new Error("no black hole came");
			const fillers = Array.from({ length: FILLERS }, () => filler(port));
			return {
				async close() {
					Atomics.store(lock, 0, CLOSES);
					Atomics.notify(lock, 0);
					for (const socket of fillers) socket.destroy();
					await gone;
				},
			};
		},
	};
}

function filler(port: number): Socket {
	const socket = connect(port, "127.0.0.1");
	socket.on("error", () => {});
	return socket;
}
