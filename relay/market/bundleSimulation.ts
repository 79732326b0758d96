// Decides which transactions may be bid on. Simulates what a backrun pays behind its target, and
// whether a plain bundle is valid in a block. So builders get only bundles that can be mined. Keeps
// no state.

import { nextTurn } from "../../shared/clock.ts";
import { type DecodedTransaction, decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { codeProblem, fundsProblem, nonceProblem } from "../domain/blockProblems.ts";
import { type BundleOutcome, type PlainBundleRequest, rejectedBundle } from "../domain/bundle.ts";
import type { BundleReason } from "../domain/bundleStatus.ts";
import { type AccountState, isEmpty, type NextBlock } from "../domain/chain.ts";
import { isNewAccountCostlier } from "../domain/refund.ts";
import {
	blockContext,
	EXECUTION_FAILURES,
	isImpossible,
	type SimulationError,
	type SimulationErrorCode,
	type SimulationOutcome,
	type SimulationPriority,
} from "../domain/simulation.ts";
import { type ChainRules, firstRejection, STATIC_RULES } from "../domain/transactionRules.ts";
import type { PoolEntry } from "../transactions/pool.ts";
import type { MarketDependencies, MarketOptions } from "./dependencies.ts";

/** A transaction that may be bid on, with the chain before it. */
export interface BidTarget {
	readonly entry: PoolEntry;
	/** Its sender's consecutive transactions up to and including it. */
	readonly chain: readonly PoolEntry[];
}

/**
 * A backrun to simulate, the client that is charged for it, and a signal that removes it from the
 * queue.
 */
export interface SimulatedBid {
	readonly backrun: DecodedTransaction;
	readonly client: string;
	readonly signal: AbortSignal;
}

/** There is no result. */
type NoVerdict =
	/** It failed in a state that has changed since: retry. */
	| { readonly kind: "outdated" }
	/** The node gave no result. */
	| { readonly kind: "unavailable" }
	/** The node can't simulate it. Retry in `againMs`; null: not for the same block. */
	| { readonly kind: "impossible"; readonly why: string; readonly againMs: number | null };

/** The result of a backrun's simulation behind its target. */
export type BidVerdict =
	/**
	 * It pays `value` wei. `refundIsToNew`: whether the refund recipient's account is empty, which
	 * makes a refund more expensive.
	 */
	| { readonly kind: "valid"; readonly value: bigint; readonly refundIsToNew: boolean }
	| { readonly kind: "unpaid"; readonly feeRecipient: string }
	| { readonly kind: "failed"; readonly error: SimulationError }
	/** The target itself does not pass now. */
	| { readonly kind: "targetFails" }
	| NoVerdict;

/** The result of a plain bundle's simulation. */
export type PlainVerdict =
	| { readonly kind: "passes" }
	| { readonly kind: "fails"; readonly entry: number; readonly error: SimulationError }
	| NoVerdict;

/** A plain bundle to be simulated. */
export interface PlainTrial {
	readonly transactions: readonly { readonly tx: DecodedTransaction; readonly mayRevert: boolean }[];
	/** The client that is charged for the simulation: see clientOf. */
	readonly client: string;
	/** The next block or a later one; a later one is simulated on the current state. */
	readonly block: number;
	/** The fees and limits of the next block. */
	readonly next: NextBlock;
	readonly priority: SimulationPriority;
	/** Aborted when the result is no longer needed. */
	readonly signal: AbortSignal;
}

/**
 * Delay in ms before a bundle is simulated again: roughly the time to process a head that the node
 * already has.
 */
export const LATER_HEAD_MS = 200;
/** Delay in ms if the node gave no result for an accepted bundle. */
const NO_RESULT_MS = 500;

/**
 * Failures that a later block may resolve: missing nonces and funds, and fees that have to fall.
 */
const MENDABLE: ReadonlySet<SimulationErrorCode> = new Set([
	"NONCE_GAP",
	"INSUFFICIENT_FUNDS",
	"FEE_CAP_TOO_LOW",
	"BLOB_FEE_CAP_TOO_LOW",
]);

/**
 * Transactions, and bytes of them, that are decoded before yielding to other work: each costs a
 * signature recovery.
 */
const SLICE = 8;
const SLICE_BYTES = 64 * 1024;

/** Finds targets, and simulates backruns and plain bundles. */
export class BundleSimulation {
	readonly #options: Pick<MarketOptions, "feeRecipientOf">;
	readonly #dependencies: Pick<
		MarketDependencies,
		"transactions" | "accounts" | "tip" | "simulations" | "onLaterHead"
	>;

	constructor(options: MarketOptions, dependencies: MarketDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
	}

	/** The pending transaction with this hash if it is disclosed to searchers, else null. */
	shared(hash: string): DecodedTransaction | null {
		return this.#sharedEntry(hash)?.transaction.tx ?? null;
	}

	/**
	 * The target, or null if it may not be bid on. It must be pending and disclosed. It must not be
	 * behind a nonce gap or an undisclosed transaction of the same sender. Callers must give the
	 * same answer in all these cases.
	 */
	target(hash: string): BidTarget | null {
		const entry = this.#sharedEntry(hash);
		if (entry === null) return null;
		const { ready } = this.#dependencies.transactions.pool.transactionsOf(entry.transaction.tx.from);
		const index = ready.indexOf(entry);
		if (index < 0) return null;
		const chain = ready.slice(0, index + 1);
		// A simulation must not reveal the effects of transactions that are hidden from searchers.
		return chain.every((one) => this.#isShared(one)) ? { entry, chain } : null;
	}

	/**
	 * Identifies the state behind the target, and the owners' requested path and refund recipient.
	 * A bid that was simulated in a different state must be simulated again.
	 */
	basis(target: BidTarget): string {
		const { tip } = this.#dependencies;
		const next = tip.next();
		const block = [tip.head()?.hash, next?.timestamp, next?.published?.prevRandao];
		const { path, refundRecipient } = target.entry.transaction;
		const asked = [path, refundRecipient];
		return [...block, ...asked, ...target.chain.map((entry) => entry.transaction.tx.hash)].join(" ");
	}

	/**
	 * Simulates the backrun directly behind the target in `block`, the next one or a later one.
	 * Skipped if the signal is aborted while it is queued. Throws UpstreamError.
	 */
	async bid(
		target: BidTarget,
		{ backrun, client, signal }: SimulatedBid,
		block: number,
	): Promise<BidVerdict> {
		const { accounts, simulations, tip } = this.#dependencies;
		const next = tip.next();
		if (next === null) return { kind: "unavailable" };
		const { from } = target.entry.transaction.tx;
		const [account, bidder] = await Promise.all([
			accounts.get(from, client),
			accounts.get(backrun.from, client),
		]);
		const error = codeProblem(backrun, bidder.code);
		if (error !== null) return { kind: "failed", error };
		const feeRecipient = this.#options.feeRecipientOf();
		const outcomes = await simulations.simulate({
			block: blockContext(next, feeRecipient, block),
			client,
			priority: "bid",
			measured: true,
			signal,
			accounts: new Map([
				[from, account],
				[backrun.from, bidder],
			]),
			transactions: [...target.chain.map((entry) => entry.transaction.tx), backrun],
		});
		const last = outcomes.at(-1);
		if (last === undefined) return { kind: "unavailable" };
		if (!last.ok && last.error.code === "NODE_UNAVAILABLE") return withoutVerdict(last);
		const paid = last.ok ? last.paid : 0n;
		if (paid === null) return { kind: "unavailable" };
		if (paid === 0n) {
			const targetFails = outcomes.length <= target.chain.length;
			if (await this.#isOutdated(targetFails ? from : backrun.from, client, next.number - 1))
				return { kind: "outdated" };
			if (last.ok) return { kind: "unpaid", feeRecipient };
			return targetFails ? { kind: "targetFails" } : { kind: "failed", error: last.error };
		}
		const { refundRecipient } = target.entry.transaction;
		const mayBeNew = refundRecipient !== null && isNewAccountCostlier(next.fork);
		const refundIsToNew = mayBeNew && isEmpty(await accounts.get(refundRecipient, client));
		return { kind: "valid", value: paid, refundIsToNew };
	}

	/** Simulates a plain bundle. Entries that may revert must still be valid in the block. */
	async plain(trial: PlainTrial): Promise<PlainVerdict> {
		try {
			const verdict = await this.#plain(trial);
			if (verdict.kind !== "fails") return verdict;
			const sender = trial.transactions[verdict.entry]?.tx.from ?? "";
			const isOld = await this.#isOutdated(sender, trial.client, trial.next.number - 1);
			return isOld ? { kind: "outdated" } : verdict;
		} catch (thrown) {
			if (thrown instanceof UpstreamError) return { kind: "unavailable" };
			throw thrown;
		}
	}

	async #plain({ transactions, client, block, next, priority, signal }: PlainTrial): Promise<PlainVerdict> {
		const senders = [...new Set(transactions.map(({ tx }) => tx.from))];
		const states = await Promise.all(
			senders.map((sender) => this.#dependencies.accounts.get(sender, client)),
		);
		const accounts = new Map(states.map((state) => [state.address, state]));
		for (const [entry, { tx }] of transactions.entries()) {
			const error = accountProblem(tx, accounts.get(tx.from), entry === 0);
			if (error !== null) return { kind: "fails", entry, error };
		}
		const outcomes = await this.#dependencies.simulations.simulate({
			block: blockContext(next, this.#options.feeRecipientOf(), block),
			client,
			priority,
			accounts,
			signal,
			transactions: transactions.map(({ tx }) => tx),
			mayFail: new Set(transactions.filter((one) => one.mayRevert).map(({ tx }) => tx.hash)),
		});
		for (const [entry, { mayRevert }] of transactions.entries()) {
			const outcome = outcomes[entry];
			if (outcome?.ok === true) continue;
			if (outcome === undefined || outcome.error.code === "NODE_UNAVAILABLE") return withoutVerdict(outcome);
			const { error } = outcome;
			if (!mayRevert || !EXECUTION_FAILURES.has(error.code)) return { kind: "fails", entry, error };
		}
		return { kind: "passes" };
	}

	/**
	 * Whether a failure may be due to an outdated state. Either the node has a block after
	 * `stateBlock`, in which it may have run the simulation (anvil does). Or the sender's account
	 * differs from the cached one. Charged to `client`. Throws UpstreamError.
	 */
	async #isOutdated(sender: string, client: string, stateBlock: number): Promise<boolean> {
		const { accounts, onLaterHead } = this.#dependencies;
		const before = await accounts.get(sender, client);
		const now = await accounts.fresh(sender, client);
		if (now.block > stateBlock) onLaterHead();
		return now.block > stateBlock || now.nonce !== before.nonce || now.balance !== before.balance;
	}

	#sharedEntry(hash: string): PoolEntry | null {
		const entry = this.#dependencies.transactions.pool.get(hash);
		return entry?.durable === true && this.#isShared(entry) ? entry : null;
	}

	#isShared({ transaction: { tx, sharing } }: PoolEntry): boolean {
		return (
			sharing !== "never" && this.#dependencies.transactions.records.get(tx.hash)?.record.shared === true
		);
	}
}

