// An edge's websocket to the core. It carries calls, their answers, and news of the core. It ends
// when the core is silent for CORE_TIMEOUT_MS. Calls without an answer then get an error, since the
// core may have executed them or not.

import type { LookupFunction } from "node:net";
import { WebSocket } from "ws";
import { clientOf } from "../../shared/client.ts";
import { type Clock, nextTurn, type Timer } from "../../shared/clock.ts";
import type { Recovered } from "../../shared/ethereum/transaction.ts";
import type { CallContext } from "../../shared/http/callContext.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { AnswerLater } from "../../shared/jsonrpc/method.ts";
import type { Holder } from "../../shared/kv/postgres/holder.ts";
import { OUTGOING_HEADERS } from "../../shared/outgoing/headers.ts";
import { FairScheduler } from "../../shared/shares/scheduler.ts";
import { EDGE_PATH } from "../domain/endpoints.ts";
import {
	ANSWER_PIECE,
	type AnswerMessage,
	type AnswerPiece,
	type CallMessage,
	errorOf,
	fromOf,
	GONE,
	LARGE_CALL_CHARS,
	listTexts,
	MAX_MESSAGE_BYTES,
	NO_CORE,
	PIECE_CHARS,
	PING_PART,
	readFeed,
	type TopicMessage,
} from "./messages.ts";

export interface CoreLinkDependencies {
	readonly clock: Clock;
	/** CORE_TIMEOUT_MS. */
	readonly timeoutMs: number;
	/** Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	/**
	 * A transaction that is shared with searchers: its number in the core's term, its hash, and the
	 * feed's result as JSON.
	 */
	readonly onShared: (number: number, hash: string, text: string) => void;
	/** News of a followed topic: the result as JSON. */
	readonly onNews: (topic: string, text: string) => void;
	/** Called when a call costs more than was charged for it. */
	readonly charge: (context: CallContext, weight: number) => void;
	/** Called once, at the end of the connection. */
	readonly onEnd: () => void;
}

/**
 * The error for a call that the core has not answered. The core may have executed it all the same.
 */
export const UNANSWERED = new RpcError(
	"unavailable",
	"internal error: no core answered in time: the request may have been carried out, check before you retry",
	{ reason: "no core" },
);

const noted = (): void => {};

interface Waiting {
	/** The call's context; null for a call of the edge's own. */
	readonly context: CallContext | null;
	/** Called at once with the result, before any later message is read. */
	readonly resolve: (result: unknown) => void;
	readonly reject: (thrown: Error) => void;
}

/** One connection. */
export class CoreLink {
	/** The core's process at the other end. */
	readonly holder: Holder;
	readonly #socket: WebSocket;
	readonly #dependencies: CoreLinkDependencies;
	readonly #waiting = new Map<number, Waiting>();
	/** Calls to send with the next turn of the event loop. */
	#outgoing: string[] = [];
	/** Sends large calls and reads pieces of long answers, one at a time, clients in turn. */
	readonly #large = new FairScheduler({ concurrency: 1, maxWaiting: Number.POSITIVE_INFINITY });
	/** Ids of large calls that are not sent yet. */
	readonly #unsent = new Set<number>();
	/** Called when the core has received the large call with this id. */
	readonly #received = new Map<number, () => void>();
	#lastId = 0;
	/** When the last ping was sent that the core has answered, in monotonic ms. */
	#heardAt: number;
	readonly #pings = new Map<string, number>();
	#lastPing = 0;
	#timer: Timer;

