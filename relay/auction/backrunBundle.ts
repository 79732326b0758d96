// A bid as the builders get it: behind its target, with the refund of what it brings. Pure.

import type { OutgoingBundle } from "../domain/bundle.ts";
import { policyOf } from "../domain/endpoints.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import type { Bid } from "./book.ts";

/** Under which name the best bid on a target goes out: the next best takes its place. */
export function backrunName(target: string): string {
	return `backrun ${target}`;
}

/** The bundle for `block`; `refundPercent` is the user's share of what the backrun brings. */
export function backrunBundle(
	bid: Bid,
	{ tx, path, refundRecipient }: PrivateTransaction,
	block: number,
	refundPercent: number,
): OutgoingBundle {
	return {
		name: backrunName(bid.target),
		transactions: [
			{ tx, mayRevert: policyOf(path).mayRevert, mayDrop: false },
			{ tx: bid.backrun, mayRevert: false, mayDrop: true },
		],
		block,
		refund: {
			percent: refundPercent,
			recipient: refundRecipient ?? tx.from,
			bodyIdx: 0,
			of: bid.backrun.hash,
		},
	};
}
