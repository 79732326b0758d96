// Engine of `eth_simulateV1`: a whole chain in one call. Between the transactions a contract that does not exist is
// asked for the sender's balance, so that it is exact behind each of them, whatever came in from elsewhere.
// The node's `validation` is off. https://github.com/ethereum/execution-apis/blob/main/src/eth/execute.yaml

import { parseQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { RpcCall } from "../../../shared/jsonrpc/client.ts";
import type { SimulationError } from "../../domain/simulation.ts";
import { revertError } from "../revertReason.ts";
import { blockOverrides, callObject, PROBE, PROBE_ADDRESS, PROBE_CALLER } from "./callObject.ts";
import type { Ask, Engine, EngineAnswer, EngineRequest, StateOverrides, Step } from "./engine.ts";
import { NO_VERDICT } from "./engine.ts";
import { isObject, readHex } from "./json.ts";
import { readExecutionError } from "./verdicts.ts";

/** Where `traceTransfers` makes transfers of Ether appear as logs: no contract's events. */
const TRANSFER_LOG_ADDRESS = "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
/** PUSH0 CALLDATALOAD BALANCE PUSH0 MSTORE PUSH1 32 PUSH0 RETURN */
const BALANCE_CODE = "0x5f35315f5260205ff3";
/** Gas of one question for the balance; it uses 24,000. */
const BALANCE_GAS = 100_000n;

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
	const answer = await ask(prefixCall(request, length));
	switch (answer.kind) {
		case "refused":
			return answer;
		case "failed":
			return { kind: "rejected", error: answer.error };
		case "fault":
			return { kind: "ran", steps: [NO_VERDICT], vague: false };
		case "result":
			return readSteps(request, length, answer.value);
	}
}

/** Behind each transaction but the chain's last one comes the question for the balance. */
function prefixCall(request: EngineRequest, length: number): RpcCall {
	const { block, chain, sender } = request;
	const balanceOf = {
		from: PROBE_CALLER,
		to: PROBE_ADDRESS,
		gas: toQuantity(BALANCE_GAS),
		input: `0x${sender.slice(2).padStart(64, "0")}`,
	};
	const calls = chain
		.slice(0, length)
		.flatMap((tx, i) =>
			i === chain.length - 1 ? [callObject(tx, block)] : [callObject(tx, block), balanceOf],
		);
	const overrides: StateOverrides =
		chain.length === 1
			? request.overrides
			: { ...request.overrides, [PROBE_ADDRESS]: { code: BALANCE_CODE } };
	const roomy = { ...block, gasLimit: roomFor(request) };
	return simulateCall(
		{ blockOverrides: blockOverrides(roomy), stateOverrides: overrides, calls },
		toQuantity(block.stateBlock),
	);
}

/**
 * The block's gas limit, raised where the chain's limits add up to more: those behind would go into a later block,
 * which is no reason to fail.
 */
function roomFor({ block, chain }: EngineRequest): bigint {
	const wanted = chain.reduce((sum, tx) => sum + tx.gasLimit + BALANCE_GAS, -BALANCE_GAS);
	if (wanted > block.gasLimit) return wanted;
	return block.gasLimit;
}

function simulateCall(block: object, stateBlock: string): RpcCall {
	const options = { blockStateCalls: [block], validation: false, traceTransfers: true };
	return { method: "eth_simulateV1", params: [options, stateBlock] };
}

function readSteps(request: EngineRequest, length: number, value: unknown): EngineAnswer {
	const { chain } = request;
	const txs = chain.slice(0, length);
	const calls = readCalls(value, length === chain.length ? 2 * length - 1 : 2 * length);
	const steps: Step[] = [];
	for (const [i, tx] of txs.entries()) {
		const call = calls?.[2 * i];
		if (call === undefined) return { kind: "ran", steps: [...steps, NO_VERDICT], vague: false };
		if (!call.success) {
			const error = executionError(call, tx);
			const known = error ?? { code: "EXECUTION_FAILED", message: "execution failed" };
			const step: Step = { outcome: { ok: false, error: known }, balance: null };
			return { kind: "ran", steps: [...steps, step], vague: error === null };
		}
		const { gasUsed, emitsEvents } = call;
		steps.push({ outcome: { ok: true, gasUsed, emitsEvents }, balance: readBalance(calls?.[2 * i + 1]) });
	}
	return { kind: "ran", steps, vague: false };
}

function readBalance(call: CallResult | undefined): bigint | null {
	return call?.success && call.returnData.length === 66 ? BigInt(call.returnData) : null;
}

/** Why a call failed, or null where the node does not say (anvil: `execution failed`, for everything). */
function executionError(call: CallResult, tx: DecodedTransaction): SimulationError | null {
	const { code, message, data } = call.error;
	const revertData = readHex(data) ?? call.returnData;
	const named = readExecutionError(code, message, revertData);
	if (named !== null) return named;
	if (code === VM_ERROR_CODE) return null;
	// Only a revert hands back data, or gas; authorizations give some back in any case.
	if (revertData !== "0x") return revertError(revertData);
	const spentAll = call.gasUsed >= tx.gasLimit;
	return spentAll || tx.authorizationList.length > 0 ? null : revertError("0x");
}

/** geth's code of what failed otherwise than by a revert. */
const VM_ERROR_CODE = -32015;

interface CallResult {
	readonly success: boolean;
	readonly gasUsed: bigint;
	readonly returnData: string;
	readonly emitsEvents: boolean;
	readonly error: { readonly code: number | null; readonly message: string; readonly data: unknown };
}

/** The results of the one block's `count` calls, or null where it is not what was asked for. */
function readCalls(value: unknown, count: number): readonly CallResult[] | null {
	const block: unknown = Array.isArray(value) ? value[0] : undefined;
	const calls = isObject(block) ? block.calls : undefined;
	if (!Array.isArray(calls) || calls.length !== count) return null;
	const results = calls.map(readCall).filter((call) => call !== null);
	return results.length === count ? results : null;
}

function readCall(call: unknown): CallResult | null {
	if (!isObject(call)) return null;
	const gasUsed = typeof call.gasUsed === "string" ? parseQuantity(call.gasUsed) : null;
	const returnData = readHex(call.returnData);
	if (gasUsed === null || returnData === null) return null;
	const logs: readonly unknown[] = Array.isArray(call.logs) ? call.logs : [];
	const error = isObject(call.error) ? call.error : {};
	return {
		success: call.status === "0x1",
		gasUsed,
		returnData,
		emitsEvents: logs.some((log) => isObject(log) && !isTransferLog(log.address)),
		error: {
			code: typeof error.code === "number" ? error.code : null,
			message: typeof error.message === "string" ? error.message : "",
			data: error.data,
		},
	};
}

function isTransferLog(address: unknown): boolean {
	return typeof address === "string" && address.toLowerCase() === TRANSFER_LOG_ADDRESS;
}
