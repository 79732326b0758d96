// Typed transactions (EIP-2718), types 1 to 4: a reader behind the type byte comes in, the fields go out. What all
// four have is read in one place, in the order of the lists. Signature values are read and not judged here.

import { keccak256 } from "../keccak.ts";
import { type RlpReader, rlpListHeader } from "../rlp.ts";
import type { AccessListEntry, Authorization, TransactionFields } from "../transaction.ts";
import type { ReadPayload } from "./legacy.ts";

/**
 * Reads the payload of one typed transaction, for a blob transaction without its sidecar. Where the reader has a
 * fault afterwards, the result means nothing.
 */
export function readTypedPayload(reader: RlpReader, type: 1 | 2 | 3 | 4): ReadPayload {
	const outerEnd = reader.openList("transaction");
	const signedFrom = reader.offset;
	const chainId = reader.uint("chainId", 32);
	const nonce = reader.uint("nonce", 8);
	const gasPrice = type === 1 ? reader.uint("gasPrice", 32) : null;
	const maxPriorityFeePerGas = gasPrice ?? reader.uint("maxPriorityFeePerGas", 32);
	const maxFeePerGas = gasPrice ?? reader.uint("maxFeePerGas", 32);
	const gasLimit = reader.uint("gasLimit", 8);
	const to = readTo(reader, type <= 2);
	const value = reader.uint("value", 32);
	const data = reader.string("data");
	const accessList = readAccessList(reader);
	const maxFeePerBlobGas = type === 3 ? reader.uint("maxFeePerBlobGas", 32) : null;
	const blobVersionedHashes = type === 3 ? readVersionedHashes(reader) : [];
	const authorizationList = type === 4 ? readAuthorizationList(reader) : [];
	const signedTo = reader.offset;
	const v = reader.uint("yParity", 32);
	const r = reader.uint("r", 32);
	const s = reader.uint("s", 32);
	reader.closeList("transaction", outerEnd);
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
		yParity: v === 1n ? 1 : 0,
		r,
		s,
	};
	return { fields, signedFrom, signedTo };
}

/** The hash that the sender signed: the type and a list of all fields before the signature, as they are in the bytes. */
export function typedSigningHash(bytes: Buffer, payload: ReadPayload): Buffer {
	const signed = bytes.subarray(payload.signedFrom, payload.signedTo);
	return keccak256(Buffer.from([payload.fields.type]), rlpListHeader(signed.length), signed);
}

/** The called address in lower case, or null where the field is empty, which only some types may have. */
export function readTo(reader: RlpReader, mayBeEmpty: boolean): string | null {
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

function readVersionedHashes(reader: RlpReader): readonly string[] {
	return readHexList(reader, "blobVersionedHashes", 32);
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
