// One websocket connection. It bounds what its client may have under way and unread, since a websocket has
// no backpressure of its own.

import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { nextTurn } from "../clock.ts";
import type { Dispatcher } from "../jsonrpc/dispatch.ts";
import type { RpcAnswer } from "../jsonrpc/envelope.ts";
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
	/** Messages that are worked on at a time; beyond it the connection is not read. */
	readonly maxUnderWay: number;
	/** What the frames come in by. */
	readonly wire: Duplex;
	readonly dispatcher: Dispatcher<CallContext>;
	readonly limiter: Pick<RateLimiter, "takeBody">;
	readonly unread: UnreadBytes;
	/** Shared with all other connections, as is `unfinished`. */
	readonly budget: ByteBudget;
	/** Bytes of messages whose end has not come. */
	readonly unfinished: Shares;
	/** Called where all clients together have too much unfinished. */
	readonly onCrowd: () => void;
	/** Large frames of all connections, by client. */
	readonly largeFrames: FairScheduler;
	/** The context of each message. */
	readonly contextOf: (connection: Connection, exchange: Exchange, life: RequestLife) => CallContext;
}

/** Bytes of messages that are worked on at a time; one that is larger goes alone. */
const MAX_BYTES_UNDER_WAY = 4 * 1024 * 1024;
/** Characters of a frame that is large. */
const LARGE_FRAME = 16 * 1024;
/** Codes of RFC 6455, section 7.4, and its registry. */
const GOING_AWAY = 1001;
const TRY_AGAIN_LATER = 1013;
/** Bytes of a client's frame before its data, where that is short: RFC 6455, section 5.2. */
const FRAME_HEAD = 6;

/** A connection from its upgrade to its end. */
export class WebsocketConnection implements Connection {
	/** Whose it is, as budgets count. */
	readonly client: string;
	readonly #socket: WebSocket;
	readonly #address: string;
	readonly #with: WebsocketParts;
	/** Messages that were already read off the network when the limit was reached; no more than one read's worth. */
	readonly #waiting: Buffer[] = [];
	readonly #closed = new Ending();
	/** Of the messages under way. */
	readonly #lives = new Set<ClientLife>();
	/** A large frame that waits for its turn, and what was sent after it. */
	readonly #outgoing: { readonly text: string; readonly left: () => void }[] = [];
	readonly #reader: UnreadReader;
	#underWay = 0;
	#bytesUnderWay = 0;
	/** Of {@link WebsocketParts.unfinished}. */
	#unfinishedBytes = 0;
	#heard = true;
	#finishing = false;

