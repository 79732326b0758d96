// The reads that the node answers, and which of them run behind the client's own pending transactions, so that a wallet can estimate
// the second of two steps while the first is pending. Who may know of a transaction is decided as for its cancel. For everybody else
// nothing differs, in answers and in work, whether or not there are any.

import type { CallContext } from "../../shared/http/callContext.ts";
import type { Fallback } from "../../shared/jsonrpc/dispatch.ts";
import { asksPending } from "../../shared/jsonrpc/reads.ts";
import type { Passthrough } from "../chain/passthrough.ts";
import { fieldsOf, readAddress } from "../domain/nodeJson.ts";
import type { Caller } from "../domain/ports.ts";
import type { ChainLink, Requester } from "../domain/transaction.ts";
import type { ReadsBehind } from "../simulation/readsBehind.ts";
import type { Transactions } from "../transactions/transactions.ts";
import { callerOf, requesterOf } from "./methodDependencies.ts";

export interface OwnReadsDependencies {
	/** The reads that the node answers. */
	readonly reads: Pick<Passthrough, "weigh" | "maxParamsSize" | "call">;
	readonly known: Pick<Transactions, "chainOf">;
	readonly behind: Pick<ReadsBehind, "answer">;
}

export function ownReads({ reads, known, behind }: OwnReadsDependencies): Fallback<CallContext> {
	return {
		weigh: (method) => reads.weigh(method),
		maxParamsSize: (method) => reads.maxParamsSize(method),
		call(method, params, context) {
			const caller = callerOf(context);
			if (!asksPending(method, params)) return reads.call(method, params, caller);
			const sender = readAddress(fieldsOf(params[0])?.from);
			const chain = sender === null ? [] : known.chainOf(sender, readerOf(context));
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

/** As for a cancel; but a proxy's address may be that of all clients, who are not to see each other's transactions. */
function readerOf(context: CallContext): Requester {
	const requester = requesterOf(context);
	return context.client.isProxy === true ? { address: null, signer: requester.signer } : requester;
}
