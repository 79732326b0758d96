// Status records from what the rows and the chain know. What boost cannot know (bids, refunds, who has seen it) stays blank.

import { readQuantity } from "../../shared/ethereum/hex.ts";
import type { RpcTransaction } from "../../shared/ethereum/rpcTransaction.ts";
import { type StatusRecord, unknownStatus } from "../../shared/ethereum/statusRecord.ts";
import { readSubmissionQuery } from "../../shared/http/submissionQuery.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { type Ending, isLive, type Row } from "../domain/row.ts";
import type { Mined } from "./chainFacts.ts";

const STAGES: Readonly<Record<Ending, string>> = {
	mined: "INCLUDED",
	replaced: "REPLACED",
	cancelled: "CANCELLED",
	expired: "EXPIRED",
	dropped: "DROPPED",
};

/** Of one that the journal holds and that is pending, as far as anybody knows. */
export function heldRecord({ hash, path }: Row): StatusRecord {
	return { ...unknownStatus(hash), fastMode: path === "fast", stage: "HELD" };
}

/** Of one that has ended; of the transaction only what is still known of it. */
export function endedRecord({ hash, from, nonce, path, desired }: Row): StatusRecord {
	const blank = unknownStatus(hash);
	return {
		...blank,
		status: desired === "mined" ? "INCLUDED" : "FAILED",
		transaction: { ...blank.transaction, from, nonce: nonce.toString() },
		fastMode: path === "fast",
		...(desired === "live" ? {} : { stage: STAGES[desired] }),
	};
}

/** Of one that is in a block; `row` is what boost knows of it, if anything. */
export function minedRecord(hash: string, mined: Mined, row: Row | null): StatusRecord {
	const blank = unknownStatus(hash);
	const known =
		row === null ? blank.transaction : { ...blank.transaction, from: row.from, nonce: row.nonce.toString() };
	const live = row !== null && isLive(row) ? row : null;
	return {
		...blank,
		status: "INCLUDED",
		rpc_timestamp: live === null ? null : new Date(live.receivedAt).toISOString(),
		transaction: mined.transaction === null ? known : fieldsOf(mined.transaction),
		fastMode: row?.path === "fast",
		...(live === null ? {} : asked(live)),
		stage: mined.reverted ? "REVERTED" : "INCLUDED",
	};
}

/** What the client asked for beside the path. */
function asked({ search }: Row): Pick<StatusRecord, "referrer" | "refundRecipient"> {
	try {
		const { referrer, refundRecipient } = readSubmissionQuery(new URLSearchParams(search));
		return { referrer, refundRecipient };
	} catch (thrown) {
		// Nobody takes such a query; it is no reason to say nothing of a transaction that came with it.
		if (thrown instanceof RpcError) return { referrer: null, refundRecipient: null };
		throw thrown;
	}
}

/** The fields of a node's object in the record's form. */
function fieldsOf({ from, to, gas, nonce, value }: RpcTransaction): StatusRecord["transaction"] {
	const text = (field: unknown) => (typeof field === "string" ? field.toLowerCase() : "");
	const decimal = (field: unknown) => readQuantity(field)?.toString() ?? "";
	return {
		from: text(from),
		to: text(to),
		gas: decimal(gas),
		nonce: decimal(nonce),
		value: decimal(value),
	};
}
