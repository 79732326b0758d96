// Simulates a chain of transactions. The relay first checks nonces, balances and authorizations
// itself, because nodes check them differently or not at all in simulations. Then the node runs the
// chain, in parts if it does not accept it as a whole.

import { randomBytes } from "node:crypto";
import { type Clock, pause } from "../../shared/clock.ts";
import { type RpcCall, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Count } from "../../shared/metrics.ts";
import type { Simulator } from "../domain/ports.ts";
import type { Recoveries } from "../domain/recoveries.ts";
import {
	type BlockContext,
	EXECUTION_FAILURES,
	isImpossible,
	type SimulationOutcome,
} from "../domain/simulation.ts";
import { checkTransactions, countFitting, relevantAuthorizations } from "./checks.ts";
import type {
	Ask,
	EngineRequest,
	NodeAnswer,
	Part,
	SimulationNode,
	StateOverrides,
} from "./engines/engine.ts";
import { beaconRootWrite, systemWrites } from "./engines/nodeObjects.ts";
import { countWithin, simulatePart } from "./engines/simulateV1.ts";
import { stateAfter, traceFirst } from "./engines/traces.ts";
import {
	aboveCap,
	NO_VERDICT,
	readAnswer,
	readTransportError,
	stopsAt,
	UNSUPPORTED,
} from "./engines/verdicts.ts";
import type { NodeAbilities } from "./nodeAbilities.ts";
import { Retries } from "./retries.ts";

/**
 * Deadline of one simulation, in ms: a sixth of a slot, so that it can be repeated within the slot.
 * Much gas extends it.
 */
const TIMEOUT_MS = 2_000;
const GAS_PER_MS = 10_000n;
const LONGEST_MS = 8_000;
/**
 * How long to wait for a node that does not have the block yet, and the pause between two tries, in
 * ms.
 */
const MISSING_MS = 500;
const RETRY_MS = 25;

export interface SimulatorOptions extends NodeAbilities {
	/** Deadline of a whole simulation, in ms; after it the outcome is NODE_UNAVAILABLE. */
	readonly timeoutMs?: number;
}

export interface SimulatorDependencies {
	readonly node: SimulationNode;
	readonly clock: Clock;
	readonly recoveries: Pick<Recoveries, "recover">;
	/** Counts runs by node method. */
	readonly onRun: Count<"engine">;
}

const NONE: ReadonlySet<string> = new Set();

export function createSimulator(options: SimulatorOptions, dependencies: SimulatorDependencies): Simulator {
	const retries = new Retries(dependencies.clock);
	return {
		async simulate(request) {
			const { accounts, transactions, mayFail = NONE, measured = false, mayWait = false } = request;
			const block = options.sameTime === true ? request.block : risen(request.block);
			const fitting = countFitting(request);
			await dependencies.recoveries.recover(relevantAuthorizations(request, fitting), request.client);
			const { runnable, problem } = checkTransactions(request, fitting);
			const { prevRandao = drawn(), beaconRoot = drawn() } = block.published ?? {};
			const asked: EngineRequest = {
				block,
				accounts,
				mayFail,
				mayWait,
				prevRandao,
				beaconRoot: options.beaconRoot === false ? null : beaconRoot,
				chain: transactions.slice(0, runnable),
				measured: measured && problem === null,
			};
			const state = systemState(block, options.beaconRoot === false ? beaconRoot : null);
			const outcomes = await runAll(asked, state, options, dependencies);
			// Nothing after a failure has an outcome.
			const last = outcomes.at(-1);
			const isOver = last !== undefined && stopsAt(asked, last, outcomes.length - 1);
			if (problem !== null && !isOver) outcomes.push({ ok: false, error: problem });
			// If a node is known to simulate nothing, only `LearntAbilities` asks it again.
			const isAble = options.simulates || options.traces === true;
			if (last !== UNSUPPORTED || !isAble) return outcomes;
			const againMs = retries.againMs(asked.chain[outcomes.length - 1]?.hash ?? "", block);
			return againMs === undefined ? outcomes : [...outcomes.slice(0, -1), { ...UNSUPPORTED, againMs }];
		},
	};
}

