// eth_getTransactionByHash over all that may know, always without the signature. What its user has ended is null wherever it
// may still lie, unless it was mined all the same.

import {
	minedTransaction,
	pendingTransaction,
	type RpcTransaction,
} from "../../shared/ethereum/rpcTransaction.ts";
import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import type { Call } from "../domain/ports.ts";
import { type RequestState, relayStages, stagesCall } from "../domain/request.ts";
import { isEndedByUser, isHolder, isLive } from "../domain/row.ts";
import { unavailable } from "../requests/failover.ts";
import { askFallback, askRelay, isInBlock, transactionOf } from "./sources.ts";
import type { Views, ViewsDependencies } from "./views.ts";

const METHOD = "eth_getTransactionByHash";
/** Stages that a transaction does not come back from by itself; those of a mined one are not among them. */
const GONE: ReadonlySet<unknown> = new Set(["REPLACED", "CANCELLED", "EXPIRED", "DROPPED"]);

/** See {@link Views.byHash}. */
export function transactionReader(dependencies: ViewsDependencies): Views["byHash"] {
	const { rows } = dependencies;
	return async (hash, state) => {
		const found = await askRelay(callOf(hash), (answer) => transactionOf(answer, hash), state, dependencies);
		const row = rows.get(hash);
		const isOver = row !== null && isEndedByUser(row);
		if (found) return isOver && !isInBlock(found) ? null : hidden(found, dependencies);
		if (found === null) {
			if (row === null || !isLive(row)) return null;
			if (await isGoneAtRelay(hash, state, dependencies)) return null;
			return ofJournal(hash, state, dependencies);
		}
		const own = isOver ? null : await ofJournal(hash, state, dependencies);
		if (own === null && !isOver) return elsewhere(hash, state, dependencies);
		// Its holder is out: it may have been mined, which a transaction that is over may have been too.
		const mined = await onChain(hash, state, dependencies);
		return mined && isInBlock(mined) ? hidden(mined, dependencies) : own;
	};
}

/**
 * The relay shows nothing of what the journal holds. Either it has lost it, and gets it again, or it has ended it a
 * moment ago, which it says itself. Where another one holds it too its end at the relay is not the whole truth.
 */
async function isGoneAtRelay(
	hash: string,
	state: RequestState,
	{ rows, upstreams, observer, clock }: ViewsDependencies,
): Promise<boolean> {
	const { relay } = upstreams;
	const left = state.until - clock.monotonic();
	if (left <= 0) return false;
	const { asker, trail } = state;
	const answer = await relay.call(stagesCall([hash]), { deadlineMs: left, asker, trail });
	const stage = relayStages(answer)?.[0]?.stage ?? null;
	if (stage === null) return false;
	observer?.learn(hash, stage);
	if (stage === "REPLACED" || stage === "CANCELLED") return true;
	const row = rows.live(hash);
	return GONE.has(stage) && !(row !== null && isHolder(row.at.fallback));
}

/** The pending object of what the journal holds, or null. */
async function ofJournal(
	hash: string,
	{ trail }: RequestState,
	{ rows }: ViewsDependencies,
): Promise<RpcTransaction | null> {
	if (rows.live(hash)?.acknowledged !== true) return null;
	const raw = await rows.raw(hash).catch(() => null);
	// It may have ended meanwhile.
	if (raw === null || rows.live(hash) === null) return null;
	const decoded = decodeTransaction(raw);
	if (!decoded.ok) return null;
	trail.answeredBy.add("journal");
	return pendingTransaction(decoded.tx);
}

/** What a fallback that knows private transactions says, else the chain. Throws RpcError `unavailable`. */
async function elsewhere(
	hash: string,
	state: RequestState,
	dependencies: ViewsDependencies,
): Promise<RpcTransaction | null> {
	const known = await askFallback(callOf(hash), (answer) => transactionOf(answer, hash), state, dependencies);
	if (known !== undefined) return known === null ? null : hidden(known, dependencies);
	const found = await onChain(hash, state, dependencies);
	if (found === undefined) throw unavailable("nobody who could know the transaction answers");
	return found === null ? null : hidden(found, dependencies);
}

function callOf(hash: string): Call {
	return { method: METHOD, params: [hash] };
}

async function onChain(
	hash: string,
	{ until, trail }: RequestState,
	{ chain, clock }: ViewsDependencies,
): Promise<RpcTransaction | null | undefined> {
	const left = until - clock.monotonic();
	if (left <= 0) return undefined;
	const [answer] = (await chain.batch([callOf(hash)], left)) ?? [];
	const found = transactionOf(answer, hash);
	// Where it knows nothing the journal may.
	if (found !== undefined && found !== null) trail.answeredBy.add("boost");
	return found;
}

/** As our relay shows it, whoever gave it. */
function hidden(found: RpcTransaction, { chainId }: ViewsDependencies): RpcTransaction {
	const id = chainId();
	return id === null
		? { ...minedTransaction(found, 0n), chainId: found.chainId ?? null }
		: minedTransaction(found, id);
}
