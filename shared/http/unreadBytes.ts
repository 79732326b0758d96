// Counts what waits for readers that do not read: websockets, event streams and large answers of the whole
// process. It counts bytes as they lie in the buffers of connections, where a text for many subscribers lies
// once for each. Also the answers that go on after their head, until either side ends them: a reader that is too far behind is
// cut.

import type { ServerResponse } from "node:http";
import { Shares } from "../shares/shares.ts";
import { clientOf, Ending } from "./callContext.ts";

export interface UnreadBytesOptions {
	/** Of all readers at most; over it a reader of the client with the most is closed. 256 MiB unless said. */
	readonly maxBytes?: number;
	/** Of one reader when something more is written. 8 MiB unless said. */
	readonly maxBytesEach?: number;
}

/** How a reader is ended. */
interface ReaderEnds {
	/** Closes it after what was written before, with a reason for its client. */
	readonly close: () => void;
	/** Cuts it, so that nothing waits for it any more. */
	readonly cut: () => void;
}

const MAX_BYTES = 256 * 1024 * 1024;
const MAX_BYTES_EACH = 8 * 1024 * 1024;

/** All readers of the process. */
export class UnreadBytes {
	readonly #max: number;
	readonly #maxEach: number;
	readonly #shares: Shares;
	/** Only those that something waits for. */
	readonly #waiting = new Set<UnreadReader>();

	constructor({ maxBytes = MAX_BYTES, maxBytesEach = MAX_BYTES_EACH }: UnreadBytesOptions = {}) {
		this.#max = maxBytes;
		this.#maxEach = maxBytesEach;
		this.#shares = new Shares({ total: maxBytes, perClient: maxBytes });
	}

	/** What waits for all of them. */
	get bytes(): number {
		return this.#shares.taken;
	}

	/** A new one, of the client at `address`. */
	reader(address: string, ends: ReaderEnds): UnreadReader {
		return new UnreadReader(clientOf(address), ends, this.#maxEach, this.#changed);
	}

	readonly #changed = (reader: UnreadReader, more: number): void => {
		if (more > 0) this.#shares.force(reader.client, more);
		else this.#shares.give(reader.client, -more);
		if (reader.bytes > 0) this.#waiting.add(reader);
		else this.#waiting.delete(reader);
		if (more > 0 && this.#shares.taken > this.#max) this.#relieve();
	};

	/** One step for each write that finds too much: the reader with the most is asked to close, and cut the next time. */
	#relieve(): void {
		const client = this.#shares.largest();
		let most: UnreadReader | null = null;
		for (const reader of this.#waiting) {
			if (reader.client === client && reader.bytes > (most?.bytes ?? 0)) most = reader;
		}
		most?.endForOthers();
	}
}

/** One reader, as far as something waits for it. */
export class UnreadReader {
	/** Whose it is. */
	readonly client: string;
	readonly #ends: ReaderEnds;
	readonly #max: number;
	readonly #onChange: (reader: UnreadReader, more: number) => void;
	#bytes = 0;
	#isClosing = false;
	#isGone = false;

	constructor(
		client: string,
		ends: ReaderEnds,
		maxBytes: number,
		onChange: (reader: UnreadReader, more: number) => void,
	) {
		this.client = client;
		this.#ends = ends;
		this.#max = maxBytes;
		this.#onChange = onChange;
	}

	/** What waits for it. */
	get bytes(): number {
		return this.#bytes;
	}

	/** Whether it is too far behind to be written to. */
	get isBehind(): boolean {
		return this.#bytes > this.#max;
	}

	/** `bytes` are being written to it. Answers what must be called when they have left, or never will. */
	write(bytes: number): () => void {
		this.#change(bytes);
		let left = false;
		return () => {
			if (left) return;
			left = true;
			this.#change(-bytes);
		};
	}

	/** Its connection is closed. */
	gone(): void {
		this.#change(-this.#bytes);
		this.#isGone = true;
	}

	/** Too much waits for all readers, and the most for this one. */
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
		this.#onChange(this, more);
	}
}

/** An answer whose head was written, and which is under way until either side ends it. */
export class OpenAnswer extends Ending {
	readonly #finish: () => void;

	/** `finish` ends its body. */
	constructor(response: ServerResponse, finish: () => void) {
		super();
		this.#finish = finish;
		// The first of the two is the end of the body: what comes next on the connection is another request.
		response.on("prefinish", () => super.end());
		response.on("close", () => super.end());
	}

	/** Ends the answer; what was written before is still sent. */
	override end(): void {
		if (this.isOver) return;
		super.end();
		this.#finish();
	}

	/** Calls `listener` once, when nothing more can be sent: at the end, or when the client has gone. */
	onClose(listener: () => void): void {
		this.onEnd(listener);
	}
}

/** An answer whose body is written bit by bit. */
export type AnswerStream = Pick<ResponseStream, "write" | "end" | "onClose">;

/** The stream of a response whose head was written. */
export class ResponseStream extends OpenAnswer {
	readonly #response: ServerResponse;
	readonly #reader: UnreadReader;

	/** To the client at `address`; what it leaves unread counts in `unread`. */
	constructor(response: ServerResponse, address: string, unread: UnreadBytes) {
		super(response, () => {
			if (!response.destroyed) response.end();
		});
		this.#response = response;
		this.#reader = unread.reader(address, { close: () => this.end(), cut: () => response.destroy() });
		// A write that meets a connection that has just broken: the close follows.
		response.on("error", () => {});
		response.on("close", () => this.#reader.gone());
	}

	/** Sends `text`; a reader that has left too much unread is cut instead. Does nothing after the end. */
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
