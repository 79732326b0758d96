// Who has had places at builders without landing. A bidder that is not proven and had one in three blocks of 64 is spent: it
// stands behind everybody who is not for 64 blocks, or until it lands with at least an eighth of what it bid there: a wei on a
// target of its own makes up for nothing. So whoever never pays does not keep others out, and losing costs an honest newcomer
// nothing else. In memory alone.

import { networkAddress } from "../../shared/client.ts";
import type { Bidder } from "../domain/bundleStatus.ts";
import type { Landing } from "./payments.ts";

const PLACES = 3;
const WITHIN_BLOCKS = 64;
const SPENT_BLOCKS = 64;

/** A block for which a party had places, and the most that it bid for one, in wei. */
interface Place {
	readonly block: number;
	readonly value: bigint;
}

export class PlacesHad {
	/** In the order of blocks. */
	readonly #places = new Map<string, readonly Place[]>();

	/** The bidder had a place for `block`, with a bid of `value` wei that it was not proven for. */
	note(bidder: Bidder, value: bigint, block: number): void {
		for (const party of placedParties(bidder)) {
			const places = this.#places.get(party) ?? [];
			const known = places.find((one) => one.block === block)?.value ?? 0n;
			// After a reorganisation the same number comes again, or a lower one.
			const kept = places.filter((one) => one.block < block);
			const most = known > value ? known : value;
			this.#places.set(party, [...kept, { block, value: most }].slice(-2 * PLACES));
		}
	}

	/** The last block for which the bidder is spent; null if it is not for `block`. `landings` are those of a party. */
	spentUntil(bidder: Bidder, block: number, landings: (party: string) => readonly Landing[]): number | null {
		let until = -1;
		for (const party of spentParties(bidder)) {
			const places = this.#places.get(party);
			if (places === undefined) continue;
			const landed = landings(party);
			const vain = places.filter((one) => one.block < block && !landed.some((later) => makesUp(later, one)));
			for (const [i, { block: last }] of vain.entries()) {
				const first = vain[i - PLACES + 1];
				if (first !== undefined && last - first.block < WITHIN_BLOCKS)
					until = Math.max(until, last + SPENT_BLOCKS);
			}
		}
		return until >= block ? until : null;
	}

	/** Forgets what can't count any more at `head`. */
	forget(head: number): void {
		for (const [party, places] of this.#places)
			if ((places.at(-1)?.block ?? 0) + WITHIN_BLOCKS + SPENT_BLOCKS < head) this.#places.delete(party);
	}
}

function makesUp({ block, upTo }: Landing, place: Place): boolean {
	return block >= place.block && (upTo === null || upTo >= place.value);
}

/** A place is one of a network address and one of a backrun's sender: those that cost something. */
function placedParties({ client, sender }: Bidder): readonly string[] {
	return client === null ? [`sender ${sender}`] : [`sender ${sender}`, `client ${client}`];
}

/** The parties whose places in vain count against a bidder: of a web page's bid also the visitor's address. */
function spentParties(bidder: Bidder): readonly string[] {
	const { client } = bidder;
	const behind = client === null ? null : networkAddress(client);
	return behind === client ? placedParties(bidder) : [...placedParties(bidder), `client ${behind}`];
}
