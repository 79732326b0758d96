// The pending nonce of an account: an address comes in, the count of our relay, of the fallback or of the chain, raised
// over what the journal holds, goes out.

import { readQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import type { OpenEntry } from "../domain/journalEntry.ts";
import type { Call, CallResult } from "../domain/ports.ts";
import type { RequestState } from "../domain/request.ts";
import { unavailable } from "../requests/failover.ts";
import { askFallback, askRelay } from "./asking.ts";
import type { Views, ViewsDependencies } from "./views.ts";

const METHOD = "eth_getTransactionCount";

/** See {@link Views.pendingNonce}. */
export function pendingNonceReader(dependencies: ViewsDependencies): Views["pendingNonce"] {
	const { journal, upstreams } = dependencies;
	return async (address, state) => {
		const relays = await askRelay(pendingCall(address), countOf, state, dependencies);
		const base = relays ?? (await countElsewhere(address, state, dependencies));
		// The relay has counted what it holds; what it holds and does not count is not pending there any more.
		const counts = (entry: OpenEntry) =>
			relays === undefined || !entry.holders.includes(upstreams.relay.name);
		const next = raised(base, journal.of(address), counts);
		if (next > base) state.trail.answeredBy.add("journal");
		return toQuantity(next);
	};
}

/**
 * `base` raised over the acknowledged `entries` (by nonce) that follow it without a gap; one at `base` itself only where
 * it `counts`. Behind that each does: who counted it alone did so only for the gap before it.
 */
export function raised(
	base: bigint,
	entries: readonly OpenEntry[],
	counts: (entry: OpenEntry) => boolean,
): bigint {
	let next = base;
	for (const entry of entries) {
		if (entry.nonce > next) break;
		if (entry.nonce < next || !entry.acknowledged) continue;
		if (next > base || counts(entry)) next += 1n;
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
