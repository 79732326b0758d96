// A websocket to our relay for one client. Calls keep their order on it, and its subscriptions end
// with it. Messages from the relay are handled in steps, between which the event loop runs. They
// are forwarded as the received bytes, since a block may bring each client thousands of messages.
// The relay is read only as fast as the client reads, so that a slow client's messages wait there,
// where all subscribers share one text.

import type { LookupFunction } from "node:net";
import type { Clock } from "../../shared/clock.ts";
import { longResult } from "../../shared/jsonrpc/client.ts";
import { ForeignRpcError } from "../../shared/jsonrpc/errors.ts";
import { Link } from "../../shared/link/link.ts";

export interface RelayLinkOptions {
	/** Our relay's http or https URL, which may have credentials and a path. */
	readonly relayUrl: string;
	/** The client's address, and the secret that makes the relay accept it. */
	readonly headers: Readonly<Record<string, string>>;
}

export interface RelayLinkDependencies {
	readonly clock: Clock;
	/** Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	/** Runs `work` in a turn of the event loop that has time for it. */
	readonly inTurn: (work: () => void) => void;
	/** Calls `listener` once the client is ready for more. Until then no message is handled. */
	readonly onDrained: (listener: () => void) => void;
	readonly onNotifications: (notifications: readonly LinkNotification[]) => void;
	/** Called once when it has ended, with the relay's close code. */
	readonly onClose: (code: number) => void;
}

/** A notification of the relay to a subscription. */
export interface LinkNotification {
	/** The relay's id of the subscription. */
	readonly id: string;
	/** Unchanged, and a buffer that nothing else uses. */
	readonly message: Buffer;
}

const LINK = {
	maxMessageBytes: 64 * 1024 * 1024,
	openMs: 2_500,
	/** The relay pings every 25 s. */
	silenceMs: 60_000,
	pings: "server",
} as const;
/** Longer than any call takes at the relay. */
const ANSWER_MS = 29_000;
/** Each step handles messages up to this size in total, in bytes, or one longer message. */
const STEP_BYTES = 16 * 1024;
/** While this many bytes wait to be handled, no more is read. */
const MAX_WAITING_BYTES = 64 * 1024;
const NOTIFICATION = /"method":"eth_subscription","params":\{"subscription":"(0x[0-9a-f]+)"/;
const ANSWER_ID = /"id":(\d+)/;
/** Both patterns match within this many bytes. */
const HEAD_BYTES = 200;

/** One websocket. */
export class RelayLink {
	readonly #link: Link;
	readonly #dependencies: RelayLinkDependencies;
	/** Messages that wait to be handled. */
	readonly #received: Buffer[] = [];
	#receivedBytes = 0;
	/** Whether a step is already scheduled. */
	#isQueued = false;

	private constructor(link: Link, dependencies: RelayLinkDependencies) {
		this.#link = link;
		this.#dependencies = dependencies;
		link.listen({
			onMessage: (message) => this.#receive(message),
			onEnd: (code) => {
				while (this.#received.length > 0) this.#handleSome();
				dependencies.onClose(code);
			},
		});
	}

	/** Connects. Throws LinkError if the relay does not accept the connection. */
	static open(
		{ relayUrl, headers }: RelayLinkOptions,
		dependencies: RelayLinkDependencies,
	): Promise<RelayLink> {
		const url = new URL(relayUrl);
		url.pathname = `${url.pathname.replace(/\/+$/, "")}/ws`;
		return Link.open({ ...LINK, url, headers }, dependencies, (link) => new RelayLink(link, dependencies));
	}

	/** The result of a call. Throws ForeignRpcError with the relay's own error, or LinkError. */
	call(method: string, params: readonly unknown[]): Promise<unknown> {
		// Without an answer, no notifications will come either.
		return new Promise((resolve, reject) => this.#link.call(method, params, { resolve, reject }, ANSWER_MS));
	}

	close(): void {
		this.#link.close();
	}

	#receive(message: Buffer): void {
		this.#received.push(message);
		this.#receivedBytes += message.length;
		if (this.#receivedBytes >= MAX_WAITING_BYTES) this.#link.pause();
		if (!this.#isQueued) this.#handleLater();
	}

	#handleLater(): void {
		this.#isQueued = true;
		this.#dependencies.onDrained(() => this.#dependencies.inTurn(() => this.#handleNext()));
	}

	#handleNext(): void {
		const isAnswer = this.#received.length > 0 && this.#handleSome();
		// A subscription's notifications are handled after the answer with its id. That includes
		// those that are yet to arrive.
		if (isAnswer) setImmediate(() => this.#handleLater());
		else if (this.#received.length > 0) this.#handleLater();
		else {
			this.#isQueued = false;
			if (this.#link.isPaused) this.#link.resume();
		}
	}

	/**
	 * Handles the next messages: some notifications, or an answer and the notifications before it.
	 * Returns whether there was an answer.
	 */
	#handleSome(): boolean {
		const notifications: LinkNotification[] = [];
		let answer: Buffer | null = null;
		let count = 0;
		let bytes = 0;
		for (const message of this.#received) {
			if (bytes >= STEP_BYTES || answer !== null) break;
			count += 1;
			bytes += message.length;
			const id = NOTIFICATION.exec(message.toString("latin1", 0, HEAD_BYTES))?.[1];
			if (id === undefined) answer = message;
			else notifications.push({ id, message });
		}
		this.#received.splice(0, count);
		this.#receivedBytes -= bytes;
		if (notifications.length > 0) this.#dependencies.onNotifications(notifications);
		if (answer !== null) this.#answered(answer.toString("utf8"));
		return answer !== null;
	}

	#answered(text: string): void {
		const id = Number(ANSWER_ID.exec(text.slice(0, HEAD_BYTES))?.[1]);
		const long = longResult(text, id);
		if (long !== null) {
			this.#link.take(id)?.resolve(long);
			return;
		}
		const answer = JSON.parse(text) as {
			id?: number;
			result?: unknown;
			error?: { code: number; message: string; data?: unknown };
		};
		const waiting = this.#link.take(answer.id ?? 0);
		const { error } = answer;
		if (error === undefined) waiting?.resolve(answer.result);
		else waiting?.reject(new ForeignRpcError(error.code, error.message, error.data));
	}
}
