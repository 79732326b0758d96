// Builds the bundle for a bid: the target, the backrun behind it, and the refund. Pure.

import type { OutgoingBundle } from "../domain/bundle.ts";
import { policyOf } from "../domain/endpoints.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import type { Bid } from "./bids.ts";

/** Under which name an owner's bid on a target goes out: one of each is out at a time, and his next takes its place. */
export function backrunName(target: string, owner: string): string {
	return `backrun ${target} ${owner}`;
}

/** The bundle for `block`; `refundPercent` is the user's share of what the backrun brings. */
export function backrunBundle(
	bid: Bid,
	{ tx, path, refundRecipient }: PrivateTransaction,
	block: number,
	refundPercent: number,
): OutgoingBundle {
	return {
		name: backrunName(bid.target, bid.owner),
		transactions: [
			{ tx, mayRevert: policyOf(path).mayRevert, mayDrop: false },
			{ tx: bid.backrun, mayRevert: false, mayDrop: true },
		],
		...{ block, client: bid.client, isPlain: false },
		refund: {
			percent: refundPercent,
			recipient: refundRecipient ?? tx.from,
			bodyIdx: 0,
			of: bid.backrun.hash,
		},
	};
}
