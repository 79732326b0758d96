// Says what may be bid on, and what a backrun pays behind its target. It keeps nothing and decides nothing about bids.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { Records } from "../chainActions.ts";
import type { AccountState } from "../domain/chain.ts";
import { policyOf } from "../domain/endpoints.ts";
import type { SharedTransactions, Simulations, Tip } from "../domain/ports.ts";
import type { SimulationError } from "../domain/simulation.ts";
import type { Pool, PoolEntry } from "../transactions/pool.ts";
import { type AccountAgeDependencies, isOutdated } from "./accountAge.ts";

/** A transaction that may be bid on, and what goes before it. */
export interface BidTarget {
	readonly entry: PoolEntry;
	/** Its sender's links up to it, itself the last. */
	readonly chain: readonly PoolEntry[];
}

/** A backrun, the client whose bid it is, and who ends the wait for its turn. */
export interface SimulatedBid {
	readonly backrun: DecodedTransaction;
	readonly client: string;
	readonly signal: AbortSignal;
}

/** How a backrun fares behind its target. */
export type BidVerdict =
	/** It pays so many wei. */
	| { readonly kind: "valid"; readonly value: bigint }
	| { readonly kind: "unpaid"; readonly feeRecipient: string }
	| { readonly kind: "failed"; readonly error: SimulationError }
	/** It fails by its sender's account, which is another one by now: it must be tried again. */
	| { readonly kind: "outdated" }
	/** The target itself does not pass now. */
	| { readonly kind: "targetFails" }
	/** The node gave no verdict. */
	| { readonly kind: "unavailable" };

export interface BidSimulationOptions {
	readonly slotSeconds: number;
	/** The coinbase of a simulated block. */
	readonly feeRecipientOf: () => string;
}

export interface BidSimulationDependencies extends AccountAgeDependencies {
	readonly pool: Pool;
	readonly records: Records;
	readonly tip: Tip;
	readonly simulations: Simulations;
}

/** Looks at targets and tries backruns behind them. */
export class BidSimulation implements SharedTransactions {
	readonly #options: BidSimulationOptions;
	readonly #deps: BidSimulationDependencies;

	constructor(options: BidSimulationOptions, dependencies: BidSimulationDependencies) {
		this.#options = options;
		this.#deps = dependencies;
	}

	shared(hash: string): DecodedTransaction | null {
		return this.#sharedEntry(hash)?.transaction.tx ?? null;
	}

	/**
	 * The target, or null where none may be bid on: not pending, not shared, behind a gap, or behind a transaction of its
	 * sender's that is not shared. All of these must look alike to whoever asks.
	 */
	target(hash: string): BidTarget | null {
		const entry = this.#sharedEntry(hash);
		if (entry === null) return null;
		const { ready } = this.#deps.pool.chain(entry.transaction.tx.from);
		const index = ready.indexOf(entry);
		if (index < 0) return null;
		const chain = ready.slice(0, index + 1);
		// Searchers may learn of the state behind what they see alone.
		return chain.every((link) => this.#isShared(link)) ? { entry, chain } : null;
	}

	/** Names the state behind the target: one that was simulated in another one must be simulated again. */
	basis(target: BidTarget): string {
		const head = this.#deps.tip.head()?.hash ?? "";
		return [head, ...target.chain.map((entry) => entry.transaction.tx.hash)].join(" ");
	}

	/**
	 * Runs the backrun of a bid right behind the target in `block`, the next one or a later one, on the account of the
	 * client that it came from; not at all where the signal is aborted before its turn. Throws UpstreamError.
	 */
	async simulate(
		target: BidTarget,
		{ backrun, client, signal }: SimulatedBid,
		block: number,
	): Promise<BidVerdict> {
		const { accounts, simulations, tip } = this.#deps;
		const next = tip.next();
		if (next === null) return { kind: "unavailable" };
		const { from } = target.entry.transaction.tx;
		const [account, bidder] = await Promise.all([
			accounts.get(from, client),
			accounts.get(backrun.from, client),
		]);
		if (bidder.code === "contract") return { kind: "failed", error: notAnAccount(bidder) };
		const feeRecipient = this.#options.feeRecipientOf();
		const later = block - next.number;
		const outcomes = await simulations.simulate({
			block: {
				...next,
				number: block,
				timestamp: next.timestamp + later * this.#options.slotSeconds,
				stateBlock: next.number - 1,
				feeRecipient,
			},
			...{ client, priority: "bid", measured: true, signal },
			accounts: new Map([
				[from, account],
				[backrun.from, bidder],
			]),
			transactions: [...target.chain.map((entry) => entry.transaction.tx), backrun],
		});
		const last = outcomes.at(-1);
		if (last === undefined) return { kind: "unavailable" };
		if (!last.ok && last.error.code === "NODE_UNAVAILABLE") return { kind: "unavailable" };
		if (outcomes.length <= target.chain.length) return { kind: "targetFails" };
		if (!last.ok) {
			const { code } = last.error;
			const isOld = await isOutdated({ sender: backrun.from, client, code }, this.#deps);
			return isOld ? { kind: "outdated" } : { kind: "failed", error: last.error };
		}
		if (last.paid === null) return { kind: "unavailable" };
		return last.paid > 0n ? { kind: "valid", value: last.paid } : { kind: "unpaid", feeRecipient };
	}

	#sharedEntry(hash: string): PoolEntry | null {
		const entry = this.#deps.pool.get(hash);
		return entry?.durable === true && this.#isShared(entry) ? entry : null;
	}

	#isShared({ transaction: { tx, path } }: PoolEntry): boolean {
		return policyOf(path).shared !== "never" && this.#deps.records.get(tx.hash)?.record.shared === true;
	}
}

function notAnAccount({ address }: AccountState): SimulationError {
	return { code: "EXECUTION_FAILED", message: `sender not an eoa: address ${address} has code` };
}
