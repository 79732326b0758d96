// The sidecar of a blob transaction: its blobs with their commitments and proofs. Reads it, finds
// contradictions to its transaction, and rewrites it with cell proofs. blobProofs.ts checks the KZG
// proofs themselves.

import { createHash } from "node:crypto";
import { asBuffer } from "./hex.ts";
import { RlpReader, rlpEncode, rlpListHeader } from "./rlp.ts";

/**
 * Version 0 has one proof per blob (EIP-4844), version 1 has 128 cell proofs per blob (EIP-7594).
 */
export type SidecarVersion = 0 | 1;

export interface Sidecar {
	/** Null in the form of EIP-4844. */
	readonly wrapperVersion: bigint | null;
	/** All are views of the input. */
	readonly blobs: readonly Buffer[];
	readonly commitments: readonly Buffer[];
	readonly proofs: readonly Buffer[];
}

/** Each cell has a proof (EIP-7594). */
export const CELLS_PER_BLOB = 128;

export const BLOB_BYTES = 131_072;
const COMMITMENT_BYTES = 48;
const PROOF_BYTES = 48;
/** The version of a blob hash that is the SHA-256 of a KZG commitment. */
const KZG_VERSION = "01";

/**
 * Reads `blobs, commitments, proofs` after the payload, with a version byte before them since
 * EIP-7594.
 */
export function readSidecar(reader: RlpReader): Sidecar {
	const wrapperVersion = reader.nextIsList() ? null : reader.uint("wrapperVersion", 1);
	const blobs = readItems(reader, "blobs", BLOB_BYTES);
	const commitments = readItems(reader, "commitments", COMMITMENT_BYTES);
	const proofs = readItems(reader, "proofs", PROOF_BYTES);
	return { wrapperVersion, blobs, commitments, proofs };
}

function readItems(reader: RlpReader, field: string, itemBytes: number): readonly Buffer[] {
	return reader.list(field, () => reader.fixed(field, itemBytes));
}

/** The contradiction between a sidecar and its payload's versioned hashes, or null. */
export function findSidecarProblem(sidecar: Sidecar, versionedHashes: readonly string[]): string | null {
	const { wrapperVersion, blobs, commitments, proofs } = sidecar;
	if (wrapperVersion !== null && wrapperVersion !== 1n) return "unknown wrapper version";
	const hashCount = versionedHashes.length;
	if (hashCount === 0) return "missing blob hashes";
	if (blobs.length !== hashCount) return `${blobs.length} blobs for ${hashCount} blob hashes`;
	if (commitments.length !== hashCount)
		return `${commitments.length} commitments for ${hashCount} blob hashes`;
	const proofsWanted = wrapperVersion === null ? hashCount : hashCount * CELLS_PER_BLOB;
	if (proofs.length !== proofsWanted) return `${proofs.length} proofs, expected ${proofsWanted}`;
	for (const [index, commitment] of commitments.entries()) {
		const hash = versionedHashes[index];
		if (!hash?.startsWith(`0x${KZG_VERSION}`)) return `blob hash ${index} has an unknown version`;
		const digest = createHash("sha256").update(commitment).digest("hex");
		if (hash.slice(4) !== digest.slice(2)) return `blob hash ${index} does not match its commitment`;
	}
	return null;
}

/** The sidecar of a decoded blob transaction's bytes. */
export function sidecarOf(raw: Buffer): Sidecar {
	const reader = new RlpReader(raw, 1);
	reader.openList("blob transaction");
	reader.skip("transaction");
	return readSidecar(reader);
}

/**
 * Version and number of blobs of raw bytes, without reading them; null if they are of another type
 * or malformed.
 */
export function sidecarShape(
	raw: Uint8Array,
): { readonly version: SidecarVersion; readonly blobCount: number } | null {
	if (raw[0] !== 3) return null;
	const reader = new RlpReader(asBuffer(raw), 1);
	reader.openList("blob transaction");
	reader.skip("transaction");
	const version = reader.nextIsList() ? 0 : 1;
	if (version === 1) reader.skip("wrapperVersion");
	reader.openList("blobs");
	let blobCount = 0;
	for (; reader.hasMore(); blobCount++) reader.skip("blob");
	return reader.fault === null ? { version, blobCount } : null;
}

/**
 * The bytes of a decoded blob transaction of version 0 after its proofs are replaced by these cell
 * proofs, of all blobs in order.
 */
export function withCellProofs(raw: Buffer, cellProofs: readonly Uint8Array[]): Buffer {
	const reader = new RlpReader(raw, 1);
	reader.openList("blob transaction");
	const from = reader.offset;
	reader.skip("transaction");
	const blobs = reader.offset;
	reader.skip("blobs");
	reader.skip("commitments");
	const proofs = rlpEncode(cellProofs);
	const parts = [raw.subarray(from, blobs), WRAPPER_VERSION, raw.subarray(blobs, reader.offset), proofs];
	const length = parts.reduce((sum, part) => sum + part.length, 0);
	return Buffer.concat([raw.subarray(0, 1), rlpListHeader(length), ...parts]);
}

const WRAPPER_VERSION = Buffer.from([1]);
