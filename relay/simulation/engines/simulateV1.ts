// Engine of `eth_simulateV1`: a whole chain in one call. Between the transactions a contract that does not exist is
// asked for the next sender's balance, so that it is exact behind each of them, whatever came in from elsewhere; around
// a measured one it is asked for the fee recipient's.
// The node's `validation` is off. https://github.com/ethereum/execution-apis/blob/main/src/eth/execute.yaml

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import { effectiveGasPrice } from "../../../shared/ethereum/intrinsicGas.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { RpcCall } from "../../../shared/jsonrpc/client.ts";
import type { SimulationError } from "../../domain/simulation.ts";
import {
	accountBalance,
	type BalanceProbe,
	measuredGain,
	PROBE_GAS,
	probeCall,
	probeOverrides,
} from "./balanceProbe.ts";
import { blockOverrides, callObject, PROBE } from "./callObject.ts";
import type { Ask, Engine, EngineAnswer, EngineRequest, Step } from "./engine.ts";
import { NO_VERDICT } from "./engine.ts";
import { type CallResult, executionError, readCalls } from "./simulateResults.ts";
import { receivedByLogs } from "./transfers.ts";

export const simulateV1: Engine = {
	name: "eth_simulateV1",
	sequences: true,
	events: true,
	probe: simulateCall(
		{ blockOverrides: PROBE.block, stateOverrides: PROBE.state, calls: [PROBE.call] },
		"latest",
	),
	probed: (result) => readCalls(result, 1)?.[0]?.returnData === PROBE.answer,
	run,
};

/** How the first transactions of a chain fared, or that the node would not run all of them. */
type PrefixAnswer = EngineAnswer | { readonly kind: "rejected"; readonly error: SimulationError };

async function run(request: EngineRequest, ask: Ask): Promise<EngineAnswer> {
	const { length } = request.chain;
	const whole = await runPrefix(request, length, ask);
	if (whole.kind !== "rejected") return whole;
	// One transaction that can't be executed (its value is not there) makes the node reject them all, and it does
	// not say which: halve until it is found.
	let { error } = whole;
	let steps: readonly Step[] = [];
	let rejected = length;
	while (rejected - steps.length > 1) {
		const middle = (steps.length + rejected) >> 1;
		const part = await runPrefix(request, middle, ask);
		if (part.kind === "rejected") {
			rejected = middle;
			error = part.error;
			continue;
		}
		if (part.kind === "refused") return part;
		if (part.steps.some((step) => !step.outcome.ok)) return part;
		steps = part.steps;
	}
	return { kind: "ran", steps: [...steps, { outcome: { ok: false, error }, balance: null }], vague: false };
}

async function runPrefix(request: EngineRequest, length: number, ask: Ask): Promise<PrefixAnswer> {
	const script = scriptOf(request, length);
	const answer = await ask(prefixCall(request, script));
	switch (answer.kind) {
		case "refused":
			return answer;
		case "failed":
			return { kind: "rejected", error: answer.error };
		case "fault":
			return { kind: "ran", steps: [NO_VERDICT], vague: false };
		case "result":
			return readSteps(request, script, answer.value);
	}
}

/** What is run: transactions of the chain, and questions in front of them and behind. */
type ScriptItem = { readonly tx: DecodedTransaction; readonly measured: boolean } | BalanceProbe;

/**
 * The first `length` transactions, in front of each but the first the question for its sender's balance. A measured
 * one has two questions in front, the first of which pays its gas price, and one behind.
 */
function scriptOf({ chain, block, measured }: EngineRequest, length: number): readonly ScriptItem[] {
	const script: ScriptItem[] = [];
	for (const [i, tx] of chain.entries()) {
		const probe: BalanceProbe = { account: tx.from, price: null };
		const isMeasured = measured && i === chain.length - 1;
		if (i >= length) {
			// How much is left for the next one is told also where that is not run.
			script.push(probe);
			break;
		}
		if (isMeasured) script.push({ ...probe, price: effectiveGasPrice(tx, block.baseFee) }, probe);
		else if (i > 0) script.push(probe);
		script.push({ tx, measured: isMeasured });
		if (isMeasured) script.push(probe);
	}
	return script;
}

function prefixCall(request: EngineRequest, script: readonly ScriptItem[]): RpcCall {
	const { block } = request;
	const calls = script.map((item) =>
		"tx" in item ? callObject(item.tx, block) : probeCall(item, block.feeRecipient),
	);
	const stateOverrides = { ...request.overrides, ...probeOverrides(probesOf(script)) };
	const roomy = { ...block, gasLimit: roomFor(request) };
	return simulateCall(
		{ blockOverrides: blockOverrides(roomy), stateOverrides, calls },
		toQuantity(block.stateBlock),
	);
}

function probesOf(script: readonly ScriptItem[]): readonly BalanceProbe[] {
	return script.filter((item): item is BalanceProbe => !("tx" in item));
}

/**
 * The block's gas limit, raised where the chain's limits add up to more: those behind would go into a later block,
 * which is no reason to fail.
 */
function roomFor(request: EngineRequest): bigint {
	const { block, chain } = request;
	const probes = probesOf(scriptOf(request, chain.length)).length;
	const wanted = chain.reduce((sum, tx) => sum + tx.gasLimit, PROBE_GAS * BigInt(probes));
	if (wanted > block.gasLimit) return wanted;
	return block.gasLimit;
}

function simulateCall(block: object, stateBlock: string): RpcCall {
	const options = { blockStateCalls: [block], validation: false, traceTransfers: true };
	return { method: "eth_simulateV1", params: [options, stateBlock] };
}

function readSteps(request: EngineRequest, script: readonly ScriptItem[], value: unknown): EngineAnswer {
	const calls = readCalls(value, script.length);
	if (calls === null) return { kind: "ran", steps: [NO_VERDICT], vague: false };
	const steps: Step[] = [];
	for (const [i, call] of calls.entries()) {
		const item = script[i];
		if (item === undefined || !("tx" in item)) continue;
		if (!call.success) {
			const error = executionError(call, item.tx);
			const known = error ?? { code: "EXECUTION_FAILED", message: "execution failed" };
			const step: Step = { outcome: { ok: false, error: known }, balance: null };
			return { kind: "ran", steps: [...steps, step], vague: error === null };
		}
		const { gasUsed, emitsEvents } = call;
		const paid = item.measured
			? measuredGain({ priced: calls[i - 2], before: calls[i - 1], tx: call, after: calls[i + 1] })
			: receivedByLogs(call.logs, request.block.feeRecipient);
		steps.push({
			outcome: { ok: true, gasUsed, emitsEvents, paid },
			balance: balanceBehind(item, calls[i + 1]),
		});
	}
	return { kind: "ran", steps, vague: false };
}

/** Nothing stands behind a measured one: what is asked there is not for a sender. */
function balanceBehind(item: { readonly measured: boolean }, next: CallResult | undefined): bigint | null {
	return item.measured ? null : accountBalance(next);
}
