// Fake connections for tests of subscriptions: they keep what they are sent, and the test ends, breaks or answers
// them.

import type { Connection, Exchange } from "../../shared/http/callContext.ts";

/** A notification as a client reads it. */
interface Notification {
	readonly jsonrpc: string;
	readonly method: string;
	readonly params: { readonly subscription: string; readonly result: unknown };
}

/** A connection that keeps what it is sent. */
export class Listener implements Connection {
	readonly frames: string[] = [];
	readonly closes: { readonly code: number; readonly reason: string }[] = [];
	/** How many listeners wait for its end. */
	watchers = 0;
	/** Thrown at the next sends, where set. */
	fault: Error | null = null;
	#onClose: (() => void)[] = [];
	#ended = false;

	send(text: string): void {
		if (this.fault !== null) throw this.fault;
		this.frames.push(text);
	}

	close(code: number, reason: string): void {
		this.closes.push({ code, reason });
	}

	onClose(listener: () => void): void {
		this.watchers++;
		if (this.#ended) listener();
		else this.#onClose.push(listener);
	}

	end(): void {
		this.#ended = true;
		for (const listener of this.#onClose.splice(0)) listener();
	}

	/** What it was told, parsed. */
	get told(): readonly Notification[] {
		return this.frames.map((text) => JSON.parse(text) as Notification);
	}

	/** Subscription and result of what it was told. */
	get results(): readonly (readonly [string, unknown])[] {
		return this.told.map(({ params }) => [params.subscription, params.result] as const);
	}
}

/** A message that is answered when the test says so. */
export class OpenExchange implements Exchange {
	#listeners: (() => void)[] = [];

	onAnswered(listener: () => void): void {
		this.#listeners.push(listener);
	}

	answer(): void {
		for (const listener of this.#listeners.splice(0)) listener();
	}
}
