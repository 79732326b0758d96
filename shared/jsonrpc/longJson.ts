// JSON with long values, whose texts are made piece by piece while they are sent. Making a whole
// text at once, searching it for characters to escape and encoding it again would take eight times
// as long, and several times its length in memory.

import { randomBytes } from "node:crypto";
import { nextTurn } from "../clock.ts";
import { asBuffer, bytesToHex } from "../ethereum/hex.ts";

/** The hex of fewer bytes is made at once. */
const LONG_BYTES = 4 * 1024;
/** Bytes whose digits are one piece: short enough to be freed with the young objects. */
const PIECE_BYTES = 32 * 1024;
/** Characters that are made in one turn of the event loop, or a piece more. */
const TURN_CHARS = 256 * 1024;
/** Stands for a long value while the rest is made. Nobody else can know it. */
const MARK = randomBytes(16).toString("hex");

/** The values that {@link longJson} has found so far; null while it is not running. */
let found: LongValue[] | null = null;

/** A value whose JSON is long, and ASCII. It must not change before it was sent. */
export abstract class LongValue {
	/** Length of all pieces. */
	abstract readonly byteLength: number;

	/** Makes its JSON. */
	abstract pieces(): Iterable<string>;

	toJSON(): unknown {
		if (found === null) return JSON.parse([...this.pieces()].join(""));
		found.push(this);
		return MARK;
	}
}

class LongHex extends LongValue {
	readonly #bytes: Buffer;

	constructor(bytes: Uint8Array) {
		super();
		this.#bytes = asBuffer(bytes);
	}

	get byteLength(): number {
		return `"0x"`.length + 2 * this.#bytes.length;
	}

	*pieces(): Generator<string> {
		yield `"0x`;
		const { length } = this.#bytes;
		for (let from = 0; from < length; from += PIECE_BYTES)
			yield this.#bytes.toString("hex", from, Math.min(length, from + PIECE_BYTES));
		yield `"`;
	}
}

/** `0x` and two lower-case digits per byte, for JSON. */
export function jsonHex(bytes: Uint8Array): string | LongValue {
	return bytes.length < LONG_BYTES ? bytesToHex(bytes) : new LongHex(bytes);
}

/** The JSON of `value`; {@link LongJson} if it contains a {@link LongValue}. */
export function longJson(value: unknown): string | LongJson {
	const values: LongValue[] = [];
	found = values;
	try {
		const text = JSON.stringify(value);
		return values.length === 0 ? text : new LongJson(text.split(`"${MARK}"`), values);
	} finally {
		found = null;
	}
}

/** A JSON text that is sent piece by piece, and leaves time for other work in between. */
export class LongJson implements AsyncIterable<string> {
	readonly byteLength: number;
	readonly #texts: readonly string[];
	readonly #values: readonly LongValue[];

	/** Each of the `texts` but the last is followed by one of `values`. */
	constructor(texts: readonly string[], values: readonly LongValue[]) {
		const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
		this.byteLength = values.reduce((sum, { byteLength }) => sum + byteLength, bytes);
		this.#texts = texts;
		this.#values = values;
	}

	/** The whole text at once. */
	whole(): Buffer {
		const whole = Buffer.allocUnsafeSlow(this.byteLength);
		let at = 0;
		for (const piece of this.#pieces()) at += whole.write(piece, at);
		return whole;
	}

	async *[Symbol.asyncIterator](): AsyncGenerator<string> {
		let chars = 0;
		for (const piece of this.#pieces()) {
			yield piece;
			chars += piece.length;
			if (chars < TURN_CHARS) continue;
			await nextTurn();
			chars = 0;
		}
	}

	*#pieces(): Generator<string> {
		for (const [i, text] of this.#texts.entries()) {
			yield text;
			const value = this.#values[i];
			if (value !== undefined) yield* value.pieces();
		}
	}
}
