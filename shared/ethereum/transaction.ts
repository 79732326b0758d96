// Decodes signed transactions of types 0 to 4. Only the canonical encoding is accepted, so that the
// hash is the one on the chain. Nonce, balance, fees, chain id and gas are checked by admission;
// KZG proofs by blobProofs.ts.

import { asBuffer, bytesToHex } from "./hex.ts";
import { RlpReader, rlpEncode, uintToBytes } from "./rlp.ts";
import { findSidecarProblem, readSidecar, type SidecarVersion } from "./sidecar.ts";
import { isCanonicalSignature, keccak256, recoverAddress } from "./signatures.ts";
import {
	type Authorization,
	type ReadPayload,
	readPayload,
	signingHash,
	type TransactionFields,
} from "./transactionFields.ts";

interface SidecarSummary {
	readonly version: SidecarVersion;
	readonly blobCount: number;
}

/**
 * A single byte, which no wallet submits. Boost sends it to check whether the relay answers
 * submissions.
 */
export const NO_TRANSACTION = "0x00";

/** Whether these are the bytes of {@link NO_TRANSACTION}. */
export function isNoTransaction(raw: Uint8Array): boolean {
	return raw.length === 1 && raw[0] === 0;
}

/** A well-formed transaction with a valid signature. */
export interface DecodedTransaction extends TransactionFields {
	/** Lower-case hash, which does not cover a sidecar. */
	readonly hash: string;
	/** The sender, lower-case. */
	readonly from: string;
	/** The bytes as given, for type 3 with the sidecar; a view. */
	readonly raw: Buffer;
	/** Length of {@link raw} in bytes. */
	readonly size: number;
	/** How many bytes of its calldata are zero. */
	readonly zeroBytes: number;
	/** Null except for type 3. */
	readonly sidecar: SidecarSummary | null;
}

/** The result of recovering a transaction's signature. */
export interface Recovered {
	readonly hash: string;
	readonly from: string;
}

/** Prefix of the signed RLP of an authorization. https://eips.ethereum.org/EIPS/eip-7702 */
const AUTHORIZATION_MAGIC = Buffer.from([0x05]);
/**
 * Maximum bytes of a transaction without blobs; longer ones are not decoded. This is twice the
 * limit of admission, whose error reports that limit.
 */
const MAX_PLAIN_BYTES = 256 * 1024;

export type DecodeReason =
	| "rlp"
	| "oversized"
	| "unsupportedType"
	| "invalidSignature"
	| "notReplayProtected"
	| "missingBlobSidecar"
	| "invalidSidecar";

interface DecodeFailure {
	readonly ok: false;
	readonly reason: DecodeReason;
	/** For the sender, in go-ethereum's words if it has any. Never quotes the transaction. */
	readonly message: string;
}

export type Decoded = { readonly ok: true; readonly tx: DecodedTransaction } | DecodeFailure;

/**
 * Decodes one signed transaction and recovers its sender. Never throws. `raw` must not be changed
 * afterwards, since the result has views of it. `recovered`: the result of a trusted party that has
 * recovered the sender already.
 */
export function decodeTransaction(raw: Uint8Array, recovered: Recovered | null = null): Decoded {
	const read = readTransaction(raw);
	if ("ok" in read) return read;
	if (recovered !== null) return finish(read, recovered.from, recovered.hash);
	const { yParity, r, s } = read.payload.fields;
	return finish(read, recoverAddress(signingHash(read.raw, read.payload), yParity, r, s), hashOf(read));
}

/**
 * As {@link decodeTransaction}. `recover` recovers the sender as {@link recoverAddress} does, at
 * once or later.
 */
export function decodeTransactionBy(
	recover: (hash: Buffer, yParity: 0 | 1, r: bigint, s: bigint) => string | null | Promise<string | null>,
	raw: Uint8Array,
): Decoded | Promise<Decoded> {
	const read = readTransaction(raw);
	if ("ok" in read) return read;
	const { yParity, r, s } = read.payload.fields;
	// The hash of a large transaction takes a tenth of a millisecond or more, and many signatures are
	// recovered together: the caller's turn of the event loop has a limit, and theirs has none.
	const hash = hashOf(read);
	const from = recover(signingHash(read.raw, read.payload), yParity, r, s);
	return from instanceof Promise
		? from.then((address) => finish(read, address, hash))
		: finish(read, from, hash);
}

/** A well-formed transaction with a canonical signature. */
interface ReadTransaction {
	readonly raw: Buffer;
	readonly payload: ReadPayload;
	/** The bytes that the hash covers; for a blob transaction without its type byte. */
	readonly hashed: Buffer;
	readonly sidecar: SidecarSummary | null;
}

function readTransaction(raw: Uint8Array): ReadTransaction | DecodeFailure {
	const bytes = asBuffer(raw);
	const first = bytes[0];
	if (first === undefined) return failure("rlp", "rlp: empty input");
	const isKnown = first >= 0x80 || (first >= 1 && first <= 4);
	// Decoding a megabyte would block the event loop for tens of milliseconds.
	if (isKnown && first !== 3 && bytes.length > MAX_PLAIN_BYTES) return oversized(bytes.length);
	if (first >= 0x80) return readPlain(bytes, 0);
	switch (first) {
		case 1:
		case 2:
		case 4:
			return readPlain(bytes, first);
		case 3:
			return readBlob(bytes);
		default:
			return failure("unsupportedType", "transaction type not supported");
	}
}

