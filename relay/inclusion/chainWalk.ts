// Finds the way from the tracked chain to the node's head: which blocks were reverted, which applied. It asks the node
// only for parents by hash.

import type { Block, ChainUpdate } from "../domain/chain.ts";

/** How far back and ahead the way is looked for. */
export interface WalkLimits {
	/** Blocks kept behind the head: a reorganisation that goes deeper is a gap. */
	readonly kept: number;
	/** Blocks missed that are caught up one by one: more are a gap. */
	readonly missed: number;
}

/** The new canonical chain, oldest first, and how it came about. */
export interface Walk {
	readonly chain: readonly Block[];
	readonly update: ChainUpdate;
}

/**
 * The way from `chain` (oldest first, linked, the tracked head last; empty before the first head) to `head`.
 * `parentOf` answers the parent of a block, or null where the node no longer has it: then the chain moved while it
 * was walked, and the answer is null too.
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
	const places = new Map(chain.map((block, place) => [block.hash, place]));
	const back = places.get(head.hash);
	if (back !== undefined) return step(chain, back, [], limits);
	/** Newest first. */
	const path = [head];
	for (let oldest = head; ; ) {
		const ancestor = places.get(oldest.parentHash);
		if (ancestor !== undefined) return step(chain, ancestor, path.reverse(), limits);
		if (oldest.number <= first.number) return jump(head);
		const parent = await parentOf(oldest);
		if (parent === null) return null;
		path.push(parent);
		oldest = parent;
	}
}

/** Keeps `chain` up to `ancestor` and puts `applied`, oldest first, on it. */
function step(
	chain: readonly Block[],
	ancestor: number,
	applied: readonly Block[],
	limits: WalkLimits,
): Walk | null {
	const whole = [...chain.slice(0, ancestor + 1), ...applied];
	const head = whole.at(-1);
	if (head === undefined) return null;
	const reverted = chain.slice(ancestor + 1).reverse();
	return { chain: whole.slice(-limits.kept), update: { head, reverted, applied, gap: false } };
}

/** What lies between is not known. */
function jump(head: Block): Walk {
	return { chain: [head], update: { head, reverted: [], applied: [head], gap: true } };
}
