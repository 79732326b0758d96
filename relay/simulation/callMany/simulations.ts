// Runs on `eth_simulateV1`: blocks of calls in one question, each a block's. What can't be exact on it is refused, for
// another way to run it. https://github.com/ethereum/execution-apis/blob/main/src/eth/execute.yaml

import { parseQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { RpcCall } from "../../../shared/jsonrpc/client.ts";
import type { SimulationError } from "../../domain/simulation.ts";
import { PROBE_ADDRESS, PROBE_CALLER } from "../engines/callObject.ts";
import type { Ask, StateOverrides } from "../engines/engine.ts";
import { isObject } from "../engines/json.ts";
import { type BaseState, type CallBlock, overridesOf } from "./blocks.ts";
import { type Execution, readSimulated } from "./outcome.ts";

/** A call as the node takes it. */
export interface WireCall {
	readonly call: Readonly<Record<string, unknown>>;
	readonly gas: bigint;
}

/** One block of them. */
export interface WireBlock {
	readonly block: CallBlock;
	readonly calls: readonly WireCall[];
}

export type Simulated =
	| { readonly kind: "ran"; readonly executions: readonly (readonly Execution[])[] }
	/** One of the calls can't be executed, so none was; it is not said which. */
	| { readonly kind: "rejected"; readonly error: SimulationError }
	| { readonly kind: "refused" };

/**
 * Runs `blocks` on `base`. With `validation` the node charges and checks like a block does; without, calls may be free
 * and senders anybody.
 */
export async function simulate(
	base: BaseState,
	blocks: readonly WireBlock[],
	validation: boolean,
	ask: Ask,
): Promise<Simulated> {
	const answer = await ask(simulateCall(base, blocks, validation));
	if (answer.kind === "failed") return { kind: "rejected", error: answer.error };
	if (answer.kind !== "result" || !Array.isArray(answer.value)) return { kind: "refused" };
	const executions = readBlocks(answer.value, blocks);
	return executions === null ? { kind: "refused" } : { kind: "ran", executions };
}

function simulateCall(base: BaseState, blocks: readonly WireBlock[], validation: boolean): RpcCall {
	const blockStateCalls = blocks.map(({ block, calls }, i) => ({
		blockOverrides: overridesOf(block),
		...(i === 0 ? { stateOverrides: base.overrides } : {}),
		calls: calls.map(({ call }) => call),
	}));
	const options = { blockStateCalls, validation, traceTransfers: false };
	return { method: "eth_simulateV1", params: [options, toQuantity(base.block)] };
}

/** geth fills gaps between numbers with empty blocks, so ours are found by their numbers. */
function readBlocks(
	answered: readonly unknown[],
	blocks: readonly WireBlock[],
): readonly (readonly Execution[])[] | null {
	const byNumber = new Map<number, unknown>();
	for (const one of answered) {
		if (!isObject(one) || typeof one.number !== "string") return null;
		byNumber.set(Number(parseQuantity(one.number)), one.calls);
	}
	const executions: Execution[][] = [];
	for (const { block, calls } of blocks) {
		const found = byNumber.get(block.number);
		if (!Array.isArray(found) || found.length !== calls.length) return null;
		const read = calls.map(({ gas }, i) => readSimulated(found[i], gas)).filter((one) => one !== null);
		if (read.length !== calls.length) return null;
		executions.push(read);
	}
	return executions;
}

/** BASEFEE PUSH0 MSTORE PUSH1 32 PUSH0 RETURN */
const BASE_FEE_CODE = "0x485f5260205ff3";
const PROBE_BASE_FEE = 0x1ee3an;
const PROBE_GAS = 100_000n;
const PROBE_FUNDS: StateOverrides = { [PROBE_CALLER]: { balance: toQuantity(10n ** 30n) } };

/**
 * Whether the node lets calls see and pay the base fee that it is told: anvil takes it for 0 without `validation`. Null:
 * it gave no verdict.
 */
export async function isBaseFeeKept(validation: boolean, ask: Ask): Promise<boolean | null> {
	const fee = toQuantity(PROBE_BASE_FEE);
	const calls = [{ from: PROBE_CALLER, to: PROBE_ADDRESS, gas: toQuantity(PROBE_GAS), gasPrice: fee }];
	const stateOverrides = { ...PROBE_FUNDS, [PROBE_ADDRESS]: { code: BASE_FEE_CODE } };
	const block = { blockOverrides: { baseFeePerGas: fee }, stateOverrides, calls };
	const answer = await ask({
		method: "eth_simulateV1",
		params: [{ blockStateCalls: [block], validation }, "latest"],
	});
	if (answer.kind === "fault") return null;
	const answered: unknown = answer.kind === "result" && Array.isArray(answer.value) ? answer.value[0] : null;
	const [call] = isObject(answered) && Array.isArray(answered.calls) ? answered.calls : [];
	const seen = readSimulated(call, PROBE_GAS)?.result.value ?? "";
	return seen === PROBE_BASE_FEE.toString(16).padStart(64, "0");
}

/** PUSH0 CALLDATALOAD BALANCE PUSH0 MSTORE PUSH1 32 PUSH0 RETURN */
const BALANCE_CODE = "0x5f35315f5260205ff3";

/** A question for the balance of `address`, which may stand behind other calls, at the price of `block`. */
export function balanceQuestion(address: string, { baseFee }: CallBlock): WireCall {
	const price = toQuantity(baseFee);
	const input = `0x${address.slice(2).padStart(64, "0")}`;
	const call = {
		from: PROBE_CALLER,
		to: PROBE_ADDRESS,
		gas: toQuantity(PROBE_GAS),
		gasPrice: price,
		input,
	};
	return { call, gas: PROBE_GAS };
}

/** What must be in the state for {@link balanceQuestion}. */
export const BALANCE_OVERRIDES: StateOverrides = { ...PROBE_FUNDS, [PROBE_ADDRESS]: { code: BALANCE_CODE } };
