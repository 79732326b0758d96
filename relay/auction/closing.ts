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
	const places = new Map(block.transactions.map((tx, i) => [tx.hash, i]));
	const place = places.get(target);
	return bids.map((bid) => {
		// Before its target it is in the block by another road, and no bid.
		const isIn = place !== undefined && (places.get(bid.backrun.hash) ?? -1) > place;
		if (isIn) return { bid, change: null };
		const reason = place === undefined ? "targetNotIncluded" : whyNot(bid, best);
		const outbidBy = best !== null && best.value >= bid.value && best !== bid ? best.value - bid.value : null;
		return { bid, change: { stage: "NOT_INCLUDED", reason, outbidBy } };
	});
}

function whyNot(bid: Bid, best: Bid | null): BundleReason {
	if (bid === best) return "notChosen";
	if (bid.basis === null || bid.checking !== null) return "notSimulated";
	if (best === null) return "notChosen";
	return bid.value > best.value ? "nonceTaken" : "outbid";
}
