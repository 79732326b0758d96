// The tests' own RLP encoder, which can also write what no proper encoder would, and signs natively. It shares no
// code with what it tests.

import secp256k1 from "secp256k1";
import { type Hex, keccak256 } from "viem";

/** Bytes that are put into a list as they are, without a header: for non-canonical forms. */
export interface Verbatim {
	readonly verbatim: Buffer;
}
export type RawItem = Buffer | bigint | Verbatim | readonly RawItem[];

export const verbatim = (hex: string): Verbatim => ({ verbatim: Buffer.from(hex, "hex") });
export const fromHex = (hex: string): Buffer => Buffer.from(hex.replace(/^0x/, ""), "hex");

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
export function integer(value: bigint): Buffer {
	if (value === 0n) return Buffer.alloc(0);
	const hex = value.toString(16);
	return Buffer.from(hex.length % 2 === 1 ? `0${hex}` : hex, "hex");
}

function head(base: number, length: number): Buffer {
	if (length < 56) return Buffer.from([base + length]);
	const bytes = integer(BigInt(length));
	return Buffer.concat([Buffer.from([base + 55 + bytes.length]), bytes]);
}

export interface Signature {
	readonly yParity: bigint;
	readonly r: bigint;
	readonly s: bigint;
}

/** Signs the Keccak-256 hash of `message`. */
export function signBytes(message: Buffer, key: Buffer): Signature {
	const hash = fromHex(keccak256(`0x${message.toString("hex")}` as Hex));
	const { signature, recid } = secp256k1.ecdsaSign(hash, key);
	const hex = Buffer.from(signature).toString("hex");
	return { yParity: BigInt(recid), r: BigInt(`0x${hex.slice(0, 64)}`), s: BigInt(`0x${hex.slice(64)}`) };
}

/** Signs a transaction of type 0 from its six fields and a chain id. */
export function signLegacy(fields: readonly RawItem[], chainId: bigint, key: Buffer): RawItem[] {
	const { yParity, r, s } = signBytes(encode([...fields, chainId, 0n, 0n]), key);
	return [...fields, chainId * 2n + 35n + yParity, r, s];
}

/** The list of a signed typed transaction; the type byte is put before it by {@link typed}. */
export function signTyped(type: number, fields: readonly RawItem[], key: Buffer): RawItem[] {
	const { yParity, r, s } = signBytes(typed(type, fields), key);
	return [...fields, yParity, r, s];
}

export function typed(type: number, list: RawItem): Buffer {
	return Buffer.concat([Buffer.from([type]), encode(list)]);
}
