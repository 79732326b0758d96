// Who has had places at builders without landing. A bidder that is not proven and had one in three blocks of 64 is spent: it
// stands behind everybody who is not for 64 blocks, or until it lands. So whoever never pays does not keep others out, and
// losing costs an honest newcomer nothing else. In memory alone.

import type { Bidder } from "../domain/bundleStatus.ts";

const PLACES = 3;
const WITHIN_BLOCKS = 64;
const SPENT_BLOCKS = 64;

export class PlacesHad {
	/** Blocks for which a party had a place, in their order. */
	readonly #blocks = new Map<string, number[]>();

	/** The bidder had a place for `block`, with a bid that it was not proven for. */
	note(bidder: Bidder, block: number): void {
		for (const party of placedParties(bidder)) {
			const blocks = this.#blocks.get(party) ?? [];
			// After a reorganisation the same number comes again, or a lower one.
			const kept = blocks.filter((one) => one < block);
			this.#blocks.set(party, [...kept, block].slice(-2 * PLACES));
		}
	}

	/**
	 * The last block for which the bidder is spent; null if it is not for `block`. `landedAt` is the last block in which a party
	 * landed, or -1.
	 */
	spentUntil(bidder: Bidder, block: number, landedAt: (party: string) => number): number | null {
		let until = -1;
		for (const party of placedParties(bidder)) {
			const blocks = this.#blocks.get(party);
			if (blocks === undefined) continue;
			const since = landedAt(party);
			const vain = blocks.filter((one) => one > since && one < block);
			for (const [i, last] of vain.entries()) {
				const first = vain[i - PLACES + 1];
				if (first !== undefined && last - first < WITHIN_BLOCKS) until = Math.max(until, last + SPENT_BLOCKS);
			}
		}
		return until >= block ? until : null;
	}

	/** Forgets what can't count any more at `head`. */
	forget(head: number): void {
		for (const [party, blocks] of this.#blocks)
			if ((blocks.at(-1) ?? 0) + WITHIN_BLOCKS + SPENT_BLOCKS < head) this.#blocks.delete(party);
	}
}

/** A place is one of a network address and one of a backrun's sender: those that cost something. */
export function placedParties({ client, sender }: Bidder): readonly string[] {
	return client === null ? [`sender ${sender}`] : [`sender ${sender}`, `client ${client}`];
}
