// The coinbase that each block is simulated with: a block number comes in, an address goes out. Nobody knows the
// real one beforehand, so it is drawn at random for each block, unless all builders share one.

import { randomBytes } from "node:crypto";

/** Answers `fixed`, or the same fresh random address for all questions about one block. */
export function feeRecipients(fixed: string | undefined): (block: number) => string {
	if (fixed !== undefined) return () => fixed;
	let drawn = { block: -1, address: "" };
	return (block) => {
		if (drawn.block !== block) drawn = { block, address: `0x${randomBytes(20).toString("hex")}` };
		return drawn.address;
	};
}
