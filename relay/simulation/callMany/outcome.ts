// How an execution ended, and what the client is told of it: what the node said comes in, hex digits and words of our
// own go out. It asks nothing.

import { parseQuantity } from "../../../shared/ethereum/hex.ts";
import type { CallResult, CallResults } from "../../domain/callMany.ts";
import type { SimulationError } from "../../domain/simulation.ts";
import { isObject, readHex } from "../engines/json.ts";
import { readExecutionError } from "../engines/verdicts.ts";
import { revertError } from "../revertReason.ts";

/** One execution that took place. */
export interface Execution {
	readonly result: CallResult;
	readonly failed: boolean;
	readonly gasUsed: bigint;
	/** It failed, and the node did not say why. */
	readonly vague: boolean;
}

/** What one way to run them all says. */
export type RoadAnswer =
	| {
			readonly kind: "ran";
			readonly results: CallResults;
			/** Some failed, and the node did not say why: another way may know. */
			readonly vague: boolean;
	  }
	/** The node does not serve this, or it would not be exact: the next way may. */
	| { readonly kind: "refused" };

export const REFUSED = { kind: "refused" } as const;

/** What could not run, and why. */
export function notRun(error: string): CallResult {
	return { value: "", error };
}

/** A frame of `callTracer`, the outermost; null where it is none. */
export function readFrame(value: unknown): Execution | null {
	if (!isObject(value) || typeof value.gasUsed !== "string") return null;
	const gasUsed = parseQuantity(value.gasUsed);
	if (gasUsed === null) return null;
	const output = readHex(value.output) ?? "0x";
	if (typeof value.error !== "string") return passed(output, gasUsed);
	return failed(readExecutionError(null, value.error, output), output, gasUsed);
}

/** A call of `eth_simulateV1`, which had `gasLimit`; null where it is none. */
export function readSimulated(value: unknown, gasLimit: bigint): Execution | null {
	if (!isObject(value) || typeof value.gasUsed !== "string") return null;
	const gasUsed = parseQuantity(value.gasUsed);
	const returned = readHex(value.returnData);
	if (gasUsed === null || returned === null) return null;
	if (value.status === "0x1") return passed(returned, gasUsed);
	const error = isObject(value.error) ? value.error : {};
	const output = readHex(error.data) ?? returned;
	const code = typeof error.code === "number" ? error.code : null;
	const message = typeof error.message === "string" ? error.message : "";
	const named = readExecutionError(code, message, output);
	// anvil says "execution failed" for everything; only a revert hands back data, or leaves gas.
	const reverted = code !== VM_ERROR_CODE && (output !== "0x" || gasUsed < gasLimit);
	return failed(named ?? (reverted ? revertError(output) : null), output, gasUsed);
}

/** geth's code of what failed otherwise than by a revert. */
const VM_ERROR_CODE = -32015;

function passed(output: string, gasUsed: bigint): Execution {
	return { result: { value: output.slice(2) }, failed: false, gasUsed, vague: false };
}

function failed(error: SimulationError | null, output: string, gasUsed: bigint): Execution {
	const message = error?.message ?? "execution failed";
	// What is left in the output of a halt is no data of the contract's.
	const value = error?.code === "EXECUTION_REVERTED" ? output.slice(2) : "";
	return { result: { value, error: message }, failed: true, gasUsed, vague: error === null };
}
