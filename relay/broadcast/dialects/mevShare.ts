// The MEV-Share dialect: mev_sendBundle v0.1 (https://github.com/flashbots/mev-share specs/bundles/v0.1.md). Hints
// are always empty: nothing of a transaction is told to anybody else by such a builder.

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import { policyOf } from "../../domain/endpoints.ts";
import type { Dialect } from "./dialect.ts";
import { cancelCalls, privateCall, rawHex } from "./wire.ts";

export const mevShareDialect: Dialect = {
	send(row, dispatch, uuid) {
		const { transaction, block } = dispatch;
		const policy = policyOf(transaction.path);
		if (policy.form === "private") return privateCall(row, dispatch);
		const bundle = {
			version: "v0.1",
			inclusion: { block: toQuantity(block), maxBlock: toQuantity(block) },
			body: [{ tx: rawHex(dispatch), canRevert: policy.mayRevert }],
			validity: { refund: [], refundConfig: [] },
			privacy: { hints: [] },
			replacementUuid: uuid,
		};
		return { method: "mev_sendBundle", params: [bundle] };
	},
	cancel: cancelCalls,
};
