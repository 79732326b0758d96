// Logs the life of transactions: one line for each stage, and one for each builder that rejects it.
// If a transaction did not land, the last line has each builder's answer.

import { builderAnswers } from "../../shared/builderAnswers.ts";
import type { Stage } from "../../shared/ethereum/statusRecord.ts";
import type { Logger } from "../../shared/log.ts";
import { termsOf } from "../../shared/ownership.ts";
import type { TxEvent } from "../domain/events.ts";
import type { EventListener } from "../domain/ports.ts";
import type { TransactionRecord } from "../domain/record.ts";

/** The log lines by stage; null if another stage follows at once or an event has its own line. */
const LINES: Readonly<Record<Stage, string | null>> = {
	PENDING: null,
	QUEUED: null,
	SHARED: null,
	SIMULATION_FAILED: "transaction not sent: its simulation fails",
	BROADCAST: "transaction sent to builders",
	INCLUDED: "transaction mined",
	REVERTED: "transaction mined, and reverted",
	REPLACED: "transaction replaced",
	CANCELLED: "transaction cancelled",
	EXPIRED: "transaction expired",
	DROPPED: "transaction dropped: another one with its nonce was mined",
};

/** The stages of a transaction that has ended and was not mined, through no fault of its user. */
const NOT_LANDED: ReadonlySet<Stage> = new Set(["EXPIRED", "DROPPED"]);
/** Events with a line of their own, whatever the stage. */
const OWN_LINES: ReadonlySet<string> = new Set(["received", "reorged", "exposed", "seenInPublic"]);

interface LifeLogDependencies {
	readonly log: Logger;
	/** The id of the request that submitted a transaction. */
	readonly requestOf: (hash: string) => string | undefined;
}

/**
 * A listener of the records that logs a transaction's stages by its hash, never its bytes,
 * signature or value. `ms` counts from its arrival.
 */
export function createLifeLog({ log, requestOf }: LifeLogDependencies): EventListener {
	return (record, before, event) => {
		const { hash, owners, stage, receivedAt, block, simulationError } = record;
		const { path } = termsOf(owners);
		const line = LINES[stage];
		const isNews = stage !== before && line !== null;
		const rejection = event.type === "delivered" && isFirstRejection(record, event) ? event : null;
		if (!isNews && rejection === null && !OWN_LINES.has(event.type)) return;
		const request = requestOf(hash);
		if (event.type === "received")
			log.info("transaction accepted", { hash, request, path, block: event.block });
		if (event.type === "reorged")
			log.info("transaction left its block", { hash, request, path, block: event.block });
		if (event.type === "exposed")
			log.info("transaction public: its block left the chain", { hash, request, path, block: event.block });
		if (event.type === "seenInPublic")
			log.warn("transaction seen in the public mempool", { hash, request, path, block: event.block });
		if (rejection !== null) {
			const { builder, block: at } = rejection;
			log.info("transaction rejected by a builder", { hash, request, path, upstream: builder, block: at });
		}
		if (!isNews) return;
		const answers = NOT_LANDED.has(stage) ? (builderAnswers(record.deliveries) ?? UNSENT) : null;
		log.info(line, {
			hash,
			request,
			path,
			...(block === null ? {} : { block }),
			...("at" in event ? { ms: event.at - receivedAt } : {}),
			...(simulationError === null ? {} : { code: simulationError.code }),
			...(answers === null ? {} : { reason: answers }),
		});
	};
}

const UNSENT = "sent to no builder";

/**
 * Whether this is the builder's first rejection of the transaction. Most builders that reject it do
 * so for each block.
 */
function isFirstRejection(
	{ deliveries }: TransactionRecord,
	{ answer, kind, builder }: Extract<TxEvent, { type: "delivered" }>,
): boolean {
	if (answer !== "rejected" || kind === "cancel") return false;
	const rejections = deliveries.filter((one) => one.builder === builder && one.answer === "rejected");
	return rejections.filter((one) => one.kind !== "cancel").length === 1;
}
