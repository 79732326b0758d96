// The JSON of `GET /tx/{hash}`, from a record. Pure.

import { type StatusRecord, stageReport, unknownStatus } from "../../shared/ethereum/statusRecord.ts";
import { policyOf } from "../domain/endpoints.ts";
import { isLive, isMined, type TransactionRecord } from "../domain/record.ts";
import { cancelsReport, type IsPublic, publicEvents } from "./publicEvents.ts";

/** What `GET /tx/{hash}` says of a transaction that the relay holds or held. */
export function statusReport(record: TransactionRecord): StatusRecord {
	const { stage, shared } = record;
	const { fastMode } = policyOf(record.path);
	const status = statusOf(record);
	const held = stageReport(stage, {
		error: stage === "SIMULATION_FAILED" ? record.simulationError : null,
		blockNumber: isMined(stage) ? record.block : null,
		refundWei: record.refund,
	});
	if (status === "UNKNOWN") return { ...unknownStatus(record.hash), fastMode, shared, ...held };
	return {
		status,
		hash: record.hash,
		rpc_timestamp: new Date(record.receivedAt).toISOString(),
		transaction: {
			from: record.from,
			to: record.to ?? "",
			gas: record.gas,
			nonce: record.nonce,
			value: record.value,
		},
		fastMode,
		shared,
		simulationError: record.simulationError,
		backruns: record.backruns,
		referrer: record.referrer,
		refundRecipient: record.refundRecipient,
		refund: toEther(record.refund),
		...held,
	};
}

/** The given three: mined; fails now or has ended; else pending and healthy, which is told as unknown. */
function statusOf({ stage }: TransactionRecord): StatusRecord["status"] {
	if (isMined(stage)) return "INCLUDED";
	return isLive(stage) && stage !== "SIMULATION_FAILED" ? "UNKNOWN" : "FAILED";
}

/** Wei, as decimal digits, in ETH: the number nearest to it. */
function toEther(wei: string): number {
	const digits = wei.padStart(19, "0");
	return Number(`${digits.slice(0, -18)}.${digits.slice(-18)}`);
}

/**
 * What `GET /tx/{hash}/events` says: the life of a transaction, in order of time, times in ISO 8601; where its user has
 * ended it, how many builders have confirmed that (`cancels`). `omitted`: events that no longer fitted. What is told of
 * bids, of hidden neighbours and of who took its place: see publicEvents.ts.
 */
export function eventsReport(record: TransactionRecord, isPublic: IsPublic): unknown {
	const { hash, stage, omitted } = record;
	const cancels = cancelsReport(record);
	const events = publicEvents(record, isPublic).map(({ view }) => view);
	return { hash, stage, omitted, ...(cancels === null ? {} : { cancels }), events };
}
