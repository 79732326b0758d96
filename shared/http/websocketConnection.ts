// One websocket connection. It limits its client's messages in flight and its unread bytes, since
// websockets have no backpressure.

import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { clientOf } from "../client.ts";
import { type Clock, nextTurn, type Timer } from "../clock.ts";
import type { WrittenAnswer } from "../jsonrpc/answers.ts";
import type { Dispatcher } from "../jsonrpc/dispatch.ts";
import type { RpcBody } from "../jsonrpc/envelope.ts";
import { RpcError } from "../jsonrpc/errors.ts";
import type { FairScheduler } from "../shares/scheduler.ts";
import type { ByteBudget, Shares } from "../shares/shares.ts";
import {
	type CallContext,
	ClientLife,
	type Connection,
	Ending,
	type RequestLife,
	type WebsocketMessage,
} from "./callContext.ts";
import { type LaterMessages, OneMessage } from "./laterMessages.ts";
import type { RateLimiter } from "./rateLimit.ts";
import { textFrames, writeFrame } from "./textFrames.ts";
import type { UnreadBytes, UnreadReader } from "./unreadBytes.ts";

export interface WebsocketDependencies {
	readonly socket: WebSocket;
	/** Messages in flight; at this limit the connection is not read. */
	readonly maxInFlight: number;
	/** The raw connection under `socket`. */
	readonly wire: Duplex;
	readonly dispatcher: Dispatcher<CallContext>;
	readonly limiter: Pick<RateLimiter, "takeBody" | "takeFrom">;
	readonly clock: Clock;
	readonly unread: UnreadBytes;
	/** Shared with all other connections, as is `unfinished`. */
	readonly budget: ByteBudget;
	/** Bytes of messages that have not arrived completely. */
	readonly unfinished: Shares;
	/** Called if the unfinished bytes of all clients together exceed the limit. */
	readonly onCrowd: () => void;
	/** Writes, fairly by client, the frames of all connections that are not written at once. */
	readonly largeFrames: FairScheduler;
	/** The context of each message. */
	readonly contextOf: (connection: Connection, message: WebsocketMessage, life: RequestLife) => CallContext;
}

/** Maximum bytes of messages in flight. A larger message is handled alone. */
const MAX_BYTES_IN_FLIGHT = 4 * 1024 * 1024;
/** Frames of at least this many characters are large. */
const LARGE_FRAME = 16 * 1024;
/**
 * Bytes that are made and written in one turn of the event loop; a longer frame is written alone.
 */
const TURN_BYTES = 64 * 1024;
/**
 * No further message is made while this many bytes are written but not yet passed to the system.
 */
const MAX_WRITTEN = 64 * 1024;
/** Memory of an unread message beside its bytes. */
const MESSAGE_BYTES = 256;
/** How long a connection whose client is over its rate limit with pings is not read, in ms. */
const PING_PAUSE_MS = 1_000;
/** Codes of RFC 6455, section 7.4, and its registry. */
/** Not 1001: on that web3, for example, considers the server gone and does not reconnect. */
const SERVICE_RESTART = 1012;
const TRY_AGAIN_LATER = 1013;
/** Header bytes of a client's short frame: RFC 6455, section 5.2. */
const FRAME_HEAD = 6;
/** Memory of a piece of an unfinished message beside its bytes. */
const PIECE_BYTES = 512;

