// The two shapes on `eth_simulateV1`: signed transactions and unsigned calls, ready to be run, come in; how each fared
// goes out. What it can't tell exactly is refused. How the question is put is simulations.ts.

import { transactionCost } from "../../../shared/ethereum/intrinsicGas.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { CallResult } from "../../domain/callMany.ts";
import { callObject } from "../engines/callObject.ts";
import type { Ask } from "../engines/engine.ts";
import { type Execution, notRun, REFUSED, type RoadAnswer } from "./outcome.ts";
import type { SignedRun } from "./signedRun.ts";
import {
	BALANCE_OVERRIDES,
	balanceQuestion,
	type Simulated,
	simulate,
	type WireBlock,
	type WireCall,
} from "./simulations.ts";
import { findBalanceProblem, findNonceProblem, findOwnProblem, findRoomProblem } from "./transactionRules.ts";
import { type CallsRun, gasOf, unsignedCallObject } from "./unsignedRun.ts";

/**
 * Runs signed transactions, in one question unless what a sender has left decides whether the next one can run: only
 * then those before it are run for that. Where a delegated account (EIP-7702) takes part nonces move unseen: refused.
 */
export async function simulateTransactions(run: SignedRun, ask: Ask): Promise<RoadAnswer> {
	const { txs, senders, block } = run;
	const delegated = [...senders.values()].some(({ code }) => code === "delegated");
	if (txs.length > 1 && (delegated || txs.some((tx) => tx.authorizationList.length > 0))) return REFUSED;
	const problems: (string | null)[] = [];
	const accepted: DecodedTransaction[] = [];
	/** At least this much is left: what comes in during the block is not counted before it is looked at. */
	const balances = new Map([...senders].map(([address, { balance }]) => [address, balance]));
	const nonces = new Map([...senders].map(([address, { nonce }]) => [address, nonce]));
	/** At most this much is used. */
	let gasUsed = 0n;
	for (const tx of txs) {
		const state = {
			nonce: nonces.get(tx.from) ?? 0n,
			balance: balances.get(tx.from) ?? 0n,
			code: senders.get(tx.from)?.code ?? "none",
		};
		let problem = findOwnProblem(tx, run.rules) ?? findNonceProblem(tx, state, block);
		const doubtful = findBalanceProblem(tx, state.balance) ?? findRoomProblem(tx, gasUsed, block);
		if (problem === null && doubtful !== null) {
			const known =
				accepted.length === 0 ? { ...state, gasUsed } : await lookBehind(run, accepted, tx.from, ask);
			if (known === null) return REFUSED;
			balances.set(tx.from, known.balance);
			({ gasUsed } = known);
			problem = findRoomProblem(tx, gasUsed, block) ?? findBalanceProblem(tx, known.balance);
		}
		problems.push(problem);
		if (problem !== null) continue;
		accepted.push(tx);
		nonces.set(tx.from, tx.nonce + 1n);
		balances.set(tx.from, (balances.get(tx.from) ?? 0n) - transactionCost(tx));
		gasUsed += tx.gasLimit;
	}
	const executions = await runSigned(run, accepted, ask);
	if (executions === null) return REFUSED;
	let next = 0;
	const results = problems.map((problem): CallResult => {
		if (problem !== null) return notRun(problem);
		return executions[next++]?.result ?? notRun("execution failed");
	});
	return { kind: "ran", results: [results], vague: executions.some(({ vague }) => vague) };
}

async function runSigned(
	{ base, block }: SignedRun,
	txs: readonly DecodedTransaction[],
	ask: Ask,
): Promise<readonly Execution[] | null> {
	if (txs.length === 0) return [];
	const answer = await simulate(base, [{ block, calls: txs.map((tx) => wireCall(tx, block)) }], true, ask);
	// Our own rules let all of them run: a node that won't has rules of its own.
	return answer.kind === "ran" ? (answer.executions[0] ?? null) : null;
}

