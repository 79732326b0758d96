// Makes transactions as bytes, with the tests' own RLP encoder, which can also write invalid forms,
// and native signing: one valid transaction of each type, parts of which a test may replace, and
// random ones. It shares no code with what it tests.

import { createHash } from "node:crypto";
import secp256k1 from "secp256k1";
import { type Hex, keccak256 } from "viem";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { type Authorization, entriesOf } from "../../shared/ethereum/transactionFields.ts";
import { SeededRandom } from "./seededRandom.ts";

/** Bytes that go into a list unchanged, without an RLP header, for non-canonical forms. */
interface Verbatim {
	readonly verbatim: Buffer;
}
export type RawItem = Buffer | bigint | Verbatim | readonly RawItem[];

export const verbatim = (hex: string): Verbatim => ({ verbatim: Buffer.from(hex, "hex") });
const fromHex = (hex: string): Buffer => Buffer.from(hex.replace(/^0x/, ""), "hex");

export function encode(item: RawItem): Buffer {
	if (typeof item === "bigint") return encode(integer(item));
	if (Buffer.isBuffer(item)) {
		const alone = item.length === 1 && (item[0] as number) < 0x80;
		return alone ? item : Buffer.concat([head(0x80, item.length), item]);
	}
	if ("verbatim" in item) return item.verbatim;
	const content = Buffer.concat(item.map(encode));
	return Buffer.concat([head(0xc0, content.length), content]);
}

/** The shortest bytes of a number. */
function integer(value: bigint): Buffer {
	if (value === 0n) return Buffer.alloc(0);
	const hex = value.toString(16);
	return Buffer.from(hex.length % 2 === 1 ? `0${hex}` : hex, "hex");
}

function head(base: number, length: number): Buffer {
	if (length < 56) return Buffer.from([base + length]);
	const bytes = integer(BigInt(length));
	return Buffer.concat([Buffer.from([base + 55 + bytes.length]), bytes]);
}

interface Signature {
	readonly yParity: bigint;
	readonly r: bigint;
	readonly s: bigint;
}

/** Signs the Keccak-256 hash of `message`. */
function signBytes(message: Buffer, key: Buffer): Signature {
	const hash = fromHex(keccak256(`0x${message.toString("hex")}` as Hex));
	const { signature, recid } = secp256k1.ecdsaSign(hash, key);
	const hex = Buffer.from(signature).toString("hex");
	return { yParity: BigInt(recid), r: BigInt(`0x${hex.slice(0, 64)}`), s: BigInt(`0x${hex.slice(64)}`) };
}

/** Signs a transaction of type 0 from its six fields and a chain id. */
function signLegacy(fields: readonly RawItem[], chainId: bigint, key: Buffer): RawItem[] {
	const { yParity, r, s } = signBytes(encode([...fields, chainId, 0n, 0n]), key);
	return [...fields, chainId * 2n + 35n + yParity, r, s];
}

/** The list of a signed typed transaction; the type byte is put before it by {@link typed}. */
function signTyped(type: number, fields: readonly RawItem[], key: Buffer): RawItem[] {
	const { yParity, r, s } = signBytes(typed(type, fields), key);
	return [...fields, yParity, r, s];
}

function typed(type: number, list: RawItem): Buffer {
	return Buffer.concat([Buffer.from([type]), encode(list)]);
}

export type Type = 0 | 1 | 2 | 3 | 4;
export type FieldName =
	| ("chainId" | "nonce" | "gasPrice" | "maxPriorityFeePerGas" | "maxFeePerGas" | "gasLimit" | "to" | "value")
	| ("data" | "accessList" | "maxFeePerBlobGas" | "blobVersionedHashes" | "authorizationList");
type SignatureName = "v" | "yParity" | "r" | "s";

const random = new SeededRandom(0xba5e);
const KEY = random.bytes(32).fill(0x42, 0, 1);
export const ADDRESS = random.bytes(20);
export const STORAGE_KEY = random.bytes(32);
const CHAIN_ID = 31_337n;

/** A fake sidecar: its KZG commitments are invalid, but the versioned hashes match them. */
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
	/** Fields replaced before signing, so the signature is valid. */
	readonly fields?: Partial<Record<FieldName, RawItem>>;
	/** Parts of the signature replaced after signing. */
	readonly signature?: Partial<Record<SignatureName, RawItem>>;
	/** Applied to the list of fields before signing. */
	readonly list?: (list: RawItem[]) => RawItem[];
	/** Applied to the signed list. */
	readonly signed?: (list: RawItem[]) => RawItem;
	/** Applied to what follows the payload of a blob transaction; by default the older sidecar. */
	readonly sidecar?: readonly RawItem[];
}

/**
 * The signed fields of a transaction of `type`, changed by `spoiling`: the list that {@link
 * transactionBytes} encodes.
 */
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

/** The whole transaction; a blob transaction with its sidecar (network form). */
export function transactionBytes(type: Type, spoiling: Spoiling = {}): Buffer {
	const list = signedList(type, spoiling);
	if (type === 0) return encode(list);
	return typed(type, type === 3 ? [list, ...(spoiling.sidecar ?? sidecarV0())] : list);
}

