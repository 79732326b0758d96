// Makes the signed statements of `service_receipt` from a transaction's record: what the relay
// accepted, and how it ended. Nothing is stored for them.

import { isoTime } from "../../shared/clock.ts";
import { addressOfKey } from "../../shared/ethereum/signatures.ts";
import { signTyped, type TypedStructs } from "../../shared/ethereum/typedData.ts";
import { termsOf } from "../../shared/ownership.ts";
import type { Fanout } from "../broadcast/fanout.ts";
import { sharingOn } from "../domain/endpoints.ts";
import { isLive, isMined, isUserEnd, type TransactionRecord } from "../domain/record.ts";
import { refundRowOf } from "../domain/refundRow.ts";
import type { CancelPolicy } from "../domain/transaction.ts";
import type { SearcherMarket } from "../market/market.ts";
import type { Transactions } from "../transactions/transactions.ts";

/** The terms that are in force for a transaction since its last submission. */
interface AcceptedStatement {
	readonly chainId: number;
	/** The address whose key signs the statement, in lower case. */
	readonly signer: string;
	/** The transaction's hash. */
	readonly transaction: string;
	/** ISO 8601. */
	readonly acceptedAt: string;
	/** The strictest path that an owner requested. */
	readonly path: string;
	/** Whether searchers may see it. */
	readonly mayBeDisclosed: boolean;
	/** Percent of the amount that a backrun brings. */
	readonly refundPercent: number;
	readonly refundRecipient: string;
	/** Names of the builders that may have it. */
	readonly builders: readonly string[];
}

/** A cancel or replacement that the relay has acknowledged. */
interface AcknowledgedCancel {
	/** ISO 8601. */
	readonly at: string;
	/** The head at that time. */
	readonly block: number;
	/** `address`: all submitters by their network addresses. `anyone`: CANCEL_POLICY is open. */
	readonly by: "sender" | "address" | "anyone" | "replacement";
	/** Names of the builders that had the transaction, and receive a cancel. */
	readonly builders: readonly string[];
}

/** How a transaction ended. Amounts are wei as decimal strings. */
interface EndedStatement extends Pick<AcceptedStatement, "chainId" | "signer" | "transaction"> {
	readonly stage: string;
	/** The block that contains it, or the head when it ended. */
	readonly block: number;
	/** Zeros if it is in no block. */
	readonly blockHash: string;
	readonly refundRecipient: string;
	readonly owed: string;
	readonly paid: string;
	/** Those since the transaction was last submitted. */
	readonly cancels: readonly AcknowledgedCancel[];
}

interface Signed<Statement> {
	readonly statement: Statement;
	/** 65 bytes as 0x hex. */
	readonly signature: string;
}

/** `ended` is null until the end, and until the refund was read from the block. */
interface SignedReceipt {
	readonly accepted: Signed<AcceptedStatement>;
	readonly ended: Signed<EndedStatement> | null;
}

/** The receipt of a transaction; null if it is unknown or `mayRead` denies it. */
export type ReceiptOf = (
	hash: string,
	mayRead: (record: TransactionRecord) => boolean,
) => Promise<SignedReceipt | null>;

const COMMON = [
	{ name: "chainId", type: "uint256" },
	{ name: "signer", type: "address" },
	{ name: "transaction", type: "bytes32" },
];
const ACCEPTED: TypedStructs = {
	Accepted: [
		...COMMON,
		{ name: "acceptedAt", type: "string" },
		{ name: "path", type: "string" },
		{ name: "mayBeDisclosed", type: "bool" },
		{ name: "refundPercent", type: "uint256" },
		{ name: "refundRecipient", type: "address" },
		{ name: "builders", type: "string[]" },
	],
};
const ENDED: TypedStructs = {
	Ended: [
		...COMMON,
		{ name: "stage", type: "string" },
		{ name: "block", type: "uint256" },
		{ name: "blockHash", type: "bytes32" },
		{ name: "refundRecipient", type: "address" },
		{ name: "owed", type: "uint256" },
		{ name: "paid", type: "uint256" },
		{ name: "cancels", type: "AcknowledgedCancel[]" },
	],
	AcknowledgedCancel: [
		{ name: "at", type: "string" },
		{ name: "block", type: "uint256" },
		{ name: "by", type: "string" },
		{ name: "builders", type: "string[]" },
	],
};
const NO_BLOCK = `0x${"00".repeat(32)}`;