/** The gas that `txs` use, and the wei that `address` has behind them; null where the node does not tell. */
async function lookBehind(
	{ base, block }: SignedRun,
	txs: readonly DecodedTransaction[],
	address: string,
	ask: Ask,
): Promise<{ readonly gasUsed: bigint; readonly balance: bigint } | null> {
	const calls = [...txs.map((tx) => wireCall(tx, block)), balanceQuestion(address, block)];
	const overrides = { ...base.overrides, ...BALANCE_OVERRIDES };
	const answer = await simulate({ ...base, overrides }, [{ block, calls }], true, ask);
	const executions = answer.kind === "ran" ? answer.executions[0] : undefined;
	const told = executions?.at(-1);
	if (executions === undefined || told === undefined || told.result.value.length !== 64) return null;
	const gasUsed = executions.slice(0, -1).reduce((sum, one) => sum + one.gasUsed, 0n);
	return { gasUsed, balance: BigInt(`0x${told.result.value}`) };
}

function wireCall(tx: DecodedTransaction, block: SignedRun["block"]): WireCall {
	return { call: callObject(tx, block), gas: tx.gasLimit };
}

/**
 * Runs unsigned calls. A block's calls must fit into its gas limit together; with `roomy` it is raised where they don't,
 * which GASLIMIT shows, else they are refused.
 */
export async function simulateCalls(run: CallsRun, roomy: boolean, ask: Ask): Promise<RoadAnswer> {
	const blocks: WireBlock[] = [];
	for (const { block, calls } of run.blocks) {
		const wire = calls.map((call) => ({ call: unsignedCallObject(call, block), gas: gasOf(call, block) }));
		const wanted = wire.reduce((sum, { gas }) => sum + gas, 0n);
		const fits = wanted <= block.gasLimit;
		if (!fits && !roomy) return REFUSED;
		blocks.push({ block: fits ? block : { ...block, gasLimit: wanted }, calls: wire });
	}
	/** Why calls can't be executed, by their places. */
	const problems = new Map<WireCall, string>();
	const count = blocks.reduce((sum, { calls }) => sum + calls.length, 0);
	for (;;) {
		const left = without(blocks, problems);
		const answer = await simulate(run.base, left, false, ask);
		if (answer.kind === "refused") return REFUSED;
		if (answer.kind === "ran") return collect(blocks, problems, answer.executions);
		const found = await findRejected(run, left, answer, ask);
		if (found === null || problems.size === count) return REFUSED;
		problems.set(found.call, found.error);
	}
}

/** One call that can't be executed makes the node reject them all, without saying which: halve until it is found. */
async function findRejected(
	run: CallsRun,
	blocks: readonly WireBlock[],
	whole: Extract<Simulated, { kind: "rejected" }>,
	ask: Ask,
): Promise<{ readonly call: WireCall; readonly error: string } | null> {
	const all = blocks.flatMap(({ calls }) => calls);
	let passing = 0;
	let rejected = all.length;
	let { error } = whole;
	while (rejected - passing > 1) {
		const middle = (passing + rejected) >> 1;
		const kept = new Set(all.slice(0, middle));
		const some = blocks.map((one) => ({ ...one, calls: one.calls.filter((call) => kept.has(call)) }));
		const answer = await simulate(run.base, some, false, ask);
		if (answer.kind === "refused") return null;
		if (answer.kind === "ran") passing = middle;
		else {
			rejected = middle;
			({ error } = answer);
		}
	}
	const call = all[rejected - 1];
	return call === undefined ? null : { call, error: error.message };
}

function without(
	blocks: readonly WireBlock[],
	problems: ReadonlyMap<WireCall, string>,
): readonly WireBlock[] {
	return blocks.map((one) => ({ ...one, calls: one.calls.filter((call) => !problems.has(call)) }));
}

function collect(
	blocks: readonly WireBlock[],
	problems: ReadonlyMap<WireCall, string>,
	executions: readonly (readonly Execution[])[],
): RoadAnswer {
	const results = blocks.map(({ calls }, i) => {
		let next = 0;
		return calls.map((call): CallResult => {
			const problem = problems.get(call);
			if (problem !== undefined) return notRun(problem);
			return executions[i]?.[next++]?.result ?? notRun("execution failed");
		});
	});
	const vague = executions.flat().some((one) => one.vague);
	return { kind: "ran", results, vague };
}
