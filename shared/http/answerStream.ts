// Answers that go on after their head, until either side ends them: our own, written bit by bit, and those that come
// from elsewhere. A reader that is too far behind is cut, so that what waits for it stays bounded.

import type { ServerResponse } from "node:http";
import type { UnreadBytes, UnreadReader } from "./unreadBytes.ts";

/** An answer that is under way until either side ends it. */
export abstract class OpenAnswer {
	#listeners: (() => void)[] = [];
	#isOpen = true;

	get isOpen(): boolean {
		return this.#isOpen;
	}

	/** Ends the answer; what was written before is still sent. */
	end(): void {
		if (!this.#isOpen) return;
		this.closed();
		this.finish();
	}

	/** Calls `listener` once, when nothing more can be sent: at the end, or when the client has gone. */
	onClose(listener: () => void): void {
		if (this.#isOpen) this.#listeners.push(listener);
		else listener();
	}

	protected closed(): void {
		this.#isOpen = false;
		for (const listener of this.#listeners.splice(0)) listener();
	}

	protected abstract finish(): void;
}

/** An answer whose body is written bit by bit. */
export type AnswerStream = Pick<ResponseStream, "write" | "end" | "onClose">;

/** The stream of a response whose head was written. */
export class ResponseStream extends OpenAnswer {
	readonly #response: ServerResponse;
	readonly #reader: UnreadReader;

	/** To the client at `address`; what it leaves unread counts in `unread`. */
	constructor(response: ServerResponse, address: string, unread: UnreadBytes) {
		super();
		this.#response = response;
		this.#reader = unread.reader(address, { close: () => this.end(), cut: () => response.destroy() });
		// A write that meets a connection that has just broken: the close follows.
		response.on("error", () => {});
		response.on("close", () => {
			this.#reader.gone();
			this.closed();
		});
	}

	/** Sends `text`; a reader that has left too much unread is cut instead. Does nothing after the end. */
	write(text: string): void {
		const response = this.#response;
		if (!this.isOpen || response.destroyed) return;
		if (this.#reader.isBehind) {
			this.closed();
			response.destroy();
			return;
		}
		const bytes = Buffer.from(text);
		response.write(bytes, this.#reader.write(bytes.length));
	}

	protected finish(): void {
		if (!this.#response.destroyed) this.#response.end();
	}
}

/** An answer from elsewhere that goes on: its server ends it by `finish`. */
export class PassedStream extends OpenAnswer {
	protected readonly finish: () => void;

	constructor(response: ServerResponse, finish: () => void) {
		super();
		this.finish = finish;
		// The first of the two is the end of the body: what comes next on the connection is another request.
		response.on("prefinish", () => this.closed());
		response.on("close", () => this.closed());
	}
}
