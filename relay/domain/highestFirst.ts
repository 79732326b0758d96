// The order in which senders are processed after a head: the highest payment to the builder first,
// clients in turn. Time is short there: under EIP-7732 less than half a slot is left from a head to
// the next proposal.

import TinyQueue from "tinyqueue";
import { effectiveGasPrice } from "../../shared/ethereum/intrinsicGas.ts";
import { feeProblem } from "./blockProblems.ts";
import type { NextBlock } from "./chain.ts";
import type { PrivateTransaction } from "./transaction.ts";

/**
 * Wei per transaction that a builder earns by a sender's consecutive transactions: priority fee
 * times gas. It is the average of the first ones, as many as make it highest. The first one alone
 * would be simpler. But then an approval with its swap would come last, since only the swap pays. 0
 * if none can be in the block. `gas` is each one's expected gas.
 */
export function chainWorth(
	entries: readonly { readonly transaction: PrivateTransaction; readonly gas: number }[],
	next: Pick<NextBlock, "baseFee" | "blobBaseFee">,
): number {
	let [best, sum, count] = [0, 0, 0];
	for (const { transaction, gas } of entries) {
		const { tx } = transaction;
		if (feeProblem(tx, next) !== null) break;
		sum += Number(effectiveGasPrice(tx, next.baseFee) - next.baseFee) * gas;
		count += 1;
		best = Math.max(best, sum / count);
	}
	return best;
}

/** A sender to be processed. */
interface Waiting {
	/** See clientOf in shared/client.ts. */
	readonly client: string;
	/** As {@link chainWorth}. */
	readonly worth: number;
}

interface Turn<T> {
	/** How many of the client's senders were processed. */
	served: number;
	readonly waiting: TinyQueue<T>;
	/** The worth of its first waiting sender. */
	worth: number;
}

/**
 * Orders senders. A round has one sender of each client, its highest. In a round the highest goes
 * first.
 */
export class HighestFirst<T extends Waiting> {
	readonly #byClient = new Map<string, T[]>();

	add(one: T): void {
		const own = this.#byClient.get(one.client);
		if (own === undefined) this.#byClient.set(one.client, [one]);
		else own.push(one);
	}

	/** All senders in order. None may be added afterwards. */
	*inOrder(): Generator<T> {
		const turns = new TinyQueue<Turn<T>>([], (a, b) => a.served - b.served || b.worth - a.worth);
		for (const own of this.#byClient.values()) {
			const waiting = new TinyQueue(own, (a, b) => b.worth - a.worth);
			turns.push({ served: 0, waiting, worth: waiting.peek()?.worth ?? 0 });
		}
		for (let turn = turns.pop(); turn !== undefined; turn = turns.pop()) {
			const one = turn.waiting.pop();
			if (one !== undefined) yield one;
			const next = turn.waiting.peek();
			if (next === undefined) continue;
			turn.served += 1;
			turn.worth = next.worth;
			turns.push(turn);
		}
	}
}
