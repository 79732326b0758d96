// Makes the JSON of `GET /tx/{hash}` and `GET /tx/{hash}/events` from a record. Pure.

import { formatEther } from "ethers/utils";
import { isoTime } from "../../shared/clock.ts";
import { type StatusRecord, stageReport, unknownStatus } from "../../shared/ethereum/statusRecord.ts";
import { termsOf } from "../../shared/ownership.ts";
import { policyOf } from "../domain/endpoints.ts";
import { isLive, isMined, publicStage, type TransactionRecord } from "../domain/record.ts";
import { cancelsReport, type IsPublic, publicEvents } from "./publicEvents.ts";

/** The response of `GET /tx/{hash}` for a known transaction. */
export function statusReport(record: TransactionRecord): StatusRecord {
	const { shared } = record;
	const stage = publicStage(record);
	const { path, referrer, refundRecipient } = termsOf(record.owners);
	const { fastMode } = policyOf(path);
	const status = statusOf(record);
	const held = stageReport(stage, {
		error: fails(record) ? record.simulationError : null,
		blockNumber: isMined(stage) ? record.block : null,
		refundWei: record.refund,
		refundCost: refundCost(record),
		exposed: record.exposed,
		seenAt: record.seenAt,
	});
	if (status === "UNKNOWN") return { ...unknownStatus(record.hash), fastMode, shared, ...held };
	return {
		status,
		hash: record.hash,
		rpc_timestamp: isoTime(record.receivedAt),
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
		backruns: isMined(record.stage) ? record.backruns : 0,
		referrer,
		refundRecipient,
		refund: Number(formatEther(record.refund)),
		...held,
	};
}

/** The cost of paying the refund, if nothing was owed because of that cost; else null. */
function refundCost({ stage, events, refund }: TransactionRecord): string | null {
	const last = isMined(stage) && refund === "0" ? events.findLast(({ type }) => type === "refunded") : null;
	return last?.type === "refunded" && last.owed === "0" && last.cost !== "0" ? last.cost : null;
}

/** Whether its simulation fails, or failed until it expired. */
function fails({ stage, simulationError }: TransactionRecord): boolean {
	if (stage === "SIMULATION_FAILED") return true;
	// A transaction without a verdict may have been sent all the same.
	return stage === "EXPIRED" && simulationError !== null && simulationError.code !== "NODE_UNAVAILABLE";
}

/**
 * INCLUDED once mined; FAILED if it fails now or has ended; UNKNOWN while it is pending without an
 * error, as the interface demands.
 */
function statusOf(record: TransactionRecord): StatusRecord["status"] {
	const stage = publicStage(record);
	if (isMined(stage)) return "INCLUDED";
	return isLive(stage) && stage !== "SIMULATION_FAILED" ? "UNKNOWN" : "FAILED";
}

/**
 * The response of `GET /tx/{hash}/events`: the events in order of time. After a cancel or
 * replacement, `cancels` is the number of builders that have confirmed it. `omitted` counts events
 * that were not kept. `bids` are shown only once it is mined: a bidder who saw them earlier would
 * raise only when others bid. `firstBlock` is the first block of its lifetime, null while it waits
 * for its turn. publicEvents.ts decides which fields are public.
 */
export function eventsReport(record: TransactionRecord, isPublic: IsPublic): unknown {
	const { hash, omitted, firstBlock } = record;
	const stage = publicStage(record);
	const bids = isMined(stage) ? record.backruns : undefined;
	const cancels = cancelsReport(record);
	const events = publicEvents(record, isPublic).map(({ view }) => view);
	return { hash, stage, omitted, bids, firstBlock, ...(cancels === null ? {} : { cancels }), events };
}
