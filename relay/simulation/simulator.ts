// Simulation of a sender's transactions, and of a backrun behind them: a request comes in, each one's outcome goes
// out. The relay's own rules come first, then the engines in their order. It does not queue, and keeps no state.

import type { Clock } from "../../shared/clock.ts";
import { toQuantity } from "../../shared/ethereum/hex.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Logger } from "../../shared/log.ts";
import type { Count } from "../../shared/metrics.ts";
import type { Simulator } from "../domain/ports.ts";
import type { SimulationError, SimulationOutcome, SimulationRequest } from "../domain/simulation.ts";
import { balanceBefore, checkChain, findFundsProblem, transactionsOf } from "./checks.ts";
import {
	type Ask,
	type Engine,
	type EngineRequest,
	NO_VERDICT,
	type SimulationNode,
	type Step,
} from "./engines/engine.ts";
import { readAnswer } from "./engines/verdicts.ts";
import { drawnBalance } from "./feeRecipients.ts";

/** How long one simulation may take, in ms: a sixth of a slot, so that it can be tried again within it. */
const TIMEOUT_MS = 2_000;

export interface SimulatorOptions {
	/**
	 * Whether the blocks' fee recipient is a known account. If not it is drawn at random, and so is what it holds: the
	 * first transfer to an empty account costs 25,000 gas more (EIP-161), and a real coinbase is not empty.
	 */
	readonly fixedFeeRecipient: boolean;
	/** How long a simulation may take in all, in ms; behind it the outcome is NODE_UNAVAILABLE. */
	readonly timeoutMs?: number;
}

export interface SimulatorDependencies {
	readonly node: SimulationNode;
	/** What `chooseEngines` answered. */
	readonly engines: readonly Engine[];
	readonly clock: Clock;
	readonly log: Logger;
	/** Counts chains by the engine that ran them. */
	readonly onRun: Count<"engine">;
}

/** What a backrun is answered where it can't be run behind its chain: alone it is not judged. */
const NO_SEQUENCES: SimulationOutcome = {
	ok: false,
	error: { code: "NODE_UNAVAILABLE", message: "the node runs no sequences of transactions" },
};

/**
 * A simulator that asks `node`. Where no engine in use runs sequences, it answers for the first transaction alone; a
 * request with a backrun has then one NODE_UNAVAILABLE, whatever its chain.
 */
export function createSimulator(options: SimulatorOptions, dependencies: SimulatorDependencies): Simulator {
	const { node, clock, engines } = dependencies;
	const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
	return {
		async simulate(request) {
			const { block, backrun } = request;
			if (backrun !== undefined && !engines.some((engine) => engine.sequences)) return [NO_SEQUENCES];
			const { runnable, problem } = checkChain(request);
			if (runnable === 0) return settle(request, [], 0, problem);
			const chain = transactionsOf(request).slice(0, runnable);
			const measured = backrun !== undefined && runnable > request.chain.length;
			const overrides = options.fixedFeeRecipient
				? {}
				: { [block.feeRecipient]: { balance: toQuantity(drawnBalance()) } };
			const ask = askWithin(node, clock, timeoutMs);
			const steps = await runChain({ block, chain, measured, overrides }, ask, dependencies);
			return settle(request, steps, runnable, problem);
		},
	};
}

/** Asks the node as long as the time of the simulation is not up. */
function askWithin(node: SimulationNode, clock: Clock, timeoutMs: number): Ask {
	const end = clock.monotonic() + timeoutMs;
	return async (call) => {
		const left = end - clock.monotonic();
		if (left <= 0) return { kind: "fault" };
		try {
			return readAnswer(await node.call(call, left));
		} catch (thrown) {
			if (thrown instanceof UpstreamError) return { kind: "fault" };
			throw thrown;
		}
	};
}

/** Runs the chain by the first engine that serves it. */
async function runChain(
	request: EngineRequest,
	ask: Ask,
	{ engines, log, onRun }: SimulatorDependencies,
): Promise<readonly Step[]> {
	for (const [index, engine] of engines.entries()) {
		if (request.measured && !engine.sequences) continue;
		const answer = await engine.run(request, ask);
		if (answer.kind === "refused") {
			log.debug("a simulation engine refused a chain", { engine: engine.name });
			continue;
		}
		onRun({ engine: engine.name });
		if (!answer.vague) return answer.steps;
		return explain(request, answer.steps, engines.slice(index + 1), ask);
	}
	return [NO_VERDICT];
}

/** Asks `others` why the last of `steps` failed; what none of them knows stays as it is. */
async function explain(
	request: EngineRequest,
	steps: readonly Step[],
	others: readonly Engine[],
	ask: Ask,
): Promise<readonly Step[]> {
	const failed = steps.length - 1;
	const chain = request.chain.slice(0, steps.length);
	for (const engine of others) {
		if (failed > 0 && !engine.sequences) continue;
		const answer = await engine.run({ ...request, chain, measured: false }, ask);
		const step = answer.kind === "ran" && !answer.vague ? answer.steps[failed] : undefined;
		if (step === undefined || step.outcome.ok || step.outcome.error.code === "NODE_UNAVAILABLE") continue;
		return [...steps.slice(0, failed), step];
	}
	return steps;
}

/**
 * What the steps come to: each sender must be able to pay the most that a transaction can cost, while the node asked
 * for no more than it does cost. Nothing is told of what stands behind a failure, or was not run.
 */
function settle(
	request: SimulationRequest,
	steps: readonly Step[],
	runnable: number,
	problem: SimulationError | null,
): SimulationOutcome[] {
	const outcomes: SimulationOutcome[] = [];
	let told: bigint | null = null;
	for (const [index, tx] of transactionsOf(request).entries()) {
		if (index === runnable) {
			if (problem !== null) outcomes.push({ ok: false, error: problem });
			break;
		}
		// Of the chain's sender nothing is known behind its first transaction but what was told; another's did not change.
		const isKnown = index === 0 || tx.from !== request.sender;
		const balance: bigint | null = told ?? (isKnown ? balanceBefore(request, tx) : null);
		const funds = balance === null ? null : findFundsProblem(tx, balance);
		if (funds !== null) {
			outcomes.push({ ok: false, error: funds });
			break;
		}
		const step = steps[index];
		if (step === undefined) break;
		outcomes.push(step.outcome);
		if (!step.outcome.ok) break;
		told = step.balance;
	}
	return outcomes;
}
