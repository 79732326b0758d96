// Replaces the KZG library: it answers nothing until a message arrives on the channel `waitingKzg`. Then all proofs are valid.
const { BroadcastChannel, receiveMessageOnPort } = require("node:worker_threads");

const channel = new BroadcastChannel("waitingKzg");
const idle = new Int32Array(new SharedArrayBuffer(4));
let isReleased = false;
// A message before the first job is an event. One that arrives while it waits is not.
channel.onmessage = () => {
	isReleased = true;
};

function holds() {
	while (!isReleased) {
		isReleased = receiveMessageOnPort(channel) !== undefined;
		if (!isReleased) Atomics.wait(idle, 0, 0, 10);
	}
	return true;
}

const proofs = Array.from({ length: 128 }, () => new Uint8Array(48));
exports.DasContextJs = {
	create: () => ({
		computeCells: () => [],
		verifyCellKzgProofBatch: holds,
		verifyBlobKzgProof: holds,
		computeCellsAndKzgProofs: () => ({ proofs }),
	}),
};
