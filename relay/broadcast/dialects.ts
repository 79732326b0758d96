// Encodes bundles for each builder's API; a row of the setting BUILDERS names the encoder. Also the calls that all kinds share
// (private transactions, cancels) and the refund that a builder pays.

import { bytesToHex, toQuantity } from "../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { BuilderRow } from "../domain/builder.ts";
import type { BundleRefund, OutgoingBundle } from "../domain/bundle.ts";
import type { RefundTerms } from "../domain/refund.ts";

/** A JSON-RPC call to a builder, without envelope. */
export interface BuilderCall {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** How builders of one kind are spoken to. */
export interface Dialect {
	/**
	 * The call that hands over `bundle` under `uuid` (UUIDv4), in the place of what went out under it before. A refund
	 * is asked for as far as the row pays it; one of 0 percent is left out.
	 */
	bundle(row: BuilderRow, bundle: OutgoingBundle, uuid: string): BuilderCall;
}

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

/** The terms on which the builder of `row` refunds when `percent` (0 to 100) is asked for; null: it pays none. */
export function refundTerms(row: BuilderRow, percent: number): RefundTerms | null {
	if (!row.refund || row.maxRefundPercent === 0) return null;
	return { percent: Math.min(percent, row.maxRefundPercent), refundGas: row.refundGas };
}

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

/** `droppingTxHashes`, only for builders that know it: others may refuse a bundle that has it. */
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

export const DIALECTS: Readonly<Record<BuilderRow["dialect"], Dialect>> = {
	bundle: bundleDialect,
	"mev-share": mevShareDialect,
};