	private constructor(holder: Holder, socket: WebSocket, dependencies: CoreLinkDependencies) {
		this.holder = holder;
		this.#socket = socket;
		this.#dependencies = dependencies;
		this.#heardAt = dependencies.clock.monotonic();
		socket.on("message", (data: Buffer) => this.#read(data));
		socket.on("pong", (data: Buffer) => this.#ponged(data.toString("latin1")));
		socket.on("close", () => this.#ended());
		this.#timer = this.#beat();
	}

	/**
	 * Connects, within `timeoutMs`. Resolves to null if the core can't be reached there, or that
	 * process is not the core (any more).
	 */
	static open(holder: Holder, dependencies: CoreLinkDependencies): Promise<CoreLink | null> {
		const url = new URL(holder.address);
		url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
		url.pathname = EDGE_PATH;
		const socket = new WebSocket(url, {
			headers: { ...OUTGOING_HEADERS, authorization: `Bearer ${holder.secret}` },
			maxPayload: MAX_MESSAGE_BYTES,
			perMessageDeflate: false,
			skipUTF8Validation: true,
			...(dependencies.lookup === undefined ? {} : { lookup: dependencies.lookup }),
		});
		return new Promise((resolve) => {
			const deadline = dependencies.clock.after(dependencies.timeoutMs, () => socket.terminate());
			socket.on("error", () => {});
			socket.once("close", () => {
				deadline.cancel();
				resolve(null);
			});
			socket.once("open", () => {
				deadline.cancel();
				resolve(new CoreLink(holder, socket, dependencies));
			});
		});
	}

	/** Whether the core can be asked: false also while it closes. */
	get isOpen(): boolean {
		return this.#socket.readyState === WebSocket.OPEN;
	}

	/** Time since the core was last known to be up, in ms. */
	get silentMs(): number {
		return this.#dependencies.clock.monotonic() - this.#heardAt;
	}

	/**
	 * Calls a method of the core for the client of `context`. Resolves to its result, or to an
	 * AnswerLater. Throws the method's error, {@link UNANSWERED}, or {@link NO_CORE} if it was not
	 * sent. `trace` is the trace that the call is part of.
	 */
	call(
		method: string,
		params: readonly unknown[],
		context: CallContext,
		recovered?: Recovered,
		trace: string | null = null,
	): Promise<unknown> {
		return new Promise((resolve, reject) => {
			this.#send(method, params, { context, resolve, reject }, recovered, trace);
		});
	}

	/**
	 * Calls one of the connection's own methods. `resolve` gets the result before any later message
	 * of the core is read. `reject` gets the same errors as in {@link call}.
	 */
	ask(
		method: string,
		params: readonly unknown[],
		resolve: (result: unknown) => void = noted,
		reject: (thrown: Error) => void = noted,
	): void {
		this.#send(method, params, { context: null, resolve, reject });
	}

	close(): void {
		this.#socket.terminate();
	}

	#send(
		method: string,
		params: readonly unknown[],
		waiting: Waiting,
		tx?: Recovered,
		trace: string | null = null,
	): void {
		if (!this.isOpen) {
			waiting.reject(UNANSWERED);
			return;
		}
		this.#lastId += 1;
		const id = this.#lastId;
		this.#waiting.set(id, waiting);
		const message: CallMessage & { readonly jsonrpc: "2.0" } = {
			jsonrpc: "2.0",
			id,
			method,
			params,
			...(waiting.context === null ? {} : { from: fromOf(waiting.context) }),
			...(tx === undefined ? {} : { tx }),
			...(trace === null ? {} : { trace }),
		};
		const text = JSON.stringify(message);
		if (text.length <= LARGE_CALL_CHARS || waiting.context === null) {
			this.#outgoing.push(text);
			if (this.#outgoing.length === 1) void nextTurn().then(() => this.#flush());
			return;
		}
		this.#unsent.add(id);
		void this.#large.run(jobOf(waiting.context, text.length), () => this.#sendLarge(id, text));
	}

	/** Sends a large call, and resolves when the core has received it. */
	async #sendLarge(id: number, text: string): Promise<void> {
		if (!this.isOpen) return;
		this.#unsent.delete(id);
		this.#socket.send(`[${text}]`);
		await new Promise<void>((resolve) => this.#received.set(id, resolve));
	}

	#flush(): void {
		const messages = this.#outgoing;
		this.#outgoing = [];
		if (!this.isOpen) return;
		for (const text of listTexts(messages)) this.#socket.send(text);
	}

	#read(data: Buffer): void {
		const feed = readFeed(data);
		if (feed !== null) {
			this.#dependencies.onShared(feed.number, feed.hash, feed.text);
			return;
		}
		const message = JSON.parse(data.toString("utf8")) as readonly AnswerMessage[] | TopicMessage;
		if ("topic" in message) this.#dependencies.onNews(message.topic, JSON.stringify(message.result));
		else for (const answer of message) this.#answered(answer);
	}

	#answered({ id, result, error, later, long, got, charge }: AnswerMessage): void {
		if (got === true) {
			this.#received.get(id)?.();
			this.#received.delete(id);
			return;
		}
		const waiting = this.#waiting.get(id);
		if (waiting === undefined) return;
		if (long === true) {
			this.#readLong(id, waiting);
			return;
		}
		this.#waiting.delete(id);
		if (charge !== undefined && waiting.context !== null) this.#dependencies.charge(waiting.context, charge);
		if (error !== undefined) waiting.reject(errorOf(error));
		else if (later === true) waiting.resolve(this.#later(id, waiting.context));
		else waiting.resolve(result);
	}

	/** Reads a long answer, a piece at a time, so that other answers come between. */
	#readLong(id: number, { context, reject }: Waiting): void {
		const texts: string[] = [];
		const read = (piece: unknown): void => {
			const { text, isLast } = piece as AnswerPiece;
			texts.push(text);
			if (isLast) this.#answered(JSON.parse(texts.join("")) as AnswerMessage);
			else next();
		};
		const failed = (thrown: Error): void => {
			this.#waiting.delete(id);
			reject(thrown);
		};
		const ask = () => new Promise((resolve, fail) => this.ask(ANSWER_PIECE, [id], resolve, fail));
		const next = (): void => void this.#large.run(jobOf(context, PIECE_CHARS), ask).then(read, failed);
		next();
	}

