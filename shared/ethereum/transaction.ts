// A signed transaction as bytes comes in; its fields, hash and sender, or what is wrong with the bytes, go out.
// Types 0 to 4, strictly: only the one canonical encoding passes, so the hash of what is accepted is the hash that
// the chain will know. It does not check what depends on the chain (nonce, balance, fees, chain id, gas: admission
// does), and not the KZG proofs of blobs: the node and the builders do.

import { asBuffer, bytesToHex } from "./hex.ts";
import { keccak256 } from "./keccak.ts";
import { isCanonicalSignature, recoverAddress } from "./recover.ts";
import { RlpReader } from "./rlp.ts";
import { findSidecarProblem, readSidecar } from "./transactionTypes/blobSidecar.ts";
import { legacySigningHash, type ReadPayload, readLegacyPayload } from "./transactionTypes/legacy.ts";
import { readTypedPayload, typedSigningHash } from "./transactionTypes/typed.ts";

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

/** What came with a blob transaction: version 0 is one proof a blob (EIP-4844), 1 is 128 cell proofs (EIP-7594). */
export interface SidecarSummary {
	readonly version: 0 | 1;
	readonly blobCount: number;
}

/** A transaction that is well formed and signed. */
export interface DecodedTransaction extends TransactionFields {
	/** Lower-case; of a blob transaction that of its payload, without the sidecar. */
	readonly hash: string;
	/** The sender, lower-case. */
	readonly from: string;
	/** The bytes as they were given, the sidecar included; not a copy. */
	readonly raw: Buffer;
	/** Length of {@link raw} in bytes. */
	readonly size: number;
	/** Null but for type 3. */
	readonly sidecar: SidecarSummary | null;
}

/** Bytes of a transaction without blobs that are read at most: twice what go-ethereum's pools take. */
const MAX_PLAIN_BYTES = 256 * 1024;

/** Why bytes are no transaction that can be taken. */
export type DecodeReason =
	| "rlp"
	| "oversized"
	| "unsupportedType"
	| "invalidSignature"
	| "notReplayProtected"
	| "missingBlobSidecar"
	| "invalidSidecar";

export interface DecodeFailure {
	readonly ok: false;
	readonly reason: DecodeReason;
	/** For the sender, in go-ethereum's words where it has some; never holds bytes of the transaction. */
	readonly message: string;
}

export type Decoded = { readonly ok: true; readonly tx: DecodedTransaction } | DecodeFailure;

/**
 * Decodes one signed transaction and recovers its sender. Never throws, whatever the bytes are; `raw` must not be
 * changed afterwards, for the result holds views of it.
 */
export function decodeTransaction(raw: Uint8Array): Decoded {
	const bytes = asBuffer(raw);
	const first = bytes[0];
	if (first === undefined) return failure("rlp", "rlp: empty input");
	const isKnown = first >= 0x80 || (first >= 1 && first <= 4);
	// Reading and hashing a megabyte would keep the event loop for tens of milliseconds.
	if (isKnown && first !== 3 && bytes.length > MAX_PLAIN_BYTES) return oversized(bytes.length);
	if (first >= 0x80) return decodeLegacy(bytes);
	switch (first) {
		case 1:
		case 2:
		case 4:
			return decodeTyped(bytes, first);
		case 3:
			return decodeBlob(bytes);
		default:
			return failure("unsupportedType", "transaction type not supported");
	}
}

function decodeLegacy(bytes: Buffer): Decoded {
	const reader = new RlpReader(bytes);
	const payload = readLegacyPayload(reader);
	reader.close();
	if (reader.fault !== null) return failure("rlp", `rlp: ${reader.fault}`);
	return finish(bytes, payload, bytes, null);
}

function decodeTyped(bytes: Buffer, type: 1 | 2 | 4): Decoded {
	const reader = new RlpReader(bytes, 1);
	const payload = readTypedPayload(reader, type);
	reader.close();
	if (reader.fault !== null) return failure("rlp", `rlp: ${reader.fault}`);
	return finish(bytes, payload, bytes, null);
}

