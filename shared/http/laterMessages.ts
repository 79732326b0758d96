// Messages of a websocket that wait for their turn or for a slow reader, and are made only when they are written.

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
