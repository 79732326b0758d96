// A line of so many bits a second between two processes, as a TCP proxy: all connections share it,
// each direction is one queue, and each byte takes a while to arrive.

import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { systemClock } from "../../shared/clock.ts";

export interface LineOptions {
	/** In each direction. */
	readonly bitsPerSecond: number;
	/** How long a byte takes to arrive, in ms, besides its time in the queue. */
	readonly delayMs: number;
}

/** As fast as the machine. */
export const FAST_LINE: LineOptions = { bitsPerSecond: Number.POSITIVE_INFINITY, delayMs: 0 };

/** A running line. */
export type SlowLine = Awaited<ReturnType<typeof startSlowLine>>;

/** Bytes that leave together. */
const PIECE_BYTES = 16 * 1024;
/** More bytes of one connection wait with their sender. */
const WINDOW_BYTES = 256 * 1024;

/** Starts a line to the port `to` on loopback. */
export async function startSlowLine(to: number, { bitsPerSecond, delayMs }: LineOptions) {
	const bytesPerMs = bitsPerSecond / 8_000;
	const sockets = new Set<Socket>();
	const keep = (socket: Socket): Socket => {
		sockets.add(socket);
		socket.setNoDelay(true);
		socket.on("error", () => {});
		socket.on("close", () => sockets.delete(socket));
		return socket;
	};
	let [up, down] = [0, 0];
	const directions = [new Direction(bytesPerMs, delayMs), new Direction(bytesPerMs, delayMs)] as const;
	const server = createServer((incoming) => {
		keep(incoming);
		const outgoing = keep(connect(to, "127.0.0.1"));
		directions[0].carry(incoming, outgoing, (bytes) => {
			up += bytes;
		});
		directions[1].carry(outgoing, incoming, (bytes) => {
			down += bytes;
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		port: (server.address() as AddressInfo).port,
		/** Bytes so far, to the process and from it. */
		get carried(): readonly [up: number, down: number] {
			return [up, down];
		},
		async stop(): Promise<void> {
			for (const socket of sockets) socket.destroy();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

/** One direction of the line. */
class Direction {
	readonly #bytesPerMs: number;
	readonly #delayMs: number;
	/** When everything that was sent has left, in monotonic ms. */
	#freeAt = 0;
	/** Bytes on their way, in their order. */
	readonly #queue: { readonly at: number; readonly arrived: () => void }[] = [];

	constructor(bytesPerMs: number, delayMs: number) {
		this.#bytesPerMs = bytesPerMs;
		this.#delayMs = delayMs;
	}

	/** Carries everything that `from` sends, and its end, to `into`. */
	carry(from: Socket, into: Socket, count: (bytes: number) => void): void {
		let waiting = 0;
		from.on("data", (chunk: Buffer) => {
			count(chunk.length);
			for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
				const piece = chunk.subarray(at, at + PIECE_BYTES);
				waiting += piece.length;
				this.#add(piece.length, () => {
					waiting -= piece.length;
					into.write(piece);
					if (waiting < WINDOW_BYTES) from.resume();
				});
			}
			if (waiting >= WINDOW_BYTES) from.pause();
		});
		from.on("close", () => this.#add(0, () => into.destroy()));
	}

	/** Calls `arrived` when so many bytes, behind all others, are at the other end. */
	#add(bytes: number, arrived: () => void): void {
		this.#freeAt = Math.max(systemClock.monotonic(), this.#freeAt) + bytes / this.#bytesPerMs;
		this.#queue.push({ at: this.#freeAt + this.#delayMs, arrived });
		if (this.#queue.length === 1) this.#deliver();
	}

	#deliver(): void {
		for (let [next] = this.#queue; next !== undefined; [next] = this.#queue) {
			const ms = next.at - systemClock.monotonic();
			if (ms > 0) {
				systemClock.after(ms, () => this.#deliver());
				return;
			}
			this.#queue.shift();
			next.arrived();
		}
	}
}
