// Classifies a node's error by its code, or else by its message. It is a failure of the
// transaction, an unsupported call, or a fault of the node. Only this file reads a node's error
// messages, and they are not passed on. Codes:
// https://github.com/ethereum/execution-apis/blob/main/src/eth/execute.yaml and EIP-1474.

import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { RpcAnswer, UpstreamError } from "../../../shared/jsonrpc/client.ts";
import type { SimulationError, SimulationErrorCode, SimulationOutcome } from "../../domain/simulation.ts";
import { revertError } from "../revertReason.ts";
import type { EngineRequest, NodeAnswer } from "./engine.ts";
import { readHex, type SimulatedCall } from "./nodeObjects.ts";

type Meaning = "unsupported" | "missing" | "fault" | readonly [code: SimulationErrorCode, message: string];

const FAILED = ["EXECUTION_FAILED", "execution failed"] as const;
const NONCE_LOW = ["NONCE_TOO_LOW", "nonce too low"] as const;
const NONCE_HIGH = ["NONCE_GAP", "nonce too high"] as const;
const FEE_CAP = ["FEE_CAP_TOO_LOW", "max fee per gas less than block base fee"] as const;
const BLOB_CAP = ["BLOB_FEE_CAP_TOO_LOW", "max fee per blob gas less than block blob base fee"] as const;
const INTRINSIC = ["OUT_OF_GAS", "out of gas: intrinsic gas too low"] as const;
const UNDERFUNDED = ["INSUFFICIENT_FUNDS", "insufficient funds for gas * price + value"] as const;
/** The message for a block without room. */
export const BLOCK_FULL = "exceeds block gas limit";
const BLOCK_LIMIT = ["GAS_LIMIT_TOO_HIGH", BLOCK_FULL] as const;
const TX_LIMIT = ["GAS_LIMIT_TOO_HIGH", "transaction gas limit too high"] as const;
const OUT_OF_GAS = ["OUT_OF_GAS", "out of gas"] as const;
const BAD_OPCODE = ["INVALID_OPCODE", "invalid opcode"] as const;
const SENDER_CODE = failed("sender is a contract");
const INITCODE = failed("max initcode size exceeded");

/** Codes with a clear meaning. */
const CODES: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
	[-38010, NONCE_LOW],
	[-38011, NONCE_HIGH],
	[-38012, FEE_CAP],
	[-38013, INTRINSIC],
	[-38014, UNDERFUNDED],
	[-38015, BLOCK_LIMIT],
	// The block's number or time does not follow the node's head: the node has another head.
	[-38020, "fault"],
	[-38021, "fault"],
	[-38024, SENDER_CODE],
	// A limit of the node's own: on blocks, on calls, or on the gas limit of a block (reth).
	[-38026, "unsupported"],
	[-32001, "fault"],
	[-32002, "fault"],
	[-32005, "fault"],
]);

/** The meaning of a code if the message matches no pattern; all other codes are faults. */
const DEFAULTS: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
	[-32600, "unsupported"],
	[-32601, "unsupported"],
	[-32602, "unsupported"],
	[-32004, "unsupported"],
	// An unknown message for the whole request is no verdict.
	[-32000, "unsupported"],
	[-38025, INITCODE],
	[-32003, FAILED],
	[-32015, FAILED],
]);

/**
 * Patterns of messages, reduced to letters and digits, with their meanings; the first match counts.
 */
const PATTERNS: readonly (readonly [pattern: RegExp, meaning: Meaning])[] = [
	// The state is missing, so nothing is known about the transaction.
	[/headernotfound|headerforhashnotfound|blocknotfound|unknownblock|blockoutofrange/, "missing"],
	[/missingtrienode|state(is)?(not|un)available|historicalstate|nostateavailable|pruned/, "fault"],
	[/executionaborted|timeout|timedout|toomanyrequests|ratelimit|overloaded|serverbusy/, "fault"],
	// The node's or its provider's own limits.
	[/gascapexhausted|toomanyblocks|toomanycalls|adjustablelimit|clientlimit/, "unsupported"],
	[/method(is)?(not|un)|(not|un)(supported|implemented|whitelisted|allowed|authorized)/, "unsupported"],
	[/notavailable(on|in|for|with)|upgradeyour|yourplan|forbidden|accessdenied|disabled/, "unsupported"],
	[/intrinsicgas|callgascostmorethangaslimit|gasfloormorethangaslimit|floordatagas/, INTRINSIC],
	[/insufficient(funds|balance)|outoffunds|lackoffundforgaslimit/, UNDERFUNDED],
	[/feecaplessthan|maxfeepergaslessthan|gaspricelessthanbasefee/, FEE_CAP],
	[/blobgaspricegreaterthanmax|maxfeeperblobgasless/, BLOB_CAP],
	[/noncetoolow/, NONCE_LOW],
	[/noncetoohigh/, NONCE_HIGH],
	[/blockgaslimit|gaslimitreached/, BLOCK_LIMIT],
	[/gaslimittoohigh|txgaslimitgreater/, TX_LIMIT],
	[/initcodesize/, INITCODE],
	[/sendernotaneoa|sendernoteoa|rejectcallerwithcode/, SENDER_CODE],
	[/maxcodesize|createcontractsizelimit/, failed("max code size exceeded")],
	[/startingwithef|mustnotbeginwith0xef/, failed("contract code starts with 0xEF")],
	[/createcollision|addresscollision/, failed("contract address is taken")],
	[/outofgas|oog$|gasuint64overflow/, OUT_OF_GAS],
	[/invalidopcode|invalidfeopcode|opcodenotfound|notactivated|badinstruction|invalidoperation/, BAD_OPCODE],
	[/stackunderflow/, failed("stack underflow")],
	[/stackoverflow|stacklimit/, failed("stack overflow")],
	[/invalidjump/, failed("invalid jump destination")],
	[/outofoffset|returndataoutofbounds/, failed("return data out of bounds")],
	// anvil's message for all other halts; its code is that of internal faults.
	[/^evmerror/, FAILED],
];

