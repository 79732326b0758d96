// The typed data (EIP-712) that keys sign for Leeward, and the recovery of its signer. That takes
// half a millisecond, so no submission requires it. https://eips.ethereum.org/EIPS/eip-712

import { TypedDataEncoder } from "ethers/hash";
import { hexToBytes } from "./hex.ts";
import { recoverHex } from "./signatures.ts";

/** `bundles`: all of the signer's bundles and statistics. `refunds`: the signer's refunds. */
export type ReadScope = "bundles" | "refunds";

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

function signer(
	chainId: bigint,
	types: Record<string, { name: string; type: string }[]>,
	value: Record<string, unknown>,
	signature: string,
): string | null {
	const digest = TypedDataEncoder.hash({ name: "Leeward", version: "1", chainId }, types, value);
	const bytes = hexToBytes(digest);
	return bytes && recoverHex(bytes, signature);
}
