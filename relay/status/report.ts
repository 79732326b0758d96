// What the status pages say: a record comes in, the JSON of `GET /tx/{hash}` and of its events goes out. Pure.

import { policyOf } from "../domain/endpoints.ts";
import { isLive, isMined } from "../domain/lifecycle.ts";
import type { LifeEvent, TransactionRecord } from "../domain/record.ts";
import type { SimulationError } from "../domain/simulation.ts";

/** The transaction status record of the interface; `stage` only for what the relay holds. */
export interface StatusReport {
	readonly status: "INCLUDED" | "FAILED" | "UNKNOWN";
	readonly hash: string;
	/** ISO 8601, UTC, milliseconds. */
	readonly rpc_timestamp: string | null;
	/** `gas`, `nonce`, `value` (wei): decimal strings; `to` is empty for a creation. */
	readonly transaction: {
		readonly from: string;
		readonly to: string;
		readonly gas: string;
		readonly nonce: string;
		readonly value: string;
	};
	readonly fastMode: boolean;
	readonly shared: boolean;
	readonly simulationError: SimulationError | null;
	readonly backruns: number;
	readonly referrer: string | null;
	readonly refundRecipient: string | null;
	/** ETH. */
	readonly refund: number;
	readonly stage?: TransactionRecord["stage"];
}

/** The record of a hash that was never seen. */
export function unknownReport(hash: string): StatusReport {
	return {
		status: "UNKNOWN",
		hash,
		rpc_timestamp: null,
		transaction: { from: "", to: "", gas: "", nonce: "", value: "" },
		fastMode: false,
		shared: false,
		simulationError: null,
		backruns: 0,
		referrer: null,
		refundRecipient: null,
		refund: 0,
	};
}

/** What `GET /tx/{hash}` says of a transaction that the relay holds or held. */
export function statusReport(record: TransactionRecord): StatusReport {
	const { stage, shared } = record;
	const { fastMode } = policyOf(record.path);
	const status = statusOf(record);
	if (status === "UNKNOWN") return { ...unknownReport(record.hash), fastMode, shared, stage };
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
		stage,
	};
}

/** The given three: mined; fails now or has ended; else pending and healthy, which is told as unknown. */
function statusOf({ stage }: TransactionRecord): StatusReport["status"] {
	if (isMined(stage)) return "INCLUDED";
	return isLive(stage) && stage !== "SIMULATION_FAILED" ? "UNKNOWN" : "FAILED";
}

/** Wei, as decimal digits, in ETH: the number nearest to it. */
function toEther(wei: string): number {
	const digits = wei.padStart(19, "0");
	return Number(`${digits.slice(0, -18)}.${digits.slice(-18)}`);
}

/**
 * What `GET /tx/{hash}/events` says: the life of a transaction, in order of time. Times are ISO 8601. Searchers know the
 * hashes of what is shared, so of such a one it tells of bids only the one that was mined, and nothing by which those
 * before and behind it could be told apart. `isPublic`: whether the transaction with a hash is shared or mined.
 */
export function eventsReport(record: TransactionRecord, isPublic: (hash: string) => boolean): unknown {
	const mined = record.events.findLast((event) => event.type === "refunded")?.backrun;
	const events = record.events.map((event) => ({
		...publicEvent(record, event, mined, isPublic),
		at: new Date(event.at).toISOString(),
	}));
	const deliveries = record.deliveries.map(({ at, ...rest }) => ({
		type: "delivered",
		...rest,
		at: new Date(at).toISOString(),
	}));
	const all = [...events, ...deliveries].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
	return { hash: record.hash, stage: record.stage, omitted: record.omitted, events: all };
}

/** `mined`: the backrun behind it in its block, where it is in one with a backrun. */
function publicEvent(
	record: TransactionRecord,
	event: LifeEvent,
	mined: string | undefined,
	isPublic: (hash: string) => boolean,
): object {
	switch (event.type) {
		case "bundled": {
			const { bundle, backrun, bid, ...rest } = event;
			return !isLive(record.stage) && backrun === mined ? event : rest;
		}
		case "replaced": {
			const { discreet, by, ...rest } = event;
			const isNamed = isPublic(by) || (!record.shared && discreet !== true);
			return isNamed ? { ...rest, by } : rest;
		}
		case "queued": {
			const { reason, ...rest } = event;
			return record.shared ? rest : event;
		}
		case "simulated": {
			const { gasUsed, ...rest } = event;
			return record.shared ? rest : event;
		}
		default:
			return event;
	}
}
