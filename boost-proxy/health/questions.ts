// Boost's own requests to an upstream, and what an answer shows: the upstream works, or why not.
// None has an effect there.

import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import { NO_TRANSACTION } from "../../shared/ethereum/transaction.ts";
import { RPC_ERRORS } from "../../shared/jsonrpc/errors.ts";
import type { ProbeResult, Transport } from "../domain/ports.ts";
import { type Answer, answerOf, parsed } from "../upstream/verdict.ts";

type Failed = { readonly result: Exclude<ProbeResult, "ok"> };
/** A number, or why it could not be read. */
export type Asked = { readonly result: "ok"; readonly quantity: bigint } | Failed;

/** Rate limit: concerns boost's own address only. */
const LIMIT = RPC_ERRORS.limit.code;
const INTERNAL = RPC_ERRORS.internal.code;

/** A check of our relay's /readyz that fails. */
interface FailedCheck {
	readonly name: string;
	readonly reason: string;
}

/** The maximum length of a reason, in characters. */
const MAX_REASON = 240;

/** The failed checks of an answer to /readyz; null if no relay wrote it. Its reasons are public. */
export function failedChecks(body: Buffer): readonly FailedCheck[] | null {
	const { checks } = (parsed(body) ?? {}) as { readonly checks?: unknown };
	if (typeof checks !== "object" || checks === null) return null;
	return Object.entries(checks as Readonly<Record<string, unknown>>).flatMap(([name, check]) => {
		const { ok, reason } = (check ?? {}) as { readonly ok?: unknown; readonly reason?: unknown };
		if (ok !== false || typeof reason !== "string" || !/^\w{1,20}$/.test(name)) return [];
		return [{ name, reason: reason.replace(/[^\x20-\x7e]/g, "").slice(0, MAX_REASON) }];
	});
}

/** One call for a number, within `deadlineMs`. */
export async function askNumber(transport: Transport, method: string, deadlineMs: number): Promise<Asked> {
	const asked = await ask(transport, method, [], deadlineMs);
	if ("result" in asked) return asked;
	const { answer, status } = asked;
	if (answer.kind === "error") return { result: resultOf(answer.error.code, status) };
	const quantity = parseNodeQuantity(answer.result);
	return quantity === null ? { result: "notJsonRpc" } : { result: "ok", quantity };
}

/**
 * Submits an invalid transaction. Any verdict shows that the upstream answers submissions. Reads
 * may work while submissions hang or fail. A rate limit counts as a success.
 */
export async function askSubmission(transport: Transport, deadlineMs: number): Promise<ProbeResult> {
	const asked = await ask(transport, "eth_sendRawTransaction", [NO_TRANSACTION], deadlineMs);
	if ("result" in asked) return asked.result === "limited" ? "ok" : asked.result;
	return asked.answer.kind === "error" && asked.answer.error.code === INTERNAL ? "internal" : "ok";
}

/** One call to the transport's base URL: its answer, or why there is none. */
async function ask(
	transport: Transport,
	method: string,
	params: readonly unknown[],
	deadlineMs: number,
): Promise<{ readonly answer: Answer; readonly status: number } | Failed> {
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
	const response = await transport.post({ target: "", body, headers: {}, deadlineMs });
	if (response.kind === "failed") return { result: response.fault };
	if (response.kind === "aborted") return { result: "reset" };
	const { status } = response;
	if (status === 429) return { result: "limited" };
	const answer = status < 500 ? answerOf(parsed(response.body), 1) : null;
	if (status !== 200 && answer?.kind !== "error") return { result: "httpStatus" };
	return answer === null ? { result: "notJsonRpc" } : { answer, status };
}

/** The calls are valid, so any error is the upstream's fault. */
function resultOf(code: number, status: number): Failed["result"] {
	if (code === LIMIT) return "limited";
	if (code === INTERNAL) return "internal";
	return status === 200 ? "notReady" : "httpStatus";
}
