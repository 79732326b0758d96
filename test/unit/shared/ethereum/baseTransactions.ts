// One valid transaction of each type, which a test may damage before or after signing, as bytes.

import { createHash } from "node:crypto";
import { encode, type RawItem, signLegacy, signTyped, typed } from "./rawEncoding.ts";
import { seededRandom } from "./seededRandom.ts";

export type Type = 0 | 1 | 2 | 3 | 4;
export type FieldName =
	| ("chainId" | "nonce" | "gasPrice" | "maxPriorityFeePerGas" | "maxFeePerGas" | "gasLimit" | "to" | "value")
	| ("data" | "accessList" | "maxFeePerBlobGas" | "blobVersionedHashes" | "authorizationList");
export type SignatureName = "v" | "yParity" | "r" | "s";

const random = seededRandom(0xba5e);
export const KEY = random.bytes(32).fill(0x42, 0, 1);
export const ADDRESS = random.bytes(20);
export const STORAGE_KEY = random.bytes(32);
export const CHAIN_ID = 31_337n;

/** A made-up sidecar: no valid KZG commitments, but hashes that fit. */
export const BLOB = Buffer.alloc(131_072, 1);
export const COMMITMENTS = [random.bytes(48), random.bytes(48)];
export const PROOF = random.bytes(48);
export const VERSIONED_HASHES = COMMITMENTS.map((commitment) => {
	const hash = createHash("sha256").update(commitment).digest();
	hash[0] = 1;
	return hash;
});

/** A tuple with a signature of the right size, which need not be anyone's. */
export const AUTHORIZATION: readonly RawItem[] = [1n, ADDRESS, 7n, 1n, 0x1234n, 0x5678n];

const HEAD = ["chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", "gasLimit", "to", "value"] as const;
export const FIELD_NAMES: Record<Type, readonly FieldName[]> = {
	0: ["nonce", "gasPrice", "gasLimit", "to", "value", "data"],
	1: ["chainId", "nonce", "gasPrice", "gasLimit", "to", "value", "data", "accessList"],
	2: [...HEAD, "data", "accessList"],
	3: [...HEAD, "data", "accessList", "maxFeePerBlobGas", "blobVersionedHashes"],
	4: [...HEAD, "data", "accessList", "authorizationList"],
};

const VALUES: Record<FieldName, RawItem> = {
	chainId: CHAIN_ID,
	nonce: 9n,
	gasPrice: 20_000_000_000n,
	maxPriorityFeePerGas: 1_000_000_000n,
	maxFeePerGas: 20_000_000_000n,
	gasLimit: 21_000n,
	to: ADDRESS,
	value: 10n ** 18n,
	data: Buffer.from("c0ffee", "hex"),
	accessList: [[ADDRESS, [STORAGE_KEY]]],
	maxFeePerBlobGas: 3_000_000_000n,
	blobVersionedHashes: VERSIONED_HASHES,
	authorizationList: [AUTHORIZATION],
};

export interface Spoiling {
	/** Replaced before signing: the signature fits the bytes as they are then. */
	readonly fields?: Partial<Record<FieldName, RawItem>>;
	/** Replaced after signing. */
	readonly signature?: Partial<Record<SignatureName, RawItem>>;
	/** Applied to the list of fields before signing. */
	readonly list?: (list: RawItem[]) => RawItem[];
	/** Applied to the signed list. */
	readonly signed?: (list: RawItem[]) => RawItem;
	/** Applied to what follows the payload of a blob transaction; by default the older sidecar. */
	readonly sidecar?: readonly RawItem[];
}

/** The fields of `type`, signed, spoiled as asked, as the list that {@link transactionBytes} encodes. */
function signedList(type: Type, spoiling: Spoiling): RawItem {
	const named = FIELD_NAMES[type].map((name) => spoiling.fields?.[name] ?? VALUES[name]);
	const fields = spoiling.list?.(named) ?? named;
	const list = type === 0 ? signLegacy(fields, CHAIN_ID, KEY) : signTyped(type, fields, KEY);
	const names: SignatureName[] = [type === 0 ? "v" : "yParity", "r", "s"];
	for (const [index, name] of names.entries()) {
		const other = spoiling.signature?.[name];
		if (other !== undefined) list[fields.length + index] = other;
	}
	return spoiling.signed?.(list) ?? list;
}

/** The whole transaction, a blob transaction in network form. */
export function transactionBytes(type: Type, spoiling: Spoiling = {}): Buffer {
	const list = signedList(type, spoiling);
	if (type === 0) return encode(list);
	return typed(type, type === 3 ? [list, ...(spoiling.sidecar ?? sidecarV0())] : list);
}

/** A blob transaction as blocks have it, or with any other content behind the type byte. */
export function bareBlobBytes(spoiling: Spoiling = {}): Buffer {
	return typed(3, signedList(3, spoiling));
}

export function sidecarV0(count = 2): RawItem[] {
	return [times(count, BLOB), COMMITMENTS.slice(0, count), times(count, PROOF)];
}

export function sidecarV1(count = 2): RawItem[] {
	return [1n, times(count, BLOB), COMMITMENTS.slice(0, count), times(count * 128, PROOF)];
}

export function times(count: number, item: RawItem): RawItem[] {
	return Array.from({ length: count }, () => item);
}
