// Blobs with content, with the proofs of the KZG library: their commitments, a proof for each, and
// cell proofs. The library takes two seconds of CPU time to load and half a second for each blob,
// so most tests use two blobs whose proofs are recorded. Blobs of zeros, as the transaction factory
// makes them, cost next to nothing to prove.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { DasContextJs } from "@crate-crypto/node-eth-kzg";
import { bytesToHex, hexToBytes } from "../../shared/ethereum/hex.ts";
import { CELLS_PER_BLOB } from "../../shared/ethereum/sidecar.ts";
import { SeededRandom } from "./seededRandom.ts";
import type { TestSidecar } from "./txFactory.ts";

const BLOB_BYTES = 131_072;
const WORD_BYTES = 32;

/** The sidecars of the same blobs: with a proof each (EIP-4844), and with 128 each (EIP-7594). */
export interface RealBlobs {
	readonly v0: TestSidecar;
	readonly v1: TestSidecar;
}

/** Commitments and proofs in hex, one after another. */
interface Recorded {
	readonly commitments: string;
	readonly proofs: string;
	readonly cellProofs: string;
}

/** The file with the proofs of {@link realBlobs}. Delete it, and the next call writes it again. */
const RECORD = new URL("../contract/recorded/realBlobs.json", import.meta.url);
const SEED = 4;
const COUNT = 2;
/** The size of a commitment and of a proof. */
const POINT_BYTES = 48;
const INFINITY_POINT = Buffer.concat([Buffer.from([0xc0]), Buffer.alloc(47)]);

/**
 * Two blobs, the same for all tests. `test/contract/blobsGeth.test.ts` compares their proofs with
 * the library's.
 */
export function realBlobs(): RealBlobs {
	if (!existsSync(RECORD)) record();
	const { commitments, proofs, cellProofs } = JSON.parse(readFileSync(RECORD, "utf8")) as Recorded;
	const same = { blobs: randomBlobs(SEED, COUNT), commitments: pointsOf(commitments) };
	return { v0: { ...same, proofs: pointsOf(proofs) }, v1: { ...same, proofs: pointsOf(cellProofs) } };
}

/**
 * A blob of zeros in the same forms. Its commitment and all of its proofs are the point at
 * infinity.
 */
export function zeroBlob(): RealBlobs {
	const same = { blobs: [new Uint8Array(BLOB_BYTES)], commitments: [INFINITY_POINT] };
	const cellProofs = Array.from({ length: CELLS_PER_BLOB }, () => INFINITY_POINT);
	return { v0: { ...same, proofs: [INFINITY_POINT] }, v1: { ...same, proofs: cellProofs } };
}

/** The KZG library as wallets call it, for these blobs alone. */
export function kzgOf({ v0, v1 }: RealBlobs) {
	const indexOf = (blob: Uint8Array): number => {
		const index = v0.blobs.findIndex((one) => Buffer.compare(one, blob) === 0);
		if (index < 0) throw new RangeError("expected one of the blobs");
		return index;
	};
	return {
		blobToKzgCommitment: (blob: Uint8Array) => at(v0.commitments, indexOf(blob)),
		computeBlobKzgProof: (blob: Uint8Array, _commitment: Uint8Array) => at(v0.proofs, indexOf(blob)),
		cellProofs(blob: Uint8Array) {
			const first = indexOf(blob) * CELLS_PER_BLOB;
			return v1.proofs.slice(first, first + CELLS_PER_BLOB);
		},
	};
}

function record(): void {
	const { v0, v1 } = blobMaker().make(SEED, COUNT);
	const hex = (points: readonly Uint8Array[]): string => bytesToHex(Buffer.concat(points));
	const recorded: Recorded = {
		commitments: hex(v0.commitments),
		proofs: hex(v0.proofs),
		cellProofs: hex(v1.proofs),
	};
	writeFileSync(RECORD, `${JSON.stringify(recorded)}\n`);
}

function pointsOf(hex: string): readonly Uint8Array[] {
	const bytes = hexToBytes(hex) ?? Buffer.alloc(0);
	return Array.from({ length: bytes.length / POINT_BYTES }, (_, i) =>
		bytes.subarray(i * POINT_BYTES, (i + 1) * POINT_BYTES),
	);
}

/** The library. Takes two seconds. */
export function blobMaker() {
	const kzg = DasContextJs.create({ usePrecomp: false });
	return {
		kzg,
		/** `count` blobs, the same for a seed in each run. Takes half a second each. */
		make(seed: number, count: number): RealBlobs {
			const blobs = randomBlobs(seed, count);
			const commitments = blobs.map((blob) => kzg.blobToKzgCommitment(blob));
			const proofs = blobs.map((blob, i) => kzg.computeBlobKzgProof(blob, commitments[i] as Uint8Array));
			const cellProofs = blobs.flatMap((blob) => kzg.computeCellsAndKzgProofs(blob).proofs);
			return { v0: { blobs, commitments, proofs }, v1: { blobs, commitments, proofs: cellProofs } };
		},
	};
}

function randomBlobs(seed: number, count: number): readonly Uint8Array[] {
	const random = new SeededRandom(seed);
	return Array.from({ length: count }, () => randomBlob(random));
}

/** Each word is below the field's modulus. */
function randomBlob(random: SeededRandom): Uint8Array {
	const blob = new Uint8Array(random.bytes(BLOB_BYTES));
	for (let at = 0; at < BLOB_BYTES; at += WORD_BYTES) blob[at] = 0;
	return blob;
}

type Faulty = readonly [version: 0 | 1, sidecar: TestSidecar];

/**
 * Two blobs whose sidecar proves nothing; the hashes that are signed are those of the commitments.
 */
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

function at(items: readonly Uint8Array[], i: number): Uint8Array {
	return items[i] as Uint8Array;
}

/** The second blob with another byte at `index`. */
function withByte(sidecar: TestSidecar, index: number, value: number): TestSidecar {
	const changed = Uint8Array.from(at(sidecar.blobs, 1));
	changed[index] = value;
	return { ...sidecar, blobs: sidecar.blobs.with(1, changed) };
}