/** A connection from its upgrade to its end. */
export class WebsocketConnection implements Connection {
	/** See clientOf. */
	readonly client: string;
	readonly #socket: WebSocket;
	readonly #address: string;
	readonly #dependencies: WebsocketDependencies;
	/**
	 * Messages that had been read from the network when the limit was reached. At most those of one
	 * read.
	 */
	readonly #waiting: Buffer[] = [];
	readonly #closed = new Ending();
	/** Lives of the messages in flight. */
	readonly #lives = new Set<ClientLife>();
	/**
	 * Messages that are not written yet: a large frame, messages that are made later, and all
	 * messages sent after them.
	 */
	readonly #outgoing: LaterMessages[] = [];
	/** The part of `#outgoing` in the unread bytes. */
	#outgoingBytes = 0;
	/** Whether a job of `largeFrames` will write more of `#outgoing`. */
	#isScheduled = false;
	/** Bytes that were written but not yet passed to the system. */
	#writtenBytes = 0;
	readonly #reader: UnreadReader;
	/** While it runs, the connection is not read, since its client pings too often. */
	#pause: Timer | null = null;
	/** The content of the newest ping that was not answered. */
	#unanswered: Buffer | null = null;
	#inFlight = 0;
	#bytesInFlight = 0;
	/** This connection's part of {@link WebsocketDependencies.unfinished}. */
	#unfinishedBytes = 0;
	/** The pieces of an unfinished message that `#unfinishedBytes` includes. */
	#unfinishedPieces = 0;
	/**
	 * Whether a large batch is being read. That takes several turns of the event loop, and later
	 * messages wait for it.
	 */
	#isReading = false;
	#isAlive = true;
	#finishing = false;