/** The decoded transactions of a plain bundle, or the rejection of the first invalid one. */
export async function readTransactions(
	body: PlainBundleRequest["body"],
	rules: ChainRules,
	next: NextBlock,
): Promise<readonly DecodedTransaction[] | BundleOutcome> {
	const txs: DecodedTransaction[] = [];
	let [count, bytes] = [0, 0];
	for (const [i, { raw }] of body.entries()) {
		if (count === SLICE || bytes + raw.length > SLICE_BYTES) {
			[count, bytes] = [0, 0];
			await nextTurn();
		}
		count += 1;
		bytes += raw.length;
		const decoded = decodeTransaction(raw);
		if (!decoded.ok) return rejectedBundle("BAD_TRANSACTION", `${decoded.message} (body[${i}])`);
		const rejected = firstRejection(STATIC_RULES, decoded.tx, rules, next);
		if (rejected !== null) return rejectedBundle("BAD_TRANSACTION", `${rejected.message} (body[${i}])`);
		txs.push(decoded.tx);
	}
	return txs;
}

/** Whether a plain bundle that failed with this error may pass in a later block. */
export function isMendable({ code }: SimulationError): boolean {
	return MENDABLE.has(code);
}

/** The reason for this error in a bundle's status. */
export function failureReason({ code }: SimulationError): BundleReason {
	return EXECUTION_FAILURES.has(code) ? "reverted" : "invalid";
}

