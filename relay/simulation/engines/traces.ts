// For what `eth_simulateV1` does not take on some nodes (anvil: creations), does not explain (anvil: why something failed) or
// does not give enough gas: single transactions by `debug_traceCall`, each on what those before it changed, put over the
// block's state. https://geth.ethereum.org/docs/interacting-with-geth/rpc/ns-debug#debugtracecall
// Also what frames say of transfers of Ether; fees are none, and what was undone does not count.

import { parseQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { RpcCall } from "../../../shared/jsonrpc/client.ts";
import type { Fields } from "../../domain/nodeJson.ts";
import type { SimulationError, SimulationOutcome } from "../../domain/simulation.ts";
import { findFundsProblem } from "../simulator.ts";
import type { Ask, NodeAnswer, Part, StateOverrides } from "./engine.ts";
import {
	applyDiff,
	blockOverrides,
	emitsEvents,
	firstBalance,
	isObject,
	readHex,
	signedCall,
} from "./nodeObjects.ts";
import { EXECUTION_FAILED, NO_VERDICT, readExecutionError } from "./verdicts.ts";

const CALLS = { tracer: "callTracer" };
const CALLS_WITH_LOGS = { ...CALLS, tracerConfig: { withLog: true } };
const CHANGES = { tracer: "prestateTracer", tracerConfig: { diffMode: true } };

/** How one transaction fared, and what it left behind; null: nobody knows. */
export interface Traced {
	readonly outcome: SimulationOutcome;
	readonly state: StateOverrides | null;
}

/** Runs the first transaction of `part` alone. */
export async function traceFirst(part: Part, ask: Ask): Promise<Traced> {
	const [tx, following] = part.chain;
	const nobody = { outcome: NO_VERDICT, state: null };
	if (tx === undefined) return nobody;
	// Nodes trace what its sender can't pay for at its highest price.
	const balance = firstBalance(part);
	const funds = balance === null ? null : findFundsProblem(tx, balance);
	if (funds !== null) return { outcome: { ok: false, error: funds }, state: null };
	const wanted = { changes: following !== undefined, logs: true };
	const [called, changed] = await traceCall(tracedIn(part, part.state, tx), wanted, ask);
	if (called?.kind === "failed") return { outcome: { ok: false, error: called.error }, state: null };
	if (called?.kind !== "result") return nobody;
	const outcome = readFrame(called.value, part, part.measured && following === undefined);
	if (outcome === null) return nobody;
	return { outcome, state: changed?.kind === "result" ? applyDiff(part.state, changed.value, tx) : null };
}

/** What the first `count` transactions of `part` leave behind, as overrides of the block's state; null: nobody knows. */
export async function stateBehind(part: Part, count: number, ask: Ask): Promise<StateOverrides | null> {
	let { state } = part;
	for (const tx of part.chain.slice(0, count)) {
		const [changed] = await ask([traceOf(tracedIn(part, state, tx), CHANGES)]);
		const next = changed?.kind === "result" ? applyDiff(state, changed.value, tx) : null;
		if (next === null) return null;
		state = next;
	}
	return state;
}

/** One call to be traced, over the state of block `number` with these differences. */
export interface TracedCall {
	readonly object: Readonly<Record<string, unknown>>;
	readonly number: number;
	readonly stateOverrides: StateOverrides;
	readonly blockOverrides: Readonly<Record<string, string>>;
}

function tracedIn(
	{ block, prevRandao }: Part,
	stateOverrides: StateOverrides,
	tx: DecodedTransaction,
): TracedCall {
	return {
		...{ object: signedCall(tx), number: block.stateBlock, stateOverrides },
		blockOverrides: { ...blockOverrides(block), prevRandao },
	};
}

/** The frames of `call`, with their `logs` where they are wanted, and its `changes` of the state likewise. */
export function traceCall(
	call: TracedCall,
	{ changes, logs }: { readonly changes: boolean; readonly logs: boolean },
	ask: Ask,
): Promise<readonly NodeAnswer[]> {
	const calls = traceOf(call, logs ? CALLS_WITH_LOGS : CALLS);
	return ask(changes ? [calls, traceOf(call, CHANGES)] : [calls]);
}

function traceOf({ object, number, ...overrides }: TracedCall, tracer: object): RpcCall {
	return { method: "debug_traceCall", params: [object, toQuantity(number), { ...tracer, ...overrides }] };
}

/** Why the outermost frame failed; null: it did not. */
export function frameError({ error, output }: Fields): SimulationError | null {
	return typeof error === "string" ? (readExecutionError(null, error, output) ?? EXECUTION_FAILED) : null;
}

/** What the outermost frame says. */
function readFrame(value: unknown, { block }: Part, measured: boolean): SimulationOutcome | null {
	if (!isObject(value) || typeof value.gasUsed !== "string") return null;
	const gasUsed = parseQuantity(value.gasUsed);
	if (gasUsed === null) return null;
	const error = frameError(value);
	if (error !== null) return { ok: false, error };
	const paid = measured ? receivedByFrames(value, block.feeRecipient) : null;
	return { ok: true, gasUsed, emitsEvents: [...frames(value)].some(({ logs }) => emitsEvents(logs)), paid };
}

/** `root` and all frames in it that were not undone: a failed call takes those in it with it. */
function* frames(root: unknown): Generator<Fields> {
	const open: unknown[] = [root];
	while (open.length > 0) {
		const frame = open.pop();
		if (!isObject(frame) || typeof frame.error === "string") continue;
		yield frame;
		if (Array.isArray(frame.calls)) for (const call of frame.calls) open.push(call);
	}
}

/** A delegatecall's value is only shown, and a callcode's goes to the caller itself. */
const TRANSFERRING = new Set(["CALL", "CREATE", "CREATE2", "SELFDESTRUCT"]);

/** Wei that `recipient` (lower case) got in a transaction of which `root` is callTracer's answer; never below zero. */
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
