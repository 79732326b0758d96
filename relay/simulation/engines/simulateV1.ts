// Runs transactions by `eth_simulateV1`, one after another in their target block. If they may wait
// and do not fit into that block, they use several blocks from it on. `validation` is on, because
// only then every node shows contracts the base fee. Balances are read in a further block, so that
// the transactions see nothing artificial in the state.
// https://github.com/ethereum/execution-apis/blob/main/src/eth/execute.yaml

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import { blobGas, effectiveGasPrice } from "../../../shared/ethereum/intrinsicGas.ts";
import type { RpcCall } from "../../../shared/jsonrpc/client.ts";
import { isObject } from "../../../shared/jsonrpc/fields.ts";
import { fundsProblem } from "../../domain/blockProblems.ts";
import { timestampBehind } from "../../domain/chain.ts";
import type { SimulationError, SimulationOutcome } from "../../domain/simulation.ts";
import type { Ask, EngineBlock, NodeAnswer, Part, RequestLimits } from "./engine.ts";
import {
	blockOverrides,
	firstBalance,
	PROBE_ADDRESS,
	PROBE_CALLER,
	readSimulatedCall,
	type SimulatedCall,
	signedCall,
} from "./nodeObjects.ts";
import { BLOCK_FULL, callError, EXECUTION_FAILED, NO_VERDICT, saysCapped, stopsAt } from "./verdicts.ts";

/** Gas of the balance read in the further block; it uses 27,000 at most. */
export const BALANCES_GAS = 50_000n;
/**
 * Returns the balances of the two accounts in the calldata: twice CALLDATALOAD BALANCE MSTORE, then
 * RETURN.
 */
export const BALANCES_CODE = "0x5f35315f526020353160205260405ff3";
export type PartAnswer =
	| {
			readonly kind: "ran";
			/**
			 * The outcomes of the part's transactions, in order, up to the first failure that is
			 * not allowed.
			 */
			readonly outcomes: readonly SimulationOutcome[];
			/**
			 * How many of the outcomes, from the front, are final. Later transactions had less than
			 * their gas, because of the gas cap.
			 */
			readonly finalCount: number;
			/** The node says that its gas cap is lower than the known one. */
			readonly isCapLower?: boolean;
			/** The last one failed, and the node did not say why. */
			readonly unexplained: boolean;
	  }
	/** The node does not support it. */
	| { readonly kind: "unsupported" };

type Ran = Extract<PartAnswer, { kind: "ran" }> & {
	/** The balance of the next transaction's sender after them; null if it could not be read. */
	readonly nextBalance?: bigint | null;
};

/**
 * The outcomes of a part's first transactions. `rejected`: the node ran none, since one of them
 * can't be executed.
 */
type PrefixAnswer =
	| Ran
	| Exclude<PartAnswer, { kind: "ran" }>
	| { readonly kind: "rejected"; readonly error: SimulationError };

/** Runs `part`, in one request if possible. */
export async function simulatePart(part: Part, limits: RequestLimits, ask: Ask): Promise<PartAnswer> {
	const { length } = part.chain;
	const run = (count: number, blocks = [count]) => runPrefix(part, count, blocks, limits, ask);
	const whole = await run(length);
	if (whole.kind !== "rejected") return whole;
	if (part.mayWait && whole.error.code === "GAS_LIMIT_TOO_HIGH") {
		const spread = await run(length, fillBlocks(part, limits));
		if (spread.kind !== "rejected") return spread;
	}
	const within = countWithin(part, limits.gasCap);
	if (within < length && whole.error.code === "OUT_OF_GAS") {
		// The rest under the gas cap may be too little for a call even to begin. So the
		// transactions with all their gas run alone.
		const some: PrefixAnswer | null = within === 0 ? null : await run(within);
		const known = some?.kind === "ran" ? some.outcomes : [];
		const last = known.at(-1);
		if (some?.kind === "ran" && last !== undefined && stopsAt(part, last, known.length - 1)) return some;
		if (some === null || some.kind === "ran") {
			const outcomes = [...known, { ok: false, error: whole.error } as const];
			return { kind: "ran", outcomes, finalCount: known.length, unexplained: false };
		}
		if (some.kind === "unsupported") return some;
	}
	// One transaction that can't be executed makes the node reject all, without naming it: find it by
	// bisection.
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
	if (isContradicted(part, outcomes.length, error, nextBalance)) return { kind: "unsupported" };
	const tx = part.chain[outcomes.length];
	// For missing funds, use the relay's own message with the amounts.
	if (tx !== undefined && nextBalance !== null) error = fundsProblem(tx, nextBalance) ?? error;
	const all = [...outcomes, { ok: false, error } as const];
	return { kind: "ran", outcomes: all, finalCount: all.length, unexplained: false };
}

