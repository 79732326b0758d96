// One websocket connection. It limits its client's messages in flight and its unread bytes, since websockets have no
// backpressure.

import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { nextTurn } from "../clock.ts";
import type { RpcAnswer } from "../jsonrpc/answers.ts";
import type { Dispatcher } from "../jsonrpc/dispatch.ts";
import type { RpcBody } from "../jsonrpc/envelope.ts";
import { RpcError } from "../jsonrpc/errors.ts";
import type { FairScheduler } from "../shares/scheduler.ts";
import type { ByteBudget, Shares } from "../shares/shares.ts";
import {
	type CallContext,
	ClientLife,
	type Connection,
	clientOf,
	Ending,
	type Exchange,
	type RequestLife,
} from "./callContext.ts";
import type { RateLimiter } from "./rateLimit.ts";
import type { UnreadBytes, UnreadReader } from "./unreadBytes.ts";

export interface WebsocketParts {
	readonly socket: WebSocket;
	/** Messages in flight; at this limit the connection is not read. */
	readonly maxInFlight: number;
	/** The raw connection under `socket`. */
	readonly wire: Duplex;
	readonly dispatcher: Dispatcher<CallContext>;
	readonly limiter: Pick<RateLimiter, "takeBody">;
	readonly unread: UnreadBytes;
	/** Shared with all other connections, as is `unfinished`. */
	readonly budget: ByteBudget;
	/** Bytes of messages that have not arrived completely. */
	readonly unfinished: Shares;
	/** Called if all clients together have too many unfinished bytes. */
	readonly onCrowd: () => void;
	/** Large frames of all connections, by client. */
	readonly largeFrames: FairScheduler;
	/** The context of each message. */
	readonly contextOf: (connection: Connection, exchange: Exchange, life: RequestLife) => CallContext;
}

/** Maximum bytes of messages in flight. A larger message is handled alone. */
const MAX_BYTES_IN_FLIGHT = 4 * 1024 * 1024;
/** Frames of at least so many characters are large. */
const LARGE_FRAME = 16 * 1024;
/** Codes of RFC 6455, section 7.4, and its registry. */
const GOING_AWAY = 1001;
const TRY_AGAIN_LATER = 1013;
/** Header bytes of a client's short frame: RFC 6455, section 5.2. */
const FRAME_HEAD = 6;

/** A connection from its upgrade to its end. */
export class WebsocketConnection implements Connection {
	/** See clientOf. */
	readonly client: string;
	readonly #socket: WebSocket;
	readonly #address: string;
	readonly #dependencies: WebsocketParts;
	/** Messages that had been read from the network when the limit was reached; at most those of one read. */
	readonly #waiting: Buffer[] = [];
	readonly #closed = new Ending();
	/** Of the messages in flight. */
	readonly #lives = new Set<ClientLife>();
	/** A large frame that waits to be written, and frames sent after it. */
	readonly #outgoing: { readonly text: Buffer | string; readonly onSent: () => void }[] = [];
	readonly #reader: UnreadReader;
	#inFlight = 0;
	#bytesInFlight = 0;
	/** This connection's part of {@link WebsocketParts.unfinished}. */
	#unfinishedBytes = 0;
	/** While a large batch is read, which takes several turns of the event loop, later messages wait behind it. */
	#isReading = false;
	#isAlive = true;
	#finishing = false;

