// Reads and writes RLP and the transaction fields in it. Only the canonical encoding is accepted, so that a transaction has only
// one encoding. https://ethereum.org/en/developers/docs/data-structures-and-encoding/rlp/

import { asBuffer } from "./hex.ts";
import { keccak256 } from "./signatures.ts";

/** Maximum for `readUIntBE`; longer lengths exceed any input. */
const MAX_LENGTH_BYTES = 6;
const EMPTY = Buffer.alloc(0);

/**
 * A cursor over one RLP document. After the first fault every read returns an empty value, so callers read all fields and
 * check {@link fault} once at the end. Returned buffers are views of the input.
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

	/** An unsigned integer of at most `maxBytes` bytes, without leading zeros; zero is the empty string. */
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

	/** Moves behind the next item, whatever it is. */
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

/** The big-endian bytes of `value` without leading zeros, as RLP requires. `value` must not be negative. */
export function uintToBytes(value: bigint): Buffer {
	if (value < 0n) throw new RangeError("RLP has no negative integers");
	if (value === 0n) return EMPTY;
	const digits = value.toString(16);
	return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
}

/** What stands before a list whose items have so many bytes. */
export function rlpListHeader(length: number): Buffer {
	return header(0xc0, length);
}

function header(base: 0x80 | 0xc0, length: number): Buffer {
	if (length <= 55) return Buffer.from([base + length]);
	const bytes = uintToBytes(BigInt(length));
	return Buffer.concat([Buffer.from([base + 55 + bytes.length]), bytes]);
}

/** Legacy, EIP-2930 access list, EIP-1559 fee market, EIP-4844 blobs, EIP-7702 authorizations. */
export type TransactionType = 0 | 1 | 2 | 3 | 4;

/** Storage that a transaction says it will touch. https://eips.ethereum.org/EIPS/eip-2930 */
export interface AccessListEntry {
	/** Lower-case. */
	readonly address: string;
	/** Lower-case, 32 bytes each. */
	readonly storageKeys: readonly string[];
}

/**
 * One entry of an EIP-7702 authorization list. Its signature may be invalid, see `senderOfAuthorization`.
 * https://eips.ethereum.org/EIPS/eip-7702
 */
export interface Authorization {
	/** 0: valid on every chain. */
	readonly chainId: bigint;
	/** The code's address, lower-case; the zero address removes the code. */
	readonly address: string;
	readonly nonce: bigint;
	/** 0 to 255; only 0 and 1 can be valid. */
	readonly yParity: number;
	readonly r: bigint;
	readonly s: bigint;
	/** What `senderOfAuthorization` has found, so that it is not recovered again. */
	readonly authority?: string | null;
}

/** The fields that are signed, and the signature. Amounts are wei. */
export interface TransactionFields {
	readonly type: TransactionType;
	/** For a legacy transaction derived from v (EIP-155). */
	readonly chainId: bigint;
	/** Up to 2⁶⁴−1, which decodes although EIP-2681 forbids it. */
	readonly nonce: bigint;
	readonly gasLimit: bigint;
	/** Lower-case, or null for a contract creation. */
	readonly to: string | null;
	readonly value: bigint;
	/** A view of {@link DecodedTransaction.raw}. */
	readonly data: Buffer;
	/** Empty for legacy transactions. */
	readonly accessList: readonly AccessListEntry[];
	/** Null if the type has two fees. */
	readonly gasPrice: bigint | null;
	/** The gas price if the type has only that. */
	readonly maxFeePerGas: bigint;
	/** The gas price if the type has only that. */
	readonly maxPriorityFeePerGas: bigint;
	/** Null except for type 3. */
	readonly maxFeePerBlobGas: bigint | null;
	/** Lower-case; empty except for type 3. */
	readonly blobVersionedHashes: readonly string[];
	/** Empty except for type 4, where an empty list is refused by admission. */
	readonly authorizationList: readonly Authorization[];
	/** As encoded: 35 or more for legacy, else equal to yParity. */
	readonly v: bigint;
	readonly yParity: 0 | 1;
	readonly r: bigint;
	readonly s: bigint;
}

/** The fields, and the byte range of those that are signed. */
export interface ReadPayload {
	readonly fields: TransactionFields;
	readonly signedFrom: number;
	readonly signedTo: number;
}

/**
 * Reads the list of one transaction, for a blob transaction without its sidecar. Does not check the signature. The result is
 * meaningless if the reader has a fault afterwards.
 */
