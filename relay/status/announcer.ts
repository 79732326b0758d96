// Listeners of the transaction records: publish status changes to subscribers, pass each event to the followers of a
// transaction's event stream, and log stages. They keep no state about transactions.

import { EventEmitter } from "node:events";
import type { Stage } from "../../shared/ethereum/statusRecord.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { termsOf } from "../../shared/ownership.ts";
import { transactionTopic } from "../domain/endpoints.ts";
import type { TxEvent } from "../domain/events.ts";
import type { EventListener, Following, Publisher } from "../domain/ports.ts";
import type { TransactionRecord } from "../domain/record.ts";
import type { SimulationError } from "../domain/simulation.ts";
import { cancelsReport, type IsPublic, publicEvent, publicEvents } from "./publicEvents.ts";

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
 * Whether `event`, the record's last one, changed its status record. While a transaction is pending and healthy, that shows
 * only the stage and whether it is shared; backruns and the error are shown when it fails.
 */
function changesStatus(record: TransactionRecord, before: Stage, event: TxEvent): boolean {
	if (record.stage !== before) return true;
	switch (event.type) {
		case "received":
		// Whether it is `fastMode` may have changed.
		case "joined":
			return true;
		case "exposed": {
			const last = previous(record, "exposed");
			return last?.type !== "exposed" || last.block !== event.block || last.depth !== event.depth;
		}
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

/** Passes events to the followers of a transaction; `notify` is a listener of the records. */
export class Followers implements Following {
	readonly #log: Logger;
	/** Emits under the transactions' hashes. */
	readonly #emitter = new EventEmitter().setMaxListeners(0);

	constructor(dependencies: { readonly log: Logger }) {
		this.#log = dependencies.log;
	}

	follow: Following["follow"] = (hash, listener) => {
		// An error in a follower must not affect the transaction or other followers.
		const follower: typeof listener = (record, event) => {
			try {
				listener(record, event);
			} catch (thrown) {
				this.#log.error("a follower failed", { fault: safeError(thrown) });
			}
		};
		this.#emitter.on(hash, follower);
		return () => void this.#emitter.off(hash, follower);
	};

	readonly notify: EventListener = (record, _before, event) => {
		this.#emitter.emit(record.hash, record, event);
	};
}

/** The log lines by stage. */
const LINES: Readonly<Partial<Record<Stage, string>>> = {
	SIMULATION_FAILED: "transaction held: its simulation fails",
	BROADCAST: "transaction sent to builders",
	INCLUDED: "transaction mined",
	REVERTED: "transaction mined, and reverted",
	REPLACED: "transaction replaced",
	CANCELLED: "transaction cancelled",
	EXPIRED: "transaction expired",
	DROPPED: "transaction dropped: another one with its nonce was mined",
};

/**
 * A listener of the records that logs a transaction's stages by its hash, never its bytes, signature or value. `ms` counts
 * from its arrival.
 */
export function createLifeLog({ log }: { readonly log: Logger }): EventListener {
	return (record, before, event) => {
		const { hash, owners, stage, receivedAt, block, simulationError } = record;
		const { path } = termsOf(owners);
		if (event.type === "received") log.info("transaction accepted", { hash, path, block: event.block });
		if (event.type === "reorged")
			log.info("transaction out of its block", { hash, path, block: event.block });
		if (event.type === "exposed")
			log.info("transaction public: its block is gone", { hash, path, block: event.block });
		const line = LINES[stage];
		if (stage === before || line === undefined) return;
		log.info(line, {
			hash,
			path,
			...(block === null ? {} : { block }),
			...("at" in event ? { ms: event.at - receivedAt } : {}),
			...(simulationError === null ? {} : { code: simulationError.code }),
		});
	};
}

/** One message of the event stream; `at` is the time of the event in ms since the epoch. */
export interface EventNews {
	readonly at: number;
	readonly data: object;
}

/** All events so far, in order of time. Only the last one has `stage` and `cancels`, since earlier values are not kept. */
export function eventHistory(record: TransactionRecord, isPublic: IsPublic): readonly EventNews[] {
	const events = publicEvents(record, isPublic);
	const last = events.length - 1;
	return events.map(({ at, view }, i) => ({
		at,
		data: i === last ? { ...view, ...standing(record) } : view,
	}));
}

/**
 * The message for a new event: with the resulting `stage` and, after a cancel or replacement, how many builders have
 * confirmed it (`cancels`). Null for events that are not public.
 */
export function eventNews(record: TransactionRecord, event: TxEvent, isPublic: IsPublic): EventNews | null {
	const told = publicEvent(record, event, isPublic);
	return told === null ? null : { at: told.at, data: { ...told.view, ...standing(record) } };
}

function standing(record: TransactionRecord): object {
	const cancels = cancelsReport(record);
	return { stage: record.stage, ...(cancels === null ? {} : { cancels }) };
}