	constructor(address: string, dependencies: WebsocketDependencies) {
		this.#address = address;
		this.#dependencies = dependencies;
		this.#socket = dependencies.socket;
		this.client = clientOf(address);
		this.#reader = dependencies.unread.reader(address, {
			close: () => this.close(TRY_AGAIN_LATER, "too slow"),
			cut: () => this.terminate(),
		});
		const { socket } = dependencies;
		// ws has processed the chunk before this listener, since it subscribed earlier.
		this.#dependencies.wire.on("data", (chunk: Buffer) => {
			this.#countUnfinished(chunk.length);
			this.#countPieces();
		});
		for (const kind of ["ping", "pong"] as const) {
			socket.on(kind, (data: Buffer) =>
				this.#countUnfinished(-Math.min(this.#unfinishedBytes, FRAME_HEAD + data.length)),
			);
		}
		socket.on("message", (data: Buffer) => {
			this.#countUnfinished(-this.#unfinishedBytes);
			this.#unfinishedPieces = 0;
			// After ws has continued with the bytes that it read together with the message.
			queueMicrotask(this.#countPieces);
			if (this.#finishing || socket.readyState !== socket.OPEN) return;
			this.#isAlive = true;
			this.#waiting.push(data);
			this.#work();
		});
		socket.on("ping", (data: Buffer) => this.#pinged(data));
		socket.on("pong", () => {
			// A pong that answers no ping of ours costs as much as a ping.
			if (this.#isAlive) this.#pinged(null);
			this.#isAlive = true;
		});
		// ws itself closes with the right code after a broken frame, a message too long or invalid
		// UTF-8.
		socket.on("error", () => {});
		socket.on("close", () => {
			this.#countUnfinished(-this.#unfinishedBytes);
			this.#waiting.length = 0;
			this.#drop();
			this.#pause?.cancel();
			this.#dependencies.budget.forget(this.#work);
			this.#reader.gone();
			for (const life of this.#lives) life.end();
			this.#closed.end();
		});
	}

	send(text: Buffer | string): void {
		if (this.#reader.isBehind) this.#closeAsTooSlow();
		else this.#take(new OneMessage(text), text.length < LARGE_FRAME);
	}

	sendLater(messages: LaterMessages): void {
		const { count, bytes } = messages;
		if (this.#reader.isOver(bytes + count * MESSAGE_BYTES)) this.#closeAsTooSlow();
		else this.#take(messages, count === 1 && bytes < LARGE_FRAME);
	}

	hold(bytes: number): () => void {
		if (this.#reader.isOver(bytes)) this.#closeAsTooSlow();
		return this.#reader.write(bytes);
	}

	onDrained(listener: () => void): void {
		this.#reader.onDrained(listener);
	}

	close(code: number, reason: string): void {
		this.#drop();
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

	/**
	 * ws buffers a message until its end, so unfinished messages count towards their client's quota
	 * of memory.
	 */
	#countUnfinished(bytes: number): void {
		if (this.#closed.isOver || bytes === 0) return;
		this.#unfinishedBytes += bytes;
		if (bytes < 0) this.#dependencies.unfinished.release(this.client, -bytes);
		else {
			const over = this.#dependencies.unfinished.exceeded(this.client, bytes);
			this.#dependencies.unfinished.takeAnyway(this.client, bytes);
			if (over === "client") this.terminate();
			else if (over === "total") this.#dependencies.onCrowd();
		}
	}

	/**
	 * A message may come in thousands of pieces of a byte each, and each is a separate object until
	 * the end comes. Their number is an internal of ws. If that changes, ws's own limit for each
	 * message still holds.
	 */
	readonly #countPieces = (): void => {
		const { _receiver: receiver } = this.#socket as WebSocket & ReceiverOfWs;
		const more = (receiver?._numFragments ?? 0) - this.#unfinishedPieces;
		if (more <= 0) return;
		this.#unfinishedPieces += more;
		this.#countUnfinished(more * PIECE_BYTES);
	};

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
		full ||= this.#isReading || this.#pause !== null;
		full ||= this.#inFlight >= this.#dependencies.maxInFlight;
		if (full && !socket.isPaused) socket.pause();
		else if (!full && socket.isPaused) socket.resume();
	};

	/**
	 * Starts synchronously unless it is a large batch, so that messages start in their order of
	 * arrival.
	 */
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

	/** Takes `bytes` from the common budget. False if a message of that size must wait. */
	#fits(bytes: number): boolean {
		if (this.#inFlight >= this.#dependencies.maxInFlight) return false;
		if (this.#bytesInFlight > 0 && this.#bytesInFlight + bytes > MAX_BYTES_IN_FLIGHT) return false;
		return this.#dependencies.budget.take(this.client, bytes, this.#work);
	}

	#answered({ text }: WrittenAnswer, life: ClientLife, sent: Ending): void {
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
		if (this.#inFlight > 0 || this.#outgoing.length > 0) return;
		this.close(SERVICE_RESTART, "the server restarts: connect again");
	}

	#closeAsTooSlow(): void {
		if (this.#socket.readyState === this.#socket.OPEN) this.close(TRY_AGAIN_LATER, "too slow");
	}

	/**
	 * Writes `messages` now if that is cheap and no messages are queued before them. Otherwise
	 * queues them.
	 */
	#take(messages: LaterMessages, isCheap: boolean): void {
		const socket = this.#socket;
		if (socket.readyState !== socket.OPEN) return;
		const isFirst = this.#outgoing.length === 0 && !this.#isScheduled;
		if (isFirst && isCheap && this.#writtenBytes === 0) {
			this.#writeNow(messages);
			return;
		}
		const bytes = messages.bytes + messages.count * MESSAGE_BYTES;
		// Counted first: if that closes the connection, no message is made.
		this.#outgoingBytes += bytes;
		this.#reader.take(bytes);
		if (socket.readyState !== socket.OPEN) return;
		this.#outgoing.push(messages);
		if (isFirst && isCheap && this.#writtenBytes < MAX_WRITTEN) this.#writeSome();
		else this.#writeLater();
	}

	/**
	 * Writes one short message while nothing is unread. The system mostly accepts it at once, so it
	 * never counts as unread.
	 */
	#writeNow(messages: LaterMessages): void {
		const { wire } = this.#dependencies;
		const { bytes } = messages;
		writeFrame(wire, messages.next(), bytes);
		if (wire.writableLength === 0) return;
		const unread = bytes + MESSAGE_BYTES;
		this.#writtenBytes += bytes;
		this.#reader.take(unread);
		// Ends when all bytes before it are passed to the system.
		wire.write(NOTHING, () => this.#written(bytes, unread));
	}

	/** Drops messages that were not written yet. */
	#drop(): void {
		this.#reader.release(this.#outgoingBytes);
		this.#outgoingBytes = 0;
		this.#outgoing.length = 0;
	}

	/**
	 * Making and writing a message takes milliseconds, and hundreds may wait. So they are scheduled
	 * fairly by client.
	 */
	#writeLater(): void {
		const [first] = this.#outgoing;
		if (first === undefined || this.#isScheduled || this.#writtenBytes >= MAX_WRITTEN) return;
		this.#isScheduled = true;
		const cost = Math.min(TURN_BYTES, first.bytes + MESSAGE_BYTES);
		this.#dependencies.largeFrames.enqueue({ client: this.client, cost }, async () => {
			if (this.#socket.readyState === this.#socket.OPEN) this.#writeSome();
			else this.#drop();
			await nextTurn();
			// Cleared only now, so that messages that were sent meanwhile queue behind it.
			this.#isScheduled = false;
			if (this.#outgoing.length > 0) this.#writeLater();
			else if (this.#finishing) this.#closeIfDone();
		});
	}

	/** Writes the next messages, as many as fit into one turn. */
	#writeSome(): void {
		const made: (Buffer | string)[] = [];
		let bytes = 0;
		for (let [first] = this.#outgoing; first !== undefined && bytes < TURN_BYTES; [first] = this.#outgoing) {
			if (first.count > 0) {
				const message = first.next();
				bytes += Buffer.byteLength(message);
				made.push(message);
			}
			if (first.count === 0) this.#outgoing.shift();
		}
		const [only] = made;
		if (only === undefined) return;
		const unread = bytes + made.length * MESSAGE_BYTES;
		this.#outgoingBytes -= unread;
		this.#writtenBytes += bytes;
		if (made.length > 1)
			this.#dependencies.wire.write(textFrames(made, bytes), () => this.#written(bytes, unread));
		else this.#socket.send(bytesOf(only), TEXT, () => this.#written(bytes, unread));
	}

	#written(bytes: number, unread: number): void {
		this.#reader.release(unread);
		this.#writtenBytes -= bytes;
		this.#writeLater();
	}

	/**
	 * A ping costs as much as a call in the client's rate limit. Over the limit the connection is
	 * not read for a while, and only the newest ping is answered afterwards. RFC 6455 (5.5.3)
	 * allows that. Clients such as go-ethereum's, which end a connection without a pong within 30
	 * s, then keep theirs. Null is an unsolicited pong, which gets no answer.
	 */
	#pinged(data: Buffer | null): void {
		if (this.#pause === null && this.#dependencies.limiter.takeFrom({ address: this.#address }, 1) === 0) {
			if (data !== null) this.#pong(data);
			return;
		}
		// Copied, since it is a slice of everything that was read with it.
		if (data !== null) this.#unanswered = Buffer.from(data);
		if (this.#pause !== null) return;
		this.#pause = this.#dependencies.clock.after(PING_PAUSE_MS, () => {
			this.#pause = null;
			const unanswered = this.#unanswered;
			this.#unanswered = null;
			if (unanswered !== null) this.#pinged(unanswered);
			this.#work();
		});
		this.#work();
	}

	#pong(data: Buffer): void {
		const socket = this.#socket;
		if (socket.readyState !== socket.OPEN) return;
		if (this.#reader.isBehind) this.#closeAsTooSlow();
		else socket.pong(data, false, this.#reader.write(data.length + MESSAGE_BYTES));
	}
}

const TEXT = { binary: false };
const NOTHING = Buffer.alloc(0);

/** Internals of ws that {@link WebsocketConnection} reads. */
interface ReceiverOfWs {
	readonly _receiver?: { readonly _numFragments?: number } | null;
}

function bytesOf(text: Buffer | string): Buffer {
	return typeof text === "string" ? Buffer.from(text) : text;
}

/** The body, with id null for calls that have no id but get an answer. */
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
