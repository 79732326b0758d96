// How our relay is asked for the stages of many transactions at once, by a method of its own.

import type { Call, CallResult } from "./ports.ts";

/** What the relay says of one transaction. */
export interface RelayStage {
	/** Lower case. */
	readonly hash: string;
	/** Null: it has no record. */
	readonly stage: string | null;
}

/** The call whose answer {@link relayStages} reads. */
export function stagesCall(hashes: readonly string[]): Call {
	return { method: "service_transactionStatuses", params: [hashes] };
}

/** In the order of the question; null where there was no answer, or none that can be read. */
export function relayStages(answer: CallResult | null | undefined): readonly RelayStage[] | null {
	if (answer?.ok !== true || !Array.isArray(answer.result)) return null;
	const stages: RelayStage[] = [];
	for (const one of answer.result as readonly unknown[]) {
		if (typeof one !== "object" || one === null) return null;
		const { hash, stage } = one as { hash?: unknown; stage?: unknown };
		if (typeof hash !== "string" || (typeof stage !== "string" && stage !== null)) return null;
		stages.push({ hash: hash.toLowerCase(), stage });
	}
	return stages;
}
