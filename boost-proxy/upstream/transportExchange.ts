// One request of a transport: settles once, by the answer, the deadline or an abort. It knows whether a byte of the
// request may have left, and sees to it that none does once it has settled.

import type { Dispatcher } from "undici";
import type { Clock, Timer } from "../../shared/clock.ts";
import type { Abort } from "../domain/breakerPorts.ts";
import type { ExchangeResult, Fault } from "../domain/delivery.ts";

export interface ExchangeLimits {
	/** Ms for all of it: connection, headers and body. */
	readonly deadlineMs: number;
	/** Of the answer, at most. */
	readonly maxBytes: number;
	readonly abort: Abort | undefined;
}

export interface ExchangeDependencies {
	readonly clock: Clock;
	/** True once the transport was closed: what ends then, ends by that. */
	readonly isClosed: () => boolean;
	readonly resolve: (result: ExchangeResult) => void;
}

type Controller = Dispatcher.DispatchController;
type Headers = Record<string, string | string[] | undefined>;

/** Thrown into undici to keep it from writing; nobody reads it. */
const ABANDONED = new Error("abandoned");

/**
 * A handler of undici's. Its `onRequestStart` is called right before the first byte is written, in the same turn (see
 * writeH1 in undici's client-h1.js): where it was not called no byte left, and where it throws none does, while the
 * connection stays as it is.
 */
export class TransportExchange implements Dispatcher.DispatchHandler {
	readonly #limits: ExchangeLimits;
	readonly #dependencies: ExchangeDependencies;
	readonly #timer: Timer;
	readonly #unlisten: (() => void) | undefined;
	#controller: Controller | null = null;
	#settled = false;
	#sent = false;
	#status = 0;
	#retryAfterS: number | undefined;
	#chunks: Buffer[] = [];
	#bytes = 0;

	constructor(limits: ExchangeLimits, dependencies: ExchangeDependencies) {
		this.#limits = limits;
		this.#dependencies = dependencies;
		// Where our own loop stood still an answer may lie there unread: that comes first.
		this.#timer = dependencies.clock.after(limits.deadlineMs, () =>
			setImmediate(() => this.#fail("timeout")),
		);
		this.#unlisten = limits.abort?.onAbort(() => this.#settle({ kind: "cut", sent: this.#sent }));
	}

	onRequestStart(controller: Controller): void {
		// A second start would send it twice.
		if (this.#settled || this.#sent) throw ABANDONED;
		this.#sent = true;
		this.#controller = controller;
	}

	onResponseStart(_: Controller, status: number, headers: Headers): void {
		// 1xx come before the answer.
		if (status < 200 || this.#settled) return;
		this.#status = status;
		const { clock } = this.#dependencies;
		this.#retryAfterS = secondsOf(first(headers["retry-after"]), clock);
		const encoding = first(headers["content-encoding"]);
		// None was asked for, and what can't be read is no answer.
		if (encoding !== undefined && encoding.toLowerCase() !== "identity") this.#fail("notJsonRpc");
		else if (Number(first(headers["content-length"])) > this.#limits.maxBytes) this.#fail("tooLarge");
	}

	onResponseData(_: Controller, chunk: Buffer): void {
		if (this.#settled) return;
		this.#bytes += chunk.length;
		if (this.#bytes > this.#limits.maxBytes) this.#fail("tooLarge");
		else this.#chunks.push(chunk);
	}

	onResponseEnd(): void {
		const [only] = this.#chunks;
		const body = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
		// The connection is free again, and no longer ours to end.
		this.#controller = null;
		this.#settle({ kind: "answered", status: this.#status, retryAfterS: this.#retryAfterS, body });
	}

	onResponseError(_: Controller, error: Error): void {
		this.#controller = null;
		if (this.#dependencies.isClosed()) this.#settle({ kind: "cut", sent: this.#sent });
		else this.#fail(this.#sent ? faultOf(error) : "refused");
	}

	#fail(fault: Fault): void {
		this.#settle({ kind: "failed", fault, sent: this.#sent });
	}

	#settle(result: ExchangeResult): void {
		if (this.#settled) return;
		this.#settled = true;
		this.#timer.cancel();
		this.#unlisten?.();
		this.#chunks = [];
		this.#dependencies.resolve(result);
		// Ends the connection: the rest of the answer would be taken for the next one's.
		this.#controller?.abort(ABANDONED);
		this.#controller = null;
	}
}

/** What ended a request midway. undici gives its parser's errors no codes, so they are told by name. */
function faultOf(error: Error): Fault {
	const { code, name, data } = error as { code?: unknown; name: string; data?: unknown };
	// Bytes that are no HTTP; where there are none, the answer broke off.
	const isNoHttp = name === "HTTPParserError" && data !== undefined && data !== "";
	return isNoHttp || code === "UND_ERR_HEADERS_OVERFLOW" ? "notJsonRpc" : "reset";
}

function first(value: string | string[] | undefined): string | undefined {
	return typeof value === "string" ? value : value?.[0];
}

/** Seconds of a `Retry-After`: a number, or a date (https://www.rfc-editor.org/rfc/rfc9110#field.retry-after). */
function secondsOf(value: string | undefined, clock: Clock): number | undefined {
	if (value === undefined) return undefined;
	const text = value.trim();
	if (/^\d{1,9}$/.test(text)) return Number(text);
	const at = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
	return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - clock.now()) / 1_000));
}
