// Splits a stream of server-sent events into events, no matter how the bytes are divided. An event
// that is too large is dropped as a whole.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

/** One event. */
export interface StreamEvent {
	/** Its `event` field; "message" if it has none. */
	readonly name: string;
	/** The lines of its `data` field. */
	readonly data: string;
}

/** Reads one connection's stream. */
export class EventStreamReader {
	readonly #maxChars: number;
	readonly #decoder = new TextDecoder();
	/** The beginning of a line whose end has not come yet. */
	#rest = "";
	/**
	 * Whether the last character was a carriage return, which a line feed may follow as part of the
	 * same line end.
	 */
	#isBehindReturn = false;
	#name = "";
	#data: string[] = [];
	/** Characters of the event so far. */
	#size = 0;

	/** Events of more than `maxChars` characters are dropped. */
	constructor(options: { readonly maxChars: number }) {
		this.#maxChars = options.maxChars;
	}

	/** The events that `bytes` complete, in order. */
	push(bytes: Uint8Array): readonly StreamEvent[] {
		let text = this.#decoder.decode(bytes, { stream: true });
		if (text === "") return [];
		if (this.#isBehindReturn && text.startsWith("\n")) text = text.slice(1);
		this.#isBehindReturn = text.endsWith("\r");
		const lines = text.split(/\r\n|\n|\r/);
		const last = lines.pop() ?? "";
		const events: StreamEvent[] = [];
		for (const line of lines) {
			const event = this.#endLine(line);
			if (event !== null) events.push(event);
		}
		this.#take(last);
		return events;
	}

	/**
	 * Adds to the line that has begun. If the event is too large, it keeps only that the line is not
	 * empty.
	 */
	#take(piece: string): void {
		this.#size += piece.length;
		this.#rest = this.#size > this.#maxChars ? (this.#rest || piece).slice(0, 1) : this.#rest + piece;
	}

	/** Ends the line that has begun with `piece`; a blank line ends the event. */
	#endLine(piece: string): StreamEvent | null {
		this.#take(piece);
		const line = this.#rest;
		this.#rest = "";
		if (line !== "") {
			if (this.#size <= this.#maxChars) this.#readField(line);
			return null;
		}
		const event =
			this.#size <= this.#maxChars && this.#data.length > 0
				? { name: this.#name === "" ? "message" : this.#name, data: this.#data.join("\n") }
				: null;
		this.#name = "";
		this.#data = [];
		this.#size = 0;
		return event;
	}

	#readField(line: string): void {
		const colon = line.indexOf(":");
		const field = colon < 0 ? line : line.slice(0, colon);
		const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
		if (field === "event") this.#name = value;
		if (field === "data") this.#data.push(value);
	}
}
