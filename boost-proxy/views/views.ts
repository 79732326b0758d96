// Answers reads of pending nonces and transactions, merged from several sources. While the relay is
// available, its answer counts. The rows, the fallback and the chain add what it does not know.
// They replace it while it is unavailable.

import { parseAddress, parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import {
	pendingTransaction,
	type RpcTransaction,
	withoutSignature,
} from "../../shared/ethereum/rpcObjects.ts";
import { ENDED_STAGES } from "../../shared/ethereum/statusRecord.ts";
import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import type { RpcAnswer, RpcCall } from "../../shared/jsonrpc/client.ts";
import { asksPending } from "../../shared/jsonrpc/reads.ts";
import { attemptMs } from "../domain/budget.ts";
import { hasSubmitted } from "../domain/owners.ts";
import type { Upstream } from "../domain/ports.ts";
import {
	type Caller,
	ownAddress,
	type RequestState,
	type RoutingInfo,
	relayStages,
	stagesCall,
} from "../domain/request.ts";
import { isEndedByUser, isHolder, isLive, type Row } from "../domain/row.ts";
import { unavailable, verdictError } from "../requests/failover.ts";
import { type JournalReport, readJournal } from "./journalView.ts";
import { findAnywhere, readStatus, type StatusAnswer, type ViewsDependencies } from "./statusView.ts";
import { isInBlock, transactionOf } from "./thirdParties.ts";

/** Reads an answer; undefined if there is none or it is malformed. */
type Read<T> = (answer: RpcAnswer | null | undefined) => T | undefined;

/** Final stages other than those of mined transactions. */
const ENDED: ReadonlySet<unknown> = new Set(ENDED_STAGES);

export class Views {
	readonly #dependencies: ViewsDependencies;

	constructor(dependencies: ViewsDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * The answer of `GET /tx/{hash}` for a client at `address`; `hash` in lower case. `routing`
	 * counts requests to upstreams. Throws RpcError `unavailable` if the answer depends on the
	 * unknown state of another boost instance.
	 */
	status(hash: string, address: string, routing?: RoutingInfo): Promise<StatusAnswer> {
		return readStatus(hash, address, routing, this.#dependencies);
	}

	/**
	 * The answer of `GET /tx/{hash}/journal`; null if boost did not accept the transaction. Throws
	 * like {@link status}.
	 */
	journal(hash: string, address: string): Promise<JournalReport | null> {
		return readJournal(hash, address, this.#dependencies);
	}

	/** False if the relay's answer alone is the pending nonce of `address` (lower case). */
	needsMerging(address: string): boolean {
		// Also true if the relay has all rows: if this request to it fails, the fallback does not know
		// them.
		const { upstreams, rows, others } = this.#dependencies;
		return upstreams.relay.breaker.isUnavailable || !others.isAlone || rows.liveOf(address).length > 0;
	}

	/** False if the relay's answer about `hash` (lower case) is enough. */
	needsMergingHash(hash: string): boolean {
		const { upstreams, rows, others } = this.#dependencies;
		return upstreams.relay.breaker.isUnavailable || !others.isAlone || rows.has(hash);
	}

	/**
	 * The call in the form that the fallback may get. The fallback only knows boost, which delivered
	 * the transactions. So it would run anybody's call on top of the sender's pending transactions.
	 * It therefore gets the call on the chain's state, unless all of them belong to the caller.
	 */
	forFallback(call: RpcCall, caller: Caller): RpcCall {
		const { method, params } = call;
		if (!asksPending(method, params)) return call;
		const { from } = (params[0] ?? {}) as { from?: unknown };
		const sender = typeof from === "string" ? parseAddress(from) : null;
		const live = sender === null ? [] : this.#dependencies.rows.liveOf(sender);
		if (live.length > 0 && live.every((row) => hasSubmitted(row, ownAddress(caller)))) return call;
		return { method, params: [params[0], "latest", ...params.slice(2)] };
	}

	/**
	 * The next nonce of `address` (lower case) as a quantity. Private transactions at any upstream
	 * count, up to the first gap. Throws RpcError `unavailable` if no source answers or the state of
	 * other boost instances is unknown. Throws ForeignRpcError for an error of the relay.
	 */
	async pendingNonce(address: string, state: RequestState): Promise<string> {
		const count = (tag: string): RpcCall => ({ method: "eth_getTransactionCount", params: [address, tag] });
		const pending = count("pending");
		const relays = await this.#relays(pending, countOf, state);
		// A node's pending count may lag behind, or either call may fail.
		const base =
			relays ??
			(await this.#fallbacks(pending, countOf, state)) ??
			highest(await this.#chains([pending, count("latest")], countOf, state));
		if (base === undefined)
			throw unavailable("no upstream that can count the account's transactions responds");
		// The relay has counted its own transactions. Those that it does not count are no longer
		// pending there.
		const counts = ({ at }: Row) => relays === undefined || !isHolder(at.relay);
		const next = raised(base, await this.#liveOf(address), counts);
		if (next > base) state.routing.answeredBy.add("journal");
		return toQuantity(next);
	}

	/**
	 * The transaction without its signature, or null. A transaction that its user ended is null even
	 * if an upstream still has it, unless it was mined. Throws like {@link pendingNonce}.
	 */
	async byHash(hash: string, state: RequestState): Promise<RpcTransaction | null> {
		const call: RpcCall = { method: "eth_getTransactionByHash", params: [hash] };
		const read: Read<RpcTransaction | null> = (answer) => transactionOf(answer, hash);
		const found = await this.#relays(call, read, state);
		// No row overrules a block.
		if (found && isInBlock(found)) return this.#shown(found, true);
		const row = await findAnywhere(hash, state.caller.address, this.#dependencies);
		const isOver = row !== null && isEndedByUser(row);
		if (found) return isOver ? null : this.#shown(found, true);
		if (found === null) {
			if (row === null || !isLive(row) || (await this.#isGoneAtRelay(row, state))) return null;
			return this.#journals(row, state);
		}
		const own = isOver ? null : await this.#journals(row, state);
		const isKnown = own !== null || isOver;
		const fallbacks = isKnown ? undefined : await this.#fallbacks(call, read, state);
		const other = fallbacks === undefined ? (await this.#chains([call], read, state))[0] : fallbacks;
		// The relay gave no answer: the transaction may have been mined, even one that its user ended.
		if (isKnown) return other && isInBlock(other) ? this.#shown(other) : own;
		if (other === undefined) throw unavailable("no upstream that might know the transaction responds");
		return other === null ? null : this.#shown(other);
	}

	/**
	 * The relay's answer; undefined if it is unavailable or gives none. Throws ForeignRpcError for
	 * its error.
	 */
	async #relays<T>(call: RpcCall, read: Read<T>, state: RequestState): Promise<T | undefined> {
		const { relay } = this.#dependencies.upstreams;
		return this.#ask(relay, call, state, (answer) => {
			if (answer?.ok !== false) return read(answer);
			state.routing.answeredBy.add(relay.name);
			throw verdictError(answer.error);
		});
	}

	/** The answer of a fallback that knows private transactions; undefined if there is none. */
	async #fallbacks<T>(call: RpcCall, read: Read<T>, state: RequestState): Promise<T | undefined> {
		const { fallback } = this.#dependencies.upstreams;
		if (fallback?.dialect?.knowsPrivate !== true) return undefined;
		return this.#ask(fallback, call, state, read);
	}

	async #ask<T>(
		upstream: Upstream,
		call: RpcCall,
		state: RequestState,
		read: Read<T>,
	): Promise<T | undefined> {
		const { caller, routing, path } = state;
		const leftMs = this.#leftMs(state);
		const deadlineMs = attemptMs("read", leftMs, leftMs, true);
		if (upstream.breaker.isUnavailable || deadlineMs === 0) return undefined;
		const found = read(await upstream.call(call, { deadlineMs, caller, routing, path }));
		if (found !== undefined) routing.answeredBy.add(upstream.name);
		return found;
	}

	/** The chain's answer to each of `calls`. */
	async #chains<T>(
		calls: readonly RpcCall[],
		read: Read<T>,
		state: RequestState,
	): Promise<readonly (T | undefined)[]> {
		const leftMs = this.#leftMs(state);
		const answers = leftMs > 0 ? ((await this.#dependencies.chain.batch(calls, leftMs)) ?? []) : [];
		const found = answers.map(read);
		// Boost is named as the source only if the chain knew something.
		if (found.some((one) => one !== undefined && one !== null)) state.routing.answeredBy.add("boost");
		return found;
	}

	/** A live transaction of the journal as a pending object, or null. */
	async #journals(row: Row | null, { routing }: RequestState): Promise<RpcTransaction | null> {
		if (row === null || !isLive(row) || !row.acknowledged) return null;
		const raw = await this.#dependencies.rows.rawOf(row).catch(() => null);
		// It may have ended in between.
		if (raw === null) return null;
		const decoded = decodeTransaction(raw);
		if (!decoded.ok) return null;
		routing.answeredBy.add("journal");
		return pendingTransaction(decoded.tx);
	}

	/**
	 * For a live row that the relay does not know: whether it has ended there, rather than been lost.
	 * An end at the relay alone does not count while the fallback has it too, except a cancel or a
	 * replacement.
	 */
	async #isGoneAtRelay({ hash, at }: Row, state: RequestState): Promise<boolean> {
		const { rows, upstreams, observer } = this.#dependencies;
		const deadlineMs = this.#leftMs(state);
		if (deadlineMs <= 0) return false;
		const { caller, routing } = state;
		const answer = await upstreams.relay.call(stagesCall([hash]), { deadlineMs, caller, routing });
		const stage = relayStages(answer)?.[0]?.stage ?? null;
		if (stage === null) return false;
		observer.learn(hash, stage);
		if (stage === "REPLACED" || stage === "CANCELLED") return true;
		return ENDED.has(stage) && !isHolder((rows.live(hash)?.at ?? at).fallback);
	}

	/** The live rows of an account, by nonce. */
	#liveOf(address: string): Promise<readonly Row[]> | readonly Row[] {
		const { rows, others } = this.#dependencies;
		return others.isAlone ? rows.liveOf(address) : others.liveOf(address);
	}

	/** The object without its signature, as our relay shows it; with it if the setting allows. */
	#shown(found: RpcTransaction, byRelay = false): RpcTransaction {
		if (this.#dependencies.signatureHiding === "pending" && (byRelay || isInBlock(found))) return found;
		const id = this.#dependencies.chainId();
		return id === null
			? { ...withoutSignature(found, 0n), chainId: found.chainId ?? null }
			: withoutSignature(found, id);
	}

	#leftMs({ until }: RequestState): number {
		return until - this.#dependencies.clock.monotonic();
	}
}

/**
 * `base` raised over the acknowledged `rows` (sorted by nonce) that follow it without a gap. A row
 * at `base` itself counts only if `counts` is true for it. Later rows always count.
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
	answer?.ok === true ? (parseNodeQuantity(answer.result) ?? undefined) : undefined;

function highest(counts: readonly (bigint | undefined)[]): bigint | undefined {
	const [first, ...others] = counts.filter((one) => one !== undefined);
	return others.reduce((most, one) => (one > (most ?? 0n) ? one : most), first);
}