/**
 * How many transactions, from the first, have all their gas under the cap, no matter how much they
 * use. The balance read must fit too.
 */
export function countWithin({ chain }: Part, gasCap: bigint): number {
	let left = gasCap - BALANCES_GAS;
	const first = chain.findIndex(({ gasLimit }) => {
		left -= gasLimit;
		return left < 0n;
	});
	return first < 0 ? chain.length : first;
}

/**
 * Whether the rejection of the transaction at `index` contradicts the relay's own knowledge of it.
 * `balance` is that of its sender in wei (null: not known). If so, the node ignores the request's
 * block or state, or rejects the read of the balances.
 */
function isContradicted(
	{ chain, block }: Part,
	index: number,
	{ code, message }: SimulationError,
	balance: bigint | null,
): boolean {
	const tx = chain[index];
	if (tx === undefined) return true;
	// The relay has checked the fees. Behind other transactions, less gas may be left than the
	// known cap.
	if (code === "FEE_CAP_TOO_LOW" || code === "BLOB_FEE_CAP_TOO_LOW") return true;
	if (code === "OUT_OF_GAS" && index > 0) return true;
	const gas = chain.slice(0, index + 1).reduce((sum, { gasLimit }) => sum + gasLimit, 0n);
	if (message === BLOCK_FULL && gas <= block.gasLimit) return true;
	return code === "INSUFFICIENT_FUNDS" && balance !== null && fundsProblem(tx, balance) === null;
}

