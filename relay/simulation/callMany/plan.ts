// What shall be run for one `eth_callMany`, whatever runs it: calls in their order, the blocks that they run in, and the
// state before them. And how one of them ended, in words of our own.

import { readQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { CallResult, UnsignedCall } from "../../domain/callMany.ts";
import { readAddress, readAuthorization } from "../../domain/nodeJson.ts";
import type { SimulationError } from "../../domain/simulation.ts";
import type { StateOverrides } from "../engines/engine.ts";
import { isObject, signedCall } from "../engines/nodeObjects.ts";
import type { Signer } from "../simulator.ts";
import type { CallBlock } from "./blocks.ts";

/** One call of a plan. */
export interface PlannedCall {
	/** As a node takes it. */
	readonly object: Readonly<Record<string, unknown>>;
	/** Null: whatever the block has left. */
	readonly gas: bigint | null;
	/** Who sends it, and what it delegates (EIP-7702). */
	readonly signer: Signer;
	/** A client's signed transaction: the rules of a block hold for it. */
	readonly tx: DecodedTransaction | null;
	/** One that the chain has mined: how it ended there, and must end here. */
	readonly mined: { readonly gasUsed: bigint; readonly ok: boolean } | null;
}

export interface PlannedBlock {
	readonly block: CallBlock;
	/** Whether its time, which nobody named, may be moved behind that of the block before it. */
	readonly mayMove: boolean;
	readonly calls: readonly PlannedCall[];
}

/** Blocks of calls on the state after a block of the chain. */
export interface Plan {
	readonly state: { readonly number: number; readonly timestamp: number };
	readonly overrides: StateOverrides;
	readonly blocks: readonly PlannedBlock[];
}

/** How one call ended; `gasUsed` is null where it could not be executed. */
export interface Ended extends CallResult {
	readonly gasUsed: bigint | null;
	readonly ok: boolean;
}

/** How all calls ended that are not mined ones, in order; null where the node can't run them all as they are. */
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

/** What a mined transaction says that a call may say too. */
const CALL_FIELDS = [
	...["from", "nonce", "gas", "value", "input", "accessList", "authorizationList"],
	...["maxFeePerBlobGas", "blobVersionedHashes"],
];

/** The mined `tx` as it ran, at the price that it paid; null where it and its `receipt` are not what nodes answer. */
export function minedCall(tx: unknown, receipt: unknown): PlannedCall | null {
	if (!isObject(tx) || !isObject(receipt) || tx.hash !== receipt.transactionHash) return null;
	const [gas, gasUsed, price] = [tx.gas, receipt.gasUsed, receipt.effectiveGasPrice].map(readQuantity);
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
	const signer = { from, chainId: readQuantity(tx.chainId) ?? 0n, authorizationList };
	return { object, gas, signer, tx: null, mined: { gasUsed, ok: receipt.status === "0x1" } };
}

/** What could not be executed, and why. */
export function notRun(error: string): Ended {
	return { value: "", error, gasUsed: null, ok: false };
}

/** What was executed: `output` in lower-case 0x hex, `error` null where it passed. */
export function ended(output: string, gasUsed: bigint, error: SimulationError | null): Ended {
	const value = output.slice(2);
	if (error === null) return { value, gasUsed, ok: true };
	// What is left in the output of a halt is no data of the contract's.
	const data = error.code === "EXECUTION_REVERTED" ? value : "";
	return { value: data, error: error.message, gasUsed, ok: false };
}

/** The results of `plan`. */
export function collect(plan: Plan, endOf: (call: PlannedCall) => Ended | undefined): PlanResults {
	const own = plan.blocks.flatMap(({ calls }) => calls.filter(({ mined }) => mined === null));
	return own.map((call) => endOf(call) ?? notRun("execution failed"));
}
