// Legacy transactions: a reader over the bytes comes in, the nine fields go out. Signature values are read and not
// judged here. https://eips.ethereum.org/EIPS/eip-155

import { keccak256 } from "../keccak.ts";
import { type RlpReader, rlpEncode, rlpListHeader, uintToBytes } from "../rlp.ts";
import type { TransactionFields } from "../transaction.ts";
import { readTo } from "./typed.ts";

/** Fields, and where in the bytes those lie that are signed: from `signedFrom` up to `signedTo`. */
export interface ReadPayload {
	readonly fields: TransactionFields;
	readonly signedFrom: number;
	readonly signedTo: number;
}

/** Reads one legacy transaction. Where the reader has a fault afterwards, the result means nothing. */
export function readLegacyPayload(reader: RlpReader): ReadPayload {
	const outerEnd = reader.openList("transaction");
	const signedFrom = reader.offset;
	const nonce = reader.uint("nonce", 8);
	const gasPrice = reader.uint("gasPrice", 32);
	const gasLimit = reader.uint("gasLimit", 8);
	const to = readTo(reader, true);
	const value = reader.uint("value", 32);
	const data = reader.string("data");
	const signedTo = reader.offset;
	const v = reader.uint("v", 32);
	const r = reader.uint("r", 32);
	const s = reader.uint("s", 32);
	reader.closeList("transaction", outerEnd);
	const fields: TransactionFields = {
		type: 0,
		chainId: v < 35n ? 0n : (v - 35n) >> 1n,
		nonce,
		gasLimit,
		to,
		value,
		data,
		accessList: [],
		gasPrice,
		maxFeePerGas: gasPrice,
		maxPriorityFeePerGas: gasPrice,
		maxFeePerBlobGas: null,
		blobVersionedHashes: [],
		authorizationList: [],
		v,
		// v = chainId · 2 + 35 + yParity
		yParity: (v & 1n) === 1n ? 0 : 1,
		r,
		s,
	};
	return { fields, signedFrom, signedTo };
}

/** The hash that the sender signed: the first six fields as they are in the bytes, then chain id, 0 and 0. */
export function legacySigningHash(bytes: Buffer, payload: ReadPayload): Buffer {
	const six = bytes.subarray(payload.signedFrom, payload.signedTo);
	const chainId = rlpEncode(uintToBytes(payload.fields.chainId));
	return keccak256(rlpListHeader(six.length + chainId.length + TWO_ZEROS.length), six, chainId, TWO_ZEROS);
}

const TWO_ZEROS = Buffer.from([0x80, 0x80]);
