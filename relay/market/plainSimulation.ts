// Whether a plain bundle can be in a block: the accounts of all its senders in one batch, then all of it simulated as
// that block. So what can't be mined takes neither a builder's time nor its lane.

import { transactionCost } from "../../shared/ethereum/intrinsicGas.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { type BundleOutcome, refusedBundle } from "../domain/bundle.ts";
import type { AccountState, NextBlock } from "../domain/chain.ts";
import type { Simulations } from "../domain/ports.ts";
import {
	EXECUTION_FAILURES,
	type SimulationError,
	type SimulationErrorCode,
	type SimulationPriority,
} from "../domain/simulation.ts";
import { type AccountAgeDependencies, isOutdated } from "./accountAge.ts";

/** How a bundle fares in a block. */
export type PlainVerdict =
	| { readonly kind: "passes" }
	| { readonly kind: "fails"; readonly entry: number; readonly error: SimulationError }
	/** It fails by an account that is another one by now: it must be tried again. */
	| { readonly kind: "outdated" }
	/** The node gave no verdict. */
	| { readonly kind: "unavailable" };

/** A bundle to be tried. */
export interface PlainTrial {
	readonly transactions: readonly { readonly tx: DecodedTransaction; readonly mayRevert: boolean }[];
	/** Whose turn it takes at the node: see clientOf. */
	readonly client: string;
	/** The next block or a later one; a later one is tried on the state of today. */
	readonly block: number;
	/** What the next block allows. */
	readonly next: NextBlock;
	readonly priority: SimulationPriority;
	/** Nobody wants to know any more. */
	readonly signal?: AbortSignal;
}

export interface PlainSimulationOptions {
	readonly slotSeconds: number;
	/** The coinbase of a simulated block. */
	readonly feeRecipientOf: () => string;
}

export interface PlainSimulationDependencies extends AccountAgeDependencies {
	readonly simulations: Simulations;
}

/** Failures that a block to come may mend: nonces and funds that are not there yet, fees that have to fall. */
const MENDABLE: ReadonlySet<SimulationErrorCode> = new Set([
	"NONCE_GAP",
	"INSUFFICIENT_FUNDS",
	"FEE_CAP_TOO_LOW",
	"BLOB_FEE_CAP_TOO_LOW",
]);

/** Tries plain bundles. */
export class PlainSimulation {
	readonly #options: PlainSimulationOptions;
	readonly #deps: PlainSimulationDependencies;

	constructor(options: PlainSimulationOptions, dependencies: PlainSimulationDependencies) {
		this.#options = options;
		this.#deps = dependencies;
	}

	/**
	 * How it fares. Those that may revert may, but they must be valid in the block. Before it fails by an account the
	 * node is asked for that once more.
	 */
	async try(trial: PlainTrial): Promise<PlainVerdict> {
		try {
			const verdict = await this.#try(trial);
			if (verdict.kind !== "fails") return verdict;
			const sender = trial.transactions[verdict.entry]?.tx.from ?? "";
			const { code } = verdict.error;
			const isOld = await isOutdated({ sender, client: trial.client, code }, this.#deps);
			return isOld ? { kind: "outdated" } : verdict;
		} catch (thrown) {
			if (thrown instanceof UpstreamError) return { kind: "unavailable" };
			throw thrown;
		}
	}

	async #try(trial: PlainTrial): Promise<PlainVerdict> {
		const { transactions, client, block, next, priority, signal } = trial;
		const accounts = await this.#accounts(trial);
		for (const [entry, { tx }] of transactions.entries()) {
			const error = accountProblem(tx, accounts.get(tx.from), entry === 0);
			if (error !== null) return { kind: "fails", entry, error };
		}
		const outcomes = await this.#deps.simulations.simulate({
			block: {
				...next,
				number: block,
				timestamp: next.timestamp + (block - next.number) * this.#options.slotSeconds,
				stateBlock: next.number - 1,
				feeRecipient: this.#options.feeRecipientOf(),
			},
			...{ client, priority, accounts },
			...(signal === undefined ? {} : { signal }),
			transactions: transactions.map(({ tx }) => tx),
			mayFail: new Set(transactions.filter((one) => one.mayRevert).map(({ tx }) => tx.hash)),
		});
		for (const [entry, { mayRevert }] of transactions.entries()) {
			const outcome = outcomes[entry];
			if (outcome?.ok === true) continue;
			if (outcome === undefined || outcome.error.code === "NODE_UNAVAILABLE") return { kind: "unavailable" };
			const { error } = outcome;
			if (!mayRevert || !EXECUTION_FAILURES.has(error.code)) return { kind: "fails", entry, error };
		}
		return { kind: "passes" };
	}

	async #accounts({ transactions, client }: PlainTrial): Promise<ReadonlyMap<string, AccountState>> {
		const senders = [...new Set(transactions.map(({ tx }) => tx.from))];
		const states = await Promise.all(senders.map((sender) => this.#deps.accounts.get(sender, client)));
		return new Map(states.map((state, i) => [senders[i] ?? "", state]));
	}
}

/**
 * What is wrong with a transaction by its sender's account before the bundle: of nonces ahead and of funds nothing can
 * be said but of the `first`, since those before the others may bring them.
 */
function accountProblem(
	tx: DecodedTransaction,
	account: AccountState | undefined,
	first: boolean,
): SimulationError | null {
	const { code, nonce = 0n, balance = 0n } = account ?? {};
	if (code === "contract") {
		return { code: "EXECUTION_FAILED", message: `sender not an eoa: address ${tx.from} has code` };
	}
	const nonces = `next nonce ${nonce}, tx nonce ${tx.nonce}`;
	if (tx.nonce < nonce) return { code: "NONCE_TOO_LOW", message: `nonce too low: ${nonces}` };
	if (!first) return null;
	if (tx.nonce > nonce) return { code: "NONCE_GAP", message: `nonce too high: ${nonces}` };
	const cost = transactionCost(tx);
	if (cost <= balance) return null;
	const amounts = `balance ${balance}, tx cost ${cost}, overshot ${cost - balance}`;
	return { code: "INSUFFICIENT_FUNDS", message: `insufficient funds for gas * price + value: ${amounts}` };
}

/** Whether it may pass in a later block than the one that it was tried in. */
export function isMendable({ code }: SimulationError): boolean {
	return MENDABLE.has(code);
}

/** The refusal of a bundle that fails, worded as a backrun's. */
export function refusalOf({ entry, error }: Extract<PlainVerdict, { kind: "fails" }>): BundleOutcome {
	const { code, message } = error;
	if (!EXECUTION_FAILURES.has(code)) {
		return refusedBundle("BAD_TRANSACTION", `${message} (body[${entry}])`, true);
	}
	const why = message.replace(/^execution reverted(: )?/, "");
	return refusedBundle(
		"BUNDLE_REVERTED",
		`bundle reverted${why === "" ? "" : `: ${why}`} (body[${entry}])`,
		true,
	);
}
