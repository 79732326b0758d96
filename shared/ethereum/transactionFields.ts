// Reads the fields of signed transactions of types 0 to 4 from RLP. transaction.ts and admission
// check their values.

import { asBuffer } from "./hex.ts";
import { RlpReader, rlpEncode, rlpListHeader, uintToBytes } from "./rlp.ts";
import { keccak256 } from "./signatures.ts";

/** Legacy, EIP-2930 access list, EIP-1559 fee market, EIP-4844 blobs, EIP-7702 authorizations. */
export type TransactionType = 0 | 1 | 2 | 3 | 4;

/** Storage that a transaction says it will touch. https://eips.ethereum.org/EIPS/eip-2930 */
export interface AccessListEntry {
	/** Lower-case. */
	readonly address: string;
	/** Lower-case, 32 bytes each. */
	readonly storageKeys: readonly string[];
}

/** An access list. Decoded, a large one takes five times its bytes, so it is decoded when read. */
export interface AccessList {
	/** How many entries it has. */
	readonly addresses: number;
	/** How many keys all entries have together. */
	readonly keys: number;
	/** Its RLP; a view of the transaction's bytes. */
	readonly bytes: Buffer;
}

export const NO_ACCESS: AccessList = { addresses: 0, keys: 0, bytes: Buffer.alloc(0) };

/**
 * One entry of an EIP-7702 authorization list. Its signature may be invalid, see
 * `senderOfAuthorization`. https://eips.ethereum.org/EIPS/eip-7702
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
	/** The address that `senderOfAuthorization` has found, so that it need not be recovered again. */
	authority?: string | null;
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
	readonly accessList: AccessList;
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
	/** Empty except for type 4, where an empty list is rejected by admission. */
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
 * Reads the list of one transaction, for a blob transaction without its sidecar. Does not check the
 * signature. The result is meaningless if the reader has a fault afterwards.
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
	const accessList = type === 0 ? NO_ACCESS : readAccessList(reader);
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
 * The hash that the sender signed. For a legacy transaction it covers the encoded fields before the
 * signature, followed by chain id, 0 and 0. For others it covers the type and these fields.
 */
export function signingHash(bytes: Buffer, { fields, signedFrom, signedTo }: ReadPayload): Buffer {
	const signed = bytes.subarray(signedFrom, signedTo);
	if (fields.type > 0) return keccak256(Buffer.from([fields.type]), rlpListHeader(signed.length), signed);
	const chainId = rlpEncode(uintToBytes(fields.chainId));
	const length = signed.length + chainId.length + TWO_ZEROS.length;
	return keccak256(rlpListHeader(length), signed, chainId, TWO_ZEROS);
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

/**
 * Maximum accounts of an access list: twice the number that the gas of a transaction can pay for
 * (EIP-7825).
 */
const MAX_ACCOUNTS = 16_384;

/** Checks the list, and counts what it has. */
function readAccessList(reader: RlpReader): AccessList {
	const from = reader.offset;
	let [addresses, keys] = [0, 0];
	const listEnd = reader.openList("accessList");
	for (; reader.hasMore(); addresses++) {
		if (addresses === MAX_ACCOUNTS) reader.fail(`accessList: expected at most ${MAX_ACCOUNTS} accounts`);
		const entryEnd = reader.openList("accessList entry");
		reader.skipFixed("accessList address", 20);
		const keysEnd = reader.openList("accessList storageKeys");
		for (; reader.hasMore(); keys++) reader.skipFixed("accessList storageKeys", 32);
		reader.closeList("accessList storageKeys", keysEnd);
		reader.closeList("accessList entry", entryEnd);
	}
	reader.closeList("accessList", listEnd);
	if (addresses === 0) return NO_ACCESS;
	return { addresses, keys, bytes: reader.bytes.subarray(from, reader.offset) };
}

/** Decodes an access list. */
export function entriesOf({ addresses, bytes }: AccessList): readonly AccessListEntry[] {
	if (addresses === 0) return [];
	const reader = new RlpReader(bytes);
	return reader.list("accessList", () => {
		const entryEnd = reader.openList("accessList entry");
		const address = reader.fixedHex("accessList address", 20);
		const storageKeys = readHexList(reader, "accessList storageKeys", 32);
		reader.closeList("accessList entry", entryEnd);
		return { address, storageKeys };
	});
}

/**
 * By the EIP, values out of these bounds make the transaction invalid; an invalid signature does
 * not.
 */
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

/**
 * How many authorizations a raw transaction has, without reading them; 0 if it is of another type
 * or malformed.
 */
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
