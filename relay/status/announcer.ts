// Publishes a transaction's status record to its subscribers whenever an event changed it.

import type { TxEvent } from "../domain/events.ts";
import type { Stage } from "../domain/lifecycle.ts";
import type { Publisher } from "../domain/ports.ts";
import type { TransactionRecord } from "../domain/record.ts";
import type { SimulationError } from "../domain/simulation.ts";
import { transactionTopic } from "../domain/topics.ts";
import type { EventListener } from "./ledger.ts";

export interface AnnouncerDependencies {
	readonly publisher: Publisher;
	/** The status record, as `GET /tx/{hash}` answers it. */
	readonly view: (record: TransactionRecord) => unknown;
}

/** For the ledger: publishes each change of what the status record says. */
export function createAnnouncer({ publisher, view }: AnnouncerDependencies): EventListener {
	return (record, before, event) => {
		if (!changesStatus(record, before, event)) return;
		publisher.publish(transactionTopic(record.hash), () => view(record));
	};
}

/**
 * Whether the status record of `record`, which has just been through `event`, is another one than before it. Pending and
 * healthy, only its stage and whether it is shared are told; backruns and the error are where it fails.
 */
function changesStatus(record: TransactionRecord, before: Stage, event: TxEvent): boolean {
	if (record.stage !== before) return true;
	switch (event.type) {
		case "received":
			return true;
		case "shared":
			return previous(record, "shared", "received")?.type !== "shared";
		case "bid":
			return record.stage === "SIMULATION_FAILED";
		case "simulationFailed": {
			const last = previous(record, "simulationFailed");
			return last?.type !== "simulationFailed" || !isSameError(last.error, event.error);
		}
		case "refunded":
			return event.paid !== previousRefund(record);
		default:
			return false;
	}
}

/** The last event of these types before the one that it has just been through. */
function previous(record: TransactionRecord, ...types: readonly TxEvent["type"][]) {
	return record.events.slice(0, -1).findLast(({ type }) => types.includes(type));
}

/** Wei that were paid in its block as far as was known before. */
function previousRefund(record: TransactionRecord): string {
	const last = record.events.slice(0, -1).findLast(({ type }) => type === "included" || type === "refunded");
	return last?.type === "refunded" ? last.paid : "0";
}

function isSameError(one: SimulationError, other: SimulationError): boolean {
	return one.code === other.code && one.message === other.message && one.data === other.data;
}
