// Limits the bytes that wait for slow readers: websockets, event streams and large answers of the
// whole process. A reader is too slow if much is unread and it takes long to read that, so a burst
// ends no reader that reads on. Also contains the streamed answers, whose clients are disconnected
// if they read too slowly.

import type { ServerResponse } from "node:http";
import { clientOf } from "../client.ts";
import type { Clock } from "../clock.ts";
import { Shares } from "../shares/shares.ts";
import { Ending } from "./callContext.ts";

export interface UnreadBytesOptions {
	/**
	 * Limit for all readers together. Above it, a reader of the client with the most is closed.
	 * Default 256 MiB.
	 */
	readonly maxBytes?: number;
	/**
	 * A reader with more unread bytes than this is too slow if some of them have waited for
	 * `maxWaitMs`, and with four times as many in any case. Checked when more is written. Default 8
	 * MiB.
	 */
	readonly maxBytesEach?: number;
	/** Default 10,000: a line of 8 Mbit/s carries 8 MiB in that time. */
	readonly maxWaitMs?: number;
}

type EachLimits = Required<Pick<UnreadBytesOptions, "maxBytesEach" | "maxWaitMs">>;

/** The two ways to end a reader. */
interface ReaderEnds {
	/**
	 * Sends the bytes written before, reports the reason to the client if the protocol can, and
	 * closes the connection.
	 */
	readonly close: () => void;
	/** Disconnects it at once, which frees its bytes. */
	readonly cut: () => void;
}

const MAX_BYTES = 256 * 1024 * 1024;
const MAX_BYTES_EACH = 8 * 1024 * 1024;
const MAX_WAIT_MS = 10_000;
/** Times the limit for one reader: 32 MiB, for which a line of 16 Mbit/s takes 17 s. */
const BURST = 4;
/** With this many unread bytes or fewer, a reader is ready for more. */
const READ_AHEAD = 64 * 1024;

/** All readers of the process. */
export class UnreadBytes {
	readonly #clock: Pick<Clock, "monotonic">;
	readonly #max: number;
	readonly #each: EachLimits;
	readonly #shares: Shares;
	/** Readers with unread bytes. */
	readonly #waiting = new Set<UnreadReader>();

	constructor({ clock }: { readonly clock: Pick<Clock, "monotonic"> }, options: UnreadBytesOptions = {}) {
		const { maxBytes = MAX_BYTES, maxBytesEach = MAX_BYTES_EACH, maxWaitMs = MAX_WAIT_MS } = options;
		this.#clock = clock;
		this.#max = maxBytes;
		this.#each = { maxBytesEach, maxWaitMs };
		this.#shares = new Shares({ total: maxBytes, perClient: maxBytes });
	}

	/** Unread bytes of all readers. */
	get bytes(): number {
		return this.#shares.taken;
	}

	/** A new reader for the client at `address`. */
	reader(address: string, ends: ReaderEnds): UnreadReader {
		return new UnreadReader(clientOf(address), ends, this.#each, {
			clock: this.#clock,
			onChange: this.#changed,
		});
	}

	readonly #changed = (reader: UnreadReader, more: number): void => {
		if (more > 0) this.#shares.takeAnyway(reader.client, more);
		else this.#shares.release(reader.client, -more);
		if (reader.bytes > 0) this.#waiting.add(reader);
		else this.#waiting.delete(reader);
		if (more > 0 && this.#shares.taken > this.#max) this.#relieve();
	};

	/**
	 * Called for each write above the limit. Closes the reader with the most, or disconnects it if
	 * it is closing already.
	 */
	#relieve(): void {
		const client = this.#shares.largest();
		let most: UnreadReader | null = null;
		for (const reader of this.#waiting) {
			if (reader.client === client && reader.bytes > (most?.bytes ?? 0)) most = reader;
		}
		most?.endForOthers();
	}
}

interface ReaderDependencies {
	readonly clock: Pick<Clock, "monotonic">;
	readonly onChange: (reader: UnreadReader, more: number) => void;
}

/** The unread bytes of one reader. */
export class UnreadReader {
	readonly client: string;
	readonly #ends: ReaderEnds;
	readonly #limits: EachLimits;
	readonly #dependencies: ReaderDependencies;
	readonly #onDrained: (() => void)[] = [];
	#bytes = 0;
	/**
	 * How many of the bytes that were unread at `#since` still are. When there are none left, both
	 * start again with the bytes that are unread then.
	 */
	#old = 0;
	/** Monotonic time in ms. */
	#since = 0;
	#isClosing = false;
	#isGone = false;

