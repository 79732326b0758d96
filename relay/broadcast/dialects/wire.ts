// The calls that builders of all dialects share: private transactions, and the cancels of both forms.

import { bytesToHex, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { BuilderRow } from "../../domain/builder.ts";
import { policyOf } from "../../domain/endpoints.ts";
import type { Dispatch } from "../../domain/ports.ts";
import type { BuilderCall, Cancellation } from "./dialect.ts";

/** Raw bytes as 0x hex. */
export function rawHex(dispatch: Dispatch): string {
	return bytesToHex(dispatch.transaction.tx.raw);
}

/** A transaction of its own, not a bundle, by the method the builder's row names. */
export function privateCall(row: BuilderRow, dispatch: Dispatch): BuilderCall {
	const raw = rawHex(dispatch);
	if (row.privateMethod !== "eth_sendPrivateTransaction") return { method: row.privateMethod, params: [raw] };
	return {
		method: row.privateMethod,
		params: [{ tx: raw, maxBlockNumber: toQuantity(dispatch.lastBlock) }],
	};
}

/** The cancels of the form in which the transaction went out, as far as the builder knows any. */
export function cancelCalls(row: BuilderRow, cancellation: Cancellation): readonly BuilderCall[] {
	if (row.cancel === "none") return [];
	const { transaction, uuid, block } = cancellation;
	if (policyOf(transaction.path).form === "private") {
		return [{ method: "eth_cancelPrivateTransaction", params: [{ txHash: transaction.tx.hash }] }];
	}
	const endpoint: BuilderCall = { method: "eth_cancelBundle", params: [{ replacementUuid: uuid }] };
	const empty: BuilderCall = {
		method: "eth_sendBundle",
		params: [{ txs: [], blockNumber: toQuantity(block), replacementUuid: uuid }],
	};
	if (row.cancel === "endpoint") return [endpoint];
	return row.cancel === "empty" ? [empty] : [endpoint, empty];
}
