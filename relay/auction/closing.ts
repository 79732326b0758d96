// What a block means for the bids that were for it: the block, a target's bids and the best of them come in, what each
// bidder is told goes out. Pure; only now may a bidder learn by how much he was outbid.

import type { BundleReason } from "../domain/bundleStatus.ts";
import type { Block } from "../domain/chain.ts";
import type { Bid } from "./book.ts";
import type { BlockChange } from "./bundleRecords.ts";

/**
 * What became of each of `bids`, all on `target`, in `block`: a change, or null for one that is in it. `sent` are those
 * that were with builders.
 */
export function closeBids(
	block: Block,
	target: string,
	bids: readonly Bid[],
	sent: ReadonlySet<Bid>,
): readonly { readonly bid: Bid; readonly change: BlockChange | null }[] {
	const places = new Map(block.transactions.map((tx, i) => [tx.hash, i]));
	const place = places.get(target);
	const best = [...sent].reduce<Bid | null>(
		(high, bid) => (bid.value > (high?.value ?? 0n) ? bid : high),
		null,
	);
	return bids.map((bid) => {
		// Before its target it is in the block by another road, and no bid.
		const isIn = place !== undefined && (places.get(bid.backrun.hash) ?? -1) > place;
		if (isIn) return { bid, change: null };
		const reason =
			place === undefined ? "targetNotIncluded" : sent.has(bid) ? "notChosen" : whyNot(bid, best);
		const isOutbid = best !== null && best.value >= bid.value && !sent.has(bid);
		const outbidBy = isOutbid ? best.value - bid.value : null;
		return { bid, change: { stage: "NOT_INCLUDED", reason, outbidBy } };
	});
}

function whyNot(bid: Bid, best: Bid | null): BundleReason {
	if (bid.basis === null || bid.checking !== null) return "notSimulated";
	if (best === null) return "notChosen";
	return bid.value > best.value ? "nonceTaken" : "outbid";
}
