// Reads what `eth_simulateV1` answers: JSON comes in, the results of one block's calls go out, and why one failed.
// https://github.com/ethereum/execution-apis/blob/main/src/schemas/execute.yaml

import { parseQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { SimulationError } from "../../domain/simulation.ts";
import { revertError } from "../revertReason.ts";
import { isObject, readHex } from "./json.ts";
import { isTransferLog } from "./transfers.ts";
import { readExecutionError } from "./verdicts.ts";

/** geth's code of what failed otherwise than by a revert. */
const VM_ERROR_CODE = -32015;

/** How one call fared. */
export interface CallResult {
	readonly success: boolean;
	readonly gasUsed: bigint;
	/** Lower-case 0x hex. */
	readonly returnData: string;
	/** As the node gave them, transfers of Ether among them. */
	readonly logs: readonly unknown[];
	readonly emitsEvents: boolean;
	readonly error: { readonly code: number | null; readonly message: string; readonly data: unknown };
}

/** The results of the one block's `count` calls, or null where it is not what was asked for. */
export function readCalls(value: unknown, count: number): readonly CallResult[] | null {
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
		logs,
		emitsEvents: logs.some((log) => isObject(log) && !isTransferLog(log)),
		error: {
			code: typeof error.code === "number" ? error.code : null,
			message: typeof error.message === "string" ? error.message : "",
			data: error.data,
		},
	};
}

/** Why a call failed, or null where the node does not say (anvil: `execution failed`, for everything). */
export function executionError(call: CallResult, tx: DecodedTransaction): SimulationError | null {
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
