// Blobs with content, by the KZG library itself: their commitments, a proof for each, and cell proofs. Blobs of zeros, as the
// transaction factory has them by itself, cost next to nothing to prove.

import { DasContextJs } from "@crate-crypto/node-eth-kzg";
import { SeededRandom } from "./seededRandom.ts";
import type { TestSidecar } from "./txFactory.ts";

const BLOB_BYTES = 131_072;
const WORD_BYTES = 32;

/** Of the same blobs: with a proof each (EIP-4844), and with 128 each (EIP-7594). */
export interface RealBlobs {
	readonly v0: TestSidecar;
	readonly v1: TestSidecar;
}

let library: DasContextJs | null = null;

/** The library. The first call in a process takes two seconds. */
export function blobMaker() {
	library ??= DasContextJs.create({ usePrecomp: false });
	const kzg = library;
	return {
		kzg,
		/** `count` blobs, the same for a seed in each run. Takes half a second each. */
		make(seed: number, count: number): RealBlobs {
			const random = new SeededRandom(seed);
			const blobs = Array.from({ length: count }, () => randomBlob(random));
			const commitments = blobs.map((blob) => kzg.blobToKzgCommitment(blob));
			const proofs = blobs.map((blob, i) => kzg.computeBlobKzgProof(blob, commitments[i] as Uint8Array));
			const cellProofs = blobs.flatMap((blob) => kzg.computeCellsAndKzgProofs(blob).proofs);
			return { v0: { blobs, commitments, proofs }, v1: { blobs, commitments, proofs: cellProofs } };
		},
	};
}

/** Each word is below the field's modulus. */
function randomBlob(random: SeededRandom): Uint8Array {
	const blob = new Uint8Array(random.bytes(BLOB_BYTES));
	for (let at = 0; at < BLOB_BYTES; at += WORD_BYTES) blob[at] = 0;
	return blob;
}

type Faulty = readonly [version: 0 | 1, sidecar: TestSidecar];

/** Two blobs whose sidecar proves nothing; the hashes that are signed are those of the commitments. */
const FAULTY: Readonly<Record<string, (real: RealBlobs) => Faulty>> = {
	"the proofs of two blobs, swapped": ({ v0 }) => [0, { ...v0, proofs: v0.proofs.toReversed() }],
	"the commitments of two blobs, swapped": ({ v0 }) => [
		0,
		{ ...v0, commitments: v0.commitments.toReversed() },
	],
	"two blobs, swapped": ({ v0 }) => [0, { ...v0, blobs: v0.blobs.toReversed() }],
	"a blob with another byte": ({ v0 }) => [0, withByte(v0, 77, 1 + (v0.blobs[1]?.[77] ?? 0))],
	"a blob with a word that is no number of the field": ({ v0 }) => [0, withByte(v0, 32, 0xff)],
	"a proof that is no point": ({ v0 }) => [0, { ...v0, proofs: v0.proofs.with(1, Buffer.alloc(48)) }],
	"a commitment that is no point": ({ v0 }) => [
		0,
		{ ...v0, commitments: v0.commitments.with(1, Buffer.alloc(48, 0xff)) },
	],
	"the cell proofs of two blobs, swapped": ({ v1 }) => [
		1,
		{ ...v1, proofs: [...v1.proofs.slice(128), ...v1.proofs.slice(0, 128)] },
	],
	"the commitments of two blobs with cell proofs, swapped": ({ v1 }) => [
		1,
		{ ...v1, commitments: v1.commitments.toReversed() },
	],
	"the proofs of two cells, swapped": ({ v1 }) => [
		1,
		{ ...v1, proofs: v1.proofs.with(200, at(v1.proofs, 201)).with(201, at(v1.proofs, 200)) },
	],
	"the last cell's proof, of another cell": ({ v1 }) => [
		1,
		{ ...v1, proofs: v1.proofs.with(255, at(v1.proofs, 0)) },
	],
	"cell proofs of zeros": ({ v1 }) => [1, { ...v1, proofs: v1.proofs.map(() => INFINITY_POINT) }],
	"a blob with another byte and cell proofs": ({ v1 }) => [1, withByte(v1, 77, 1 + (v1.blobs[1]?.[77] ?? 0))],
};
export const FAULTY_TITLES = Object.keys(FAULTY);

export function faultySidecar(title: string, real: RealBlobs): Faulty {
	const make = FAULTY[title];
	if (make === undefined) throw new RangeError(`nothing is called ${title}`);
	return make(real);
}

const INFINITY_POINT = Buffer.concat([Buffer.from([0xc0]), Buffer.alloc(47)]);

function at(items: readonly Uint8Array[], i: number): Uint8Array {
	return items[i] as Uint8Array;
}

/** The second blob with another byte at `index`. */
function withByte(sidecar: TestSidecar, index: number, value: number): TestSidecar {
	const changed = Uint8Array.from(at(sidecar.blobs, 1));
	changed[index] = value;
	return { ...sidecar, blobs: sidecar.blobs.with(1, changed) };
}