	/** `address`: its client's. */
	constructor(address: string, dependencies: WebsocketParts) {
		this.#address = address;
		this.#with = dependencies;
		this.#socket = dependencies.socket;
		this.client = clientOf(address);
		this.#reader = dependencies.unread.reader(address, {
			close: () => this.close(TRY_AGAIN_LATER, "too slow"),
			cut: () => this.terminate(),
		});
		const { socket } = dependencies;
		this.#with.wire.on("data", (chunk: Buffer) => this.#took(chunk.length));
		for (const kind of ["ping", "pong"] as const) {
			socket.on(kind, (data: Buffer) =>
				this.#took(-Math.min(this.#unfinishedBytes, FRAME_HEAD + data.length)),
			);
		}
		socket.on("message", (data: Buffer) => {
			this.#took(-this.#unfinishedBytes);
			if (this.#finishing || socket.readyState !== socket.OPEN) return;
			this.#heard = true;
			this.#waiting.push(data);
			this.#work();
		});
		socket.on("pong", () => {
			this.#heard = true;
		});
		// Broken frames, messages that are too long, text that is no UTF-8: ws closes with the right code itself.
		socket.on("error", () => {});
		socket.on("close", () => {
			this.#took(-this.#unfinishedBytes);
			this.#waiting.length = 0;
			this.#outgoing.length = 0;
			this.#with.budget.forget(this.#work);
			this.#reader.gone();
			for (const life of this.#lives) life.end();
			this.#closed.end();
		});
	}

	send(text: string): void {
		const socket = this.#socket;
		if (socket.readyState !== socket.OPEN) return;
		if (this.#reader.isBehind) {
			this.close(TRY_AGAIN_LATER, "too slow");
			return;
		}
		const left = this.#reader.write(Buffer.byteLength(text));
		if (text.length < LARGE_FRAME && this.#outgoing.length === 0) this.#write(text, left);
		else if (this.#outgoing.push({ text, left }) === 1) this.#writeInTurn();
	}

	close(code: number, reason: string): void {
		this.#socket.close(code, reason);
	}

	onClose(listener: () => void): void {
		this.#closed.onEnd(listener);
	}

	/** Asks the client for a sign of life; cuts the connection when it gave none since the last time. */
	ping(): void {
		const socket = this.#socket;
		// A paused connection is not read: its pong may be there.
		if (!this.#heard && !socket.isPaused) socket.terminate();
		else if (socket.readyState === socket.OPEN) {
			this.#heard = false;
			socket.ping();
		}
	}

	/** Takes no more messages, and closes with 1001 when those under way are answered. */
	finish(): void {
		this.#finishing = true;
		this.#waiting.length = 0;
		this.#closeIfDone();
	}

	/** Cuts it. */
	terminate(): void {
		this.#socket.terminate();
	}

	/** Bytes of a message whose end has not come. */
	get unfinished(): number {
		return this.#unfinishedBytes;
	}

	/** ws keeps what came of a message until its end: one client's beginnings must not take all memory. */
	#took(bytes: number): void {
		if (this.#closed.isOver || bytes === 0) return;
		this.#unfinishedBytes += bytes;
		if (bytes < 0) this.#with.unfinished.give(this.client, -bytes);
		else {
			const over = this.#with.unfinished.refusal(this.client, bytes);
			this.#with.unfinished.force(this.client, bytes);
			if (over === "client") this.terminate();
			else if (over === "total") this.#with.onCrowd();
		}
	}

	/** Begins what may be worked on now; also called when others have given room back. */
	readonly #work = (): void => {
		const socket = this.#socket;
		let full = false;
		for (
			let message = this.#waiting[0];
			message !== undefined && !this.#closed.isOver;
			message = this.#waiting[0]
		) {
			full = !this.#fits(message.length);
			if (full) break;
			this.#waiting.shift();
			this.#underWay++;
			const { length } = message;
			this.#bytesUnderWay += length;
			const sent = new Ending();
			const life = new ClientLife(length);
			this.#lives.add(life);
			// Started here and now, so that messages start in the order in which they came; it never rejects.
			const limited = this.#with.limiter.takeBody({ address: this.#address }, length);
			const answering =
				limited === null
					? this.#with.dispatcher.dispatch(
							message,
							this.#with.contextOf(this, { onAnswered: (listener) => sent.onEnd(listener) }, life),
						)
					: Promise.resolve(limited);
			answering.then((answer) => this.#answered(answer, life, sent), neverRejects);
		}
		full ||= this.#underWay >= this.#with.maxUnderWay;
		if (full && !socket.isPaused) socket.pause();
		else if (!full && socket.isPaused) socket.resume();
	};

	/** Whether a message of so many bytes may be worked on now; they are taken from the common budget then. */
	#fits(bytes: number): boolean {
		if (this.#underWay >= this.#with.maxUnderWay) return false;
		if (this.#bytesUnderWay > 0 && this.#bytesUnderWay + bytes > MAX_BYTES_UNDER_WAY) return false;
		return this.#with.budget.take(this.client, bytes, this.#work);
	}

	#answered({ text }: RpcAnswer, life: ClientLife, sent: Ending): void {
		this.#underWay--;
		this.#lives.delete(life);
		this.#bytesUnderWay -= life.bytes;
		this.#with.budget.give(this.client, life.bytes);
		if (text !== null) this.send(text);
		sent.end();
		if (!this.#finishing) this.#work();
		else this.#closeIfDone();
	}

	#closeIfDone(): void {
		if (this.#underWay === 0 && this.#outgoing.length === 0) this.close(GOING_AWAY, "going away");
	}

	#write(text: string, left: () => void): void {
		this.#socket.send(Buffer.from(text), { binary: false }, left);
	}

	/** A large frame takes milliseconds, and hundreds may be due at once: clients take turns, one in each turn of the event loop. */
	#writeInTurn(): void {
		const cost = this.#outgoing[0]?.text.length ?? 1;
		this.#with.largeFrames.enqueue({ client: this.client, cost }, async () => {
			const [frame] = this.#outgoing;
			if (frame !== undefined && this.#socket.readyState === this.#socket.OPEN) {
				this.#write(frame.text, frame.left);
			} else this.#outgoing.length = 0;
			await nextTurn();
			// It stays in the list until now, so that frames sent meanwhile ask for no turn of their own.
			this.#outgoing.shift();
			if (this.#outgoing.length > 0) this.#writeInTurn();
			else if (this.#finishing) this.#closeIfDone();
		});
	}
}

function neverRejects(thrown: unknown): never {
	throw thrown;
}
