// Reads and writes RLP. Only the canonical encoding is accepted, so that a transaction has only one
// encoding. https://ethereum.org/en/developers/docs/data-structures-and-encoding/rlp/

import { asBuffer } from "./hex.ts";

/** Maximum for `readUIntBE`; longer lengths exceed any input. */
const MAX_LENGTH_BYTES = 6;
const EMPTY = Buffer.alloc(0);

/**
 * A cursor over one RLP document. After the first fault every read returns an empty value, so
 * callers read all fields and check {@link fault} once at the end. Returned buffers are views of
 * the input.
 */
export class RlpReader {
	readonly bytes: Buffer;
	#at: number;
	/** End of the current list. */
	#end: number;
	#fault: string | null = null;
	/** Content of the item opened last. */
	#start = 0;
	#length = 0;

	constructor(bytes: Buffer, from = 0) {
		this.bytes = bytes;
		this.#at = from;
		this.#end = bytes.length;
	}

	/** The first fault as `field: what was expected`, or null. Never quotes the input. */
	get fault(): string | null {
		return this.#fault;
	}

	/** Byte offset of the next item. */
	get offset(): number {
		return this.#at;
	}

	/** Records a fault unless there is one. */
	fail(fault: string): false {
		this.#fault ??= fault;
		return false;
	}

	/** Whether the current list has items left; false after a fault, so that loops end. */
	hasMore(): boolean {
		return this.#fault === null && this.#at < this.#end;
	}

	/** Whether there is a next item and it is a list. */
	nextIsList(): boolean {
		return this.hasMore() && (this.bytes[this.#at] as number) >= 0xc0;
	}

	/** Enters the next list. The result must be given to {@link closeList}. */
	openList(field: string): number {
		const outerEnd = this.#end;
		if (!this.#open(field, true)) return outerEnd;
		this.#at = this.#start;
		this.#end = this.#start + this.#length;
		return outerEnd;
	}

	/** Leaves the list, which must have no items left. */
	closeList(field: string, outerEnd: number): void {
		if (this.#fault !== null) return;
		if (this.#at !== this.#end) this.fail(`${field}: more items than expected`);
		this.#end = outerEnd;
	}

	/** Reads the next list; `item` reads one item, given those before it. */
	list<T>(field: string, item: (before: readonly T[]) => T): readonly T[] {
		const outerEnd = this.openList(field);
		const items: T[] = [];
		while (this.hasMore()) items.push(item(items));
		this.closeList(field, outerEnd);
		return items;
	}

	/** Checks that nothing follows the last item. */
	close(): void {
		if (this.#fault === null && this.#at !== this.bytes.length) this.fail("trailing bytes");
	}

	/**
	 * An unsigned integer of at most `maxBytes` bytes, without leading zeros; zero is the empty
	 * string.
	 */
	uint(field: string, maxBytes: number): bigint {
		if (!this.#open(field, false)) return 0n;
		const start = this.#start;
		const length = this.#length;
		if (length === 0) return 0n;
		if (this.bytes[start] === 0) this.fail(`${field}: leading zero`);
		else if (length > maxBytes) this.fail(`${field}: expected at most ${maxBytes} bytes, got ${length}`);
		if (this.#fault !== null) return 0n;
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
		if (!this.skipFixed(field, length)) return EMPTY;
		return this.bytes.subarray(this.#start, this.#start + length);
	}

	/** Moves behind a byte string of exactly `length` bytes. False after a fault. */
	skipFixed(field: string, length: number): boolean {
		if (!this.#open(field, false)) return false;
		if (this.#length === length) return true;
		return this.fail(`${field}: expected ${length} bytes, got ${this.#length}`);
	}

	/** {@link fixed} as lower-case `0x…`. */
	fixedHex(field: string, length: number): string {
		return `0x${this.fixed(field, length).toString("hex")}`;
	}

	/** Moves behind the next item of any kind. */
	skip(field: string): void {
		this.#open(field, this.nextIsList());
	}

	/** Reads the header of the next item and moves behind the item. False after a fault. */
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

/** A byte string or a list of items. */
export type RlpItem = Uint8Array | readonly RlpItem[];

export function rlpEncode(item: RlpItem): Buffer {
	if (!(item instanceof Uint8Array)) {
		const items = item.map(rlpEncode);
		return Buffer.concat([
			header(
				0xc0,
				items.reduce((sum, { length }) => sum + length, 0),
			),
			...items,
		]);
	}
	if (item.length === 1 && (item[0] as number) < 0x80) return asBuffer(item);
	return Buffer.concat([header(0x80, item.length), item]);
}

/**
 * The big-endian bytes of `value` without leading zeros, as RLP requires. `value` must not be
 * negative.
 */
export function uintToBytes(value: bigint): Buffer {
	if (value < 0n) throw new RangeError("RLP has no negative integers");
	if (value === 0n) return EMPTY;
	const digits = value.toString(16);
	return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
}

/** The header of a list whose items have this number of bytes. */
export function rlpListHeader(length: number): Buffer {
	return header(0xc0, length);
}

function header(base: 0x80 | 0xc0, length: number): Buffer {
	if (length <= 55) return Buffer.from([base + length]);
	const bytes = uintToBytes(BigInt(length));
	return Buffer.concat([Buffer.from([base + 55 + bytes.length]), bytes]);
}