	/**
	 * The result that comes later, under the call's id. The core waits for it until it is notified
	 * that the client has gone.
	 */
	#later(id: number, context: CallContext | null): AnswerLater {
		const result = new Promise((resolve, reject) => this.#waiting.set(id, { context, resolve, reject }));
		context?.life.onGone(() => {
			if (this.#waiting.has(id)) this.ask(GONE, [id]);
		});
		// Perhaps nobody awaits the result.
		result.catch(() => {});
		return new AnswerLater(() => result);
	}

	/** Pings, and ends the connection when the core was silent for too long. */
	#beat(): Timer {
		this.#lastPing += 1;
		const name = String(this.#lastPing);
		this.#pings.set(name, this.#dependencies.clock.monotonic());
		this.#socket.ping(name);
		const { clock, timeoutMs } = this.#dependencies;
		return clock.after(PING_PART * timeoutMs, () => {
			// A connection that is still closing after this time is cut off.
			if (!this.isOpen || this.silentMs > timeoutMs) this.#socket.terminate();
			else this.#timer = this.#beat();
		});
	}

	/** Records the answer to a ping: the core was up when the ping was sent. */
	#ponged(name: string): void {
		const sentAt = this.#pings.get(name);
		if (sentAt === undefined) return;
		this.#heardAt = Math.max(this.#heardAt, sentAt);
		this.#pings.delete(name);
	}

	#ended(): void {
		this.#timer.cancel();
		for (const [id, { reject }] of this.#waiting) reject(this.#unsent.has(id) ? NO_CORE : UNANSWERED);
		this.#waiting.clear();
		for (const received of this.#received.values()) received();
		this.#dependencies.onEnd();
	}
}

/** The share of the connection that a large transfer of so many characters takes. */
function jobOf(context: CallContext | null, cost: number) {
	return { client: context === null ? "" : clientOf(context.client.address), cost };
}
