// One port in front of several servers on loopback, as a host's balancer: each new connection goes
// to the next one that is ready by its /readyz. Bytes are passed on as they are, so that what a
// client sees is the server's own.

import { connect, createServer, type Socket } from "node:net";
import { pause, systemClock } from "../../shared/clock.ts";

/** A balancer that listens. */
export interface Balancer {
	/** http://127.0.0.1:port */
	readonly url: string;
	/** Closes its port and all connections. */
	stop(): Promise<void>;
}

/** Connections that may wait until they are accepted, as far as the system lets them. */
const BACKLOG = 10_000;
/** How often each server is asked, and after which time it has not answered, in ms. */
const ASK_AGAIN_MS = 200;
const ANSWER_MS = 1_000;

/**
 * Listens on `port` (0: a free one) in front of `targets`, which are ports. Throws if the port is
 * taken.
 */
export async function startBalancer(port: number, targets: readonly number[]): Promise<Balancer> {
	const ready = new Set<number>();
	const open = new Set<Socket>();
	const stopping = new AbortController();
	let turn = 0;
	/** In turns, the ready ones first: where none is, one that is not says why. */
	const candidates = (): readonly number[] => {
		turn += 1;
		const others = targets.filter((one) => !ready.has(one));
		return [...inTurn([...ready], turn), ...inTurn(others, turn)];
	};
	const server = createServer((client) => {
		track(open, client);
		void join(client, candidates(), open);
	});
	await new Promise<void>((resolve, reject) => {
		server.once("error", reject);
		server.listen({ port, host: "127.0.0.1", backlog: BACKLOG }, resolve);
	});
	const watching = targets.map(async (target) => {
		while (!stopping.signal.aborted) {
			if (await isReady(target, stopping.signal)) ready.add(target);
			else ready.delete(target);
			await pause(systemClock, ASK_AGAIN_MS, stopping.signal);
		}
	});
	const address = server.address();
	const listening = typeof address === "object" && address !== null ? address.port : port;
	return {
		url: `http://127.0.0.1:${listening}`,
		async stop() {
			stopping.abort();
			const closed = new Promise<void>((resolve) => server.close(() => resolve()));
			for (const socket of open) socket.destroy();
			await Promise.all([closed, ...watching]);
		},
	};
}

/** All of `ports`, another one first at each `turn`. */
function inTurn(ports: readonly number[], turn: number): readonly number[] {
	const at = turn % Math.max(1, ports.length);
	return [...ports.slice(at), ...ports.slice(0, at)];
}

/** Joins `client` with the first of `targets` that takes a connection; without one it is closed. */
async function join(client: Socket, targets: readonly number[], open: Set<Socket>): Promise<void> {
	for (const target of targets) {
		const socket = await connected(target);
		if (socket === null) continue;
		track(open, socket);
		if (client.destroyed) return void socket.destroy();
		endsWith(client, socket);
		endsWith(socket, client);
		client.pipe(socket).pipe(client);
		return;
	}
	client.destroy();
}

/** Ends `other` with `one`; what was written to it before still goes out, unless `one` was cut. */
function endsWith(one: Socket, other: Socket): void {
	one.once("close", (hadError) => (hadError ? other.destroy() : other.end()));
}

function connected(port: number): Promise<Socket | null> {
	return new Promise((resolve) => {
		const socket = connect({ port, host: "127.0.0.1", noDelay: true });
		socket.once("error", () => resolve(null));
		socket.once("connect", () => resolve(socket));
	});
}

/** Errors are followed by a close, which is all that matters. */
function track(open: Set<Socket>, socket: Socket): void {
	open.add(socket);
	socket.on("error", () => {});
	socket.once("close", () => open.delete(socket));
}

async function isReady(port: number, stopping: AbortSignal): Promise<boolean> {
	try {
		const signal = AbortSignal.any([stopping, AbortSignal.timeout(ANSWER_MS)]);
		const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { signal });
		await answer.arrayBuffer();
		return answer.status === 200;
	} catch {
		return false;
	}
}
