// An answer that goes on after its head: texts go out as they come, until either side ends it. A reader that is too far
// behind is cut, so that what waits for it stays bounded. It decides nothing about what is sent.

import type { ServerResponse } from "node:http";
import type { UnreadBytes, UnreadReader } from "./unreadBytes.ts";

/** An answer that is under way until either side ends it. */
export interface OpenAnswer {
	/** Ends the answer; what was written before is still sent. */
	end(): void;
	/** Calls `listener` once, when nothing more can be sent: at the end, or when the client has gone. */
	onClose(listener: () => void): void;
}

/** An answer whose body is written bit by bit. */
export interface AnswerStream extends OpenAnswer {
	/** Sends `text`; a reader that has left too much unread is cut instead. Does nothing after the end. */
	write(text: string): void;
}

/** The stream of a response whose head was written. */
export class ResponseStream implements AnswerStream {
	readonly #response: ServerResponse;
	readonly #reader: UnreadReader;
	readonly #onClose: (() => void)[] = [];
	#open = true;

	/** To the client at `address`; what it leaves unread counts in `unread`. */
	constructor(response: ServerResponse, address: string, unread: UnreadBytes) {
		this.#response = response;
		this.#reader = unread.reader(address, { close: () => this.end(), cut: () => response.destroy() });
		// A write that meets a connection that has just broken: the close follows.
		response.on("error", () => {});
		response.on("close", () => {
			this.#reader.gone();
			this.#close();
		});
	}

	write(text: string): void {
		const response = this.#response;
		if (!this.#open || response.destroyed) return;
		if (this.#reader.isBehind) {
			this.#close();
			response.destroy();
			return;
		}
		const bytes = Buffer.from(text);
		response.write(bytes, this.#reader.write(bytes.length));
	}

	end(): void {
		if (!this.#open) return;
		this.#close();
		if (!this.#response.destroyed) this.#response.end();
	}

	onClose(listener: () => void): void {
		if (this.#open) this.#onClose.push(listener);
		else listener();
	}

	#close(): void {
		this.#open = false;
		for (const listener of this.#onClose.splice(0)) listener();
	}
}