interface ReceiptOptions {
	readonly chainId: bigint;
	/** The relay's signing key, as `0x` and 64 digits. */
	readonly key: string;
	/** Percent, as for bids. */
	readonly refundPercent: number;
	readonly cancelPolicy: CancelPolicy;
}

interface ReceiptDependencies {
	readonly builders: Pick<Fanout, "eligible">;
	readonly market: Pick<SearcherMarket, "isSettled">;
	readonly transactions: Pick<Transactions, "archived" | "records">;
}

/** The address of the key that signs receipts, and the function that makes one. */
export function signedReceipts(
	options: ReceiptOptions,
	{ builders, market, transactions }: ReceiptDependencies,
): { readonly signer: string; readonly receiptOf: ReceiptOf } {
	const { chainId, key, refundPercent, cancelPolicy } = options;
	const signer = addressOfKey(key);
	const common = { chainId: Number(chainId), signer };
	const signed = <Statement extends object>(types: TypedStructs, statement: Statement) => ({
		statement,
		signature: signTyped(chainId, types, { ...statement } as Record<string, unknown>, key),
	});
	const receiptOf: ReceiptOf = async (hash, mayRead) => {
		// Read even if it is in memory: response times must not reveal that.
		const archived = await transactions.archived(hash);
		const record = transactions.records.get(hash)?.record ?? archived;
		if (record === null || !mayRead(record)) return null;
		const about = { ...common, transaction: record.hash };
		const accepted = { ...about, ...termsNow(record, refundPercent, builders) };
		const isOver = !isLive(record.stage) && (!isMined(record.stage) || market.isSettled(record));
		return {
			accepted: signed(ACCEPTED, accepted),
			ended: isOver
				? signed(ENDED, { ...about, ...endOf(record, accepted.refundRecipient, cancelPolicy) })
				: null,
		};
	};
	return { signer, receiptOf };
}

function termsNow(
	{ receivedAt, from, owners }: TransactionRecord,
	refundPercent: number,
	builders: ReceiptDependencies["builders"],
) {
	const terms = termsOf(owners);
	return {
		acceptedAt: isoTime(receivedAt),
		path: terms.path,
		mayBeDisclosed: !terms.isHidden && sharingOn(terms.paths) !== "never",
		refundPercent,
		refundRecipient: terms.refundRecipient ?? from,
		builders: builders.eligible(terms),
	};
}

function endOf(record: TransactionRecord, recipient: string, cancelPolicy: CancelPolicy) {
	const refund = refundRowOf(record);
	return {
		stage: record.stage,
		block: record.block ?? 0,
		blockHash: (isMined(record.stage) ? record.blockHash : null) ?? NO_BLOCK,
		refundRecipient: refund?.recipient ?? recipient,
		owed: refund?.owed ?? "0",
		paid: refund?.paid ?? "0",
		cancels: cancelsOf(record, cancelPolicy),
	};
}

function cancelsOf({ events }: TransactionRecord, policy: CancelPolicy): readonly AcknowledgedCancel[] {
	const since = events.findLastIndex(({ type }) => type === "received");
	return events
		.slice(since + 1)
		.filter(isUserEnd)
		.map((event) => ({
			at: isoTime(event.at),
			block: event.block,
			by:
				event.type === "replaced"
					? "replacement"
					: event.byAddress === true
						? "address"
						: policy === "open"
							? "anyone"
							: "sender",
			builders: event.builders,
		}));
}
