// The thread of signatureWork.ts, which documents the format: receives batches of inputs, and returns the outputs in their order.
// It is JavaScript, so that the thread needs no compiler.

import { parentPort, workerData } from "node:worker_threads";
import createKeccakHash from "keccak";
import secp256k1 from "secp256k1";

const { INPUT_BYTES, OUTPUT_BYTES, SIGN } = workerData;

/** Created once: see keccak256 of signatures.ts. */
const hasher = createKeccakHash("keccak256");

parentPort.on("message", (inputs) => {
	const count = inputs.length / INPUT_BYTES;
	const outputs = new Uint8Array(count * OUTPUT_BYTES);
	for (let i = 0; i < count; i += 1) {
		const input = inputs.subarray(i * INPUT_BYTES, (i + 1) * INPUT_BYTES);
		const output = outputs.subarray(i * OUTPUT_BYTES, (i + 1) * OUTPUT_BYTES);
		if (input[0] === SIGN) sign(input, output);
		else recover(input, output);
	}
	// They may contain private keys.
	inputs.fill(0);
	parentPort.postMessage(outputs, [outputs.buffer]);
});

function sign(input, output) {
	const { signature, recid } = secp256k1.ecdsaSign(input.subarray(1, 33), input.subarray(33, 65));
	output[0] = 1 + recid;
	output.set(signature, 1);
}

/** The first byte stays 0 if the signature is invalid. */
function recover(input, output) {
	try {
		const key = secp256k1.ecdsaRecover(input.subarray(33, 97), input[0], input.subarray(1, 33), false);
		hasher._finalized = false;
		const hash = hasher.update(Buffer.from(key.buffer, key.byteOffset + 1, 64)).digest();
		output[0] = 1;
		output.set(hash.subarray(12), 1);
	} catch {
		// The package throws if r is not the x of a point.
	}
}

parentPort.postMessage("ready");
