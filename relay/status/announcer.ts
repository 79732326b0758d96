// Publishes each change of a transaction's status to subscribers.

import type { Stage } from "../../shared/ethereum/statusRecord.ts";
import { transactionTopic } from "../domain/endpoints.ts";
import type { TxEvent } from "../domain/events.ts";
import type { EventListener, Publisher } from "../domain/ports.ts";
import type { TransactionRecord } from "../domain/record.ts";
import type { SimulationError } from "../domain/simulation.ts";

export interface AnnouncerDependencies {
	readonly publisher: Publisher;
	/** The status record of `GET /tx/{hash}`. */
	readonly view: (record: TransactionRecord) => unknown;
}

/** A listener of the records that publishes each change of the status record. */
export function createAnnouncer({ publisher, view }: AnnouncerDependencies): EventListener {
	return (record, before, event) => {
		if (!changesStatus(record, before, event)) return;
		publisher.publish(transactionTopic(record.hash), () => view(record));
	};
}

/**
 * Whether `event`, the record's last one, changed its status record. For a pending transaction
 * without an error, the status record shows only the stage and whether it is shared. If its
 * simulation fails, it also shows the error.
 */
function changesStatus(record: TransactionRecord, before: Stage, event: TxEvent): boolean {
	if (record.stage !== before) return true;
	switch (event.type) {
		case "received":
		// The new owner may have changed `fastMode`.
		case "joined":
		case "seenInPublic":
			return true;
		case "exposed": {
			const last = previous(record, "exposed");
			return last?.type !== "exposed" || last.block !== event.block || last.depth !== event.depth;
		}
		case "shared":
			return previous(record, "shared", "received")?.type !== "shared";
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

/** The last event of these types before the current one. */
function previous(record: TransactionRecord, ...types: readonly TxEvent["type"][]) {
	return record.events.slice(0, -1).findLast(({ type }) => types.includes(type));
}

/** The refund in wei that was known before the current event. */
function previousRefund(record: TransactionRecord): string {
	const last = record.events.slice(0, -1).findLast(({ type }) => type === "included" || type === "refunded");
	return last?.type === "refunded" ? last.paid : "0";
}

function isSameError(one: SimulationError, other: SimulationError): boolean {
	return one.code === other.code && one.message === other.message && one.data === other.data;
}
