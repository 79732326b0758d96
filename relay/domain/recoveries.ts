// Recovers the signers of authorizations (EIP-7702) and of bundles' transactions. Each is recovered
// once, a few in a turn of the event loop, and fairly by client. One takes 50 µs. A transaction may
// have hundreds of authorizations, and a bundle or a block thousands.

import { nextTurn } from "../../shared/clock.ts";
import { senderOfAuthorization } from "../../shared/ethereum/transaction.ts";
import type { Authorization } from "../../shared/ethereum/transactionFields.ts";
import { FairScheduler } from "../../shared/shares/scheduler.ts";

/** Recoveries in one turn of the event loop, which take some 3 ms. */
const AT_ONCE = 64;
/** Reading this many bytes of a transaction takes as long as a recovery. */
const BYTES_OF_ONE = 2_048;

export class Recoveries {
	/**
	 * One slice at a time for all callers. Otherwise slices of many requests would run in one turn.
	 */
	readonly #slices = new FairScheduler({ concurrency: 1, maxWaiting: Number.POSITIVE_INFINITY });

	/**
	 * Recovers the signers that are not known yet. Then `senderOfAuthorization` answers at once.
	 * `client`: the client whose quota is used, see clientOf.
	 */
	recover(authorizations: readonly Authorization[], client: string): Promise<void> {
		return this.each(
			authorizations.filter(({ authority }) => authority === undefined),
			client,
			senderOfAuthorization,
		);
	}

	/**
	 * Calls `work`, which recovers one signature, for each of `items` in order. `bytes`: how many
	 * bytes it reads for that. `client` as above; null: the chain's, before all others. Rejects
	 * with the first error that `work` throws.
	 */
	async each<T>(
		items: readonly T[],
		client: string | null,
		work: (item: T) => unknown,
		bytes: (item: T) => number = nothing,
	): Promise<void> {
		for (let from = 0; from < items.length; ) {
			const slice: T[] = [];
			let cost = 0;
			for (let item = items[from]; from < items.length && cost < AT_ONCE; item = items[from]) {
				slice.push(item as T);
				cost += 1 + bytes(item as T) / BYTES_OF_ONE;
				from += 1;
			}
			await this.#slices.run({ client: client ?? "", cost, urgent: client === null }, async () => {
				for (const item of slice) work(item);
				await nextTurn();
			});
		}
	}
}

function nothing(): number {
	return 0;
}
