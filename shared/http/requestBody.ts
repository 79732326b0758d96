// Judges the head of a POST and reads its body whole. It never holds more than the limit, in however many
// pieces the body comes.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../clock.ts";
import type { OverShare } from "../shares/shares.ts";
import { BUSY, HOARDING, type HttpAnswer, rpcErrorAnswer } from "./httpAnswer.ts";

interface BodyLimits {
	/** Bytes at most, and the answer to a body that has more. */
	readonly maxBytes: number;
	readonly tooLarge: HttpAnswer;
	/** Takes room for `bytes` more, or says against whom there is none. The caller keeps count and gives it back. */
	readonly reserve: (bytes: number) => OverShare | null;
}

/** How long the rest of a body that is not wanted is read and forgotten, so that its sender reads the answer. */
const LINGER_MS = 1_000;
const MIN_GROWN_BYTES = 16 * 1024;
const EMPTY = Buffer.alloc(0);

/** The `Content-Length` of `request` in bytes; undefined where it has none (no body, or a chunked one). */
export function declaredBytes(request: IncomingMessage): number | undefined {
	const text = request.headers["content-length"];
	return text === undefined ? undefined : Number(text);
}

/**
 * Reads the body and calls `done` once with it, or with the answer that refuses it as soon as there is one to give.
 * A client that goes away before the end is not told of: whoever holds the response learns of it there.
 */
export function readWhole(
	request: IncomingMessage,
	limits: BodyLimits,
	done: (body: Buffer | HttpAnswer) => void,
): void {
	const body = new Body(request, limits);
	request.on("data", (chunk: Buffer) => {
		if (body.fault !== null) return;
		body.take(chunk);
		if (body.fault === null) return;
		request.pause();
		done(body.fault);
	});
	request.on("end", () => {
		if (body.fault === null) done(body.whole());
	});
}

/** A body as far as it has come. */
class Body {
	readonly #request: IncomingMessage;
	readonly #limits: BodyLimits;
	#bytes: Buffer = EMPTY;
	#length = 0;
	fault: HttpAnswer | null = null;

	constructor(request: IncomingMessage, limits: BodyLimits) {
		this.#request = request;
		this.#limits = limits;
	}

	take(chunk: Buffer): void {
		const total = this.#length + chunk.length;
		if (total > this.#limits.maxBytes) this.fault = this.#limits.tooLarge;
		else {
			const refusal = this.#limits.reserve(chunk.length);
			if (refusal === null) this.#keep(chunk, total);
			else this.fault = refusal === "client" ? HOARDING : BUSY;
		}
	}

	#keep(chunk: Buffer, total: number): void {
		// One piece, as nearly always, is kept as it is. More are copied together at once: a body that comes byte by
		// byte would otherwise cost a hundred times its length in objects.
		if (this.#length === 0) this.#bytes = chunk;
		else this.#append(chunk, total);
		this.#length = total;
	}

	whole(): Buffer {
		return this.#length === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#length);
	}

	#append(chunk: Buffer, total: number): void {
		if (total > this.#bytes.length) {
			const room = Math.max(declaredBytes(this.#request) ?? 0, total * 2, MIN_GROWN_BYTES);
			const grown = Buffer.allocUnsafe(Math.min(room, this.#limits.maxBytes));
			this.#bytes.copy(grown, 0, 0, this.#length);
			this.#bytes = grown;
		}
		chunk.copy(this.#bytes, this.#length);
	}
}

/** Ends `response`, whose head was written, with `text`, although the rest of the request's body is not wanted. */
export function endUnread(
	request: IncomingMessage,
	response: ServerResponse,
	text: string | Uint8Array | null,
	clock: Clock,
): void {
	// The answer is complete with this; ending it would close the connection while its sender is still writing, who
	// would then see a reset instead of the answer.
	response.write(text ?? "");
	const end = (): void => {
		timer.cancel();
		if (!response.writableEnded) response.end();
	};
	const timer = clock.after(LINGER_MS, end);
	request.on("end", end);
	request.on("close", end);
	request.resume();
}

/** Whether `request` has a body at all. */
export function hasBody(request: IncomingMessage): boolean {
	return request.headers["transfer-encoding"] !== undefined || (declaredBytes(request) ?? 0) > 0;
}

/** Whether a `Content-Type` may be JSON: absent, `application/json` or `application/…+json`, parameters or not. */
function isJson(contentType: string | undefined): boolean {
	if (contentType === undefined || contentType === "" || contentType === "application/json") return true;
	return /^\s*application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType);
}

/** Whether a `Content-Encoding` leaves the body as it is. */
function isPlain(contentEncoding: string | undefined): boolean {
	return contentEncoding === undefined || contentEncoding === "" || /^identity$/i.test(contentEncoding);
}

const NOT_JSON = rpcErrorAnswer(
	"invalidRequest",
	415,
	"invalid request: content-type: expected application/json",
);
const ENCODED = rpcErrorAnswer("invalidRequest", 415, "invalid request: content-encoding: expected none");

/** What is wrong with a POST of JSON before its body is read, or null; `long` is the answer to one that is too long. */
export function judgePost(request: IncomingMessage, maxBytes: number, long: HttpAnswer): HttpAnswer | null {
	const { headers } = request;
	if (!isJson(headers["content-type"])) return NOT_JSON;
	if (!isPlain(headers["content-encoding"])) return ENCODED;
	return (declaredBytes(request) ?? 0) > maxBytes ? long : null;
}
