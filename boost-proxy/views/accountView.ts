// The pending nonce of an account. Our relay's count is raised over what boost holds elsewhere, so that a wallet never reuses
// the nonce of a private transaction.

import { readQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import type { Call, CallResult } from "../domain/ports.ts";
import type { RequestState } from "../domain/request.ts";
import { isHolder, type Row } from "../domain/row.ts";
import { unavailable } from "../requests/failover.ts";
import { askFallback, askRelay } from "./sources.ts";
import type { Views, ViewsDependencies } from "./views.ts";

const METHOD = "eth_getTransactionCount";

/** See {@link Views.pendingNonce}. */
export function pendingNonceReader(dependencies: ViewsDependencies): Views["pendingNonce"] {
	const { rows } = dependencies;
	return async (address, state) => {
		const relays = await askRelay(pendingCall(address), countOf, state, dependencies);
		const base = relays ?? (await countElsewhere(address, state, dependencies));
		// The relay has counted what it holds; what it holds and does not count is not pending there any more.
		const counts = ({ at }: Row) => relays === undefined || !isHolder(at.relay);
		const next = raised(base, rows.of(address), counts);
		if (next > base) state.trail.answeredBy.add("journal");
		return toQuantity(next);
	};
}

/**
 * `base` raised over the acknowledged `rows` (by nonce) that follow it without a gap; one at `base` itself only where
 * it `counts`. Behind that each does: who counted it alone did so only for the gap before it.
 */
export function raised(base: bigint, rows: readonly Row[], counts: (row: Row) => boolean): bigint {
	let next = base;
	for (const row of rows) {
		if (row.nonce > next) break;
		if (row.nonce < next || !row.acknowledged) continue;
		if (next > base || counts(row)) next += 1n;
	}
	return next;
}

/** The count of a fallback that counts private transactions, else the chain's. Throws RpcError `unavailable`. */
async function countElsewhere(
	address: string,
	state: RequestState,
	dependencies: ViewsDependencies,
): Promise<bigint> {
	const pending = pendingCall(address);
	const count = await askFallback(pending, countOf, state, dependencies);
	if (count !== undefined) return count;
	const left = state.until - dependencies.clock.monotonic();
	const latest = { method: METHOD, params: [address, "latest"] };
	const counts =
		left > 0 ? ((await dependencies.chain.batch([pending, latest], left)) ?? []).map(countOf) : [];
	// A node may be behind with the one, or refuse the other.
	let most: bigint | undefined;
	for (const count of counts) if (count !== undefined && (most === undefined || count > most)) most = count;
	if (most === undefined) throw unavailable("nobody who could count the account's transactions answers");
	state.trail.answeredBy.add("boost");
	return most;
}

function pendingCall(address: string): Call {
	return { method: METHOD, params: [address, "pending"] };
}

function countOf(answer: CallResult | null | undefined): bigint | undefined {
	return answer?.ok === true ? (readQuantity(answer.result) ?? undefined) : undefined;
}
