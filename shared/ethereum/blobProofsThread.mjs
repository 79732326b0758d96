// The thread of blobProofs.ts: checks the KZG proofs of one blob after another, and computes cell proofs. First it reports whether
// it has the library (the package named by `workerData`), which takes two seconds to load. It is JavaScript, so that the thread
// needs no compiler.

import { createRequire } from "node:module";
import { parentPort, workerData } from "node:worker_threads";

const CELLS = Array.from({ length: 128 }, (_, cell) => cell);

/** Null if the library has no binary for this machine. */
function load() {
	try {
		const { DasContextJs } = createRequire(import.meta.url)(workerData);
		// Its tables would save a third of the time, but take 100 MB.
		return DasContextJs.create({ usePrecomp: false });
	} catch {
		return null;
	}
}

const kzg = load();
parentPort.postMessage({ loaded: kzg !== null });
if (kzg === null) parentPort.close();

parentPort.on("message", ({ blob, commitment, proofs, convert }) => {
	parentPort.postMessage(answer(blob, commitment, proofs, convert));
});

/** One proof is for the whole blob (EIP-4844), 128 are for its cells (EIP-7594). `convert`: whether to compute the cell proofs. */
function answer(blob, commitment, proofs, convert) {
	try {
		if (proofs.length > 1) {
			const commitments = CELLS.map(() => commitment);
			return { valid: kzg.verifyCellKzgProofBatch(commitments, CELLS, kzg.computeCells(blob), proofs) };
		}
		if (!kzg.verifyBlobKzgProof(blob, commitment, proofs[0])) return { valid: false };
		return convert ? { valid: true, cellProofs: kzg.computeCellsAndKzgProofs(blob).proofs } : { valid: true };
	} catch {
		// Not an element of the field, or not a point of the curve.
		return { valid: false };
	}
}
