// A port that never completes a connection, as if packets were dropped: a listener with a full queue that accepts
// nothing. It runs in a thread that sleeps on a lock, because in this one node would accept.

import { connect, type Socket } from "node:net";
import { Worker } from "node:worker_threads";

/** A port that swallows. */
export interface BlackHole {
	/** The port is free again. */
	close(): Promise<void>;
}

/** A black hole that is not there yet. */
export interface ReadyHole {
	/**
	 * Listens, and holds up this thread until it does, so that nothing of it meets a port that nobody has. The port must
	 * be free.
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

/** Plain JavaScript, so that the thread needs no loader. It sleeps but for the moment in which it starts to listen. */
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

/** Prepares one for `port`; opening it then takes a moment only. */
export async function prepareBlackHole(port: number): Promise<ReadyHole> {
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
