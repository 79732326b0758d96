// How views ask for a client: the relay, a fallback that knows private transactions, and the chain. Who is out is not asked,
// nobody longer than the request has, and a third party's answer is believed only where it is about the hash.

import type { RpcTransaction } from "../../shared/ethereum/rpcTransaction.ts";
import type { Call, CallResult, ChainReads } from "../domain/ports.ts";
import type { RequestState } from "../domain/request.ts";
import { attemptMs, verdictError } from "../requests/failover.ts";
import type { ViewsDependencies } from "./views.ts";

/** A mined transaction. */
export interface Mined {
	/** The node's object, or null where it gave none. */
	readonly transaction: RpcTransaction | null;
	readonly reverted: boolean;
}

/** The transaction with its receipt where it is mined; null where it is not, undefined where nobody can tell. */
export async function minedOnChain(
	chain: ChainReads,
	hash: string,
	deadlineMs: number,
): Promise<Mined | null | undefined> {
	if (deadlineMs <= 0) return undefined;
	const params = [hash];
	const calls = [
		{ method: "eth_getTransactionReceipt", params },
		{ method: "eth_getTransactionByHash", params },
	];
	const [receipt, transaction] = (await chain.batch(calls, deadlineMs)) ?? [];
	if (receipt?.ok !== true) return undefined;
	if (receipt.result === null) return null;
	const mined = isObject(receipt.result) ? receipt.result : {};
	if (!isHash(mined.transactionHash, hash) || !isBlock(mined.blockHash)) return undefined;
	return { transaction: transactionOf(transaction, hash) ?? null, reverted: mined.status === "0x0" };
}

/** The object in an answer to `eth_getTransactionByHash`; null where there is none, undefined where it is no answer. */
export function transactionOf(
	answer: CallResult | null | undefined,
	hash: string,
): RpcTransaction | null | undefined {
	if (answer?.ok !== true) return undefined;
	if (answer.result === null) return null;
	return isObject(answer.result) && isHash(answer.result.hash, hash) ? answer.result : undefined;
}

/** Whether a transaction object is of one in a block. */
export function isInBlock(transaction: RpcTransaction): boolean {
	return isBlock(transaction.blockHash);
}

function isBlock(value: unknown): boolean {
	return typeof value === "string";
}

function isHash(value: unknown, hash: string): boolean {
	return typeof value === "string" && value.toLowerCase() === hash;
}

/** Whether it is a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

type Asking = Pick<ViewsDependencies, "upstreams" | "clock">;

/** Reads an answer; undefined where it is none. */
export type Read<T> = (answer: CallResult | null | undefined) => T | undefined;

/** The relay's word, undefined where it is out or gave none. Throws ForeignRpcError for what it refused. */
export async function askRelay<T>(
	call: Call,
	read: Read<T>,
	state: RequestState,
	{ upstreams: { relay }, clock }: Asking,
): Promise<T | undefined> {
	const { asker, trail, whole, path } = state;
	const deadlineMs = deadlineOf(state, clock);
	if (relay.breaker.isOut || deadlineMs === 0) return undefined;
	const answer = await relay.call(call, { deadlineMs, asker, trail, whole, path });
	if (answer?.ok === false) {
		trail.answeredBy.add(relay.name);
		throw verdictError(answer.error);
	}
	const found = read(answer);
	if (found !== undefined) trail.answeredBy.add(relay.name);
	return found;
}

/** The word of a fallback that knows private transactions; undefined where there is none. */
export async function askFallback<T>(
	call: Call,
	read: Read<T>,
	state: RequestState,
	{ upstreams: { fallback }, clock }: Asking,
): Promise<T | undefined> {
	const { asker, trail, path } = state;
	const deadlineMs = deadlineOf(state, clock);
	if (fallback?.dialect?.knowsPrivate !== true || fallback.breaker.isOut || deadlineMs === 0)
		return undefined;
	const found = read(await fallback.call(call, { deadlineMs, asker, trail, path }));
	if (found !== undefined) trail.answeredBy.add(fallback.name);
	return found;
}

function deadlineOf({ until }: RequestState, clock: { monotonic(): number }): number {
	const left = until - clock.monotonic();
	return attemptMs("read", left, left, true);
}