	constructor(address: string, dependencies: WebsocketParts) {
		this.#address = address;
		this.#dependencies = dependencies;
		this.#socket = dependencies.socket;
		this.client = clientOf(address);
		this.#reader = dependencies.unread.reader(address, {
			close: () => this.close(TRY_AGAIN_LATER, "too slow"),
			cut: () => this.terminate(),
		});
		const { socket } = dependencies;
		this.#dependencies.wire.on("data", (chunk: Buffer) => this.#countUnfinished(chunk.length));
		for (const kind of ["ping", "pong"] as const) {
			socket.on(kind, (data: Buffer) =>
				this.#countUnfinished(-Math.min(this.#unfinishedBytes, FRAME_HEAD + data.length)),
			);
		}
		socket.on("message", (data: Buffer) => {
			this.#countUnfinished(-this.#unfinishedBytes);
			if (this.#finishing || socket.readyState !== socket.OPEN) return;
			this.#isAlive = true;
			this.#waiting.push(data);
			this.#work();
		});
		socket.on("pong", () => {
			this.#isAlive = true;
		});
		// ws itself closes with the right code after a broken frame, a message too long or invalid UTF-8.
		socket.on("error", () => {});
		socket.on("close", () => {
			this.#countUnfinished(-this.#unfinishedBytes);
			this.#waiting.length = 0;
			this.#outgoing.length = 0;
			this.#dependencies.budget.forget(this.#work);
			this.#reader.gone();
			for (const life of this.#lives) life.end();
			this.#closed.end();
		});
	}

	send(text: Buffer | string): void {
		const socket = this.#socket;
		if (socket.readyState !== socket.OPEN) return;
		if (this.#reader.isBehind) {
			this.close(TRY_AGAIN_LATER, "too slow");
			return;
		}
		const onSent = this.#reader.write(Buffer.byteLength(text));
		if (text.length < LARGE_FRAME && this.#outgoing.length === 0) this.#write(text, onSent);
		else if (this.#outgoing.push({ text, onSent }) === 1) this.#writeScheduled();
	}

	close(code: number, reason: string): void {
		this.#socket.close(code, reason);
	}

	onClose(listener: () => void): void {
		this.#closed.onEnd(listener);
	}

	/** Pings the client; terminates the connection if nothing was received since the last ping. */
	ping(): void {
		const socket = this.#socket;
		// On a paused connection the pong may not have been read yet.
		if (!this.#isAlive && !socket.isPaused) socket.terminate();
		else if (socket.readyState === socket.OPEN) {
			this.#isAlive = false;
			socket.ping();
		}
	}

	/** Accepts no more messages, and closes with 1001 when those in flight are answered. */
	finish(): void {
		this.#finishing = true;
		this.#waiting.length = 0;
		this.#closeIfDone();
	}

	terminate(): void {
		this.#socket.terminate();
	}

	/** Bytes of a message that has not arrived completely. */
	get unfinished(): number {
		return this.#unfinishedBytes;
	}

	/** ws buffers a message until its end, so unfinished messages count against their client's share of memory. */
	#countUnfinished(bytes: number): void {
		if (this.#closed.isOver || bytes === 0) return;
		this.#unfinishedBytes += bytes;
		if (bytes < 0) this.#dependencies.unfinished.release(this.client, -bytes);
		else {
			const over = this.#dependencies.unfinished.refusal(this.client, bytes);
			this.#dependencies.unfinished.takeAnyway(this.client, bytes);
			if (over === "client") this.terminate();
			else if (over === "total") this.#dependencies.onCrowd();
		}
	}

	/** Starts waiting messages as far as limits allow; also called when others release budget. */
	readonly #work = (): void => {
		const socket = this.#socket;
		let full = false;
		for (
			let message = this.#waiting[0];
			message !== undefined && !this.#closed.isOver && !this.#isReading;
			message = this.#waiting[0]
		) {
			full = !this.#fits(message.length);
			if (full) break;
			this.#waiting.shift();
			this.#inFlight++;
			this.#bytesInFlight += message.length;
			this.#start(message);
		}
		full ||= this.#isReading;
		full ||= this.#inFlight >= this.#dependencies.maxInFlight;
		if (full && !socket.isPaused) socket.pause();
		else if (!full && socket.isPaused) socket.resume();
	};

	/** Starts synchronously unless it is a large batch, so that messages start in their order of arrival. */
	#start(message: Buffer): void {
		const { limiter, dispatcher } = this.#dependencies;
		const sent = new Ending();
		const life = new ClientLife(message.length);
		this.#lives.add(life);
		const limited = limiter.takeBody({ address: this.#address }, message, life);
		if (limited !== null) {
			Promise.resolve(limited).then((answer) => this.#answered(answer, life, sent), neverRejects);
			return;
		}
		const reading = dispatcher.read(message);
		if (!(reading instanceof Promise)) {
			this.#dispatch(reading, life, sent);
			return;
		}
		this.#isReading = true;
		reading.then((read) => {
			this.#isReading = false;
			this.#dispatch(read, life, sent);
			this.#work();
		}, neverRejects);
	}

	#dispatch(read: RpcBody | RpcError, life: ClientLife, sent: Ending): void {
		const { dispatcher, contextOf } = this.#dependencies;
		const context = contextOf(this, { onAnswered: (listener) => sent.onEnd(listener) }, life);
		// It never rejects.
		dispatcher
			.dispatch(withIds(read, dispatcher), context)
			.then((answer) => this.#answered(answer, life, sent), neverRejects);
	}

	/** Takes `bytes` from the common budget; false if a message of that size must wait. */
	#fits(bytes: number): boolean {
		if (this.#inFlight >= this.#dependencies.maxInFlight) return false;
		if (this.#bytesInFlight > 0 && this.#bytesInFlight + bytes > MAX_BYTES_IN_FLIGHT) return false;
		return this.#dependencies.budget.take(this.client, bytes, this.#work);
	}

	#answered({ text }: RpcAnswer, life: ClientLife, sent: Ending): void {
		this.#inFlight--;
		this.#lives.delete(life);
		this.#bytesInFlight -= life.bytes;
		this.#dependencies.budget.release(this.client, life.bytes);
		if (text !== null) this.send(text);
		sent.end();
		if (!this.#finishing) this.#work();
		else this.#closeIfDone();
	}

	#closeIfDone(): void {
		if (this.#inFlight === 0 && this.#outgoing.length === 0) this.close(GOING_AWAY, "going away");
	}

	#write(text: Buffer | string, onSent: () => void): void {
		const bytes = typeof text === "string" ? Buffer.from(text) : text;
		this.#socket.send(bytes, { binary: false }, onSent);
	}

	/** Writing a large frame takes milliseconds and hundreds may wait, so they are scheduled fairly by client. */
	#writeScheduled(): void {
		const cost = this.#outgoing[0]?.text.length ?? 1;
		this.#dependencies.largeFrames.enqueue({ client: this.client, cost }, async () => {
			const [frame] = this.#outgoing;
			if (frame !== undefined && this.#socket.readyState === this.#socket.OPEN) {
				this.#write(frame.text, frame.onSent);
			} else this.#outgoing.length = 0;
			await nextTurn();
			// Removed only now, so that frames sent meanwhile queue up behind it.
			this.#outgoing.shift();
			if (this.#outgoing.length > 0) this.#writeScheduled();
			else if (this.#finishing) this.#closeIfDone();
		});
	}
}

/** The body, with id null for calls that have none and are answered all the same. */
function withIds(
	read: RpcBody | RpcError,
	dispatcher: Pick<Dispatcher<CallContext>, "answersWithoutId">,
): RpcBody | RpcError {
	if (read instanceof RpcError || read.calls.every(({ id }) => id !== undefined)) return read;
	const calls = read.calls.map((call) =>
		call.id === undefined && dispatcher.answersWithoutId(call.method)
			? { ...call, id: null, isStrict: false }
			: call,
	);
	return { ...read, calls };
}

function neverRejects(thrown: unknown): never {
	throw thrown;
}
