// What a block means for the bids that were for it: the block, a target's bids and the best of them come in, what each
// bidder is told goes out. Pure; only now may a bidder learn by how much he was outbid.

import type { BundleReason } from "../domain/bundleStatus.ts";
import type { Block } from "../domain/chain.ts";
import type { Bid } from "./book.ts";
import type { BlockChange } from "./bundleRecords.ts";

/**
 * What became of each of `bids`, all on `target`, in `block`: a change, or null for one that is in it. `best` is the one
 * that was with the builders.
 */
export function closeBids(
	block: Block,
	target: string,
	bids: readonly Bid[],
	best: Bid | null,
): readonly { readonly bid: Bid; readonly change: BlockChange | null }[] {
	const hashes = new Set(block.transactions.map((tx) => tx.hash));
	const held = hashes.has(target);
	return bids.map((bid) => {
		if (held && hashes.has(bid.backrun.hash)) return { bid, change: null };
		const dearer = best === null || best === bid ? null : best.value - bid.value;
		const outbidBy = dearer !== null && dearer < 0n ? 0n : dearer;
		const reason = held ? whyNot(bid, best) : "targetNotIncluded";
		return { bid, change: { stage: "NOT_INCLUDED", reason, outbidBy } };
	});
}

function whyNot(bid: Bid, best: Bid | null): BundleReason {
	if (bid === best) return "notChosen";
	return bid.basis === null || bid.checking !== null ? "notSimulated" : "outbid";
}
