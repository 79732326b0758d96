// The typed data (EIP-712) that keys sign for Leeward, the recovery of its signer, and the relay's
// own signatures. Each takes half a millisecond, so no submission requires one.
// https://eips.ethereum.org/EIPS/eip-712

import { TypedDataEncoder } from "ethers/hash";
import { bytesToHex, hexToBytes } from "./hex.ts";
import { keyBytes, recoverHex, signHash } from "./signatures.ts";

/**
 * `bundles`: all of the signer's bundles and statistics. `refunds`: the signer's refunds.
 * `receipts`: the receipts of transactions that the signer sent.
 */
export type ReadScope = "bundles" | "refunds" | "receipts";

/** The structs of typed data, the primary type among them. */
export type TypedStructs = Record<string, { name: string; type: string }[]>;

/** The read access that a signer grants to everybody who has the signature. */
export interface ReadGrant {
	/** Name of the relay: its host, with the port if any. */
	readonly relay: string;
	readonly scope: ReadScope;
	/** Seconds since the epoch, as decimal digits. */
	readonly until: string;
}

const READ = {
	Read: [
		{ name: "relay", type: "string" },
		{ name: "scope", type: "string" },
		{ name: "until", type: "uint256" },
	],
};

/**
 * The lower-case address that has signed `grant` for this chain; null for an invalid signature (65
 * bytes as 0x hex).
 */
export function readSigner(chainId: bigint, grant: ReadGrant, signature: string): string | null {
	return signer(chainId, READ, { ...grant }, signature);
}

const CANCEL = { Cancel: [{ name: "transaction", type: "bytes32" }] };

/**
 * The lower-case address that has signed the cancel of a transaction by its hash. Null as for
 * {@link readSigner}.
 */
export function cancelledBy(chainId: bigint, transaction: string, signature: string): string | null {
	return signer(chainId, CANCEL, { transaction }, signature);
}

/** Signs `value` for this chain with a key of `0x` and 64 digits. Returns 65 bytes as 0x hex. */
export function signTyped(
	chainId: bigint,
	types: TypedStructs,
	value: Record<string, unknown>,
	key: string,
): string {
	const { signature, recid } = signHash(digestOf(chainId, types, value), keyBytes(key));
	return `${bytesToHex(signature)}${recid === 0 ? "1b" : "1c"}`;
}

function signer(
	chainId: bigint,
	types: TypedStructs,
	value: Record<string, unknown>,
	signature: string,
): string | null {
	return recoverHex(digestOf(chainId, types, value), signature);
}

function digestOf(chainId: bigint, types: TypedStructs, value: Record<string, unknown>): Buffer {
	const digest = TypedDataEncoder.hash({ name: "Leeward", version: "1", chainId }, types, value);
	return hexToBytes(digest) as Buffer;
}
