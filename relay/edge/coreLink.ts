// An edge's websocket to the core. It carries calls, their answers, and news of the core. It ends
// when the core is silent for CORE_TIMEOUT_MS. Calls without an answer then get an error, since the
// core may have executed them or not.

import type { LookupFunction } from "node:net";
import { clientOf } from "../../shared/client.ts";
import { type Clock, nextTurn } from "../../shared/clock.ts";
import type { Recovered } from "../../shared/ethereum/transaction.ts";
import type { CallContext } from "../../shared/http/callContext.ts";
import { JsonText } from "../../shared/jsonrpc/answers.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { AnswerLater } from "../../shared/jsonrpc/method.ts";
import type { Holder } from "../../shared/kv/postgres/holder.ts";
import { Link, LinkError, type OpenCall } from "../../shared/link/link.ts";
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
	readFeed,
	type TopicMessage,
} from "./messages.ts";

export interface CoreLinkDependencies {
	readonly clock: Clock;
	/** CORE_TIMEOUT_MS. */
	readonly timeoutMs: number;
	/** Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	/** Ends the connection, or the attempt to connect. */
	readonly stopped?: AbortSignal;
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

/** A call, with its client's context; null for a call of the edge's own. */
interface Call extends OpenCall {
	readonly context: CallContext | null;
}

/** One connection. */
export class CoreLink {
	/** The core's process at the other end. */
	readonly holder: Holder;
	readonly #link: Link<Call>;
	readonly #dependencies: CoreLinkDependencies;
	/** Calls to send with the next turn of the event loop. */
	#outgoing: string[] = [];
	/** Sends large calls and reads pieces of long results, one at a time, clients in turn. */
	readonly #large = new FairScheduler({ concurrency: 1, maxWaiting: Number.POSITIVE_INFINITY });
	/** Called when the core has received the large call with this id. */
	readonly #received = new Map<number, () => void>();

	private constructor(holder: Holder, link: Link<Call>, dependencies: CoreLinkDependencies) {
		this.holder = holder;
		this.#link = link;
		this.#dependencies = dependencies;
		link.listen({
			onMessage: (message) => this.#read(message),
			onEnd: () => {
				for (const received of this.#received.values()) received();
				dependencies.onEnd();
			},
		});
	}

	/**
	 * Connects, within `timeoutMs`. Resolves to null if the core can't be reached there, or that
	 * process is not the core (any more).
	 */
	static open(holder: Holder, dependencies: CoreLinkDependencies): Promise<CoreLink | null> {
		const { address, secret } = holder;
		const { timeoutMs } = dependencies;
		const options = {
			url: new URL(EDGE_PATH, address),
			headers: { authorization: `Bearer ${secret}` },
			maxMessageBytes: MAX_MESSAGE_BYTES,
			openMs: timeoutMs,
			silenceMs: timeoutMs,
			pings: "client",
		} as const;
		const begin = (link: Link<Call>) => new CoreLink(holder, link, dependencies);
		return Link.open(options, dependencies, begin).catch(() => null);
	}

	/** Whether the core can be asked: false also while it closes. */
	get isOpen(): boolean {
		return this.#link.isOpen;
	}

	/** Time since the core was last known to be up, in ms. */
	get silentMs(): number {
		return this.#link.silentMs;
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
		this.#link.close();
	}

	#send(method: string, params: readonly unknown[], call: Call, tx?: Recovered, trace?: string | null): void {
		const { context } = call;
		let hasLeft = false;
		const id = this.#link.expect(named(call, () => (hasLeft ? UNANSWERED : NO_CORE)));
		const message: CallMessage & { readonly jsonrpc: "2.0" } = {
			jsonrpc: "2.0",
			id,
			method,
			params,
			...(context === null ? {} : { from: fromOf(context) }),
			...(tx === undefined ? {} : { tx }),
			...(trace == null ? {} : { trace }),
		};
		const text = JSON.stringify(message);
		if (text.length <= LARGE_CALL_CHARS || context === null) {
			hasLeft = true;
			this.#outgoing.push(text);
			if (this.#outgoing.length === 1) void nextTurn().then(() => this.#flush());
			return;
		}
		/** Resolves when the core has received it. */
		const leave = async (): Promise<void> => {
			if (!this.isOpen) return;
			hasLeft = true;
			this.#link.send(`[${text}]`);
			await new Promise<void>((received) => this.#received.set(id, received));
		};
		void this.#large.run(jobOf(context, text.length), leave);
	}

	#flush(): void {
		const messages = this.#outgoing;
		this.#outgoing = [];
		for (const text of listTexts(messages)) this.#link.send(text);
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
		const call = this.#link.take(id);
		if (call === undefined) return;
		const { context } = call;
		if (charge !== undefined && context !== null) this.#dependencies.charge(context, charge);
		if (long !== undefined) this.#readLong(id, long, call);
		else if (error !== undefined) call.reject(errorOf(error));
		else if (later === true) call.resolve(this.#later(id, context));
		else call.resolve(result);
	}

	/** Reads a long result, a piece at a time, so that other answers come between. */
	#readLong(id: number, kind: "text" | "value", call: Call): void {
		const texts: string[] = [];
		const read = (piece: unknown): void => {
			const { text, isLast } = piece as AnswerPiece;
			texts.push(text);
			if (!isLast) next();
			// A long text of the node is not parsed, since that would block the event loop.
			else call.resolve(kind === "text" ? new JsonText(texts.join("")) : JSON.parse(texts.join("")));
		};
		const ask = () => new Promise((resolve, fail) => this.ask(ANSWER_PIECE, [id], resolve, fail));
		const next = (): void =>
			void this.#large.run(jobOf(call.context, PIECE_CHARS), ask).then(read).catch(call.reject);
		next();
	}

	/**
	 * The result that comes later, under the call's id. The core waits for it until it is notified
	 * that the client has gone.
	 */
	#later(id: number, context: CallContext | null): AnswerLater {
		let isDone = false;
		const result = new Promise((resolve, reject) => {
			this.#link.expect(
				named({ context, resolve, reject }, () => UNANSWERED),
				id,
			);
		}).finally(() => {
			isDone = true;
		});
		context?.life.onGone(() => {
			if (!isDone) this.ask(GONE, [id]);
		});
		// Perhaps nobody awaits the result.
		result.catch(() => {});
		return new AnswerLater(() => result);
	}
}

/** The call, rejected with an error for its client if the link ends. */
function named({ context, resolve, reject }: Call, error: () => RpcError): Call {
	return {
		context,
		resolve,
		reject: (thrown) => reject(thrown instanceof LinkError ? error() : thrown),
	};
}

/** The share of the connection that a large transfer of so many characters takes. */
function jobOf(context: CallContext | null, cost: number) {
	return { client: context === null ? "" : clientOf(context.client.address), cost };
}
