// What users are told of accounts and transactions, merged over all that may know. While the relay is well its answer counts;
// the rows, the fallback and the chain fill in what it does not know, and all of it while it is out.

import type { Clock } from "../../shared/clock.ts";
import type { RpcTransaction } from "../../shared/ethereum/rpcTransaction.ts";
import type { ChainReads, RowReads, Upstreams } from "../domain/ports.ts";
import type { RequestState, Trail } from "../domain/request.ts";
import { pendingNonceReader } from "./accountView.ts";
import { type StatusAnswer, statusReader } from "./statusView.ts";
import { transactionReader } from "./transactionView.ts";

/** Hears of stages that were read on the way. */
export interface StageListener {
	learn(hash: string, stage: string): void;
}

export interface ViewsDependencies {
	readonly rows: RowReads;
	readonly upstreams: Upstreams;
	readonly chain: ChainReads;
	readonly observer?: StageListener;
	readonly clock: Clock;
	/** Null until somebody told it. */
	readonly chainId: () => bigint | null;
}

/** One view over relay, journal, fallback and chain. */
export interface Views {
	/** False where the relay's answer alone is the pending nonce of `address` (lower case). */
	needsMerging(address: string): boolean;
	/** False where the relay's answer alone is what is known of `hash` (lower case). */
	needsMergingHash(hash: string): boolean;
	/**
	 * The next nonce of `address` (lower case) as a quantity: private transactions, wherever they are held, count without
	 * gaps. Throws RpcError `unavailable` where nobody can tell, ForeignRpcError for what the relay refused.
	 */
	pendingNonce(address: string, state: RequestState): Promise<string>;
	/** The transaction without its signature, or null. Throws like {@link pendingNonce}. */
	byHash(hash: string, state: RequestState): Promise<RpcTransaction | null>;
	/** What `GET /tx/{hash}` answers; `hash` in lower case. Pages that are asked are counted on `trail`. */
	status(hash: string, trail?: Trail): Promise<StatusAnswer>;
}

/** Makes the views. */
export function createViews(dependencies: ViewsDependencies): Views {
	const { rows, upstreams } = dependencies;
	const { relay } = upstreams;
	return {
		// What the relay holds of them counts too: should it fail at this request, the fallback knows nothing of it.
		needsMerging: (address) => relay.breaker.isOut || rows.of(address).length > 0,
		needsMergingHash: (hash) => relay.breaker.isOut || rows.get(hash) !== null,
		pendingNonce: pendingNonceReader(dependencies),
		byHash: transactionReader(dependencies),
		status: statusReader(dependencies),
	};
}
