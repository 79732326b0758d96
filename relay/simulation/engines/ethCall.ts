// Engine of `eth_call`: whether the first transaction passes, and its revert data if not. It sees no events, and
// neither what is left behind a transaction nor how much gas it took.

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import { blockOverrides, callObject, PROBE } from "./callObject.ts";
import { type Ask, type Engine, type EngineAnswer, type EngineRequest, NO_VERDICT } from "./engine.ts";

export const ethCall: Engine = {
	name: "eth_call",
	sequences: false,
	events: false,
	probe: { method: "eth_call", params: [PROBE.call, "latest", PROBE.state, PROBE.block] },
	probed: (result) => result === PROBE.answer,
	run,
};

async function run({ block, chain, overrides }: EngineRequest, ask: Ask): Promise<EngineAnswer> {
	const [tx] = chain;
	if (tx === undefined) return { kind: "ran", steps: [], vague: false };
	const params = [callObject(tx, block), toQuantity(block.stateBlock), overrides, blockOverrides(block)];
	const answer = await ask({ method: "eth_call", params });
	switch (answer.kind) {
		case "refused":
			return answer;
		case "fault":
			return { kind: "ran", steps: [NO_VERDICT], vague: false };
		case "failed":
			return {
				kind: "ran",
				steps: [{ outcome: { ok: false, error: answer.error }, balance: null }],
				vague: false,
			};
		case "result":
			// At most that much; how much it was is not told.
			return {
				kind: "ran",
				steps: [
					{ outcome: { ok: true, gasUsed: tx.gasLimit, emitsEvents: null, paid: null }, balance: null },
				],
				vague: false,
			};
	}
}
