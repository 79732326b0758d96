// The pending nonce of an account: an address comes in, the count of our relay, of the fallback or of the chain, raised
// over what the journal holds, goes out.

import { readQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import type { OpenEntry } from "../domain/journalEntry.ts";
import type { CallResult } from "../domain/ports.ts";
import type { RequestState } from "../domain/request.ts";
import { attemptMs } from "../requests/budget.ts";
import { unavailable, verdictError } from "../requests/failover.ts";
import type { Views, ViewsDependencies } from "./views.ts";

const METHOD = "eth_getTransactionCount";

/** See {@link Views.pendingNonce}. */
export function pendingNonceReader(dependencies: ViewsDependencies): Views["pendingNonce"] {
	const { journal, upstreams } = dependencies;
	return async (address, state) => {
		const relays = await relayCount(address, state, dependencies);
		const base = relays ?? (await countElsewhere(address, state, dependencies));
		// The relay has counted what it holds; what it holds and does not count is not pending there any more.
		const counts = (entry: OpenEntry) => relays === null || !entry.holders.includes(upstreams.relay.name);
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

/** The relay's word; null where it is out or gave none. Throws ForeignRpcError for what it refused. */
async function relayCount(
	address: string,
	state: RequestState,
	{ upstreams, clock }: ViewsDependencies,
): Promise<bigint | null> {
	const { relay } = upstreams;
	if (relay.breaker.isOut) return null;
	const { asker, trail, whole, path, until } = state;
	const left = until - clock.monotonic();
	const deadlineMs = attemptMs("read", left, left, true);
	if (deadlineMs === 0) return null;
	const call = { method: METHOD, params: [address, "pending"] };
	const answer = await relay.call(call, { deadlineMs, asker, trail, whole, path });
	if (answer === null) return null;
	if (!answer.ok) {
		trail.answeredBy.add(relay.name);
		throw verdictError(answer.error);
	}
	const count = countOf(answer);
	if (count !== null) trail.answeredBy.add(relay.name);
	return count;
}

/** The count of a fallback that counts private transactions, else the chain's. Throws RpcError `unavailable`. */
async function countElsewhere(
	address: string,
	state: RequestState,
	{ upstreams, chain, clock }: ViewsDependencies,
): Promise<bigint> {
	const { asker, trail, path, until } = state;
	const { fallback } = upstreams;
	const pending = { method: METHOD, params: [address, "pending"] };
	if (fallback?.dialect?.knowsPrivate === true && !fallback.breaker.isOut) {
		const left = until - clock.monotonic();
		const deadlineMs = attemptMs("read", left, left, true);
		const answer = deadlineMs > 0 ? await fallback.call(pending, { deadlineMs, asker, trail, path }) : null;
		const count = countOf(answer);
		if (count !== null) {
			trail.answeredBy.add(fallback.name);
			return count;
		}
	}
	const left = until - clock.monotonic();
	const latest = { method: METHOD, params: [address, "latest"] };
	const counts = left > 0 ? ((await chain.batch([pending, latest], left)) ?? []).map(countOf) : [];
	// A node may be behind with the one, or refuse the other.
	let most: bigint | null = null;
	for (const count of counts) if (count !== null && (most === null || count > most)) most = count;
	if (most === null) throw unavailable("nobody who could count the account's transactions answers");
	trail.answeredBy.add("boost");
	return most;
}

function countOf(answer: CallResult | null): bigint | null {
	return answer?.ok === true ? readQuantity(answer.result) : null;
}