/** How many transactions go into each block, by their gas limits, if they do not fit into one. */
function fillBlocks({ chain, block }: Part, limits: RequestLimits): number[] {
	const counts = [0];
	const most = blockGas(block, limits);
	let room = most;
	for (const { gasLimit } of chain) {
		if (gasLimit > room) {
			counts.push(0);
			room = most;
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
	limits: RequestLimits,
	ask: Ask,
): Promise<PrefixAnswer> {
	const measured = part.measured && count === part.chain.length;
	const call = simulateCall(part, blocks, limits);
	const [answer, without] = await ask(measured ? [call, simulateCall(part, [count - 1], limits)] : [call]);
	switch (answer?.kind) {
		case "failed":
			return { kind: "rejected", error: answer.error };
		case "unsupported":
			return answer;
		case "result": {
			const results = readCalls(answer.value, count, blocks.length);
			if (results === null) break;
			const read = readOutcomes(part, results, limits.gasCap);
			return measured ? withPayment(part, read, results, without) : read;
		}
	}
	return { kind: "ran", outcomes: [NO_VERDICT], finalCount: 1, unexplained: false };
}

/**
 * The request: the first transactions of `part` in blocks of the given sizes, and in a further
 * block a read of two balances. These are the balances of the fee recipient and of the next
 * transaction's sender.
 */
export function simulateCall(part: Part, blocks: readonly number[], limits: RequestLimits): RpcCall {
	const { chain, block, prevRandao, beaconRoot, state } = part;
	// Set in each block, since reth rejects a request if one block has no gas limit.
	const gasLimit = toQuantity(blockGas(block, limits));
	const drawn = {
		prevRandao,
		...(beaconRoot === null ? {} : { beaconRoot }),
	};
	let count = 0;
	const simulated = blocks.map((size, i) => {
		const calls = chain.slice(count, count + size).map((tx) => signedCall(tx));
		count += size;
		return {
			blockOverrides: { ...blockOverrides(blockAfter(block, i)), gasLimit, ...drawn },
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
			gasLimit,
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
		blockStateCalls: [...blocksBetween(block, gasLimit), ...simulated, balances],
		validation: true,
	};
	return { method: "eth_simulateV1", params: [options, toQuantity(block.stateBlock)] };
}

function blockAfter(block: EngineBlock, count: number): EngineBlock {
	return { ...block, number: block.number + count, timestamp: timestampBehind(block, count) };
}

/**
 * Empty blocks after the state's block. Without them, nodes fill the gap with times that may be
 * later than the target block's.
 */
function blocksBetween(
	{ stateBlock, number, timestamp, parentTimestamp = 0 }: EngineBlock,
	gasLimit: string,
): object[] {
	const count = number - stateBlock - 1;
	return Array.from({ length: count }, (_, i) => ({
		blockOverrides: {
			number: toQuantity(stateBlock + 1 + i),
			time: toQuantity(Math.max(parentTimestamp, timestamp - count + i)),
			gasLimit,
		},
		calls: [],
	}));
}

/** The gas limit of a block in the request. */
function blockGas({ gasLimit }: EngineBlock, { maxBlockGas }: RequestLimits): bigint {
	return maxBlockGas !== undefined && maxBlockGas < gasLimit ? maxBlockGas : gasLimit;
}

/**
 * The results of `count` transactions in `blocks` blocks, and of the balance read; null if some are
 * missing.
 */
function readCalls(value: unknown, count: number, blocks: number): readonly SimulatedCall[] | null {
	if (!Array.isArray(value)) return null;
	// Counted from the end, because nodes may add blocks before them.
	const calls = value.slice(-blocks - 1).flatMap((block: unknown) => (isObject(block) ? block.calls : null));
	const results = calls.map(readSimulatedCall).filter((call) => call !== null);
	return calls.length === count + 1 && results.length === calls.length ? results : null;
}

function readOutcomes(part: Part, results: readonly SimulatedCall[], gasCap: bigint): Ran {
	const outcomes: SimulationOutcome[] = [];
	let finalCount = 0;
	let used = 0n;
	let isCapLower = false;
	for (const [i, call] of results.slice(0, -1).entries()) {
		const tx = part.chain[i];
		if (tx === undefined) break;
		const isUncapped = used + tx.gasLimit <= gasCap;
		if (isUncapped && saysCapped(call)) isCapLower = true;
		else if (finalCount === i && isUncapped) finalCount += 1;
		used += call.gasUsed;
		const { gasUsed, emitsEvents } = call;
		const error = call.success ? null : callError(call, tx.gasLimit, tx);
		const outcome: SimulationOutcome = call.success
			? { ok: true, gasUsed, emitsEvents, paid: null }
			: { ok: false, error: error ?? EXECUTION_FAILED };
		outcomes.push(outcome);
		if (stopsAt(part, outcome, i))
			return { kind: "ran", outcomes, finalCount, unexplained: error === null, isCapLower };
	}
	const nextBalance = readWord(results.at(-1), 1);
	return { kind: "ran", outcomes, finalCount, unexplained: false, isCapLower, nextBalance };
}

/**
 * Adds the last transaction's transfers to the fee recipient. They are the recipient's balance with
 * it, less the balance without it and the fees, never below zero. Unlike logs, balances can't be
 * forged.
 */
function withPayment(
	part: Part,
	ran: Ran,
	results: readonly SimulatedCall[],
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
	// A recipient's costs for its own transaction lower its balance, but are not a transfer, so
	// they are added back.
	if (tx.from === feeRecipient) fees -= last.gasUsed * price + blobGas(tx) * blobBaseFee;
	const gain = balanceWith - balanceWithout - fees;
	const paid = gain > 0n ? gain : 0n;
	return { ...ran, outcomes: [...ran.outcomes.slice(0, -1), { ...last, paid }] };
}

function readWord(answer: SimulatedCall | undefined, index: 0 | 1): bigint | null {
	if (answer?.success !== true || answer.returnData.length !== 2 + 2 * 64) return null;
	return BigInt(`0x${answer.returnData.slice(2 + 64 * index, 66 + 64 * index)}`);
}
