// The MEV-Share dialect: mev_sendBundle v0.1 (https://github.com/flashbots/mev-share specs/bundles/v0.1.md). Hints
// are always empty: nothing of a transaction is told to anybody else by such a builder. It has no word for a
// transaction that may be dropped.

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import type { BuilderRow } from "../../domain/builder.ts";
import type { BundleRefund } from "../../domain/bundle.ts";
import { refundTerms } from "../refundTerms.ts";
import type { Dialect } from "./dialect.ts";
import { rawHex } from "./wire.ts";

export const mevShareDialect: Dialect = {
	bundle(row, { transactions, block, refund }, uuid) {
		const bundle = {
			version: "v0.1",
			inclusion: { block: toQuantity(block), maxBlock: toQuantity(block) },
			body: transactions.map(({ tx, mayRevert }) => ({ tx: rawHex(tx), canRevert: mayRevert })),
			validity: validityOf(row, refund),
			privacy: { hints: [] },
			replacementUuid: uuid,
		};
		return { method: "mev_sendBundle", params: [bundle] };
	},
};

function validityOf(row: BuilderRow, refund: BundleRefund | null): object {
	const percent = refund === null ? 0 : (refundTerms(row, refund.percent)?.percent ?? 0);
	if (refund === null || percent === 0) return { refund: [], refundConfig: [] };
	return {
		refund: [{ bodyIdx: refund.bodyIdx, percent }],
		refundConfig: [{ address: refund.recipient, percent: 100 }],
	};
}
