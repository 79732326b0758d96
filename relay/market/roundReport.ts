// What a block came to for the bids on a target in it: their owners are told what happened, and what bidders did is
// remembered. What was simulated counts for nothing here.

import type { Bid } from "../auction/bids.ts";
import { type BundleTable, statusIn } from "../auction/bundleTable.ts";
import { mayHave, type RoundBid } from "../auction/conduct.ts";
import type { Bidder } from "../domain/bundleStatus.ts";
import type { Auctioneer } from "./auctioneer.ts";
import type { BidderConduct } from "./bidderConduct.ts";
import type { TargetOutcome } from "./settlement.ts";

export interface RoundReportDependencies {
	readonly table: BundleTable;
	readonly auctioneer: Auctioneer;
	readonly conduct: BidderConduct;
	/** Who answers for a backrun whose bundle is no longer known: it was sent before a restart. */
	readonly bidderOf: (from: string, to: string | null) => Bidder;
}

/** Takes down an outcome; resolves when what it comes to is on disk. May be called again with the same. */
export async function reportRound(
	{ record, block, landed }: TargetOutcome,
	{ table, auctioneer, conduct, bidderOf }: RoundReportDependencies,
): Promise<void> {
	const { number } = block;
	const round = auctioneer.finalRound(record.hash, block.hash);
	const { sent = [], lost = [] } = round ?? {};
	const won = round?.landed.filter(({ backrun }) => backrun.hash === landed?.bundled.backrun) ?? [];
	const bids = [...sent.filter((bid) => !won.includes(bid)), ...won].map((bid) => roundBid(bid, number));
	if (landed !== null && won.length === 0) {
		const { bundle, backrun, bid } = landed.bundled;
		const bidder = bidderOf(landed.from, landed.to);
		bids.push({ bundle, backrun, bidder, value: BigInt(bid), deliveries: [] });
	}
	const ofTarget = record.deliveries.filter((delivery) => delivery.block === number);
	const answers = landed === null ? ofTarget : won.flatMap((bid) => deliveriesOf(bid, number));
	const answerOf = (name: string) =>
		answers.findLast(({ builder, kind }) => builder === name && kind === "bundle")?.answer;
	// One of ours that was not sent for this block is in it: by whom it came there is not known.
	const isStrange = landed === null && (round?.landed.length ?? 0) > 0;
	const candidates = landed?.builders ?? sent[0]?.out?.makers ?? [];
	const makers = isStrange ? [] : candidates.filter((name) => mayHave(answerOf(name)));
	await conduct.judge(block, { time: block.timestamp * 1000, makers, bids, landed: broughtBy(landed) });
	for (const bid of won) table.change(bid.record, number, { paid: landed?.transfers ?? null });
	if (landed !== null) {
		const winner = { backrun: landed.bundled.backrun, paid: landed.transfers };
		for (const bid of lost) {
			const isDearer = sent.includes(bid) && winner.paid !== null && winner.paid < bid.value;
			table.change(bid.record, number, { winner, ...(isDearer ? { reason: "notChosen" } : {}) });
		}
	}
	auctioneer.conductChanged();
}

function broughtBy(landed: TargetOutcome["landed"]) {
	if (landed === null) return null;
	return { backrun: landed.bundled.backrun, transfers: landed.transfers, brought: landed.brought };
}

function roundBid(bid: Bid, block: number): RoundBid {
	const { record, backrun, bidder, value } = bid;
	return { bundle: record.hash, backrun: backrun.hash, bidder, value, deliveries: deliveriesOf(bid, block) };
}

function deliveriesOf({ record }: Bid, block: number) {
	return statusIn(record, block)?.deliveries ?? [];
}