/**
 * The block with a time that every node accepts: later than its parent's. Ethereum demands that,
 * and some chains do not.
 */
function risen(block: BlockContext): BlockContext {
	const { parentTimestamp, timestamp, stepMs, stateBlock, number } = block;
	if (parentTimestamp === undefined || stepMs === undefined || stepMs >= 1_000) return block;
	return { ...block, timestamp: Math.max(timestamp, parentTimestamp + number - stateBlock), stepMs: 1_000 };
}

/**
 * 32 random bytes, new for each simulation, so that contracts can't know the value from an earlier
 * one.
 */
function drawn(): string {
	return `0x${randomBytes(32).toString("hex")}`;
}

/**
 * Runs the whole chain on the changed state `before`, or up to the first failure that is not
 * allowed.
 */
async function runAll(
	request: EngineRequest,
	before: StateOverrides,
	options: SimulatorOptions,
	{ node, clock, onRun }: SimulatorDependencies,
): Promise<SimulationOutcome[]> {
	const ask = askWithin(node, clock, options.timeoutMs ?? timeoutFor(request));
	const { gasCap } = options;
	const outcomes: SimulationOutcome[] = [];
	let state = before;
	const rest = (): Part => ({ ...request, chain: request.chain.slice(outcomes.length), state });
	let isSplit = false;
	while (outcomes.length < request.chain.length) {
		const part = isSplit ? partWithin(rest(), gasCap) : rest();
		const answer = options.simulates ? await simulatePart(part, options, ask) : NOT_ASKED;
		if (answer.kind === "unsupported") {
			onRun({ engine: "debug_traceCall" });
			// Trace up to the first creation, which is most likely the part that the node does not
			// support.
			const creation = part.chain.findIndex((tx) => tx.to === null);
			for (let left = Math.max(creation, 0) + 1; left > 0; left -= 1) {
				const traced = await traceFirst(rest(), ask);
				if (isImpossible(traced.outcome)) return [...outcomes, ...(await runFirst(rest(), options, ask))];
				const isCapped = (request.chain[outcomes.length]?.gasLimit ?? 0n) > gasCap;
				outcomes.push(isCapped && isExecutionFailure(traced.outcome) ? aboveCap(gasCap) : traced.outcome);
				if (stopsAt(request, outcomes.at(-1) ?? NO_VERDICT, outcomes.length - 1)) return outcomes;
				if (outcomes.length === request.chain.length) return outcomes;
				if (traced.state === null) return [...outcomes, traced.noState];
				state = traced.state;
			}
			continue;
		}
		onRun({ engine: "eth_simulateV1" });
		const { finalCount } = answer;
		if (answer.isCapLower === true) return [...outcomes, ...answer.outcomes.slice(0, finalCount), NO_VERDICT];
		const last = answer.outcomes.at(-1);
		const isOver = last !== undefined && stopsAt(part, last, answer.outcomes.length - 1);
		const isLast = outcomes.length + part.chain.length === request.chain.length;
		if (finalCount === answer.outcomes.length && (isLast || isOver)) {
			outcomes.push(...answer.outcomes);
			const reason = answer.unexplained ? await explain(part, finalCount - 1, ask) : null;
			return reason === null ? outcomes : [...outcomes.slice(0, -1), reason];
		}
		const next = finalCount === 0 ? "capped" : await stateAfter(part, finalCount, ask);
		if (next === null || typeof next === "string") {
			// If the node is known to trace, this failure may pass.
			const isUnsupported = next === "unsupported" && options.traces === true;
			const short = next === null ? NO_VERDICT : isUnsupported ? UNSUPPORTED : aboveCap(gasCap);
			return [...outcomes, ...withinCap(answer.outcomes, finalCount, short, part.measured)];
		}
		outcomes.push(...answer.outcomes.slice(0, finalCount));
		state = next;
		isSplit = true;
	}
	return outcomes;
}

/**
 * The first transactions of `part`, at least one, that have all their gas under the cap. More would
 * run in vain.
 */
function partWithin(part: Part, gasCap: bigint): Part {
	const chain = part.chain.slice(0, Math.max(countWithin(part, gasCap), 1));
	return chain.length === part.chain.length ? part : { ...part, chain, measured: false };
}

