// Runs transactions by `eth_simulateV1`, one after another in their target block, or over several from it on if they may wait and
// do not fit into one. `validation` is on, because only then every node shows contracts the base fee. Balances are read in a
// further block, so that nothing artificial is in the state that the transactions see.
// https://github.com/ethereum/execution-apis/blob/main/src/eth/execute.yaml

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import { blobGas, effectiveGasPrice } from "../../../shared/ethereum/intrinsicGas.ts";
import type { RpcCall } from "../../../shared/jsonrpc/client.ts";
import type { BlockContext, SimulationError, SimulationOutcome } from "../../domain/simulation.ts";
import { findFundsProblem } from "../simulator.ts";
import type { Ask, NodeAnswer, Part } from "./engine.ts";
import {
	blockOverrides,
	type CallResult,
	firstBalance,
	isObject,
	PROBE_ADDRESS,
	PROBE_CALLER,
	readCallResult,
	signedCall,
} from "./nodeObjects.ts";
import { callError, EXECUTION_FAILED, NO_VERDICT, stopsAt } from "./verdicts.ts";

/** Seconds from a simulated block to the next one. */
const SLOT_SECONDS = 12;
/** Gas of the balance read in the further block; it uses 27,000 at most. */
export const BALANCES_GAS = 50_000n;
/** Returns the balances of the two accounts in the calldata: twice CALLDATALOAD BALANCE MSTORE, then RETURN. */
export const BALANCES_CODE = "0x5f35315f526020353160205260405ff3";
export type PartAnswer =
	| {
			readonly kind: "ran";
			/** Of the part's transactions in order; ends with the first failure that is not allowed, if there is one. */
			readonly outcomes: readonly SimulationOutcome[];
			/** How many of them, from the front, are final: later ones had less than their gas, because of the gas cap. */
			readonly finalCount: number;
			/** The last one failed, and the node did not say why. */
			readonly unexplained: boolean;
	  }
	/** The node does not support it. */
	| { readonly kind: "unsupported" };

type Ran = Extract<PartAnswer, { kind: "ran" }> & {
	/** The balance, after them, of the next transaction's sender; null if it could not be read. */
	readonly nextBalance?: bigint | null;
};

/** The outcomes of a part's first transactions; `rejected`: the node ran none, since one of them can't be executed. */
type PrefixAnswer =
	| Ran
	| Exclude<PartAnswer, { kind: "ran" }>
	| { readonly kind: "rejected"; readonly error: SimulationError };

/** Runs `part`, in one request if possible. `gasCap`: the node's gas limit for all transactions of one request together. */
export async function simulatePart(part: Part, gasCap: bigint, ask: Ask): Promise<PartAnswer> {
	const { length } = part.chain;
	const run = (count: number, blocks = [count]) => runPrefix(part, count, blocks, gasCap, ask);
	const whole = await run(length);
	if (whole.kind !== "rejected") return whole;
	if (part.mayWait && whole.error.code === "GAS_LIMIT_TOO_HIGH") {
		const spread = await run(length, fillBlocks(part));
		if (spread.kind !== "rejected") return spread;
	}
	// One transaction that can't be executed makes the node reject all, without naming it: find it by bisection.
	let { error } = whole;
	let outcomes: readonly SimulationOutcome[] = [];
	let nextBalance = firstBalance(part);
	let rejected = length;
	while (rejected - outcomes.length > 1) {
		const middle = (outcomes.length + rejected) >> 1;
		const prefix = await run(middle);
		if (prefix.kind === "rejected") {
			rejected = middle;
			error = prefix.error;
			continue;
		}
		if (prefix.kind === "unsupported" || prefix.finalCount < middle) return prefix;
		const last = prefix.outcomes.at(-1);
		if (last !== undefined && stopsAt(part, last, prefix.outcomes.length - 1)) return prefix;
		({ outcomes, nextBalance = null } = prefix);
	}
	const tx = part.chain[outcomes.length];
	// For missing funds, use the relay's own message with the amounts.
	if (tx !== undefined && nextBalance !== null) error = findFundsProblem(tx, nextBalance) ?? error;
	const all = [...outcomes, { ok: false, error } as const];
	return { kind: "ran", outcomes: all, finalCount: all.length, unexplained: false };
}

/** How many transactions go into each block, by their gas limits, if they do not fit into one. */
function fillBlocks({ chain, block }: Part): number[] {
	const counts = [0];
	let room = block.gasLimit;
	for (const { gasLimit } of chain) {
		if (gasLimit > room) {
			counts.push(0);
			room = block.gasLimit;
		}
		room -= gasLimit;
		counts.push((counts.pop() ?? 0) + 1);
	}
	return counts;
}

async function runPrefix(
	part: Part,
	count: number,
	blocks: readonly number[],
	gasCap: bigint,
	ask: Ask,
): Promise<PrefixAnswer> {
	const measured = part.measured && count === part.chain.length;
	const call = simulateCall(part, blocks);
	const [answer, without] = await ask(measured ? [call, simulateCall(part, [count - 1])] : [call]);
	switch (answer?.kind) {
		case "failed":
			return { kind: "rejected", error: answer.error };
		case "unsupported":
			return answer;
		case "result": {
			const results = readCalls(answer.value, count, blocks.length);
			if (results === null) break;
			const read = readOutcomes(part, results, gasCap);
			return measured ? withPayment(part, read, results, without) : read;
		}
	}
	return { kind: "ran", outcomes: [NO_VERDICT], finalCount: 1, unexplained: false };
}

