// The plan of one `eth_callMany`, for every way to run it: its calls in order, their blocks, and
// the state before them. Calls behind mined transactions of a block include these transactions,
// which are run again on the parent's state. Also the results of calls, with the relay's own error
// messages.

import { parseNodeQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import { isObject } from "../../../shared/jsonrpc/fields.ts";
import type { Signer } from "../../domain/authorizations.ts";
import type { CallResult, UnsignedCall } from "../../domain/callMany.ts";
import { readAddress, readAuthorization } from "../../domain/nodeJson.ts";
import type { SimulationError } from "../../domain/simulation.ts";
import type { StateOverrides } from "../engines/engine.ts";
import { signedCall } from "../engines/nodeObjects.ts";
import type { CallBlock } from "./blocks.ts";

/** One call of a plan. */
export interface PlannedCall {
	/** The call object for the node. */
	readonly object: Readonly<Record<string, unknown>>;
	/** Null for the gas left in the block. */
	readonly gas: bigint | null;
	/** Its sender, and its authorizations (EIP-7702), which an unsigned call never has. */
	readonly signer: Signer;
	/** The client's signed transaction, which must obey the rules of a block. */
	readonly tx: DecodedTransaction | null;
	/** For a mined transaction: its result on the chain, which the run must reproduce. */
	readonly mined: { readonly gasUsed: bigint; readonly ok: boolean } | null;
}

export interface PlannedBlock {
	readonly block: CallBlock;
	/** Whether its time may be moved after the previous block's: true unless the client chose it. */
	readonly mayMove: boolean;
	readonly calls: readonly PlannedCall[];
}

/** Blocks of calls on the state after a block of the chain. */
export interface Plan {
	readonly state: { readonly number: number; readonly timestamp: number };
	readonly overrides: StateOverrides;
	readonly blocks: readonly PlannedBlock[];
}

/** The result of a call; `gasUsed` is null if it could not be executed. */
export interface Ended extends CallResult {
	readonly gasUsed: bigint | null;
	readonly ok: boolean;
}

/**
 * The results of all calls except mined ones, in order; null if the node can't run them all as
 * planned.
 */
export type PlanResults = readonly Ended[] | null;

/** A client's signed transaction. */
export function transactionCall(tx: DecodedTransaction): PlannedCall {
	return { object: signedCall(tx), gas: tx.gasLimit, signer: tx, tx, mined: null };
}

/** A call without a signature; its nonce is the account's at that point. */
export function unsignedCall(call: UnsignedCall): PlannedCall {
	const { from, to, gas, gasPrice, maxFeePerGas, maxPriorityFeePerGas, accessList } = call;
	const object = {
		from,
		...(to === null ? {} : { to }),
		...(gas === null ? {} : { gas: toQuantity(gas) }),
		value: toQuantity(call.value),
		input: call.data,
		...(gasPrice === null ? {} : { gasPrice: toQuantity(gasPrice) }),
		...(maxFeePerGas === null ? {} : { maxFeePerGas: toQuantity(maxFeePerGas) }),
		...(maxPriorityFeePerGas === null ? {} : { maxPriorityFeePerGas: toQuantity(maxPriorityFeePerGas) }),
		...(accessList.length === 0 ? {} : { accessList }),
	};
	return { object, gas, signer: { from, chainId: 0n, authorizationList: [] }, tx: null, mined: null };
}

/** Fields of a mined transaction that a call may have too. */
const CALL_FIELDS = [
	...["from", "nonce", "gas", "value", "input", "accessList", "authorizationList"],
	...["maxFeePerBlobGas", "blobVersionedHashes"],
];

/**
 * The mined `tx` as it ran, at the price that it paid; null if it or its `receipt` is malformed.
 */
export function minedCall(tx: unknown, receipt: unknown): PlannedCall | null {
	if (!isObject(tx) || !isObject(receipt) || tx.hash !== receipt.transactionHash) return null;
	const [gas, gasUsed, price] = [tx.gas, receipt.gasUsed, receipt.effectiveGasPrice].map(parseNodeQuantity);
	const from = readAddress(tx.from);
	const authorizations = Array.isArray(tx.authorizationList) ? tx.authorizationList : [];
	const authorizationList = authorizations.map(readAuthorization).filter((one) => one !== null);
	if (from === null || gas == null || gasUsed == null || price == null) return null;
	if (authorizationList.length !== authorizations.length) return null;
	const fee = toQuantity(price);
	const object = {
		...Object.fromEntries(CALL_FIELDS.filter((name) => tx[name] != null).map((name) => [name, tx[name]])),
		...(tx.to == null ? {} : { to: tx.to }),
		...(tx.type === "0x0" || tx.type === "0x1"
			? { gasPrice: fee }
			: { maxFeePerGas: fee, maxPriorityFeePerGas: fee }),
	};
	const signer = { from, chainId: parseNodeQuantity(tx.chainId) ?? 0n, authorizationList };
	return { object, gas, signer, tx: null, mined: { gasUsed, ok: receipt.status === "0x1" } };
}

/** The result of a call that could not be executed. */
export function notRun(error: string): Ended {
	return { value: "", error, gasUsed: null, ok: false };
}

/** The result of a call that may have failed because the node does not give it enough gas. */
export function capped(gasCap: bigint): Ended {
	return notRun(`out of gas: the node runs ${gasCap} at most`);
}

/** The result of an executed call: `output` in lower-case 0x hex, `error` null if it succeeded. */
export function ended(output: string, gasUsed: bigint, error: SimulationError | null): Ended {
	// Clients get the digits without 0x.
	const value = output.slice(2);
	if (error === null) return { value, gasUsed, ok: true };
	// Only the output of a revert is data of the contract.
	const data = error.code === "EXECUTION_REVERTED" ? value : "";
	return { value: data, error: error.message, gasUsed, ok: false };
}

/** The results of all calls of `plan` except mined ones, in order. */
export function collect(plan: Plan, endOf: (call: PlannedCall) => Ended | undefined): readonly Ended[] {
	const own = plan.blocks.flatMap(({ calls }) => calls.filter(({ mined }) => mined === null));
	return own.map((call) => endOf(call) ?? notRun("execution failed"));
}
