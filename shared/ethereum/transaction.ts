// Decodes signed transactions of types 0 to 4. Only the canonical encoding is accepted, so that the hash is the one that the chain
// will use. Nonce, balance, fees, chain id and gas are checked by admission; KZG proofs by blobProofs.ts.

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

/** A well-formed transaction with a valid signature. */
export interface DecodedTransaction extends TransactionFields {
	/** Lower-case. A sidecar is no part of it. */
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

/** What recovering a transaction's signature shows. */
export interface Recovered {
	readonly hash: string;
	readonly from: string;
}

/** Prefix of the signed RLP of an authorization. https://eips.ethereum.org/EIPS/eip-7702 */
const AUTHORIZATION_MAGIC = Buffer.from([0x05]);
/** Bytes of a transaction without blobs from which it is not even decoded: twice what admission takes, which senders are told. */
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
	/** For the sender, as go-ethereum words it if it does; never quotes the transaction. */
	readonly message: string;
}

type Decoded = { readonly ok: true; readonly tx: DecodedTransaction } | DecodeFailure;

/**
 * Decodes one signed transaction and recovers its sender. Never throws. `raw` must not be changed afterwards, since the result
 * has views of it. `recovered`: if somebody who is believed has done that already.
 */
export function decodeTransaction(raw: Uint8Array, recovered: Recovered | null = null): Decoded {
	const bytes = asBuffer(raw);
	const first = bytes[0];
	if (first === undefined) return failure("rlp", "rlp: empty input");
	const isKnown = first >= 0x80 || (first >= 1 && first <= 4);
	// Decoding a megabyte would block the event loop for tens of milliseconds.
	if (isKnown && first !== 3 && bytes.length > MAX_PLAIN_BYTES) return oversized(bytes.length);
	if (first >= 0x80) return decodePlain(bytes, 0, recovered);
	switch (first) {
		case 1:
		case 2:
		case 4:
			return decodePlain(bytes, first, recovered);
		case 3:
			return decodeBlob(bytes, recovered);
		default:
			return failure("unsupportedType", "transaction type not supported");
	}
}

function decodePlain(bytes: Buffer, type: 0 | 1 | 2 | 4, recovered: Recovered | null): Decoded {
	const reader = new RlpReader(bytes, type === 0 ? 0 : 1);
	const payload = readPayload(reader, type);
	reader.close();
	if (reader.fault !== null) return failure("rlp", `rlp: ${reader.fault}`);
	return finish(bytes, payload, { hashed: bytes, sidecar: null, recovered });
}

/** The network form: the payload and its sidecar in one list. https://eips.ethereum.org/EIPS/eip-4844#networking */
function decodeBlob(bytes: Buffer, recovered: Recovered | null): Decoded {
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
	return finish(bytes, payload, { hashed, sidecar: summary, recovered });
}

/** A blob transaction without its blobs, as in blocks: no builder could include it. */
function rejectBareBlob(bytes: Buffer): Decoded {
	const reader = new RlpReader(bytes, 1);
	readPayload(reader, 3);
	reader.close();
	if (reader.fault !== null) return failure("rlp", `rlp: ${reader.fault}`);
	return failure("missingBlobSidecar", "missing blob sidecar");
}

/** Checks the signature and makes the result for a well-formed payload. */
function finish(
	raw: Buffer,
	payload: ReadPayload,
	{
		hashed,
		sidecar,
		recovered,
	}: {
		readonly hashed: Buffer;
		readonly sidecar: SidecarSummary | null;
		readonly recovered: Recovered | null;
	},
): Decoded {
	const { fields } = payload;
	const { type, v, yParity, r, s } = fields;
	if (!isCanonicalSignature(r, s)) return INVALID_SIGNATURE;
	if (type === 0 && (v <= 1n || v === 27n || v === 28n)) {
		return failure("notReplayProtected", "only replay-protected (EIP-155) transactions allowed over RPC");
	}
	if (type === 0 ? v < 35n : v > 1n) return INVALID_SIGNATURE;
	const from = recovered?.from ?? recoverAddress(signingHash(raw, payload), yParity, r, s);
	if (from === null) return INVALID_SIGNATURE;
	// For a blob transaction `hashed` is the payload without its type byte.
	const hash =
		recovered?.hash ?? bytesToHex(sidecar === null ? keccak256(hashed) : keccak256(BLOB_TYPE_BYTE, hashed));
	// One literal: a spread costs 6 µs, and properties that are added later make every read of the object slow.
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

/** Whether the transaction is a plain transfer to its own sender: no data, blobs or authorizations. */
export function isSelfTransfer({
	type,
	from,
	to,
	data,
}: Pick<DecodedTransaction, "type" | "from" | "to" | "data">): boolean {
	return to === from && data.length === 0 && type <= 2;
}

/**
 * The account that signed an EIP-7702 authorization, and whose code it sets. Null for an invalid signature: the chain skips
 * such an entry, and its transaction stays valid. The first time this takes 50 µs.
 */
export function senderOfAuthorization(authorization: Authorization): string | null {
	const known = authorization.authority;
	if (known !== undefined) return known;
	const value = recoverAuthority(authorization);
	// Not enumerable: it is no field of the authorization, and no copy or JSON of it has it.
	Object.defineProperty(authorization, "authority", { value });
	return value;
}

function recoverAuthority(authorization: Authorization): string | null {
	const { chainId, address, nonce, yParity, r, s } = authorization;
	if (yParity !== 0 && yParity !== 1) return null;
	const message = rlpEncode([uintToBytes(chainId), Buffer.from(address.slice(2), "hex"), uintToBytes(nonce)]);
	return recoverAddress(keccak256(AUTHORIZATION_MAGIC, message), yParity, r, s);
}
