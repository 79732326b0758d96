// Messages of a websocket that are queued, or wait for a slow reader. They are only made when they
// are written.

/** Some messages in a row. */
export interface LaterMessages {
	/** How many are left. */
	readonly count: number;
	/** The bytes of all together. */
	readonly bytes: number;
	/** Makes the next one; only called while some are left. */
	next(): Buffer | string;
}

/** One message that is made already. */
export class OneMessage implements LaterMessages {
	readonly #text: Buffer | string;
	count = 1;
	readonly bytes: number;

	constructor(text: Buffer | string) {
		this.#text = text;
		this.bytes = Buffer.byteLength(text);
	}

	next(): Buffer | string {
		this.count = 0;
		return this.#text;
	}
}

/**
 * Messages that are made already. They are kept as one text, since each alone would take as much
 * memory again.
 */
export class MadeMessages implements LaterMessages {
	readonly #text: Buffer;
	readonly #lengths: Uint32Array;
	#made = 0;
	#at = 0;

	constructor(messages: readonly Buffer[]) {
		const [first] = messages;
		this.#text = messages.length === 1 && first !== undefined ? first : Buffer.concat(messages);
		this.#lengths = Uint32Array.from(messages, ({ length }) => length);
	}

	get bytes(): number {
		return this.#text.length;
	}

	get count(): number {
		return this.#lengths.length - this.#made;
	}

	next(): Buffer {
		const end = this.#at + (this.#lengths[this.#made] ?? 0);
		const message = this.#text.subarray(this.#at, end);
		this.#made += 1;
		this.#at = end;
		return message;
	}
}
