// Finds how the tracked chain leads to the node's head: which blocks were reverted and which were
// applied. It reads parents by their hash until it meets a known block.

import type { Block, ChainUpdate } from "../domain/chain.ts";

export interface WalkLimits {
	/** Blocks remembered below the head; a deeper reorganisation is a gap. */
	readonly kept: number;
	/** Missed blocks that are read one by one; more are a gap. */
	readonly missed: number;
}

/** The new canonical chain, oldest first, and the change that led to it. */
export interface Walk {
	readonly chain: readonly Block[];
	readonly update: ChainUpdate;
}

/**
 * Walks from `chain` (oldest first, linked, ending with the tracked head; empty before the first
 * head) to `head`. `parentOf` returns a block's parent, or null if the node no longer has it. In
 * that case the chain has changed during the walk, and the result is null too.
 */
export async function walk(
	chain: readonly Block[],
	head: Block,
	parentOf: (block: Block) => Promise<Block | null>,
	limits: WalkLimits,
): Promise<Walk | null> {
	const first = chain[0];
	const last = chain.at(-1);
	if (first === undefined || last === undefined) return jump(head);
	if (head.number > last.number + limits.missed) return jump(head);
	const indexes = new Map(chain.map((block, index) => [block.hash, index]));
	const known = indexes.get(head.hash);
	if (known !== undefined) return step(chain, known, [], limits);
	/** Newest first. */
	const path = [head];
	for (let oldest = head; ; ) {
		const ancestor = indexes.get(oldest.parentHash);
		if (ancestor !== undefined) return step(chain, ancestor, path.reverse(), limits);
		if (oldest.number <= first.number) return jump(head);
		const parent = await parentOf(oldest);
		if (parent === null) return null;
		path.push(parent);
		oldest = parent;
	}
}

/** Keeps `chain` up to `ancestor`, followed by `applied`, oldest first. */
function step(
	chain: readonly Block[],
	ancestor: number,
	applied: readonly Block[],
	limits: WalkLimits,
): Walk | null {
	const blocks = [...chain.slice(0, ancestor + 1), ...applied];
	const head = blocks.at(-1);
	if (head === undefined) return null;
	const reverted = chain.slice(ancestor + 1).reverse();
	return { chain: blocks.slice(-limits.kept), update: { head, reverted, applied, gap: false } };
}

/** Starts again at `head`; the blocks in between are unknown. */
function jump(head: Block): Walk {
	return { chain: [head], update: { head, reverted: [], applied: [head], gap: true } };
}