/**
 * A blob transaction without a sidecar, as in blocks, or with any other content after the type
 * byte.
 */
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

interface RandomTransaction {
	readonly type: 0 | 1 | 2 | 4;
	readonly chainId: bigint;
	readonly nonce: bigint;
	readonly gasLimit: bigint;
	readonly to: `0x${string}` | null;
	readonly value: bigint;
	readonly data: `0x${string}`;
	readonly accessList: readonly { address: `0x${string}`; storageKeys: `0x${string}`[] }[];
	/** The gas price of types 0 and 1. */
	readonly maxFeePerGas: bigint;
	readonly maxPriorityFeePerGas: bigint;
	readonly authorizationList: readonly (Authorization & { readonly address: `0x${string}` })[];
}

const DATA_BYTES = [0, 0, 1, 4, 32, 55, 56, 68, 255, 256, 1_000] as const;

export function randomTransaction(random: SeededRandom, type: RandomTransaction["type"]): RandomTransaction {
	const maxFeePerGas = random.uint(12);
	return {
		type,
		// Never zero, which ethers and viem read as "no chain id".
		chainId: random.uint(4) + 1n,
		nonce: random.uint(6),
		gasLimit: random.uint(8),
		to: type !== 4 && random.below(5) === 0 ? null : hex(random, 20),
		value: random.uint(31),
		data: hex(random, random.below(50) === 0 ? 70_000 : random.pick(DATA_BYTES)),
		accessList: type === 0 ? [] : randomAccessList(random),
		maxFeePerGas,
		maxPriorityFeePerGas: type <= 1 ? maxFeePerGas : maxFeePerGas / BigInt(1 + random.below(9)),
		authorizationList: type === 4 ? many(1 + random.below(3), () => randomAuthorization(random)) : [],
	};
}

/** The fields that are signed; of a legacy transaction without its chain id. */
function fieldsOf(tx: RandomTransaction | DecodedTransaction): RawItem[] {
	const to = tx.to === null ? Buffer.alloc(0) : fromHex(tx.to);
	const data = typeof tx.data === "string" ? fromHex(tx.data) : tx.data;
	const rest: RawItem[] = [tx.gasLimit, to, tx.value, data];
	if (tx.type === 0) return [tx.nonce, tx.maxFeePerGas, ...rest];
	const fees = tx.type === 1 ? [tx.maxFeePerGas] : [tx.maxPriorityFeePerGas, tx.maxFeePerGas];
	const entries = "bytes" in tx.accessList ? entriesOf(tx.accessList) : tx.accessList;
	const accessList = entries.map((entry) => [fromHex(entry.address), entry.storageKeys.map(fromHex)]);
	const fields: RawItem[] = [tx.chainId, tx.nonce, ...fees, ...rest, accessList];
	if (tx.type !== 4) return fields;
	const tuples = tx.authorizationList.map(({ chainId, address, nonce, yParity, r, s }): RawItem[] => [
		...[chainId, fromHex(address), nonce, BigInt(yParity), r, s],
	]);
	return [...fields, tuples];
}

/** The signed bytes, made by the tests' own encoder. */
export function signedBytes(tx: RandomTransaction, key: Buffer): Buffer {
	const fields = fieldsOf(tx);
	return tx.type === 0
		? encode(signLegacy(fields, tx.chainId, key))
		: typed(tx.type, signTyped(tx.type, fields, key));
}

/**
 * The canonical encoding of a decoded transaction (not a blob transaction), made by the tests' own
 * encoder.
 */
export function encodeDecoded(tx: DecodedTransaction): Buffer {
	const list: RawItem[] = [...fieldsOf(tx), tx.v, tx.r, tx.s];
	return tx.type === 0 ? encode(list) : typed(tx.type, list);
}

/** A random key; its first byte is not 0xff, so it is below the curve's order. */
export function randomKey(random: SeededRandom): Buffer {
	const key = random.bytes(32);
	key[0] = 1 + random.below(200);
	return key;
}

function randomAccessList(random: SeededRandom): RandomTransaction["accessList"] {
	const length = random.below(30) === 0 ? 120 : random.pick([0, 0, 1, 2, 5]);
	return many(length, () => ({
		address: hex(random, 20),
		storageKeys: many(random.pick([0, 1, 1, 3, 9]), () => hex(random, 32)),
	}));
}

function randomAuthorization(random: SeededRandom): Authorization & { address: `0x${string}` } {
	const chainId = random.uint(4);
	const address = hex(random, 20);
	const nonce = random.uint(6);
	const message = typed(0x05, [chainId, fromHex(address), nonce]);
	const { yParity, r, s } = signBytes(message, randomKey(random));
	return { chainId, address, nonce, yParity: Number(yParity), r, s };
}

function many<T>(length: number, make: () => T): T[] {
	return Array.from({ length }, make);
}

function hex(random: SeededRandom, length: number): `0x${string}` {
	return `0x${random.bytes(length).toString("hex")}`;
}
