// The lines of the log that follow a transaction, for an operator who has its hash. Never its bytes, signature or value.

import type { Logger } from "../../shared/log.ts";
import type { EventListener } from "../domain/ports.ts";
import type { Stage } from "../domain/record.ts";

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

/** A listener of the records. `ms` is counted from when the transaction was received. */
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
