// Reads the facts about a transaction from the public API of a relay or boost.

import type { Clock } from "../clock.ts";
import { parseNodeQuantity } from "../ethereum/hex.ts";
import type { StatusRecord } from "../ethereum/statusRecord.ts";
import { JsonRpcClient, UpstreamError } from "../jsonrpc/client.ts";
import { isObject } from "../jsonrpc/fields.ts";
import { advice } from "../outgoing/advice.ts";
import { HttpClient, symptomOf } from "../outgoing/httpClient.ts";
import type { ChainFacts, Facts, Journal, Life } from "./story.ts";

/** Deadline of each request, in ms. */
const DEADLINE_MS = 10_000;

/** No server gave an answer. The message is for the user. */
export class UnansweredError extends Error {}

/** The facts about `hash` from the server at `url`. Throws {@link UnansweredError}. */
export async function factsOf(hash: string, url: string, clock: Clock): Promise<Facts> {
	const http = new HttpClient({ url, connections: 2 }, { clock });
	const rpc = new JsonRpcClient({ url, timeoutMs: DEADLINE_MS }, { clock });
	const get = async (target: string): Promise<unknown> => {
		const result = await http.request({
			method: "GET",
			target,
			headers: {},
			body: null,
			deadlineMs: DEADLINE_MS,
		});
		const body = result.kind === "answered" ? parsed(result.body) : undefined;
		if (result.kind === "answered" && result.status === 200 && isObject(body)) return body;
		if (result.kind === "answered" && isObject(body) && typeof body.error === "string") return null;
		const hint = result.kind === "aborted" ? null : advice("RELAY_URL", symptomOf(result));
		throw new UnansweredError(
			`${http.host} does not answer as a relay or boost${hint === null ? "" : ` (${hint})`}`,
		);
	};
	try {
		const life = (await get(`/tx/${hash}/events`)) as Life | null;
		const record = (await get(`/tx/${hash}`)) as StatusRecord | null;
		if (record === null || typeof record.status !== "string") {
			throw new UnansweredError(`no relay behind ${http.host} knows it: the relay is down, or there is none`);
		}
		const journal = (await get(`/tx/${hash}/journal`)) as Journal | null;
		return {
			record,
			life: Array.isArray(life?.events) ? life : null,
			journal: typeof journal?.fallback === "string" ? journal : null,
			chain: await chainFacts(hash, rpc),
		};
	} finally {
		await Promise.all([http.close(), rpc.close()]);
	}
}

async function chainFacts(hash: string, rpc: JsonRpcClient): Promise<ChainFacts> {
	const ask = async (method: string, ...params: readonly unknown[]): Promise<Record<string, unknown>> => {
		try {
			const answer = await rpc.call({ method, params }, DEADLINE_MS);
			return answer.ok && isObject(answer.result)
				? answer.result
				: { value: answer.ok ? answer.result : null };
		} catch (thrown) {
			if (thrown instanceof UpstreamError) return {};
			throw thrown;
		}
	};
	const [tx, head, receipt] = [
		await ask("eth_getTransactionByHash", hash),
		await ask("eth_getBlockByNumber", "latest", false),
		await ask("eth_getTransactionReceipt", hash),
	];
	const next = typeof tx.from === "string" ? await ask("eth_getTransactionCount", tx.from, "latest") : {};
	return {
		maxFeePerGas: quantity(tx.maxFeePerGas),
		maxPriorityFeePerGas: quantity(tx.maxPriorityFeePerGas),
		nonce: number(tx.nonce),
		nextNonce: number(next.value),
		head: number(head.number),
		baseFee: quantity(head.baseFeePerGas),
		minedIn: number(receipt.blockNumber),
	};
}

function quantity(value: unknown): bigint | null {
	return parseNodeQuantity(value);
}

function number(value: unknown): number | null {
	const found = parseNodeQuantity(value);
	return found === null ? null : Number(found);
}

function parsed(body: Buffer): unknown {
	try {
		return JSON.parse(body.toString("utf8"));
	} catch {
		return undefined;
	}
}
