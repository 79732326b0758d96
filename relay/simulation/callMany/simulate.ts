// Runs a plan by `eth_simulateV1`, in one request if all calls can be executed. If the node rejects
// the whole request for one call, without naming it, that call is found by bisection.
// https://github.com/ethereum/execution-apis/blob/main/src/eth/execute.yaml

import { parseQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import { isObject } from "../../../shared/jsonrpc/fields.ts";
import { fundsProblem } from "../../domain/blockProblems.ts";
import type { SimulationError } from "../../domain/simulation.ts";
import { onlyCall, PROBE_ADDRESS, readHex, readSimulatedCall } from "../engines/nodeObjects.ts";
import { callError, EXECUTION_FAILED, readAnswer } from "../engines/verdicts.ts";
import { type AskNode, overridesOf } from "./blocks.ts";
import {
	capped,
	collect,
	type Ended,
	ended,
	notRun,
	type Plan,
	type PlannedCall,
	type PlanResults,
} from "./plan.ts";
import { roomProblem, type SenderState } from "./rules.ts";

/** The quality of a node's `eth_simulateV1`. */
export interface Simulating {
	/** Whether calls without a gas price see the base fee, and creations work; not so on anvil. */
	readonly isExact: boolean;
	/** Gas limit for all calls of a request together (geth's `--rpc.gascap`). */
	readonly gasCap: bigint;
}

/** geth's limit of blocks above the state's, empty ones included. */
const MAX_BLOCKS = 256;
/**
 * BASEFEE PUSH0 MSTORE GAS PUSH1 32 MSTORE PUSH1 64 PUSH0 RETURN; and the gas that it uses after it
 * has read the gas left.
 */
const PROBE_CODE = "0x485f525a60205260405ff3";
const USED_AFTER = 14n;
const PROBE_BASE_FEE = 0x1ee3an;

/** Probes the node; null if it fails to answer. */
export async function probeSimulating(ask: AskNode): Promise<Simulating | null> {
	const blockOverrides = {
		baseFeePerGas: toQuantity(PROBE_BASE_FEE),
		gasLimit: toQuantity(2n ** 62n),
	};
	const stateOverrides = { [PROBE_ADDRESS]: { code: PROBE_CODE } };
	const block = { blockOverrides, stateOverrides, calls: [{ to: PROBE_ADDRESS }] };
	const answer = await ask({
		method: "eth_simulateV1",
		params: [{ blockStateCalls: [block], validation: false }, "latest"],
	});
	const read = readAnswer(answer);
	if (read.kind === "fault") return null;
	const { returned, gasUsed } = onlyCall(read) ?? {};
	if (returned?.length !== 2 + 128 || gasUsed == null) return { isExact: false, gasCap: 0n };
	const [fee, left] = [BigInt(returned.slice(0, 66)), BigInt(`0x${returned.slice(66)}`)];
	return { isExact: fee === PROBE_BASE_FEE, gasCap: left + gasUsed - USED_AFTER };
}

export interface SimulateOptions {
	/** Whether the rules of a block apply: nonces, funds, prices. */
	readonly validation: boolean;
	readonly gasCap: bigint;
	/** The senders of signed transactions, in the plan's state. */
	readonly senders: ReadonlyMap<string, SenderState>;
}

type Answered =
	| { readonly kind: "ran"; readonly ended: ReadonlyMap<PlannedCall, Ended> }
	/** One of the calls can't be executed, so none was. */
	| { readonly kind: "rejected"; readonly error: SimulationError }
	| { readonly kind: "unsupported" };

/** Null if the node does not support the blocks, or does not reproduce the mined transactions. */
export async function simulate(
	plan: Plan | null,
	options: SimulateOptions,
	ask: AskNode,
): Promise<PlanResults> {
	if (plan === null) return null;
	const problems = new Map<PlannedCall, Ended>();
	/** How many of the calls without a problem, from the front, are known to work. */
	let passing = 0;
	let before: ReadonlyMap<PlannedCall, Ended> = new Map();
	let isLimitRaised = false;
	for (;;) {
		const left = plan.blocks.flatMap(({ calls }) => calls).filter((call) => !problems.has(call));
		const run = (count: number) => runSome(plan, left.slice(0, count), isLimitRaised, options, ask);
		let found = await run(left.length);
		if (found.kind === "ran") {
			const all = new Map([...found.ended, ...problems]);
			return collect(plan, (call) => all.get(call));
		}
		let rejected = left.length;
		while (found.kind === "rejected" && rejected - passing > 1) {
			const middle = (passing + rejected) >> 1;
			const some = await run(middle);
			if (some.kind === "ran") {
				passing = middle;
				before = some.ended;
			} else {
				rejected = middle;
				found = some;
			}
		}
		const call = left[rejected - 1];
		if (found.kind !== "rejected" || call === undefined || call.mined !== null) return null;
		if (found.error.code === "GAS_LIMIT_TOO_HIGH" && call.tx === null && !isLimitRaised) {
			// The block's gas limit is raised for calls that ask for more, which GASLIMIT reveals.
			isLimitRaised = true;
			passing = 0;
		} else problems.set(call, problemOf(found.error, call, plan, before, options));
	}
}

/** Runs some calls of the plan in their blocks. */
async function runSome(
	plan: Plan,
	calls: readonly PlannedCall[],
	isLimitRaised: boolean,
	options: SimulateOptions,
	ask: AskNode,
): Promise<Answered> {
	const blockStateCalls = wireBlocks(plan, new Set(calls), isLimitRaised);
	if (blockStateCalls === null) return { kind: "unsupported" };
	const params = [{ blockStateCalls, validation: options.validation }, toQuantity(plan.state.number)];
	const answer = readAnswer(await ask({ method: "eth_simulateV1", params }));
	if (answer.kind === "failed") return { kind: "rejected", error: answer.error };
	const answered = answer.kind === "result" ? readCalls(answer.value, plan) : null;
	if (answered?.length !== calls.length) return { kind: "unsupported" };
	const results = new Map<PlannedCall, Ended>();
	let capLeft = options.gasCap;
	for (const [i, call] of calls.entries()) {
		const result = readSimulatedCall(answered[i]);
		if (result === null) return { kind: "unsupported" };
		const { success, returnData, error, gasUsed } = result;
		const failure = success ? null : (callError(result, call.gas, call.signer) ?? EXECUTION_FAILED);
		const output = success ? returnData : (readHex(error.data) ?? returnData);
		const one = ended(output, gasUsed, failure);
		if (call.mined !== null && (call.mined.gasUsed !== gasUsed || call.mined.ok !== one.ok))
			return { kind: "unsupported" };
		const isCapped = !one.ok && call.gas !== null && call.gas > capLeft;
		results.set(call, isCapped ? capped(options.gasCap) : one);
		capLeft -= gasUsed;
	}
	return { kind: "ran", ended: results };
}

/**
 * The blocks for the node, with empty ones between them; null if a block would precede its parent.
 */
function wireBlocks(plan: Plan, kept: ReadonlySet<PlannedCall>, isLimitRaised: boolean): object[] | null {
	const wire: object[] = [];
	let { number, timestamp } = plan.state;
	for (const [i, { block, calls, mayMove }] of plan.blocks.entries()) {
		const gap = block.number - number;
		const time = mayMove ? Math.max(block.timestamp, timestamp + gap) : block.timestamp;
		if (gap < 1 || time < timestamp + gap || block.number > plan.state.number + MAX_BLOCKS) return null;
		// geth would fill gaps with blocks twelve seconds apart, which may not fit.
		for (let n = 1; n < gap; n++) {
			const filler = timestamp + Math.floor(((time - timestamp) * n) / gap);
			wire.push({
				blockOverrides: {
					number: toQuantity(number + n),
					time: toQuantity(filler),
					// reth rejects a request if one block has no gas limit.
					gasLimit: toQuantity(block.gasLimit),
				},
				calls: [],
			});
		}
		const wanted = calls.reduce((sum, { gas }) => sum + (gas ?? 0n), block.gasLimit);
		const own = overridesOf({ ...block, timestamp: time, gasLimit: isLimitRaised ? wanted : block.gasLimit });
		wire.push({
			blockOverrides: block.beaconRoot === null ? own : { ...own, beaconRoot: block.beaconRoot },
			...(i === 0 ? { stateOverrides: plan.overrides } : {}),
			calls: calls.filter((call) => kept.has(call)).map(({ object }) => object),
		});
		number = block.number;
		timestamp = time;
	}
	return wire;
}

/** The results of all calls of all planned blocks. */
function readCalls(answered: unknown, { blocks }: Plan): readonly unknown[] | null {
	if (!Array.isArray(answered)) return null;
	const numbers = new Set(blocks.map(({ block }) => block.number));
	return answered.flatMap((one: unknown): readonly unknown[] => {
		if (!isObject(one) || typeof one.number !== "string" || !Array.isArray(one.calls)) return [];
		return numbers.has(Number(parseQuantity(one.number))) ? one.calls : [];
	});
}

/** Why a call can't be executed after `before`, with amounts if they are known. */
function problemOf(
	error: SimulationError,
	call: PlannedCall,
	plan: Plan,
	before: ReadonlyMap<PlannedCall, Ended>,
	options: SimulateOptions,
): Ended {
	const used = [...before.values()].reduce((sum, { gasUsed }) => sum + (gasUsed ?? 0n), 0n);
	const isCapped = call.gas !== null && call.gas > options.gasCap - used && error.code === "OUT_OF_GAS";
	return isCapped ? capped(options.gasCap) : notRun(messageOf(error, call, plan, before, used, options));
}

function messageOf(
	{ code, message }: SimulationError,
	{ tx }: PlannedCall,
	{ blocks: [first] }: Plan,
	before: ReadonlyMap<PlannedCall, Ended>,
	used: bigint,
	{ senders }: SimulateOptions,
): string {
	const sender = tx === null ? undefined : senders.get(tx.from);
	if (tx === null || sender === undefined) return message;
	if (code === "GAS_LIMIT_TOO_HIGH") return roomProblem(tx, (first?.block.gasLimit ?? 0n) - used);
	if (code === "INSUFFICIENT_FUNDS" && before.size === 0)
		return fundsProblem(tx, sender.balance)?.message ?? message;
	const sent = [...before.keys()].filter((one) => one.tx?.from === tx.from).length;
	const next = sender.nonce + BigInt(sent);
	// The error must agree with this count: authorizations (EIP-7702) may have raised the nonce
	// too.
	if ((code === "NONCE_TOO_LOW" && next > tx.nonce) || (code === "NONCE_GAP" && next < tx.nonce))
		return `${message}: next nonce ${next}, tx nonce ${tx.nonce}`;
	return message;
}
