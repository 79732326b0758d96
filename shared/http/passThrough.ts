// How a server hands over the requests on paths that it does not serve: unread, so that they and their
// answers can be streamed.

import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { HttpAnswer } from "./httpAnswer.ts";

/** Takes requests that the server has no route for. Websockets are an UpgradeHandler's. */
export interface PassThrough {
	/** Answers `request`, of whose body nothing was read, by `passing` and then on `response`. Never throws. */
	web(request: IncomingMessage, response: ServerResponse, passing: Passing): void;
}

/** A request that was handed over, as its server sees it. */
export interface Passing {
	/** Sends 100 Continue to a client that waits for it before it sends the body; it is sent here alone. */
	goAhead(): void;
	/** Calls `listener` once, when the client is gone or the request was answered, also before `begin`. */
	onGone(listener: () => void): void;
	/** Answers with `answer` instead; the rest of the body is read and forgotten. For before `begin`. */
	refuse(answer: HttpAnswer): void;
	/**
	 * Writes the answer's head; its body is then the caller's to write. `headers` are those of whoever answered, without
	 * those of that connection. `end` is given where the answer may never end: it then holds up no stop, which calls
	 * `end` instead. Returns false where the client is gone, or the answer may not go on: then the caller drops it.
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
