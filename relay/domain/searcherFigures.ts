// A searcher's figures for one day, and the amounts that one bundle in one block adds to them.
// Pure.

import { dayOf } from "../../shared/days.ts";
import type { BundleBlockStatus, BundleReason, BundleRecord, BundleStage } from "./bundleStatus.ts";

/**
 * One day's figures of an owner of bundles. A bundle counts once for each block that it was for.
 */
export interface DayFigures {
	/** Days since the epoch, UTC. */
	readonly day: number;
	bids: number;
	/** Plain bundles. */
	bundles: number;
	/** Bundles that builders had, as far as that has been reported. */
	places: number;
	landed: number;
	/** Replaced or cancelled by their owner. */
	withdrawn: number;
	/** Bids for which the time from the feed is known, and the sum of these times, in ms. */
	timed: number;
	feedMs: number;
	/** Wei that landed bids brought by transfers, as far as the node could tell. */
	paid: bigint;
	/** Bundles that did not land, by reason, or by stage if there is no reason; none is 0. */
	readonly lost: Partial<Record<BundleReason | BundleStage, number>>;
}

export function noFigures(day: number): DayFigures {
	const counts = { bids: 0, bundles: 0, places: 0, landed: 0, withdrawn: 0, timed: 0, feedMs: 0 };
	return { day, ...counts, paid: 0n, lost: {} };
}

/** Adds a bundle in a block with its current status (1), or removes it (-1) before that changes. */
export function count(
	figures: DayFigures,
	{ target, feedMs }: Pick<BundleRecord, "target" | "feedMs">,
	{ stage, reason, placed, paid }: Pick<BundleBlockStatus, "stage" | "reason" | "placed" | "paid">,
	by: 1 | -1,
): void {
	if (target === null) figures.bundles += by;
	else figures.bids += by;
	if (feedMs !== null) {
		figures.timed += by;
		figures.feedMs += by * feedMs;
	}
	if (placed) figures.places += by;
	switch (stage) {
		case "INCLUDED":
			figures.landed += by;
			figures.paid += BigInt(by) * (paid ?? 0n);
			break;
		case "REPLACED":
		case "CANCELLED":
			figures.withdrawn += by;
			break;
		case "ACCEPTED":
		case "SENT":
			break;
		default: {
			const why = reason ?? stage;
			const lost = (figures.lost[why] ?? 0) + by;
			if (lost === 0) delete figures.lost[why];
			else figures.lost[why] = lost;
		}
	}
}

/** An owner's days without the statuses of its bundles in blocks above `head`. */
export function settledFigures(
	days: readonly DayFigures[],
	records: readonly BundleRecord[],
	head: number,
): readonly DayFigures[] {
	const settled = days.map((one) => ({ ...one, lost: { ...one.lost } }));
	for (const record of records) {
		for (const status of record.blocks) {
			const figures = settled.find(({ day }) => day === dayOf(status.since));
			if (status.block > head && figures !== undefined) count(figures, record, status, -1);
		}
	}
	return settled.filter(({ bids, bundles }) => bids + bundles > 0);
}
