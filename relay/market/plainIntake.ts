// Limits and queues plain bundles before they are decoded and simulated, with clients in turns: to recover a hundred
// signatures is work, and so is what the node is asked.

import { nextTurn } from "../../shared/clock.ts";
import { type DecodedTransaction, decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { FairScheduler, type JobOptions, OverloadedError } from "../../shared/shares/scheduler.ts";
import type { SharesOptions } from "../../shared/shares/shares.ts";
import { type BundleOutcome, type PlainBundleRequest, refusedBundle } from "../domain/bundle.ts";
import type { NextBlock } from "../domain/chain.ts";
import { type ChainRules, firstRefusal, STATIC_RULES } from "../domain/transactionRules.ts";

export interface PlainLimits {
	readonly transactions: SharesOptions;
	readonly bytes: SharesOptions;
}

/** Transactions of all plain bundles at most, since each is tried at each head, and their bytes. */
export const PLAIN_LIMITS: PlainLimits = {
	transactions: { total: 20_000, perClient: 2_000 },
	bytes: { total: 128 * 1024 * 1024, perClient: 8 * 1024 * 1024 },
};
/** Bundles that are considered at once, half of them of a client that is alone, and those that wait for it at most. */
const AT_ONCE = 4;
const MAX_WAITING = 1_000;
/** Thousands may be due at a head: to begin them all at once would keep everybody else waiting. */
const AGAIN_AT_ONCE = 16;
/** Transactions that are decoded before other work gets its turn: each takes the time of a signature. */
const SLICE = 8;

/** Considers each bundle in the turn of its client. */
export class PlainTurns {
	readonly #turns = new FairScheduler({ concurrency: AT_ONCE, maxWaiting: MAX_WAITING });
	/** How many may wait is bounded by what is kept. */
	readonly #again = new FairScheduler({ concurrency: AGAIN_AT_ONCE, maxWaiting: Number.POSITIVE_INFINITY });

	async run(
		{ network, body }: PlainBundleRequest,
		consider: () => Promise<BundleOutcome>,
	): Promise<BundleOutcome> {
		try {
			return await this.#turns.run({ client: network, cost: body.length }, consider);
		} catch (thrown) {
			if (!(thrown instanceof OverloadedError)) throw thrown;
			return refusedBundle("LIMIT", "limit exceeded: too many bundles wait");
		}
	}

	/** Tries one that was taken, when it is its client's turn; null where the signal was aborted before. */
	async again<T>(turn: JobOptions, trial: () => Promise<T>): Promise<T | null> {
		try {
			return await this.#again.run(turn, trial);
		} catch (thrown) {
			if (turn.signal?.aborted === true) return null;
			throw thrown;
		}
	}
}

/** The transactions, or the refusal of the first that is none or breaks a rule. */
export async function readTransactions(
	body: PlainBundleRequest["body"],
	rules: ChainRules,
	next: NextBlock,
): Promise<readonly DecodedTransaction[] | BundleOutcome> {
	const txs: DecodedTransaction[] = [];
	for (const [i, { raw }] of body.entries()) {
		if (i % SLICE === SLICE - 1) await nextTurn();
		const decoded = decodeTransaction(raw);
		if (!decoded.ok) return refusedBundle("BAD_TRANSACTION", `${decoded.message} (body[${i}])`);
		const refusal = firstRefusal(STATIC_RULES, decoded.tx, rules, next);
		if (refusal !== null) return refusedBundle("BAD_TRANSACTION", `${refusal.message} (body[${i}])`);
		txs.push(decoded.tx);
	}
	return txs;
}