function readPlain(bytes: Buffer, type: 0 | 1 | 2 | 4): ReadTransaction | DecodeFailure {
	const reader = new RlpReader(bytes, type === 0 ? 0 : 1);
	const payload = readPayload(reader, type);
	reader.close();
	if (reader.fault !== null) return failure("rlp", `rlp: ${reader.fault}`);
	return checked({ raw: bytes, payload, hashed: bytes, sidecar: null });
}

/**
 * The network form: the payload and its sidecar in one list.
 * https://eips.ethereum.org/EIPS/eip-4844#networking
 */
function readBlob(bytes: Buffer): ReadTransaction | DecodeFailure {
	const reader = new RlpReader(bytes, 1);
	const outerEnd = reader.openList("blob transaction");
	if (reader.fault === null && !reader.nextIsList()) return rejectBareBlob(bytes);
	const start = reader.offset;
	const payload = readPayload(reader, 3);
	const end = reader.offset;
	const sidecar = readSidecar(reader);
	reader.closeList("blob transaction", outerEnd);
	reader.close();
	if (reader.fault !== null) return failure("rlp", `rlp: ${reader.fault}`);

	const problem = findSidecarProblem(sidecar, payload.fields.blobVersionedHashes);
	if (problem !== null) return failure("invalidSidecar", `invalid blob sidecar: ${problem}`);
	const summary = {
		version: sidecar.wrapperVersion === null ? 0 : 1,
		blobCount: sidecar.blobs.length,
	} as const;
	const hashed = bytes.subarray(start, end);
	return checked({ raw: bytes, payload, hashed, sidecar: summary });
}

/**
 * Rejects a blob transaction without its blobs, the form in blocks, since no builder could include
 * it.
 */
function rejectBareBlob(bytes: Buffer): DecodeFailure {
	const reader = new RlpReader(bytes, 1);
	readPayload(reader, 3);
	reader.close();
	if (reader.fault !== null) return failure("rlp", `rlp: ${reader.fault}`);
	return failure("missingBlobSidecar", "missing blob sidecar");
}

/** Checks the form of its signature. */
function checked(read: ReadTransaction): ReadTransaction | DecodeFailure {
	const { type, v, r, s } = read.payload.fields;
	if (!isCanonicalSignature(r, s)) return INVALID_SIGNATURE;
	if (type === 0 && (v <= 1n || v === 27n || v === 28n)) {
		return failure("notReplayProtected", "only replay-protected (EIP-155) transactions allowed over RPC");
	}
	return (type === 0 ? v < 35n : v > 1n) ? INVALID_SIGNATURE : read;
}

function hashOf({ hashed, sidecar }: ReadTransaction): string {
	return bytesToHex(sidecar === null ? keccak256(hashed) : keccak256(BLOB_TYPE_BYTE, hashed));
}

/** Makes the result. `from` is null if no valid signature was found. */
function finish(
	{ raw, payload: { fields }, sidecar }: ReadTransaction,
	from: string | null,
	hash: string,
): Decoded {
	if (from === null) return INVALID_SIGNATURE;
	// One literal: a spread costs 6 µs, and properties that are added later make every read of the
	// object slow.
	const tx: DecodedTransaction = {
		type: fields.type,
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
		v: fields.v,
		yParity: fields.yParity,
		r: fields.r,
		s: fields.s,
		hash,
		from,
		raw,
		size: raw.length,
		zeroBytes: countZeros(fields.data),
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

/** A loop by index: an iterator or callback is ten times slower. */
function countZeros(bytes: Uint8Array): number {
	let zeros = 0;
	for (let index = 0; index < bytes.length; index++) {
		if (bytes[index] === 0) zeros++;
	}
	return zeros;
}

/**
 * Whether the transaction is a plain transfer to its own sender: no data, blobs or authorizations.
 */
export function isSelfTransfer({
	type,
	from,
	to,
	data,
}: Pick<DecodedTransaction, "type" | "from" | "to" | "data">): boolean {
	return to === from && data.length === 0 && type <= 2;
}

/**
 * The account that signed an EIP-7702 authorization, and whose code it sets. Null for an invalid
 * signature: the chain skips such an entry, and its transaction stays valid. The first time this
 * takes 50 µs.
 */
export function senderOfAuthorization(authorization: Authorization): string | null {
	const known = authorization.authority;
	if (known !== undefined) return known;
	const value = recoverAuthority(authorization);
	if ("authority" in authorization) authorization.authority = value;
	// Not enumerable: it is no field of the authorization, and no copy or JSON of it has it.
	else Object.defineProperty(authorization, "authority", { value });
	return value;
}

function recoverAuthority(authorization: Authorization): string | null {
	const { chainId, address, nonce, yParity, r, s } = authorization;
	if (yParity !== 0 && yParity !== 1) return null;
	const message = rlpEncode([uintToBytes(chainId), Buffer.from(address.slice(2), "hex"), uintToBytes(nonce)]);
	return recoverAddress(keccak256(AUTHORIZATION_MAGIC, message), yParity, r, s);
}
