// Tells what happens to transactions: the status record to its subscribers whenever an event changed it, each event to those
// who follow the transaction's event stream, and stages to the log. It keeps nothing of a transaction.

import { EventEmitter } from "node:events";
import { type Logger, safeError } from "../../shared/log.ts";
import { transactionTopic } from "../domain/endpoints.ts";
import type { TxEvent } from "../domain/events.ts";
import type { EventListener, Following, Publisher } from "../domain/ports.ts";
import type { Stage, TransactionRecord } from "../domain/record.ts";
import type { SimulationError } from "../domain/simulation.ts";
import { cancelsReport, type IsPublic, publicEvent, publicEvents } from "./publicEvents.ts";

export interface AnnouncerDependencies {
	readonly publisher: Publisher;
	/** The status record, as `GET /tx/{hash}` answers it. */
	readonly view: (record: TransactionRecord) => unknown;
}

/** A listener of the records: publishes each change of what the status record says. */
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

/** Tells those who follow a transaction; `notify` is a listener of the records. */
export class Followers implements Following {
	readonly #log: Logger;
	/** Its events are named by the transactions' hashes. */
	readonly #emitter = new EventEmitter().setMaxListeners(0);

	constructor(dependencies: { readonly log: Logger }) {
		this.#log = dependencies.log;
	}

	follow: Following["follow"] = (hash, listener) => {
		// A follower's fault is its own: what happened must not fail for it.
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

/** What is said when a transaction comes to a stage. */
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
 * A listener of the records: the lines of the log that follow a transaction, for an operator who has its hash, never its
 * bytes, signature or value. `ms` is counted from when it was received.
 */
export function createLifeLog({ log }: { readonly log: Logger }): EventListener {
	return (record, before, event) => {
		const { hash, path, stage, receivedAt, block, simulationError } = record;
		if (event.type === "received") log.info("transaction accepted", { hash, path, block: event.block });
		if (event.type === "reorged")
			log.info("transaction out of its block", { hash, path, block: event.block });
		const line = LINES[stage];
		if (stage === before || line === undefined) return;
		log.info(line, {
			...{ hash, path },
			...(block === null ? {} : { block }),
			...("at" in event ? { ms: event.at - receivedAt } : {}),
			...(simulationError === null ? {} : { code: simulationError.code }),
		});
	};
}

/** One message: when it happened, in ms since the epoch, and what is told of it. */
export interface EventNews {
	readonly at: number;
	readonly data: object;
}

/**
 * What has happened so far, in order of time. The last one alone has `stage` and `cancels`: what they were after the
 * earlier ones is not kept.
 */
export function eventHistory(record: TransactionRecord, isPublic: IsPublic): readonly EventNews[] {
	const events = publicEvents(record, isPublic);
	const last = events.length - 1;
	return events.map(({ at, view }, i) => ({
		at,
		data: i === last ? { ...view, ...standing(record) } : view,
	}));
}

/**
 * What the record has just been through: the event with the `stage` that it led to and, where its user has ended the
 * transaction, how many builders have confirmed it (`cancels`). Null for what is not told.
 */
export function eventNews(record: TransactionRecord, event: TxEvent, isPublic: IsPublic): EventNews | null {
	const told = publicEvent(record, event, isPublic);
	return told === null ? null : { at: told.at, data: { ...told.view, ...standing(record) } };
}

function standing(record: TransactionRecord): object {
	const cancels = cancelsReport(record);
	return { stage: record.stage, ...(cancels === null ? {} : { cancels }) };
}