function timeoutFor({ chain }: EngineRequest): number {
	const gas = chain.reduce((sum, { gasLimit }) => sum + gasLimit, 0n);
	return Math.min(TIMEOUT_MS + Number(gas / GAS_PER_MS), LONGEST_MS);
}

/**
 * Runs only the first transaction of a part that the node neither runs as a whole nor traces. So a
 * later transaction does not block the first.
 */
async function runFirst(
	part: Part,
	options: SimulatorOptions,
	ask: Ask,
): Promise<readonly SimulationOutcome[]> {
	if (!options.simulates || part.chain.length === 1) return [UNSUPPORTED];
	const answer = await simulatePart(
		{ ...part, chain: part.chain.slice(0, 1), measured: false },
		options,
		ask,
	);
	const [outcome] = answer.kind === "unsupported" || answer.finalCount < 1 ? [] : answer.outcomes;
	if (outcome === undefined) return [UNSUPPORTED];
	return stopsAt(part, outcome, 0) ? [outcome] : [outcome, UNSUPPORTED];
}

/**
 * State changes that the block makes before its first transaction; some nodes apply them by
 * themselves. Includes `beaconRoot` if the node can't get it in another way.
 */
function systemState(
	{ stateBlock, parentHash, timestamp }: BlockContext,
	beaconRoot: string | null,
): StateOverrides {
	const root = beaconRoot === null ? {} : beaconRootWrite(timestamp, beaconRoot);
	if (parentHash === undefined) return root;
	return systemWrites({ number: stateBlock, hash: parentHash }, { timestamp, beaconRoot });
}

/**
 * The reliable outcomes if only the first `finalCount` transactions had all their gas. A success
 * with less gas is still a success. The first transaction without a reliable outcome gets `short`.
 */
function withinCap(
	outcomes: readonly SimulationOutcome[],
	finalCount: number,
	short: SimulationOutcome,
	measured: boolean,
): readonly SimulationOutcome[] {
	const failed = outcomes.findIndex((outcome, i) => i >= finalCount && !outcome.ok);
	if (failed >= 0) return [...outcomes.slice(0, failed), short];
	// The payment may depend on the gas.
	return measured ? [...outcomes.slice(0, -1), short] : outcomes;
}

function isExecutionFailure(outcome: SimulationOutcome): boolean {
	return !outcome.ok && EXECUTION_FAILURES.has(outcome.error.code);
}

/** The failure of the part's transaction at `index` according to a trace, or null. */
async function explain(part: Part, index: number, ask: Ask): Promise<SimulationOutcome | null> {
	const state = await stateAfter(part, index, ask);
	if (state === null || state === "unsupported") return null;
	const chain = part.chain.slice(index, index + 1);
	const { outcome } = await traceFirst({ ...part, chain, state }, ask);
	return outcome.ok || outcome.error.code === "NODE_UNAVAILABLE" ? null : outcome;
}

/**
 * Returns a function that asks the node within the simulation's deadline, and again while the node
 * does not have the block yet.
 */
function askWithin(node: SimulationNode, clock: Clock, timeoutMs: number): Ask {
	const begun = clock.monotonic();
	const once = async (calls: readonly RpcCall[], leftMs: number): Promise<readonly NodeAnswer[]> => {
		const [only, ...others] = calls;
		if (leftMs <= 0 || only === undefined) return [{ kind: "fault" }];
		try {
			const answers = others.length === 0 ? [await node.call(only, leftMs)] : await node.batch(calls, leftMs);
			return answers.map(readAnswer);
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			return calls.map(() => readTransportError(thrown));
		}
	};
	return async (calls) => {
		for (;;) {
			const spentMs = clock.monotonic() - begun;
			const answers = await once(calls, timeoutMs - spentMs);
			if (spentMs > MISSING_MS || !answers.some((one) => one.kind === "fault" && one.isMissing))
				return answers;
			await pause(clock, RETRY_MS, new AbortController().signal);
		}
	};
}

const NOT_ASKED = { kind: "unsupported" } as const;