/**
 * The request: the first transactions of `part` in blocks of the given sizes, and in a further block a read of the balances of the
 * fee recipient and of the next transaction's sender.
 */
function simulateCall(part: Part, blocks: readonly number[]): RpcCall {
	const { chain, block, prevRandao, beaconRoot, state } = part;
	let count = 0;
	const simulated = blocks.map((size, i) => {
		const calls = chain.slice(count, count + size).map((tx) => signedCall(tx));
		count += size;
		return {
			blockOverrides: { ...blockOverrides(blockAfter(block, i)), prevRandao, beaconRoot },
			...(i === 0 ? { stateOverrides: state } : {}),
			calls,
		};
	});
	const { number, timestamp } = blockAfter(block, blocks.length);
	const asked = [block.feeRecipient, chain[count]?.from ?? block.feeRecipient];
	const balances = {
		blockOverrides: {
			number: toQuantity(number),
			time: toQuantity(timestamp),
			baseFeePerGas: "0x0",
		},
		stateOverrides: { [PROBE_ADDRESS]: { code: BALANCES_CODE } },
		calls: [
			{
				from: PROBE_CALLER,
				to: PROBE_ADDRESS,
				gas: toQuantity(BALANCES_GAS),
				gasPrice: "0x0",
				input: `0x${asked.map((address) => address.slice(2).padStart(64, "0")).join("")}`,
			},
		],
	};
	const options = {
		blockStateCalls: [...blocksBetween(block), ...simulated, balances],
		validation: true,
	};
	return { method: "eth_simulateV1", params: [options, toQuantity(block.stateBlock)] };
}

function blockAfter(block: BlockContext, count: number): BlockContext {
	return { ...block, number: block.number + count, timestamp: block.timestamp + count * SLOT_SECONDS };
}

/** Empty blocks after the state's: otherwise nodes fill the gap with times that may be later than the target block's. */
function blocksBetween({ stateBlock, number, timestamp }: BlockContext): object[] {
	const count = number - stateBlock - 1;
	return Array.from({ length: count }, (_, i) => ({
		blockOverrides: { number: toQuantity(stateBlock + 1 + i), time: toQuantity(timestamp - count + i) },
		calls: [],
	}));
}

/** The results of `count` transactions in `blocks` blocks, and of the balance read; null if some are missing. */
function readCalls(value: unknown, count: number, blocks: number): readonly CallResult[] | null {
	if (!Array.isArray(value)) return null;
	// Counted from the end, because nodes may add blocks before them.
	const calls = value.slice(-blocks - 1).flatMap((block: unknown) => (isObject(block) ? block.calls : null));
	const results = calls.map(readCallResult).filter((call) => call !== null);
	return calls.length === count + 1 && results.length === calls.length ? results : null;
}

function readOutcomes(part: Part, results: readonly CallResult[], gasCap: bigint): Ran {
	const outcomes: SimulationOutcome[] = [];
	let finalCount = 0;
	let used = 0n;
	for (const [i, call] of results.slice(0, -1).entries()) {
		const tx = part.chain[i];
		if (tx === undefined) break;
		if (finalCount === i && used + tx.gasLimit <= gasCap) finalCount += 1;
		used += call.gasUsed;
		const { gasUsed, emitsEvents } = call;
		const error = call.success ? null : callError(call, tx.gasLimit, tx);
		const outcome: SimulationOutcome = call.success
			? { ok: true, gasUsed, emitsEvents, paid: null }
			: { ok: false, error: error ?? EXECUTION_FAILED };
		outcomes.push(outcome);
		if (stopsAt(part, outcome, i)) return { kind: "ran", outcomes, finalCount, unexplained: error === null };
	}
	return { kind: "ran", outcomes, finalCount, unexplained: false, nextBalance: readWord(results.at(-1), 1) };
}

/**
 * Adds the last transaction's transfers to the fee recipient, never below zero: the recipient's balance with it less the balance
 * without it, less the fees. Balances can't be forged, unlike logs.
 */
function withPayment(
	part: Part,
	ran: Ran,
	results: readonly CallResult[],
	without: NodeAnswer | undefined,
): Ran {
	const last = ran.outcomes.at(-1);
	const tx = part.chain.at(-1);
	if (tx === undefined || last?.ok !== true || ran.outcomes.length < part.chain.length) return ran;
	const before = without?.kind === "result" ? readCalls(without.value, part.chain.length - 1, 1) : null;
	const [balanceWithout, balanceWith] = [readWord(before?.at(-1), 0), readWord(results.at(-1), 0)];
	if (balanceWithout === null || balanceWith === null) return ran;
	const { baseFee, blobBaseFee, feeRecipient } = part.block;
	const price = effectiveGasPrice(tx, baseFee);
	let fees = last.gasUsed * (price - baseFee);
	// What a recipient pays for its own transaction lowers its balance, but is no transfer: it is added back.
	if (tx.from === feeRecipient) fees -= last.gasUsed * price + blobGas(tx) * blobBaseFee;
	const gain = balanceWith - balanceWithout - fees;
	const paid = gain > 0n ? gain : 0n;
	return { ...ran, outcomes: [...ran.outcomes.slice(0, -1), { ...last, paid }] };
}

function readWord(answer: CallResult | undefined, index: 0 | 1): bigint | null {
	if (answer?.success !== true || answer.returnData.length !== 2 + 2 * 64) return null;
	return BigInt(`0x${answer.returnData.slice(2 + 64 * index, 66 + 64 * index)}`);
}