function failed(why: string): Meaning {
	return ["EXECUTION_FAILED", `execution failed: ${why}`];
}

/** Classifies the node's answer to a call. */
export function readAnswer(answer: RpcAnswer): NodeAnswer {
	if (answer.ok) return { kind: "result", value: answer.result };
	const { code, message, data } = answer.error;
	if (isRevert(code, message)) return { kind: "failed", error: revertError(data) };
	const meaning = CODES.get(code) ?? findPattern(message) ?? DEFAULTS.get(code) ?? "fault";
	if (meaning === "missing") return { kind: "fault", isMissing: true };
	if (typeof meaning === "string") return { kind: meaning };
	return { kind: "failed", error: { code: meaning[0], message: meaning[1] } };
}

/**
 * HTTP statuses by which providers say that a method is not supported, or not included in a plan.
 */
const UNSUPPORTED_STATUS: ReadonlySet<number> = new Set([402, 403, 404, 405, 501]);

/** Classifies a failed transport: the call is unsupported, or the node is at fault. */
export function readTransportError({ code, status = 0 }: UpstreamError): NodeAnswer {
	return { kind: code === "httpStatus" && UNSUPPORTED_STATUS.has(status) ? "unsupported" : "fault" };
}

/**
 * Why an execution failed, by the node's error. `data` is the revert data, if any. Null if neither
 * code nor message is clear.
 */
export function readExecutionError(
	code: number | null,
	message: string,
	data: unknown,
): SimulationError | null {
	if (isRevert(code, message)) return revertError(data);
	const meaning = (code === null ? undefined : CODES.get(code)) ?? findPattern(message);
	if (meaning === undefined || typeof meaning === "string" || meaning === FAILED) return null;
	return { code: meaning[0], message: meaning[1] };
}

/** geth's code of failures other than reverts. */
const VM_ERROR_CODE = -32015;

/**
 * Why a simulated call with `gas` (null if not known) failed; null if the node does not explain it
 * (anvil answers `execution failed` for everything).
 */
export function callError(
	{ error: { code, message, data }, returnData, gasUsed }: SimulatedCall,
	gas: bigint | null,
	{ authorizationList }: Pick<DecodedTransaction, "authorizationList">,
): SimulationError | null {
	const revertData = readHex(data) ?? returnData;
	const named = readExecutionError(code, message, revertData);
	if (named !== null) return named;
	if (code === VM_ERROR_CODE) return null;
	// Only a revert returns data or unused gas; but authorizations refund some gas in any case.
	if (revertData !== "0x") return revertError(revertData);
	const spentAll = gas === null || gasUsed >= gas;
	return spentAll || authorizationList.length > 0 ? null : revertError("0x");
}

function isRevert(code: number | null, message: string): boolean {
	return code === 3 || /execution ?reverted|^revert(ed)?$/i.test(message);
}

function findPattern(message: string): Meaning | undefined {
	const letters = message.toLowerCase().replace(/[^a-z0-9]/g, "");
	return PATTERNS.find(([pattern]) => pattern.test(letters))?.[1];
}

/**
 * Whether the node says that its gas cap, and not the transaction, may be the cause of the failure
 * (geth does for some).
 */
export function saysCapped({ error: { message } }: SimulatedCall): boolean {
	return /gas ?cap/i.test(message);
}

/** A failure without a known reason. */
export const EXECUTION_FAILED: SimulationError = { code: "EXECUTION_FAILED", message: "execution failed" };

/** The outcome of a simulation without a verdict. */
export const NO_VERDICT: SimulationOutcome = {
	ok: false,
	error: { code: "NODE_UNAVAILABLE", message: "the node gave no verdict" },
};

/** The outcome if the node supports no way to simulate it. */
export const UNSUPPORTED: SimulationOutcome = {
	ok: false,
	isImpossible: true,
	error: { code: "NODE_UNAVAILABLE", message: "simulation not possible: the node refuses it" },
};

/** The outcome if the node's gas cap, and not the transaction, may be the cause of the failure. */
export function aboveCap(gasCap: bigint): SimulationOutcome {
	const message = `simulation not possible: the node runs ${gasCap} gas at most`;
	return { ok: false, isImpossible: true, error: { code: "NODE_UNAVAILABLE", message } };
}

/** Whether the run stops at `outcome`, of the request's transaction at `index`. */
export function stopsAt(
	{ chain, mayFail }: Pick<EngineRequest, "chain" | "mayFail">,
	outcome: SimulationOutcome,
	index: number,
): boolean {
	if (outcome.ok) return false;
	return outcome.error.code === "NODE_UNAVAILABLE" || !mayFail.has(chain[index]?.hash ?? "");
}
