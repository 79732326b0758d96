// Runs unsigned calls in a block of the chain. Nodes can't continue an existing block, so the calls
// run on the parent's state after a replay of the block's transactions. A single call after all of
// them can use `eth_call`.

import { parseNodeQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { CallResult, CallResults, CallsRequest, UnsignedCall } from "../../domain/callMany.ts";
import type { Header, NextBlock } from "../../domain/chain.ts";
import { readHex, systemWrites } from "../engines/nodeObjects.ts";
import { readAnswer } from "../engines/verdicts.ts";
import {
	type AskNode,
	blocksOf,
	type CallBlock,
	contextOf,
	type NodeBlock,
	overridesOf,
	readBlock,
} from "./blocks.ts";
import {
	type Ended,
	minedCall,
	type Plan,
	type PlannedBlock,
	type PlannedCall,
	type PlanResults,
	unsignedCall,
} from "./plan.ts";
import type { SenderState } from "./rules.ts";
import { type Simulating, simulate } from "./simulate.ts";
import { type RecoverSigners, trace } from "./traces.ts";

export interface CallsOptions {
	/** Describes the block after a head; never throws. */
	readonly nextBlock: (head: Header) => Promise<NextBlock>;
}

/**
 * Runs the calls after the first `count` transactions of `within`; null if the node can't replay
 * these.
 */
export async function runCalls(
	request: CallsRequest,
	within: NodeBlock,
	count: number,
	{ nextBlock }: CallsOptions,
	simulating: Simulating,
	ask: AskNode,
	recover: RecoverSigners,
): Promise<CallResults | null> {
	const { header } = within;
	// A chain's first block has no parent.
	const before = header.number === 0 ? null : await readBlock(ask, BigInt(header.number - 1));
	const parent = before?.header.hash === header.parentHash ? before.header : null;
	const planned = await nextBlock(parent ?? header);
	const context = contextOf(within, planned, parent === null ? 1n : planned.blobBaseFee);
	const contexts = blocksOf(request.bundles, context);
	const bundles = request.bundles.map(
		({ transactions, blockOverride }, i): PlannedBlock => ({
			block: contexts[i] ?? context,
			mayMove: blockOverride.timestamp === undefined,
			calls: transactions.map(unsignedCall),
		}),
	);
	const isWhole = count === within.transactions.length;
	const onBlock: Plan = { state: header, overrides: {}, blocks: bundles };
	const planWithin = async (): Promise<Plan | null> => {
		const mined = parent === null ? null : await readMined(within, count, ask);
		if (parent === null || mined === null) return null;
		const overrides = simulating.isExact ? {} : systemWrites(parent, context);
		return { state: parent, overrides, blocks: withMined(mined, context, bundles) };
	};
	const run = async (): Promise<PlanResults> => {
		if (!simulating.isExact) return trace(isWhole ? onBlock : await planWithin(), NO_SENDERS, ask, recover);
		const { gasCap } = simulating;
		const options = { validation: false, gasCap, senders: NO_SENDERS };
		const isLater = isWhole && (contexts[0]?.number ?? 0) > header.number;
		const plan = async () => (isLater ? onBlock : await planWithin());
		const [only, second] = request.bundles.flatMap(({ transactions }) => transactions);
		if (only === undefined || second !== undefined || !isWhole) return simulate(await plan(), options, ask);
		const block =
			contexts[request.bundles.findIndex(({ transactions }) => transactions.length > 0)] ?? context;
		// With eth_call, a call without a gas price would see no base fee.
		const isFree = !isPriced(only) && block.baseFee > 0n;
		const replayed = isFree ? await simulate(fixed(await plan()), options, ask) : null;
		return replayed ?? (await callAt(only, block, header.number, gasCap, ask));
	};
	const results = await run();
	let next = 0;
	return (
		results && request.bundles.map(({ transactions }) => transactions.map(() => resultOf(results[next++])))
	);
}

const NO_SENDERS: ReadonlyMap<string, SenderState> = new Map();
/** The result of a call that has none. */
const NO_RESULT: CallResult = { value: "", error: "execution failed" };

/** The result in the form for clients. */
export function resultOf(ran: Ended | undefined): CallResult {
	const { value, error } = ran ?? NO_RESULT;
	return error === undefined ? { value } : { value, error };
}

function isPriced({ gasPrice, maxFeePerGas }: UnsignedCall): boolean {
	return gasPrice !== null || maxFeePerGas !== null;
}

/** The plan with its block times fixed. */
function fixed(plan: Plan | null): Plan | null {
	return plan && { ...plan, blocks: plan.blocks.map((block) => ({ ...block, mayMove: false })) };
}

/**
 * Puts the `mined` calls before `bundles`: into the first bundle's block if that equals `context`,
 * else into a block of their own.
 */
function withMined(
	mined: readonly PlannedCall[],
	context: CallBlock,
	bundles: readonly PlannedBlock[],
): readonly PlannedBlock[] {
	const [first, ...rest] = bundles;
	if (mined.length === 0 || first === undefined) return bundles;
	const isSame = JSON.stringify(overridesOf(first.block)) === JSON.stringify(overridesOf(context));
	if (isSame) return [{ ...first, mayMove: false, calls: [...mined, ...first.calls] }, ...rest];
	return [{ block: context, mayMove: false, calls: mined }, ...bundles];
}

/**
 * The first `count` transactions of `block` as they were mined; null if the node does not have them
 * all.
 */
async function readMined(
	{ header }: NodeBlock,
	count: number,
	ask: AskNode,
): Promise<readonly PlannedCall[] | null> {
	if (count === 0) return [];
	const number = toQuantity(header.number);
	const [block, receipts] = await Promise.all([
		readBlock(ask, BigInt(header.number), true),
		ask({ method: "eth_getBlockReceipts", params: [number] }),
	]);
	if (block?.header.hash !== header.hash || !receipts.ok || !Array.isArray(receipts.result)) return null;
	const listed: readonly unknown[] = receipts.result;
	const calls = block.transactions.slice(0, count).map((tx, i) => minedCall(tx, listed[i]));
	const mined = calls.filter((call) => call !== null);
	return mined.length === count ? mined : null;
}

/**
 * One call after all transactions of a block, by `eth_call`. Calls without a gas price would see a
 * base fee of zero. So they pay the base fee, and their sender is given the funds for it; only
 * GASPRICE reveals that.
 */
async function callAt(
	call: UnsignedCall,
	block: CallBlock,
	state: number,
	gasCap: bigint,
	ask: AskNode,
): Promise<PlanResults> {
	const number = toQuantity(state);
	let { object } = unsignedCall(call);
	let overrides = {};
	if (!isPriced(call) && block.baseFee > 0n) {
		const asked = call.gas ?? block.gasLimit;
		const gas = asked < gasCap ? asked : gasCap;
		const answer = await ask({ method: "eth_getBalance", params: [call.from, number] });
		const balance = answer.ok ? parseNodeQuantity(answer.result) : null;
		if (balance === null) return null;
		object = { ...object, gas: toQuantity(gas), gasPrice: toQuantity(block.baseFee) };
		overrides = { [call.from]: { balance: toQuantity(balance + gas * block.baseFee) } };
	}
	const answer = await ask({ method: "eth_call", params: [object, number, overrides, overridesOf(block)] });
	const read = readAnswer(answer);
	if (read.kind === "failed") {
		const data = answer.ok || read.error.code !== "EXECUTION_REVERTED" ? null : readHex(answer.error.data);
		return [{ value: (data ?? "0x").slice(2), error: read.error.message, gasUsed: null, ok: false }];
	}
	const output = read.kind === "result" ? readHex(read.value) : null;
	return output === null ? null : [{ value: output.slice(2), gasUsed: null, ok: true }];
}
