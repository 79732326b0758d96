// Runs single transactions by `debug_traceCall`, each with the changes of earlier ones as state
// overrides. Used if a node's `eth_simulateV1` does not support them (anvil: creations), hides why
// they fail (anvil) or has too little gas. Also sums the transfers of Ether in a trace; fees and
// reverted transfers do not count.
// https://geth.ethereum.org/docs/interacting-with-geth/rpc/ns-debug#debugtracecall

import { parseQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { RpcCall } from "../../../shared/jsonrpc/client.ts";
import { type Fields, isObject } from "../../../shared/jsonrpc/fields.ts";
import { fundsProblem } from "../../domain/blockProblems.ts";

import type { SimulationError, SimulationOutcome } from "../../domain/simulation.ts";
import type { Ask, NodeAnswer, Part, StateOverrides } from "./engine.ts";
import {
	applyDiff,
	beaconRootWrite,
	blockOverrides,
	emitsEvents,
	firstBalance,
	readHex,
	signedCall,
} from "./nodeObjects.ts";
import { EXECUTION_FAILED, NO_VERDICT, readExecutionError, UNSUPPORTED } from "./verdicts.ts";

const CALLS = { tracer: "callTracer" };
const CALLS_WITH_LOGS = { ...CALLS, tracerConfig: { withLog: true } };
const TOUCHED = { tracer: "prestateTracer" };
const CHANGES = { tracer: "prestateTracer", tracerConfig: { diffMode: true } };

/** A transaction's outcome, and the state after it; null if not known. */
export interface Traced {
	readonly outcome: SimulationOutcome;
	readonly state: StateOverrides | null;
	/** The outcome of the next transaction if the state is not known. */
	readonly noState: SimulationOutcome;
}

/** Runs the first transaction of `part` alone. `changes`: whether the state after it is needed. */
export async function traceFirst(part: Part, ask: Ask, changes = part.chain.length > 1): Promise<Traced> {
	const [tx] = part.chain;
	if (tx === undefined) return endedWith(NO_VERDICT);
	// Nodes trace transactions even if the sender can't pay the maximum cost.
	const balance = firstBalance(part);
	const funds = balance === null ? null : fundsProblem(tx, balance);
	if (funds !== null) return endedWith({ ok: false, error: funds });
	const [called, changed] = await traceCall(tracedIn(part, part.state, tx), { changes, logs: true }, ask);
	if (called?.kind === "failed") return endedWith({ ok: false, error: called.error });
	if (called?.kind === "unsupported") return endedWith(UNSUPPORTED);
	if (called?.kind !== "result") return endedWith(NO_VERDICT);
	const outcome = readFrame(called.value, part, part.measured && part.chain.length === 1);
	if (outcome === null) return endedWith(NO_VERDICT);
	if (changed?.kind !== "result")
		return { outcome, state: null, noState: changed?.kind === "unsupported" ? UNSUPPORTED : NO_VERDICT };
	return { outcome, state: applyDiff(part.state, changed.value, tx), noState: NO_VERDICT };
}

function endedWith(outcome: SimulationOutcome): Traced {
	return { outcome, state: null, noState: NO_VERDICT };
}

/**
 * The state after the first `count` transactions of `part`, as overrides. `unsupported` if the node
 * does not trace; null if it failed to.
 */
export async function stateAfter(
	part: Part,
	count: number,
	ask: Ask,
): Promise<StateOverrides | "unsupported" | null> {
	let { state } = part;
	for (const tx of part.chain.slice(0, count)) {
		const [changed] = await ask([traceOf(tracedIn(part, state, tx), CHANGES)]);
		if (changed?.kind === "unsupported") return "unsupported";
		const next = changed?.kind === "result" ? applyDiff(state, changed.value, tx) : null;
		if (next === null) return null;
		state = next;
	}
	return state;
}

/** A call to trace on the state of block `number` with overrides. */
export interface TracedCall {
	readonly object: Readonly<Record<string, unknown>>;
	readonly number: number;
	readonly stateOverrides: StateOverrides;
	readonly blockOverrides: Readonly<Record<string, string>>;
}

function tracedIn(
	{ block, prevRandao, beaconRoot }: Part,
	state: StateOverrides,
	tx: DecodedTransaction,
): TracedCall {
	// No node writes the beacon root before a traced call.
	const written = beaconRoot === null ? {} : beaconRootWrite(block.timestamp, beaconRoot);
	return {
		object: signedCall(tx),
		number: block.stateBlock,
		stateOverrides: { ...state, ...written },
		blockOverrides: { ...blockOverrides(block), prevRandao },
	};
}

/** The frames of `call`, with `logs` and `changes` of the state if these are wanted. */
export function traceCall(
	call: TracedCall,
	{ changes, logs }: { readonly changes: boolean; readonly logs: boolean },
	ask: Ask,
): Promise<readonly NodeAnswer[]> {
	const calls = traceOf(call, logs ? CALLS_WITH_LOGS : CALLS);
	return ask(changes ? [calls, traceOf(call, CHANGES)] : [calls]);
}

/** The accounts and slots that `call` touches, with their values before it. */
export function traceTouched(call: TracedCall, ask: Ask): Promise<readonly NodeAnswer[]> {
	return ask([traceOf(call, TOUCHED)]);
}

function traceOf({ object, number, ...overrides }: TracedCall, tracer: object): RpcCall {
	return { method: "debug_traceCall", params: [object, toQuantity(number), { ...tracer, ...overrides }] };
}

/** Why the outermost frame failed; null if it did not. */
export function frameError({ error, output }: Fields): SimulationError | null {
	return typeof error === "string" ? (readExecutionError(null, error, output) ?? EXECUTION_FAILED) : null;
}

/** The outcome of the outermost frame. */
function readFrame(value: unknown, { block }: Part, measured: boolean): SimulationOutcome | null {
	if (!isObject(value) || typeof value.gasUsed !== "string") return null;
	const gasUsed = parseQuantity(value.gasUsed);
	if (gasUsed === null) return null;
	const error = frameError(value);
	if (error !== null) return { ok: false, error };
	const paid = measured ? receivedByFrames(value, block.feeRecipient) : null;
	return { ok: true, gasUsed, emitsEvents: [...frames(value)].some(({ logs }) => emitsEvents(logs)), paid };
}

/** `root` and its nested frames, without failed ones, which also revert the frames in them. */
function* frames(root: unknown): Generator<Fields> {
	const open: unknown[] = [root];
	while (open.length > 0) {
		const frame = open.pop();
		if (!isObject(frame) || typeof frame.error === "string") continue;
		yield frame;
		if (Array.isArray(frame.calls)) for (const call of frame.calls) open.push(call);
	}
}

/** DELEGATECALL transfers nothing, and the value of a CALLCODE goes to the caller itself. */
const TRANSFERRING = new Set(["CALL", "CREATE", "CREATE2", "SELFDESTRUCT"]);

/**
 * Net wei that `recipient` (lower case) received in the callTracer's frames under `root`; never
 * below zero.
 */
export function receivedByFrames(root: unknown, recipient: string): bigint {
	let sum = 0n;
	for (const frame of frames(root)) sum += movedBy(frame, recipient);
	return sum > 0n ? sum : 0n;
}

function movedBy(frame: Fields, recipient: string): bigint {
	if (typeof frame.type !== "string" || !TRANSFERRING.has(frame.type.toUpperCase())) return 0n;
	const value = typeof frame.value === "string" ? (parseQuantity(frame.value) ?? 0n) : 0n;
	const got = readHex(frame.to) === recipient ? value : 0n;
	return readHex(frame.from) === recipient ? got - value : got;
}