function withoutVerdict(outcome: SimulationOutcome | undefined): NoVerdict {
	if (outcome?.ok !== false || !isImpossible(outcome)) return { kind: "unavailable" };
	return { kind: "impossible", why: outcome.error.message, againMs: outcome.againMs ?? null };
}

/** Delay in ms before an accepted bundle is simulated again for the same block; null: no retry. */
export function retryMs(verdict: BidVerdict | PlainVerdict): number | null {
	if (verdict.kind === "impossible") return verdict.againMs;
	return verdict.kind === "outdated" || verdict.kind === "unavailable" ? NO_RESULT_MS : null;
}

/** Whether a new bundle is simulated again before the response. */
export function isTransient(verdict: BidVerdict | PlainVerdict): boolean {
	return verdict.kind !== "unavailable" && retryMs(verdict) !== null;
}

/** A revert's message, starting with `what`. */
export function revertMessage(what: string, message: string): string {
	const why = message.replace(/^execution reverted(: )?/, "");
	return why === "" ? `${what} reverted` : `${what} reverted: ${why}`;
}

/**
 * Checks a transaction against its sender's account before the bundle. Missing nonces and funds are
 * checked for the `first` one only, since earlier entries may provide them for the others.
 */
function accountProblem(
	tx: DecodedTransaction,
	account: AccountState | undefined,
	first: boolean,
): SimulationError | null {
	const { code, nonce = 0n, balance = 0n } = account ?? {};
	const unfit = codeProblem(tx, code) ?? (first || tx.nonce < nonce ? nonceProblem(tx, nonce) : null);
	return unfit ?? (first ? fundsProblem(tx, balance) : null);
}

/** The rejection of a plain bundle that failed its simulation. */
export function rejectionOf({ entry, error }: Extract<PlainVerdict, { kind: "fails" }>): BundleOutcome {
	const { code, message } = error;
	if (!EXECUTION_FAILURES.has(code))
		return rejectedBundle("BAD_TRANSACTION", `${message} (body[${entry}])`, true);
	return rejectedBundle("BUNDLE_REVERTED", `${revertMessage("bundle", message)} (body[${entry}])`, true);
}