export function readPayload(reader: RlpReader, type: TransactionType): ReadPayload {
	const outerEnd = reader.openList("transaction");
	const signedFrom = reader.offset;
	const listedChainId = type === 0 ? 0n : reader.uint("chainId", 32);
	const nonce = reader.uint("nonce", 8);
	const gasPrice = type <= 1 ? reader.uint("gasPrice", 32) : null;
	const maxPriorityFeePerGas = gasPrice ?? reader.uint("maxPriorityFeePerGas", 32);
	const maxFeePerGas = gasPrice ?? reader.uint("maxFeePerGas", 32);
	const gasLimit = reader.uint("gasLimit", 8);
	const to = readTo(reader, type <= 2);
	const value = reader.uint("value", 32);
	const data = reader.string("data");
	const accessList = type === 0 ? [] : readAccessList(reader);
	const maxFeePerBlobGas = type === 3 ? reader.uint("maxFeePerBlobGas", 32) : null;
	const blobVersionedHashes = type === 3 ? readHexList(reader, "blobVersionedHashes", 32) : [];
	const authorizationList = type === 4 ? readAuthorizationList(reader) : [];
	const signedTo = reader.offset;
	const v = reader.uint(type === 0 ? "v" : "yParity", 32);
	const r = reader.uint("r", 32);
	const s = reader.uint("s", 32);
	reader.closeList("transaction", outerEnd);
	// EIP-155: v = chainId · 2 + 35 + yParity.
	const chainId = type > 0 ? listedChainId : v < 35n ? 0n : (v - 35n) >> 1n;
	const fields: TransactionFields = {
		type,
		chainId,
		nonce,
		gasLimit,
		to,
		value,
		data,
		accessList,
		gasPrice,
		maxFeePerGas,
		maxPriorityFeePerGas,
		maxFeePerBlobGas,
		blobVersionedHashes,
		authorizationList,
		v,
		yParity: type === 0 ? ((v & 1n) === 1n ? 0 : 1) : v === 1n ? 1 : 0,
		r,
		s,
	};
	return { fields, signedFrom, signedTo };
}

/**
 * The hash that the sender signed: over the encoded fields before the signature, followed by chain id, 0 and 0 for a legacy
 * transaction, preceded by the type for others.
 */
export function signingHash(bytes: Buffer, { fields, signedFrom, signedTo }: ReadPayload): Buffer {
	const signed = bytes.subarray(signedFrom, signedTo);
	if (fields.type > 0) return keccak256(Buffer.from([fields.type]), header(0xc0, signed.length), signed);
	const chainId = rlpEncode(uintToBytes(fields.chainId));
	const length = signed.length + chainId.length + TWO_ZEROS.length;
	return keccak256(header(0xc0, length), signed, chainId, TWO_ZEROS);
}

const TWO_ZEROS = Buffer.from([0x80, 0x80]);

/** The lower-case address, or null if the field is empty, which only some types allow. */
function readTo(reader: RlpReader, mayBeEmpty: boolean): string | null {
	const to = reader.string("to");
	if (to.length === 20) return `0x${to.toString("hex")}`;
	if (to.length !== 0 || !mayBeEmpty) {
		reader.fail(`to: expected 20 bytes${mayBeEmpty ? " or none" : ""}, got ${to.length}`);
	}
	return null;
}

/** Maximum accounts of an access list: twice what the gas of a transaction pays for (EIP-7825). */
const MAX_ACCOUNTS = 16_384;

function readAccessList(reader: RlpReader): readonly AccessListEntry[] {
	return reader.list("accessList", (entries: readonly AccessListEntry[]) => {
		if (entries.length === MAX_ACCOUNTS) reader.fail(`accessList: expected at most ${MAX_ACCOUNTS} accounts`);
		const entryEnd = reader.openList("accessList entry");
		const address = reader.fixedHex("accessList address", 20);
		const storageKeys = readHexList(reader, "accessList storageKeys", 32);
		reader.closeList("accessList entry", entryEnd);
		return { address, storageKeys };
	});
}

/** By the EIP, values out of these bounds make the transaction invalid; an invalid signature does not. */
function readAuthorizationList(reader: RlpReader): readonly Authorization[] {
	return reader.list("authorizationList", () => {
		const entryEnd = reader.openList("authorization");
		const chainId = reader.uint("authorization chainId", 32);
		const address = reader.fixedHex("authorization address", 20);
		const nonce = reader.uint("authorization nonce", 8);
		const yParity = Number(reader.uint("authorization yParity", 1));
		const r = reader.uint("authorization r", 32);
		const s = reader.uint("authorization s", 32);
		reader.closeList("authorization", entryEnd);
		return { chainId, address, nonce, yParity, r, s };
	});
}

/** Fields of a transaction of type 4 before its authorizations. */
const BEFORE_AUTHORIZATIONS = 9;

/** How many authorizations a raw transaction has, without reading them; 0 if it is of another type or malformed. */
export function countAuthorizations(raw: Uint8Array): number {
	if (raw[0] !== 4) return 0;
	const reader = new RlpReader(asBuffer(raw), 1);
	reader.openList("transaction");
	for (let field = 0; field < BEFORE_AUTHORIZATIONS; field++) reader.skip("field");
	reader.openList("authorizationList");
	let count = 0;
	for (; reader.hasMore(); count++) reader.skip("authorization");
	return reader.fault === null ? count : 0;
}

function readHexList(reader: RlpReader, field: string, itemBytes: number): readonly string[] {
	return reader.list(field, () => reader.fixedHex(field, itemBytes));
}
