// The builders' common dialect: eth_sendBundle with replacementUuid, and MEV-Share's refund fields
// (https://github.com/flashbots/mev-share specs/bundles/refund-recipient.md).

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import type { BuilderRow } from "../../domain/builder.ts";
import type { BundleRefund, OutgoingBundle } from "../../domain/bundle.ts";
import { refundTerms } from "../refundTerms.ts";
import type { Dialect } from "./dialect.ts";
import { rawHex } from "./wire.ts";

export const bundleDialect: Dialect = {
	bundle(row, bundle, uuid) {
		const { transactions, block, refund } = bundle;
		const wire = {
			txs: transactions.map(({ tx }) => rawHex(tx)),
			blockNumber: toQuantity(block),
			revertingTxHashes: transactions.filter(({ mayRevert }) => mayRevert).map(({ tx }) => tx.hash),
			...droppingFields(row, bundle),
			replacementUuid: uuid,
			...(refund === null ? {} : refundFields(row, refund)),
		};
		return { method: "eth_sendBundle", params: [wire] };
	},
};

/** Only for those that know the field, since others may refuse a bundle that has it. */
function droppingFields(row: BuilderRow, { transactions }: OutgoingBundle): object {
	const hashes = transactions.filter(({ mayDrop }) => mayDrop).map(({ tx }) => tx.hash);
	return row.dropping && hashes.length > 0 ? { droppingTxHashes: hashes } : {};
}

function refundFields(row: BuilderRow, refund: BundleRefund): object {
	const percent = refundTerms(row, refund.percent)?.percent ?? 0;
	if (percent === 0) return {};
	return {
		refundPercent: percent,
		refundRecipient: refund.recipient,
		...(refund.of === null ? {} : { refundTxHashes: [refund.of] }),
	};
}
