// What a server hands over instead of answering it itself: requests whose path it does not serve come in untouched, and
// whoever takes them answers with what is given here. What an answer says beyond its head is none of this file's business.

import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { OpenAnswer } from "./answerStream.ts";
import type { HttpAnswer } from "./httpAnswer.ts";

/** Takes requests that the server has no route for. Websockets are an UpgradeHandler's. */
export interface PassThrough {
	/** Answers `request`, of whose body nothing was read, by `passing` and then on `response`. Never throws. */
	web(request: IncomingMessage, response: ServerResponse, passing: Passing): void;
}

/** A request that was handed over, as its server sees it. */
export interface Passing {
	/** Has the client send the body where it waits for a word (`Expect: 100-continue`, which is answered here alone). */
	goAhead(): void;
	/** Calls `listener` once, when nobody waits for the answer any more, also where it has not begun. */
	onGone(listener: () => void): void;
	/** Answers with `answer` instead; the rest of the body is read and forgotten. For before `begin`. */
	refuse(answer: HttpAnswer): void;
	/**
	 * Writes the answer's head; its body is then the caller's to write. `headers` are those of whoever answered, without
	 * those of the connection to him. `end` is given where the answer may go on for good: it holds up no stop, and
	 * `end` is called when it shall end. Answers false where there is nobody to answer, or it may not go on: then the
	 * caller drops it.
	 */
	begin(status: number, headers: OutgoingHttpHeaders, end: (() => void) | null): boolean;
}

/** Writes the head of an answer from elsewhere; `exposure` has the names of our own that web pages may read. */
export function writePassedHead(
	response: ServerResponse,
	status: number,
	headers: OutgoingHttpHeaders,
	close: boolean,
	exposure: Readonly<Record<string, string>>,
): void {
	const head = { ...headers };
	const exposed = exposure["access-control-expose-headers"];
	if (exposed !== undefined) {
		const theirs = head["access-control-expose-headers"];
		head["access-control-expose-headers"] =
			theirs === undefined || theirs === "" ? exposed : `${theirs}, ${exposed}`;
	}
	if (close) head.connection = "close";
	response.writeHead(status, head);
}

/** An answer from elsewhere that goes on: its server ends it by `end`. */
export class PassedStream implements OpenAnswer {
	readonly #end: () => void;
	#onClose: (() => void)[] = [];
	#open = true;

	constructor(response: ServerResponse, end: () => void) {
		this.#end = end;
		// The first of the two is the end of the body: what comes next on the connection is another request.
		response.on("prefinish", () => this.#close());
		response.on("close", () => this.#close());
	}

	end(): void {
		if (!this.#open) return;
		this.#close();
		this.#end();
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
