// The builders' common dialect: eth_sendBundle with replacementUuid, and private transactions.

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import { policyOf } from "../../domain/endpoints.ts";
import type { Dialect } from "./dialect.ts";
import { cancelCalls, privateCall, rawHex } from "./wire.ts";

export const bundleDialect: Dialect = {
	send(row, dispatch, uuid) {
		const { transaction, block } = dispatch;
		const policy = policyOf(transaction.path);
		if (policy.form === "private") return privateCall(row, dispatch);
		const bundle = {
			txs: [rawHex(dispatch)],
			blockNumber: toQuantity(block),
			revertingTxHashes: policy.mayRevert ? [transaction.tx.hash] : [],
			replacementUuid: uuid,
		};
		return { method: "eth_sendBundle", params: [bundle] };
	},
	cancel: cancelCalls,
};
