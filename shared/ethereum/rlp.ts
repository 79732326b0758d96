// Canonical RLP, read and written. It refuses every form but the one that an encoder writes: one transaction
// must not have two encodings. https://ethereum.org/en/developers/docs/data-structures-and-encoding/rlp/

/** Reading is over the largest value that `readUIntBE` can read; nothing of that length is ever held. */
const MAX_LENGTH_BYTES = 6;
const EMPTY = Buffer.alloc(0);

/**
 * A cursor over one RLP document, asked for field after field. The first fault stays: from then on every read
 * answers an empty value at once, so callers read all they expect and look at {@link fault} once, at the end.
 * Buffers that it returns are views of the input.
 */
export class RlpReader {
	readonly bytes: Buffer;
	#at: number;
	/** End of the list that is being read. */
	#end: number;
	#fault: string | null = null;
	/** Content of the item that was opened last. */
	#start = 0;
	#length = 0;

	constructor(bytes: Buffer, from = 0) {
		this.bytes = bytes;
		this.#at = from;
		this.#end = bytes.length;
	}

	/** What is wrong with the bytes, as `field: what was expected`, or null. It never holds a byte of the input. */
	get fault(): string | null {
		return this.#fault;
	}

	/** Where the next item starts, in bytes from the start of the buffer. */
	get offset(): number {
		return this.#at;
	}

	/** Records a fault, unless there is an earlier one. */
	fail(fault: string): false {
		this.#fault ??= fault;
		return false;
	}

	/** Whether the open list has items left. False after a fault, so that loops end. */
	hasMore(): boolean {
		return this.#fault === null && this.#at < this.#end;
	}

	/** Whether the next item is there and is a list. */
	nextIsList(): boolean {
		return this.hasMore() && (this.bytes[this.#at] as number) >= 0xc0;
	}

	/** Enters the list that comes next. What it returns must be given to {@link closeList}. */
	openList(field: string): number {
		const outerEnd = this.#end;
		if (!this.#open(field, true)) return outerEnd;
		this.#at = this.#start;
		this.#end = this.#start + this.#length;
		return outerEnd;
	}

	/** Leaves the list again: it must have no items left. */
	closeList(field: string, outerEnd: number): void {
		if (this.#fault !== null) return;
		if (this.#at !== this.#end) this.fail(`${field}: more items than expected`);
		this.#end = outerEnd;
	}

	/** Nothing may follow the last item. */
	close(): void {
		if (this.#fault === null && this.#at !== this.bytes.length) this.fail("trailing bytes");
	}

	/** An unsigned integer of at most `maxBytes` bytes, without leading zeros; zero is the empty string. */
	uint(field: string, maxBytes: number): bigint {
		if (!this.#open(field, false)) return 0n;
		const start = this.#start;
		const length = this.#length;
		if (length === 0) return 0n;
		if (this.bytes[start] === 0) {
			this.fail(`${field}: leading zero`);
			return 0n;
		}
		if (length > maxBytes) {
			this.fail(`${field}: expected at most ${maxBytes} bytes, got ${length}`);
			return 0n;
		}
		if (length <= MAX_LENGTH_BYTES) return BigInt(this.bytes.readUIntBE(start, length));
		return BigInt(`0x${this.bytes.toString("hex", start, start + length)}`);
	}

	/** A byte string of any length. */
	string(field: string): Buffer {
		if (!this.#open(field, false)) return EMPTY;
		return this.bytes.subarray(this.#start, this.#start + this.#length);
	}

	/** A byte string of exactly `length` bytes. */
	fixed(field: string, length: number): Buffer {
		if (!this.#open(field, false)) return EMPTY;
		if (this.#length !== length) {
			this.fail(`${field}: expected ${length} bytes, got ${this.#length}`);
			return EMPTY;
		}
		return this.bytes.subarray(this.#start, this.#start + length);
	}

	/** {@link fixed} as lower-case `0x…`. */
	fixedHex(field: string, length: number): string {
		return `0x${this.fixed(field, length).toString("hex")}`;
	}

	/** Reads the header of the next item and steps over the item. False where there is a fault. */
	#open(field: string, list: boolean): boolean {
		if (this.#fault !== null) return false;
		const at = this.#at;
		const end = this.#end;
		if (at >= end) return this.fail(`${field}: missing`);
		const first = this.bytes[at] as number;
		if (first >= 0xc0 !== list) {
			return this.fail(
				list
					? `${field}: expected a list, got a byte string`
					: `${field}: expected a byte string, got a list`,
			);
		}
		let start = at + 1;
		let length = first - (list ? 0xc0 : 0x80);
		if (length < 0) {
			// A byte below 0x80 is its own encoding.
			start = at;
			length = 1;
		} else if (length > 55) {
			const lengthBytes = length - 55;
			start += lengthBytes;
			if (start > end) return this.fail(`${field}: ends inside its length`);
			if (this.bytes[at + 1] === 0) return this.fail(`${field}: leading zero in its length`);
			length = lengthBytes > MAX_LENGTH_BYTES ? Infinity : this.bytes.readUIntBE(at + 1, lengthBytes);
			if (length <= 55) return this.fail(`${field}: long form of a short length`);
		} else if (length === 1 && !list && start < end && (this.bytes[start] as number) < 0x80) {
			return this.fail(`${field}: single byte below 0x80 with a length before it`);
		}
		if (length > end - start) return this.fail(`${field}: longer than what holds it`);
		this.#start = start;
		this.#length = length;
		this.#at = start + length;
		return true;
	}
}

/** What {@link rlpEncode} takes: a byte string or a list of items. */
export type RlpItem = Uint8Array | readonly RlpItem[];

/** The canonical encoding of `item`. */
export function rlpEncode(item: RlpItem): Buffer {
	const parts: Uint8Array[] = [];
	append(item, parts);
	return Buffer.concat(parts);
}

/** The header of a list whose encoded items are `length` bytes long. */
export function rlpListHeader(length: number): Buffer {
	return header(0xc0, length);
}

/** The shortest big-endian bytes of `value`, as RLP wants integers: none for zero. `value` must not be negative. */
export function uintToBytes(value: bigint): Buffer {
	if (value < 0n) throw new RangeError("RLP has no negative integers");
	if (value === 0n) return EMPTY;
	const digits = value.toString(16);
	return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
}

/** Appends the pieces of the encoding to `parts` and answers their length in bytes. */
function append(item: RlpItem, parts: Uint8Array[]): number {
	if (item instanceof Uint8Array) {
		if (item.length === 1 && (item[0] as number) < 0x80) {
			parts.push(item);
			return 1;
		}
		const head = header(0x80, item.length);
		parts.push(head, item);
		return head.length + item.length;
	}
	// The header's place is kept until the length of what follows is known.
	const place = parts.push(EMPTY) - 1;
	let length = 0;
	for (const inner of item) length += append(inner, parts);
	const head = header(0xc0, length);
	parts[place] = head;
	return head.length + length;
}

function header(base: 0x80 | 0xc0, length: number): Buffer {
	if (length <= 55) return Buffer.from([base + length]);
	const bytes = uintToBytes(BigInt(length));
	return Buffer.concat([Buffer.from([base + 55 + bytes.length]), bytes]);
}
