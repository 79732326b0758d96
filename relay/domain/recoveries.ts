// Recovers who has signed authorizations (EIP-7702): each once, some in a turn of the event loop, and fairly by client. One takes
// 50 µs, a transaction may have hundreds, and a bundle or a block thousands.

import { nextTurn } from "../../shared/clock.ts";
import type { Authorization } from "../../shared/ethereum/rlp.ts";
import { senderOfAuthorization } from "../../shared/ethereum/transaction.ts";
import { FairScheduler } from "../../shared/shares/scheduler.ts";

/** Recoveries of one turn, which take some 3 ms. */
const AT_ONCE = 64;

export class Recoveries {
	/** One slice at a time, whoever asks: else those of many requests would run in one turn. */
	readonly #slices = new FairScheduler({ concurrency: 1, maxWaiting: Number.POSITIVE_INFINITY });

	/**
	 * Recovers those of which it was not done yet; then `senderOfAuthorization` answers at once. `client`: whose share they use,
	 * see clientOf.
	 */
	recover(authorizations: readonly Authorization[], client: string): Promise<void> {
		return this.each(
			authorizations.filter(({ authority }) => authority === undefined),
			client,
			senderOfAuthorization,
		);
	}

	/** Calls `work`, which recovers one signature, for each of `items`. `client` as above; null: the chain's, before all others. */
	async each<T>(items: readonly T[], client: string | null, work: (item: T) => unknown): Promise<void> {
		for (let from = 0; from < items.length; from += AT_ONCE) {
			const slice = items.slice(from, from + AT_ONCE);
			const turn = { client: client ?? "", cost: slice.length, urgent: client === null };
			await this.#slices.run(turn, async () => {
				for (const item of slice) work(item);
				await nextTurn();
			});
		}
	}
}
