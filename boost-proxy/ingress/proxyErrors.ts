// How what was passed through to the relay can end, and what its client is told where that failed: in JSON-RPC where that was
// spoken, with no text of the relay's in it.

import { type HttpAnswer, jsonAnswer, retryAfter, rpcErrorAnswer } from "../../shared/http/httpAnswer.ts";
import type { Breaker } from "../domain/breakerPorts.ts";
import type { Trail } from "../domain/request.ts";
import { trailHeaders } from "./routingHeaders.ts";

/** Before an answer began. `refused`: no connection could be had; else bytes may have left. */
export type PassFault = "refused" | "reset" | "timeout";

const FAULTS: Readonly<Record<PassFault, { readonly status: number; readonly reason: string }>> = {
	refused: { status: 503, reason: "the relay cannot be reached" },
	reset: { status: 502, reason: "the relay ended the connection" },
	timeout: { status: 504, reason: "the relay did not answer in time" },
};

const TRIED: Trail = { answeredBy: new Set(), attempts: 1, dropped: new Set() };

/** For what is not tried, for `reason`; `retryMs`: when it might go again. */
export function outAnswer(
	verb: string | undefined,
	retryMs: number,
	reason = "the relay is out",
): HttpAnswer {
	return answer(verb, 503, reason, { "retry-after": retryAfter(retryMs) });
}

/** For what was tried and failed by `fault`; `reason` instead of the fault's own. */
export function passFault(
	verb: string | undefined,
	fault: PassFault,
	breaker: Breaker,
	reason?: string,
): HttpAnswer {
	const { status, reason: usual } = FAULTS[fault];
	return answer(verb, status, reason ?? usual, {
		"retry-after": retryAfter(breaker.retryMs),
		...trailHeaders(TRIED, breaker.state),
	});
}

function answer(
	verb: string | undefined,
	status: number,
	reason: string,
	headers: Record<string, string>,
): HttpAnswer {
	const message = `no relay available: ${reason}`;
	return verb === "POST"
		? rpcErrorAnswer("unavailable", status, message, headers)
		: jsonAnswer(status, { error: message }, headers);
}

export const PASS_KINDS = ["http", "websocket"] as const;
export type PassKind = (typeof PASS_KINDS)[number];

/**
 * `answered` by the relay, or upgraded; `unavailable`: the relay was out or could not be reached; `failed`: it took the
 * request and did not answer; `gone`: its client went first.
 */
export const PASS_OUTCOMES = ["answered", "unavailable", "failed", "gone"] as const;
export type PassOutcome = (typeof PASS_OUTCOMES)[number];

/** Told once of each request and each upgrade. */
export type OnPassed = (kind: PassKind, outcome: PassOutcome) => void;
