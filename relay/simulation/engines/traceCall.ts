// Engine of `debug_traceCall`: each transaction traced by itself, with what those before it changed as overrides of
// the state. Two traces for each but the last: what it called, and what it changed.
// https://geth.ethereum.org/docs/interacting-with-geth/rpc/ns-debug#debugtracecall

import { parseQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { RpcCall } from "../../../shared/jsonrpc/client.ts";
import type { SimulationError } from "../../domain/simulation.ts";
import { blockOverrides, callObject, PROBE } from "./callObject.ts";
import type { Ask, Engine, EngineAnswer, EngineRequest, StateOverrides, Step } from "./engine.ts";
import { NO_VERDICT } from "./engine.ts";
import { isObject } from "./json.ts";
import { applyDiff } from "./stateDiff.ts";
import { receivedByFrames } from "./transfers.ts";
import { readExecutionError } from "./verdicts.ts";

const CALLS = { tracer: "callTracer", tracerConfig: { withLog: true } };
const CHANGES = { tracer: "prestateTracer", tracerConfig: { diffMode: true } };

export const traceCall: Engine = {
	name: "debug_traceCall",
	sequences: true,
	events: true,
	probe: {
		method: "debug_traceCall",
		params: [PROBE.call, "latest", { ...CALLS, stateOverrides: PROBE.state, blockOverrides: PROBE.block }],
	},
	probed: (result) => isObject(result) && result.output === PROBE.answer,
	run,
};

async function run(request: EngineRequest, ask: Ask): Promise<EngineAnswer> {
	const steps: Step[] = [];
	let { overrides } = request;
	for (const [index, tx] of request.chain.entries()) {
		const isLast = index === request.chain.length - 1;
		const [called, changed] = await Promise.all([
			ask(traceOf(tx, request, overrides, CALLS)),
			isLast ? null : ask(traceOf(tx, request, overrides, CHANGES)),
		]);
		if (called.kind === "refused" || changed?.kind === "refused") return { kind: "refused" };
		if (called.kind === "failed") return ended(steps, called.error, false);
		const frame = called.kind === "result" ? readFrame(called.value, request.block.feeRecipient) : null;
		if (frame === null) return { kind: "ran", steps: [...steps, NO_VERDICT], vague: false };
		if (frame.error !== null) return ended(steps, readFrameError(frame), isUnknown(frame));
		const { gasUsed, emitsEvents, paid } = frame;
		const outcome = { ok: true, gasUsed, emitsEvents, paid } as const;
		const following = request.chain[index + 1];
		if (following === undefined) {
			steps.push({ outcome, balance: null });
			break;
		}
		const next = changed?.kind === "result" ? applyDiff(overrides, changed.value, tx) : null;
		if (next === null) return { kind: "ran", steps: [...steps, NO_VERDICT], vague: false };
		overrides = next;
		const balance = overrides[following.from]?.balance;
		steps.push({ outcome, balance: balance === undefined ? null : parseQuantity(balance) });
	}
	return { kind: "ran", steps, vague: false };
}

function traceOf(
	tx: DecodedTransaction,
	{ block }: EngineRequest,
	stateOverrides: StateOverrides,
	tracer: object,
): RpcCall {
	const config = { ...tracer, stateOverrides, blockOverrides: blockOverrides(block) };
	return { method: "debug_traceCall", params: [callObject(tx, block), toQuantity(block.stateBlock), config] };
}

function ended(steps: readonly Step[], error: SimulationError, vague: boolean): EngineAnswer {
	return { kind: "ran", steps: [...steps, { outcome: { ok: false, error }, balance: null }], vague };
}

/** The outermost call. */
interface Frame {
	readonly gasUsed: bigint;
	readonly emitsEvents: boolean;
	/** Wei that the fee recipient got by transfers in it and in the calls within. */
	readonly paid: bigint;
	/** The node's word for how it failed; null where it passed. */
	readonly error: string | null;
	readonly output: unknown;
}

function readFrame(value: unknown, feeRecipient: string): Frame | null {
	if (!isObject(value) || typeof value.gasUsed !== "string") return null;
	const gasUsed = parseQuantity(value.gasUsed);
	if (gasUsed === null) return null;
	const error = typeof value.error === "string" ? value.error : null;
	const paid = receivedByFrames(value, feeRecipient);
	return { gasUsed, emitsEvents: emitsEvents(value), paid, error, output: value.output };
}

function readFrameError({ error, output }: Frame): SimulationError {
	const named = readExecutionError(null, error ?? "", output);
	return named ?? { code: "EXECUTION_FAILED", message: "execution failed" };
}

function isUnknown({ error, output }: Frame): boolean {
	return readExecutionError(null, error ?? "", output) === null;
}

/** Whether a log stands in a frame that was not undone: a failed call takes those of the calls in it with it. */
function emitsEvents(root: Readonly<Record<string, unknown>>): boolean {
	const open: unknown[] = [root];
	while (open.length > 0) {
		const frame = open.pop();
		if (!isObject(frame) || typeof frame.error === "string") continue;
		if (Array.isArray(frame.logs) && frame.logs.length > 0) return true;
		if (Array.isArray(frame.calls)) for (const call of frame.calls) open.push(call);
	}
	return false;
}
