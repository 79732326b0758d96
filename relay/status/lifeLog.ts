// The log of what becomes of transactions: one line for each stage.

import type { Stage } from "../../shared/ethereum/statusRecord.ts";
import type { Logger } from "../../shared/log.ts";
import { termsOf } from "../../shared/ownership.ts";
import type { EventListener } from "../domain/ports.ts";

/** The log lines by stage; null: none, since another stage follows at once or an event has its own line. */
const LINES: Readonly<Record<Stage, string | null>> = {
	PENDING: null,
	QUEUED: null,
	SHARED: null,
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
		if (stage === before || line === null) return;
		log.info(line, {
			hash,
			path,
			...(block === null ? {} : { block }),
			...("at" in event ? { ms: event.at - receivedAt } : {}),
			...(simulationError === null ? {} : { code: simulationError.code }),
		});
	};
}
