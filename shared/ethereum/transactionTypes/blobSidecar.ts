// The sidecar of a blob transaction in network form: a reader behind the payload comes in, and counts and
// commitments go out, checked against the payload's hashes. Blobs are measured, not kept, and KZG proofs are not
// verified: the node and the builders do, and a bad one costs its sender alone.
// https://eips.ethereum.org/EIPS/eip-4844#networking and https://eips.ethereum.org/EIPS/eip-7594#networking

import { createHash } from "node:crypto";
import type { RlpReader } from "../rlp.ts";

const BLOB_BYTES = 131_072;
const COMMITMENT_BYTES = 48;
const PROOF_BYTES = 48;
/** The first byte of a versioned hash whose rest is a KZG commitment's SHA-256. */
const KZG_VERSION = "01";
/** A blob, extended for sampling, has 128 cells with a proof each (EIP-7594). */
const CELLS_PER_BLOB = 128;

/** A sidecar as it was read. */
export interface Sidecar {
	/** Null in the older form, which has none. */
	readonly wrapperVersion: bigint | null;
	readonly blobCount: number;
	/** Views of the input. */
	readonly commitments: readonly Buffer[];
	readonly proofCount: number;
}

/** Reads what follows the payload: `blobs, commitments, proofs`, with a version byte before them since EIP-7594. */
export function readSidecar(reader: RlpReader): Sidecar {
	const wrapperVersion = reader.nextIsList() ? null : reader.uint("wrapperVersion", 1);
	const blobCount = readItems(reader, "blobs", BLOB_BYTES).length;
	const commitments = readItems(reader, "commitments", COMMITMENT_BYTES);
	const proofCount = readItems(reader, "proofs", PROOF_BYTES).length;
	return { wrapperVersion, blobCount, commitments, proofCount };
}

/** What is wrong between a sidecar and its payload's versioned hashes, or null. */
export function findSidecarProblem(sidecar: Sidecar, versionedHashes: readonly string[]): string | null {
	const { wrapperVersion, blobCount, commitments, proofCount } = sidecar;
	if (wrapperVersion !== null && wrapperVersion !== 1n) return "unknown wrapper version";
	const hashCount = versionedHashes.length;
	if (hashCount === 0) return "missing blob hashes";
	if (blobCount !== hashCount) return `${blobCount} blobs for ${hashCount} blob hashes`;
	if (commitments.length !== hashCount)
		return `${commitments.length} commitments for ${hashCount} blob hashes`;
	const proofsWanted = wrapperVersion === null ? blobCount : blobCount * CELLS_PER_BLOB;
	if (proofCount !== proofsWanted) return `${proofCount} proofs, expected ${proofsWanted}`;
	for (const [index, commitment] of commitments.entries()) {
		const hash = versionedHashes[index];
		if (!hash?.startsWith(`0x${KZG_VERSION}`)) return `blob hash ${index} has an unknown version`;
		const digest = createHash("sha256").update(commitment).digest("hex");
		if (hash.slice(4) !== digest.slice(2)) return `blob hash ${index} does not match its commitment`;
	}
	return null;
}

function readItems(reader: RlpReader, field: string, itemBytes: number): readonly Buffer[] {
	const outerEnd = reader.openList(field);
	const items: Buffer[] = [];
	while (reader.hasMore()) items.push(reader.fixed(field, itemBytes));
	reader.closeList(field, outerEnd);
	return items;
}
