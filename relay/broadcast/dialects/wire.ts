// The calls that builders of all dialects share: private transactions, and the cancels of both forms.

import { bytesToHex, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { BuilderRow } from "../../domain/builder.ts";
import type { BuilderCall } from "./dialect.ts";

/** Raw bytes as 0x hex. */
export function rawHex(tx: DecodedTransaction): string {
	return bytesToHex(tx.raw);
}

/** A transaction of its own, not a bundle, by the method the builder's row names; kept until `lastBlock` at most. */
export function privateCall(row: BuilderRow, tx: DecodedTransaction, lastBlock: number): BuilderCall {
	const raw = rawHex(tx);
	if (row.privateMethod !== "eth_sendPrivateTransaction") return { method: row.privateMethod, params: [raw] };
	return { method: row.privateMethod, params: [{ tx: raw, maxBlockNumber: toQuantity(lastBlock) }] };
}

/** The calls that make the builder forget a private transaction; none where it knows no way to cancel. */
export function cancelPrivateCalls(row: BuilderRow, hash: string): readonly BuilderCall[] {
	if (row.cancel === "none") return [];
	return [{ method: "eth_cancelPrivateTransaction", params: [{ txHash: hash }] }];
}

/** The calls that make the builder forget the bundle under `uuid`, as far as it knows any. `block`: the next one. */
export function cancelBundleCalls(row: BuilderRow, uuid: string, block: number): readonly BuilderCall[] {
	if (row.cancel === "none") return [];
	const endpoint: BuilderCall = { method: "eth_cancelBundle", params: [{ replacementUuid: uuid }] };
	const empty: BuilderCall = {
		method: "eth_sendBundle",
		params: [{ txs: [], blockNumber: toQuantity(block), replacementUuid: uuid }],
	};
	if (row.cancel === "endpoint") return [endpoint];
	return row.cancel === "empty" ? [empty] : [endpoint, empty];
}
