// The reads that the node answers, and which of them run behind the client's own pending transactions, so that a wallet can estimate
// the second of two steps while the first is pending. Who may know of a transaction is decided as for its cancel. For everybody else
// nothing differs, in answers and in work, whether or not there are any.

import type { CallContext } from "../../shared/http/callContext.ts";
import type { Fallback } from "../../shared/jsonrpc/dispatch.ts";
import { fieldsOf, readAddress } from "../domain/nodeJson.ts";
import type { Caller, KnownTransactions, ReadsBehind } from "../domain/ports.ts";
import type { ChainLink } from "../domain/transaction.ts";
import { callerOf, requesterOf } from "./methodDependencies.ts";

/** The reads that the node answers, as Passthrough. */
interface NodeFallback extends Omit<Fallback<CallContext>, "call"> {
	call(method: string, params: readonly unknown[], caller: Caller): Promise<unknown>;
}

export interface OwnReadsDependencies {
	readonly reads: NodeFallback;
	readonly known: KnownTransactions;
	readonly behind: ReadsBehind;
}

/** The calls that have a sender; of each, whether it concerns the pending block if it names none. */
const CALLS: ReadonlyMap<string, boolean> = new Map([
	["eth_call", false],
	["eth_estimateGas", true],
	["eth_createAccessList", false],
]);

export function ownReads({ reads, known, behind }: OwnReadsDependencies): Fallback<CallContext> {
	return {
		weigh: (method) => reads.weigh(method),
		maxParamsSize: (method) => reads.maxParamsSize(method),
		call(method, params, context) {
			const caller = callerOf(context);
			const isPendingByDefault = CALLS.get(method);
			if (isPendingByDefault === undefined || !isPending(params[1], isPendingByDefault)) {
				return reads.call(method, params, caller);
			}
			const sender = readAddress(fieldsOf(params[0])?.from);
			const chain = sender === null ? [] : known.chainOf(sender, requesterOf(context));
			if (chain.length === 0) return reads.call(method, params, caller);
			return callBehind(method, params, chain, caller, { reads, behind });
		},
	};
}

async function callBehind(
	method: string,
	params: readonly unknown[],
	chain: readonly ChainLink[],
	caller: Caller,
	{ reads, behind }: Pick<OwnReadsDependencies, "reads" | "behind">,
): Promise<unknown> {
	const answer = await behind.answer(method, params, chain, caller);
	return answer === null ? reads.call(method, params, caller) : answer.result;
}

/** Clients name no block by leaving it out or by null. */
function isPending(block: unknown, byDefault: boolean): boolean {
	return block === undefined || block === null ? byDefault : block === "pending";
}
