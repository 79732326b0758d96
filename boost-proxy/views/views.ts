// What users are told of accounts and transactions, merged over all that may know. While the relay is well its answer counts;
// the rows, the fallback and the chain fill in what it does not know, and all of it while it is out. Whoever is out is not
// asked, and nobody longer than the request has.

import { readQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import {
	minedTransaction,
	pendingTransaction,
	type RpcTransaction,
} from "../../shared/ethereum/rpcObjects.ts";
import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import type { Upstream } from "../domain/ports.ts";
import {
	type Call,
	type CallResult,
	type RequestState,
	type RoutingInfo,
	relayStages,
	stagesCall,
} from "../domain/request.ts";
import { isEndedByUser, isHolder, isLive, type Row } from "../domain/row.ts";
import { attemptMs, unavailable, verdictError } from "../requests/failover.ts";
import { readStatus, type StatusAnswer, type ViewsDependencies } from "./statusView.ts";
import { isInBlock, transactionOf } from "./thirdParties.ts";

/** Reads an answer; undefined where it is none. */
type Read<T> = (answer: CallResult | null | undefined) => T | undefined;

/** Stages that a transaction does not come back from by itself; those of a mined one are not among them. */
const GONE: ReadonlySet<unknown> = new Set(["REPLACED", "CANCELLED", "EXPIRED", "DROPPED"]);

/** One view over relay, journal, fallback and chain. */
export class Views {
	readonly #with: ViewsDependencies;

	constructor(dependencies: ViewsDependencies) {
		this.#with = dependencies;
	}

	/** What `GET /tx/{hash}` answers; `hash` in lower case. Pages that are asked are counted in the routing info. */
	status(hash: string, routing?: RoutingInfo): Promise<StatusAnswer> {
		return readStatus(hash, routing, this.#with);
	}

	/** False where the relay's answer alone is the pending nonce of `address` (lower case). */
	needsMerging(address: string): boolean {
		// What the relay holds of them counts too: should it fail at this request, the fallback knows nothing of it.
		return this.#with.upstreams.relay.breaker.isUnavailable || this.#with.rows.of(address).length > 0;
	}

	/** False where the relay's answer alone is what is known of `hash` (lower case). */
	needsMergingHash(hash: string): boolean {
		return this.#with.upstreams.relay.breaker.isUnavailable || this.#with.rows.get(hash) !== null;
	}

	/**
	 * The next nonce of `address` (lower case) as a quantity: private transactions, wherever they are held, count without
	 * gaps. Throws RpcError `unavailable` where nobody can tell, ForeignRpcError for what the relay refused.
	 */
	async pendingNonce(address: string, state: RequestState): Promise<string> {
		const count = (tag: string): Call => ({ method: "eth_getTransactionCount", params: [address, tag] });
		const pending = count("pending");
		const relays = await this.#relays(pending, countOf, state);
		// A node may be behind with the one, or refuse the other.
		const base =
			relays ??
			(await this.#fallbacks(pending, countOf, state)) ??
			highest(await this.#chains([pending, count("latest")], countOf, state));
		if (base === undefined) throw unavailable("nobody who could count the account's transactions answers");
		// The relay has counted what it holds; what it holds and does not count is not pending there any more.
		const counts = ({ at }: Row) => relays === undefined || !isHolder(at.relay);
		const next = raised(base, this.#with.rows.of(address), counts);
		if (next > base) state.routing.answeredBy.add("journal");
		return toQuantity(next);
	}

	/**
	 * The transaction without its signature, or null. What its user has ended is null wherever it may still lie, unless it
	 * was mined all the same. Throws like {@link pendingNonce}.
	 */
	async byHash(hash: string, state: RequestState): Promise<RpcTransaction | null> {
		const call: Call = { method: "eth_getTransactionByHash", params: [hash] };
		const read: Read<RpcTransaction | null> = (answer) => transactionOf(answer, hash);
		const found = await this.#relays(call, read, state);
		const row = this.#with.rows.get(hash);
		const isOver = row !== null && isEndedByUser(row);
		if (found) return isOver && !isInBlock(found) ? null : this.#shown(found, true);
		if (found === null) {
			if (row === null || !isLive(row) || (await this.#isGoneAtRelay(hash, state))) return null;
			return this.#journals(hash, state);
		}
		const own = isOver ? null : await this.#journals(hash, state);
		const isKnown = own !== null || isOver;
		const known = isKnown ? undefined : await this.#fallbacks(call, read, state);
		const other = known === undefined ? (await this.#chains([call], read, state))[0] : known;
		// Its holder is out: it may have been mined, which a transaction that is over may have been too.
		if (isKnown) return other && isInBlock(other) ? this.#shown(other) : own;
		if (other === undefined) throw unavailable("nobody who could know the transaction answers");
		return other === null ? null : this.#shown(other);
	}

	/** What the relay answers; undefined where it is out or gives no answer. Throws ForeignRpcError for what it refused. */
	async #relays<T>(call: Call, read: Read<T>, state: RequestState): Promise<T | undefined> {
		const { relay } = this.#with.upstreams;
		return this.#ask(relay, call, state, (answer) => {
			if (answer?.ok !== false) return read(answer);
			state.routing.answeredBy.add(relay.name);
			throw verdictError(answer.error);
		});
	}

	/** What a fallback that knows private transactions answers; undefined where there is none. */
	async #fallbacks<T>(call: Call, read: Read<T>, state: RequestState): Promise<T | undefined> {
		const { fallback } = this.#with.upstreams;
		if (fallback?.dialect?.knowsPrivate !== true) return undefined;
		return this.#ask(fallback, call, state, read);
	}

	async #ask<T>(upstream: Upstream, call: Call, state: RequestState, read: Read<T>): Promise<T | undefined> {
		const { caller, routing, whole, path } = state;
		const leftMs = this.#leftMs(state);
		const deadlineMs = attemptMs("read", leftMs, leftMs, true);
		if (upstream.breaker.isUnavailable || deadlineMs === 0) return undefined;
		const found = read(await upstream.call(call, { deadlineMs, caller, routing, whole, path }));
		if (found !== undefined) routing.answeredBy.add(upstream.name);
		return found;
	}

	/** What the chain answers to each of `calls`. */
	async #chains<T>(
		calls: readonly Call[],
		read: Read<T>,
		state: RequestState,
	): Promise<readonly (T | undefined)[]> {
		const leftMs = this.#leftMs(state);
		const answers = leftMs > 0 ? ((await this.#with.chain.batch(calls, leftMs)) ?? []) : [];
		const found = answers.map(read);
		// Where it knows nothing the journal may.
		if (found.some((one) => one !== undefined && one !== null)) state.routing.answeredBy.add("boost");
		return found;
	}

	/** The pending object of what the journal holds, or null. */
	async #journals(hash: string, { routing }: RequestState): Promise<RpcTransaction | null> {
		const { rows } = this.#with;
		if (rows.live(hash)?.acknowledged !== true) return null;
		const raw = await rows.raw(hash).catch(() => null);
		// It may have ended meanwhile.
		if (raw === null || rows.live(hash) === null) return null;
		const decoded = decodeTransaction(raw);
		if (!decoded.ok) return null;
		routing.answeredBy.add("journal");
		return pendingTransaction(decoded.tx);
	}

	/**
	 * The relay shows nothing of what the journal holds. Either it has lost it, and gets it again, or it has ended it a
	 * moment ago, which it says itself. Where another one holds it too its end at the relay is not the whole truth.
	 */
	async #isGoneAtRelay(hash: string, state: RequestState): Promise<boolean> {
		const { rows, upstreams, observer } = this.#with;
		const deadlineMs = this.#leftMs(state);
		if (deadlineMs <= 0) return false;
		const { caller, routing } = state;
		const answer = await upstreams.relay.call(stagesCall([hash]), { deadlineMs, caller, routing });
		const stage = relayStages(answer)?.[0]?.stage ?? null;
		if (stage === null) return false;
		observer.learn(hash, stage);
		if (stage === "REPLACED" || stage === "CANCELLED") return true;
		const row = rows.live(hash);
		return GONE.has(stage) && !(row !== null && isHolder(row.at.fallback));
	}

	/** As our relay shows it, whoever gave it: without its signature, unless it is public and the operator has it shown. */
	#shown(found: RpcTransaction, byRelay = false): RpcTransaction {
		if (this.#with.signatureHiding === "pending" && (byRelay || isInBlock(found))) return found;
		const id = this.#with.chainId();
		return id === null
			? { ...minedTransaction(found, 0n), chainId: found.chainId ?? null }
			: minedTransaction(found, id);
	}

	#leftMs({ until }: RequestState): number {
		return until - this.#with.clock.monotonic();
	}
}

/**
 * `base` raised over the acknowledged `rows` (by nonce) that follow it without a gap; one at `base` itself only where
 * it `counts`. Behind that each does: who counted it alone did so only for the gap before it.
 */
function raised(base: bigint, rows: readonly Row[], counts: (row: Row) => boolean): bigint {
	let next = base;
	for (const row of rows) {
		if (row.nonce > next) break;
		if (row.nonce < next || !row.acknowledged) continue;
		if (next > base || counts(row)) next += 1n;
	}
	return next;
}

const countOf: Read<bigint> = (answer) =>
	answer?.ok === true ? (readQuantity(answer.result) ?? undefined) : undefined;

function highest(counts: readonly (bigint | undefined)[]): bigint | undefined {
	const [first, ...others] = counts.filter((one) => one !== undefined);
	return others.reduce((most, one) => (one > (most ?? 0n) ? one : most), first);
}