/** The network form: the payload and its sidecar in one list. https://eips.ethereum.org/EIPS/eip-4844#networking */
function decodeBlob(bytes: Buffer): Decoded {
	const reader = new RlpReader(bytes, 1);
	const outerEnd = reader.openList("blob transaction");
	if (reader.fault === null && !reader.nextIsList()) return refuseBareBlob(bytes);
	const start = reader.offset;
	const payload = readTypedPayload(reader, 3);
	const end = reader.offset;
	const sidecar = readSidecar(reader);
	reader.closeList("blob transaction", outerEnd);
	reader.close();
	if (reader.fault !== null) return failure("rlp", `rlp: ${reader.fault}`);

	const problem = findSidecarProblem(sidecar, payload.fields.blobVersionedHashes);
	if (problem !== null) return failure("invalidSidecar", `invalid blob sidecar: ${problem}`);
	const summary = { version: sidecar.wrapperVersion === null ? 0 : 1, blobCount: sidecar.blobCount } as const;
	const hashed = bytes.subarray(start, end);
	return finish(bytes, payload, hashed, summary);
}

/** The form that blocks hold, without blobs: well formed it may be, but no builder could include it. */
function refuseBareBlob(bytes: Buffer): Decoded {
	const reader = new RlpReader(bytes, 1);
	readTypedPayload(reader, 3);
	reader.close();
	if (reader.fault !== null) return failure("rlp", `rlp: ${reader.fault}`);
	return failure("missingBlobSidecar", "missing blob sidecar");
}

/** Checks the signature, and puts together what a well-formed payload amounts to. */
function finish(raw: Buffer, payload: ReadPayload, hashed: Buffer, sidecar: SidecarSummary | null): Decoded {
	const { fields } = payload;
	const { type, v, yParity, r, s } = fields;
	if (!isCanonicalSignature(r, s)) return INVALID_SIGNATURE;
	if (type === 0 && (v <= 1n || v === 27n || v === 28n)) {
		return failure("notReplayProtected", "only replay-protected (EIP-155) transactions allowed over RPC");
	}
	if (type === 0 ? v < 35n : v > 1n) return INVALID_SIGNATURE;
	const signed = type === 0 ? legacySigningHash(raw, payload) : typedSigningHash(raw, payload);
	const from = recoverAddress(signed, yParity, r, s);
	if (from === null) return INVALID_SIGNATURE;
	// A payload without its type byte is what was cut out of a blob transaction.
	const hash = bytesToHex(sidecar === null ? keccak256(hashed) : keccak256(BLOB_TYPE_BYTE, hashed));
	// Field by field, for spreading an object of this size costs 6 µs, as much as a hash.
	const tx: DecodedTransaction = {
		type,
		chainId: fields.chainId,
		nonce: fields.nonce,
		gasLimit: fields.gasLimit,
		to: fields.to,
		value: fields.value,
		data: fields.data,
		accessList: fields.accessList,
		gasPrice: fields.gasPrice,
		maxFeePerGas: fields.maxFeePerGas,
		maxPriorityFeePerGas: fields.maxPriorityFeePerGas,
		maxFeePerBlobGas: fields.maxFeePerBlobGas,
		blobVersionedHashes: fields.blobVersionedHashes,
		authorizationList: fields.authorizationList,
		v,
		yParity,
		r,
		s,
		hash,
		from,
		raw,
		size: raw.length,
		sidecar,
	};
	return { ok: true, tx };
}

const BLOB_TYPE_BYTE = Buffer.from([0x03]);

function oversized(size: number): DecodeFailure {
	return failure("oversized", `oversized data: transaction size ${size}, limit ${MAX_PLAIN_BYTES / 2}`);
}

function failure(reason: DecodeReason, message: string): DecodeFailure {
	return { ok: false, reason, message };
}

const INVALID_SIGNATURE = failure("invalidSignature", "invalid transaction v, r, s values");