	constructor(client: string, ends: ReaderEnds, limits: EachLimits, dependencies: ReaderDependencies) {
		this.client = client;
		this.#ends = ends;
		this.#limits = limits;
		this.#dependencies = dependencies;
	}

	get bytes(): number {
		return this.#bytes;
	}

	/** Whether it reads too slowly for another write. */
	get isBehind(): boolean {
		return this.isOver(0);
	}

	/** Whether it would read too slowly with this many more bytes. */
	isOver(bytes: number): boolean {
		const { maxBytesEach, maxWaitMs } = this.#limits;
		const unread = this.#bytes + bytes;
		return unread > BURST * maxBytesEach || (unread > maxBytesEach && this.#waitedMs >= maxWaitMs);
	}

	/** For at least this long, in ms, some bytes have been unread. */
	get #waitedMs(): number {
		return this.#bytes === 0 ? 0 : this.#dependencies.clock.monotonic() - this.#since;
	}

	/** Calls `listener` once, when the reader is ready for more, or gone; at once if it is now. */
	onDrained(listener: () => void): void {
		if (this.#bytes <= READ_AHEAD) listener();
		else this.#onDrained.push(listener);
	}

	/** Counts `bytes` as unread. Call the returned function when they were sent, or never will be. */
	write(bytes: number): () => void {
		this.take(bytes);
		let left = false;
		return () => {
			if (left) return;
			left = true;
			this.release(bytes);
		};
	}

	/** Counts `bytes` as unread until they are released. */
	take(bytes: number): void {
		this.#change(bytes);
	}

	release(bytes: number): void {
		this.#change(-bytes);
	}

	/** Must be called when its connection is closed. */
	gone(): void {
		this.#change(-this.#bytes);
		this.#isGone = true;
	}

	/** Called on the reader with the most unread bytes if all readers together have too many. */
	endForOthers(): void {
		if (this.#isClosing) {
			this.#ends.cut();
			this.gone();
			return;
		}
		this.#isClosing = true;
		this.#ends.close();
	}

	#change(more: number): void {
		if (this.#isGone || more === 0) return;
		this.#bytes += more;
		if (more < 0) this.#old += more;
		if (this.#old <= 0) {
			this.#old = this.#bytes;
			this.#since = this.#dependencies.clock.monotonic();
		}
		this.#dependencies.onChange(this, more);
		if (this.#bytes > READ_AHEAD) return;
		for (const listener of this.#onDrained.splice(0)) listener();
	}
}

/** A streamed answer after its head was written. */
export class OpenAnswer extends Ending {
	readonly #finish: () => void;

	/** `finish` ends its body. */
	constructor(response: ServerResponse, finish: () => void) {
		super();
		this.#finish = finish;
		// "prefinish" comes first after a complete body, before the next request on the connection.
		response.on("prefinish", () => super.end());
		response.on("close", () => super.end());
	}

	/** Ends the answer. Bytes written before are still sent. */
	override end(): void {
		if (this.isOver) return;
		super.end();
		this.#finish();
	}

	/** Calls `listener` once, when the answer has ended or the client has disconnected. */
	onClose(listener: () => void): void {
		this.onEnd(listener);
	}
}

export type AnswerStream = Pick<ResponseStream, "write" | "end" | "onClose">;

/** A streamed answer whose text is written piece by piece. */
export class ResponseStream extends OpenAnswer {
	readonly #response: ServerResponse;
	readonly #reader: UnreadReader;

	/** `address` is the client's; its unread bytes count in `unread`. */
	constructor(response: ServerResponse, address: string, unread: UnreadBytes) {
		super(response, () => {
			if (!response.destroyed) response.end();
		});
		this.#response = response;
		this.#reader = unread.reader(address, { close: () => this.end(), cut: () => response.destroy() });
		// A write to a broken connection; "close" follows.
		response.on("error", () => {});
		response.on("close", () => this.#reader.gone());
	}

	/**
	 * Sends `text`, or disconnects a client that reads too slowly. Does nothing after the end.
	 */
	write(text: string): void {
		const response = this.#response;
		if (this.isOver || response.destroyed) return;
		if (this.#reader.isBehind) {
			this.end();
			response.destroy();
			return;
		}
		const bytes = Buffer.from(text);
		response.write(bytes, this.#reader.write(bytes.length));
	}
}
