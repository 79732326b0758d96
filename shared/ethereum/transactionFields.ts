// The fields of signed transactions, types 0 to 4, as they lie in the bytes. One reader serves all types: the lists
// hold the same fields in the same order, and a later type only has more of them.

import { keccak256 } from "./keccak.ts";
import { type RlpReader, rlpEncode, rlpListHeader, uintToBytes } from "./rlp.ts";

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
 * One entry of an EIP-7702 authorization list, as it was sent: the signature may be nonsense, see
 * `senderOfAuthorization`. https://eips.ethereum.org/EIPS/eip-7702
 */
export interface Authorization {
	/** 0: valid on every chain. */
	readonly chainId: bigint;
	/** The code's address, lower-case; the zero address takes the code away. */
	readonly address: string;
	readonly nonce: bigint;
	/** 0 to 255; only 0 and 1 can be valid. */
	readonly yParity: number;
	readonly r: bigint;
	readonly s: bigint;
}

/** The fields that are signed, and the signature. Amounts are wei. */
export interface TransactionFields {
	readonly type: TransactionType;
	/** Of a legacy transaction: the one in its v (EIP-155). */
	readonly chainId: bigint;
	/** Up to 2⁶⁴−1, which decodes although no chain takes it (EIP-2681). */
	readonly nonce: bigint;
	readonly gasLimit: bigint;
	/** Lower-case, or null for a contract creation. */
	readonly to: string | null;
	readonly value: bigint;
	/** A view of {@link DecodedTransaction.raw}. */
	readonly data: Buffer;
	/** Empty for legacy transactions. */
	readonly accessList: readonly AccessListEntry[];
	/** Null where the type has two fees. */
	readonly gasPrice: bigint | null;
	/** The gas price where the type has only that. */
	readonly maxFeePerGas: bigint;
	/** The gas price where the type has only that. */
	readonly maxPriorityFeePerGas: bigint;
	/** Null but for type 3. */
	readonly maxFeePerBlobGas: bigint | null;
	/** Lower-case; empty but for type 3. */
	readonly blobVersionedHashes: readonly string[];
	/** Empty but for type 4; it may be empty there too, which admission refuses. */
	readonly authorizationList: readonly Authorization[];
	/** As on the wire: 35 and up for legacy, else equal to yParity. */
	readonly v: bigint;
	readonly yParity: 0 | 1;
	readonly r: bigint;
	readonly s: bigint;
}

/** Fields, and where in the bytes those lie that are signed: from `signedFrom` up to `signedTo`. */
export interface ReadPayload {
	readonly fields: TransactionFields;
	readonly signedFrom: number;
	readonly signedTo: number;
}

/**
 * Reads the list of one transaction, for a blob transaction without its sidecar. Signature values are read and not
 * judged. Where the reader has a fault afterwards, the result means nothing.
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
 * The hash that the sender signed: all fields before the signature as they are in the bytes, of a legacy transaction
 * with chain id, 0 and 0 behind them, of a typed one with its type before them.
 */
export function signingHash(bytes: Buffer, { fields, signedFrom, signedTo }: ReadPayload): Buffer {
	const signed = bytes.subarray(signedFrom, signedTo);
	if (fields.type > 0) return keccak256(Buffer.from([fields.type]), rlpListHeader(signed.length), signed);
	const chainId = rlpEncode(uintToBytes(fields.chainId));
	const header = rlpListHeader(signed.length + chainId.length + TWO_ZEROS.length);
	return keccak256(header, signed, chainId, TWO_ZEROS);
}

const TWO_ZEROS = Buffer.from([0x80, 0x80]);

/** The called address in lower case, or null where the field is empty, which only some types may have. */
function readTo(reader: RlpReader, mayBeEmpty: boolean): string | null {
	const to = reader.string("to");
	if (to.length === 20) return `0x${to.toString("hex")}`;
	if (to.length !== 0 || !mayBeEmpty) {
		reader.fail(`to: expected 20 bytes${mayBeEmpty ? " or none" : ""}, got ${to.length}`);
	}
	return null;
}

/** Accounts of an access list at most, twice what a transaction's gas pays for (EIP-7825): a megabyte is long to read. */
const MAX_ACCOUNTS = 16_384;

function readAccessList(reader: RlpReader): readonly AccessListEntry[] {
	const outerEnd = reader.openList("accessList");
	const entries: AccessListEntry[] = [];
	while (reader.hasMore()) {
		const entryEnd = reader.openList("accessList entry");
		const address = reader.fixedHex("accessList address", 20);
		const storageKeys = readHexList(reader, "accessList storageKeys", 32);
		reader.closeList("accessList entry", entryEnd);
		entries.push({ address, storageKeys });
		if (entries.length > MAX_ACCOUNTS) reader.fail(`accessList: expected at most ${MAX_ACCOUNTS} accounts`);
	}
	reader.closeList("accessList", outerEnd);
	return entries;
}

/** The bounds are the EIP's: a tuple outside them makes the whole transaction invalid, other nonsense does not. */
function readAuthorizationList(reader: RlpReader): readonly Authorization[] {
	const outerEnd = reader.openList("authorizationList");
	const entries: Authorization[] = [];
	while (reader.hasMore()) {
		const entryEnd = reader.openList("authorization");
		const chainId = reader.uint("authorization chainId", 32);
		const address = reader.fixedHex("authorization address", 20);
		const nonce = reader.uint("authorization nonce", 8);
		const yParity = Number(reader.uint("authorization yParity", 1));
		const r = reader.uint("authorization r", 32);
		const s = reader.uint("authorization s", 32);
		reader.closeList("authorization", entryEnd);
		entries.push({ chainId, address, nonce, yParity, r, s });
	}
	reader.closeList("authorizationList", outerEnd);
	return entries;
}

function readHexList(reader: RlpReader, field: string, itemBytes: number): readonly string[] {
	const outerEnd = reader.openList(field);
	const items: string[] = [];
	while (reader.hasMore()) items.push(reader.fixedHex(field, itemBytes));
	reader.closeList(field, outerEnd);
	return items;
}
