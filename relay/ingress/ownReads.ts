// The reads that the node answers. Some run behind the client's own pending transactions. So a
// wallet can estimate the second of two steps while the first is pending. Only the network address
// that submitted a transaction may know of it. For others, answers and work are the same whether it
// exists or not.

import type { CallContext } from "../../shared/http/callContext.ts";
import type { Fallback } from "../../shared/jsonrpc/dispatch.ts";
import { asksPending } from "../../shared/jsonrpc/reads.ts";
import type { Passthrough } from "../chain/passthrough.ts";
import { fieldsOf, readAddress } from "../domain/nodeJson.ts";
import type { Core } from "../edge/core.ts";
import type { ReadsBehind } from "../simulation/readsBehind.ts";
import type { Transactions } from "../transactions/transactions.ts";
import { type CoreNeeds, callerOf, readerOf } from "./methodDependencies.ts";
import { core_readBehind } from "./methods/betweenRelays.ts";

export interface OwnReadsDependencies {
	/** The reads that the node answers. */
	readonly reads: Pick<Passthrough, "weigh" | "maxParamsSize" | "call">;
	readonly core: Pick<Core<CoreNeeds>, "run">;
}

export function ownReads({ reads, core }: OwnReadsDependencies): Fallback<CallContext> {
	return {
		weigh: (method) => reads.weigh(method),
		maxParamsSize: (method) => reads.maxParamsSize(method),
		call(method, params, context) {
			const isBehind = asksPending(method, params) && senderOf(params) !== null;
			if (!isBehind) return reads.call(method, params, callerOf(context));
			return callBehind(method, params, context, { reads, core });
		},
	};
}

function senderOf(params: readonly unknown[]): string | null {
	return readAddress(fieldsOf(params[0])?.from);
}

async function callBehind(
	method: string,
	params: readonly unknown[],
	context: CallContext,
	{ reads, core }: OwnReadsDependencies,
): Promise<unknown> {
	const behind = await core.run(core_readBehind, [method, params], context);
	return behind ?? reads.call(method, params, callerOf(context));
}

interface ReadBehindDependencies {
	readonly known: Pick<Transactions, "chainOf">;
	readonly behind: Pick<ReadsBehind, "answer">;
}

/** See {@link CoreNeeds.readBehind}. */
export function readBehind({ known, behind }: ReadBehindDependencies): CoreNeeds["readBehind"] {
	return async (method, params, context) => {
		const sender = senderOf(params);
		// By the network address alone. A signature covers only the body and does not expire, so
		// anybody who has seen it could repeat the read.
		const chain = sender === null ? [] : known.chainOf(sender, readerOf(context));
		if (chain.length === 0) return null;
		// Not in an object, since an edge gets the text of a JsonText only if it is the whole result.
		return (await behind.answer(method, params, chain, callerOf(context)))?.result ?? null;
	};
}
