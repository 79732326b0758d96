// Engines that say what a test wants come in, and a request; what the simulator made of them, and whom it asked, goes
// out. It asserts nothing but that nobody is asked who should not be.

import assert from "node:assert/strict";
import type { SimulationErrorCode, SimulationRequest } from "../../relay/domain/simulation.ts";
import type {
	Engine,
	EngineAnswer,
	EngineName,
	EngineRequest,
	Step,
} from "../../relay/simulation/engines/engine.ts";
import { createSimulator, type SimulatorOptions } from "../../relay/simulation/simulator.ts";
import { silentLogger } from "../../shared/log.ts";
import { fakeRequest, fakeTransaction, HandClock, PASSED } from "./simulationFakes.ts";

export const ok = (balance: bigint | null = null): Step => ({ outcome: PASSED, balance });
export const fails = (code: SimulationErrorCode, message: string): Step => ({
	outcome: { ok: false, error: { code, message } },
	balance: null,
});
export const ran = (...steps: Step[]): EngineAnswer => ({ kind: "ran", steps, vague: false });
export const vague = (...steps: Step[]): EngineAnswer => ({ kind: "ran", steps, vague: true });
export const refused: EngineAnswer = { kind: "refused" };
export const unknown = fails("EXECUTION_FAILED", "execution failed");
export const outOfGas = fails("OUT_OF_GAS", "out of gas");
export const nodeDown = fails("NODE_UNAVAILABLE", "the node gave no verdict");

/** A chain of SENDER's. */
export const three = Array.from({ length: 3 }, (_, i) => fakeTransaction({ nonce: BigInt(i) }));

export interface Scene {
	readonly request?: Partial<SimulationRequest>;
	readonly options?: Partial<SimulatorOptions>;
	/** Answers of the engines by their place; the last place is eth_call's, which runs no sequences. */
	readonly engines: readonly (EngineAnswer | null)[];
}

/** Runs one request; the codes of its outcomes, and who was asked for how many transactions. */
export async function play({ request, options, engines }: Scene) {
	const asked: string[] = [];
	const requests: EngineRequest[] = [];
	const runs: string[] = [];
	const names: EngineName[] = ["eth_simulateV1", "debug_traceCall", "eth_call"];
	const made = engines.map((answer, i): Engine => {
		const name = names[i] ?? "eth_call";
		return {
			name,
			sequences: name !== "eth_call",
			events: true,
			probe: { method: "", params: [] },
			probed: () => true,
			async run(engineRequest) {
				asked.push(`${name} ${engineRequest.chain.length}`);
				requests.push(engineRequest);
				return answer ?? assert.fail(`${name} should not be asked`);
			},
		};
	});
	const node = { call: () => assert.fail("no engine here asks the node") };
	const simulator = createSimulator(
		{ fixedFeeRecipient: false, ...options },
		{
			node,
			engines: made,
			clock: new HandClock(),
			log: silentLogger,
			onRun: ({ engine }) => runs.push(engine),
		},
	);
	const outcomes = await simulator.simulate(fakeRequest({ chain: three, ...request }));
	const told = outcomes.map((outcome) =>
		outcome.ok ? "ok" : `${outcome.error.code}: ${outcome.error.message}`,
	);
	return { told, asked, runs, requests };
}
