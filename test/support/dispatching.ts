// A dispatcher over the test methods, on a manual clock: parses answers, and keeps what it counted and logged. It has
// no transport.

import { type CallContext, callContext } from "../../shared/http/callContext.ts";
import { type CallLimiter, createDispatcher } from "../../shared/jsonrpc/dispatch.ts";
import type { CallOutcome } from "../../shared/jsonrpc/envelope.ts";
import type { RpcError } from "../../shared/jsonrpc/errors.ts";
import { type LogFields, type Logger, silentLogger } from "../../shared/log.ts";
import { ManualClock } from "./manualClock.ts";
import { Script, testFallback, testMethods } from "./rpcMethods.ts";

const CLIENT = { address: "192.0.2.1", signer: null, vouched: false };
export const CONTEXT = callContext({ path: "/fast", search: "" }, CLIENT, null, null);

/** Starts one that takes 40 entries a batch and gives each call a second. */
export function startDispatcher(limiter?: CallLimiter<CallContext>) {
	const script = new Script();
	const clock = new ManualClock();
	const calls: [string, CallOutcome, number][] = [];
	const faults: LogFields[] = [];
	const log: Logger = { ...silentLogger, error: (_message, fields) => void faults.push(fields ?? {}) };
	const dispatcher = createDispatcher<CallContext>(
		{ maxBatch: 40, callLimitMs: 1_000 },
		{
			methods: testMethods(script),
			fallback: testFallback,
			log,
			clock,
			onCall: (method, outcome, seconds) => void calls.push([method, outcome, seconds]),
			...(limiter === undefined ? {} : { limiter }),
		},
	);
	const send = async (body: unknown, refusal: RpcError | null = null) => {
		const text = typeof body === "string" ? body : JSON.stringify(body);
		const answer = await dispatcher.dispatch(Buffer.from(text), CONTEXT, refusal);
		return { ...answer, body: answer.text === null ? null : JSON.parse(answer.text) };
	};
	const call = (method: string, params: unknown = [], id: unknown = 1) =>
		send({ jsonrpc: "2.0", id, method, params });
	return { script, clock, calls, faults, dispatcher, send, call };
}

/** An entry of a batch. */
export function entry(id: number, method: string, ...params: unknown[]) {
	return { jsonrpc: "2.0", id, method, params };
}
