// For what `eth_simulateV1` does not take on some nodes (anvil: creations), does not explain (anvil: why something failed) or
// does not give enough gas: single transactions by `debug_traceCall`, each on what those before it changed, put over the
// block's state. https://geth.ethereum.org/docs/interacting-with-geth/rpc/ns-debug#debugtracecall
// Also what frames say of transfers of Ether; fees are none, and what was undone does not count.

import { parseQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { RpcCall } from "../../../shared/jsonrpc/client.ts";
import type { SimulationOutcome } from "../../domain/simulation.ts";
import { findFundsProblem } from "../simulator.ts";
import type { Ask, Part, StateOverrides } from "./engine.ts";
import {
	applyDiff,
	blockOverrides,
	emitsEvents,
	firstBalance,
	isObject,
	readHex,
	signedCall,
} from "./nodeObjects.ts";
import { NO_VERDICT, readExecutionError } from "./verdicts.ts";

const CALLS = { tracer: "callTracer", tracerConfig: { withLog: true } };
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
	const calls = [traceOf(tx, part, CALLS)];
	if (following !== undefined) calls.push(traceOf(tx, part, CHANGES));
	const [called, changed] = await ask(calls);
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
		const [changed] = await ask([traceOf(tx, { ...part, state }, CHANGES)]);
		const next = changed?.kind === "result" ? applyDiff(state, changed.value, tx) : null;
		if (next === null) return null;
		state = next;
	}
	return state;
}

function traceOf(tx: DecodedTransaction, { block, prevRandao, state }: Part, tracer: object): RpcCall {
	const config = {
		...tracer,
		stateOverrides: state,
		blockOverrides: { ...blockOverrides(block), prevRandao },
	};
	return { method: "debug_traceCall", params: [signedCall(tx, block), toQuantity(block.stateBlock), config] };
}

/** What the outermost frame says. */
function readFrame(value: unknown, { block }: Part, measured: boolean): SimulationOutcome | null {
	if (!isObject(value) || typeof value.gasUsed !== "string") return null;
	const gasUsed = parseQuantity(value.gasUsed);
	if (gasUsed === null) return null;
	if (typeof value.error === "string") {
		const error = readExecutionError(null, value.error, value.output);
		return { ok: false, error: error ?? { code: "EXECUTION_FAILED", message: "execution failed" } };
	}
	const paid = measured ? receivedByFrames(value, block.feeRecipient) : null;
	return { ok: true, gasUsed, emitsEvents: framesEmit(value), paid };
}

/** Whether a log stands in a frame that was not undone: a failed call takes those of the calls in it with it. */
function framesEmit(root: Readonly<Record<string, unknown>>): boolean {
	const open: unknown[] = [root];
	while (open.length > 0) {
		const frame = open.pop();
		if (!isObject(frame) || typeof frame.error === "string") continue;
		if (emitsEvents(frame.logs)) return true;
		if (Array.isArray(frame.calls)) for (const call of frame.calls) open.push(call);
	}
	return false;
}

/** A delegatecall's value is only shown, and a callcode's goes to the caller itself. */
const TRANSFERRING = new Set(["CALL", "CREATE", "CREATE2", "SELFDESTRUCT"]);

/** Wei that `recipient` (lower case) got in a transaction of which `root` is callTracer's answer; never below zero. */
export function receivedByFrames(root: unknown, recipient: string): bigint {
	let sum = 0n;
	const open: unknown[] = [root];
	while (open.length > 0) {
		const frame = open.pop();
		// A failed call takes those in it with it.
		if (!isObject(frame) || typeof frame.error === "string") continue;
		sum += movedBy(frame, recipient);
		if (Array.isArray(frame.calls)) for (const call of frame.calls) open.push(call);
	}
	return sum > 0n ? sum : 0n;
}

function movedBy(frame: Readonly<Record<string, unknown>>, recipient: string): bigint {
	if (typeof frame.type !== "string" || !TRANSFERRING.has(frame.type.toUpperCase())) return 0n;
	const value = typeof frame.value === "string" ? (parseQuantity(frame.value) ?? 0n) : 0n;
	const got = readHex(frame.to) === recipient ? value : 0n;
	return readHex(frame.from) === recipient ? got - value : got;
}
