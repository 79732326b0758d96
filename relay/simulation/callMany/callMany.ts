// `eth_callMany` and `eth_callBundle`: plans the calls and runs them on the node by
// `eth_simulateV1`. If that is not exact (anvil), it traces them one by one. A result is exact and
// complete, or the request gets an error.

import { randomBytes } from "node:crypto";
import type { Clock } from "../../../shared/clock.ts";
import type { ForkAt } from "../../../shared/ethereum/forks.ts";
import { toQuantity } from "../../../shared/ethereum/hex.ts";
import { effectiveGasPrice } from "../../../shared/ethereum/intrinsicGas.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import { UpstreamError } from "../../../shared/jsonrpc/client.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import { Shares } from "../../../shared/shares/shares.ts";
import {
	type BlockNames,
	type BundleResult,
	type CallMany,
	MAX_BLOCKS_ABOVE,
	type NamedBlock,
	type TransactionsRequest,
} from "../../domain/callMany.ts";
import { type Header, type NextBlock, timestampBehind } from "../../domain/chain.ts";
import type { Recoveries } from "../../domain/recoveries.ts";
import type { ChainRules } from "../../domain/transactionRules.ts";
import type { SimulationNode, StateOverrides } from "../engines/engine.ts";
import { PROBE_ADDRESS, PROBE_CALLER, systemWrites } from "../engines/nodeObjects.ts";
import { BALANCES_CODE, BALANCES_GAS } from "../engines/simulateV1.ts";
import { readAnswer } from "../engines/verdicts.ts";
import { type AskNode, type CallBlock, type NodeBlock, readBlock } from "./blocks.ts";
import { resultOf, runCalls } from "./calls.ts";
import { type Ended, type PlannedCall, transactionCall } from "./plan.ts";
import { ownProblem, readSenders } from "./rules.ts";
import { probeSimulating, type Simulating, simulate } from "./simulate.ts";
import { type RecoverSigners, trace } from "./traces.ts";

export interface CallManyOptions {
	readonly rules: ChainRules;
	/** The coinbase of future blocks. */
	readonly feeRecipientOf: () => string;
	/** PREVRANDAO of future blocks, 32 bytes of hex. Default: random each time. */
	readonly randaoOf?: () => string;
	/** Deadline of a whole request, in ms. Default 5,000. */
	readonly timeoutMs?: number;
}

export interface CallManyDependencies {
	readonly node: Pick<SimulationNode, "call">;
	/** Describes the block after a head; never throws. */
	readonly nextBlock: (head: Header) => Promise<NextBlock>;
	readonly forkAt: ForkAt;
	/** The pending transaction with this hash if it is shared with searchers, else null. */
	readonly sharedTransaction: (
		hash: string,
	) => DecodedTransaction | null | Promise<DecodedTransaction | null>;
	readonly recoveries: Pick<Recoveries, "recover">;
	readonly clock: Clock;
}

const TIMEOUT_MS = 5_000;
/**
 * Maximum number of requests at once, in total and per client: each may keep a core of the node
 * busy.
 */
const MAX_AT_ONCE = 16;
const MAX_PER_CLIENT = 4;

export function createCallMany(options: CallManyOptions, dependencies: CallManyDependencies): CallMany {
	const { node, clock, nextBlock, forkAt, sharedTransaction, recoveries } = dependencies;
	const recoverFor =
		(client: string): RecoverSigners =>
		(authorizations) =>
			recoveries.recover(authorizations, client);
	const shares = new Shares({ total: MAX_AT_ONCE, perClient: MAX_PER_CLIENT });
	let known: Simulating | null = null;
	const bounded = async <T>(
		client: string,
		run: (ask: AskNode, simulatingOf: () => Promise<Simulating>) => Promise<T>,
	): Promise<T> => {
		const over = shares.take(client, 1);
		if (over !== null) {
			const what = over === "client" ? `${MAX_PER_CLIENT} simulations of one client` : "too many simulations";
			throw new RpcError("limit", `limit exceeded: ${what} at once`);
		}
		try {
			const ask = askWithin(node, clock, options.timeoutMs ?? TIMEOUT_MS);
			return await run(ask, async () => {
				known ??= await probeSimulating(ask);
				if (known === null) throw nodeUnavailable();
				return known;
			});
		} finally {
			shares.release(client, 1);
		}
	};
	/**
	 * Runs the transactions. If `measured`, the fee recipient's balance is read before and after
	 * each.
	 */
	const runSigned = (request: TransactionsRequest, measured: boolean): Promise<SignedRun> =>
		bounded(request.client, async (ask, simulatingOf) => {
			const txs = await resolve(request.txs, sharedTransaction);
			const simulating = await simulatingOf();
			const { header } = await blockOf(ask, request.stateBlock, namesOf(request).stateBlock);
			const above = await blockAbove(request, header, options, nextBlock);
			const block = { ...above, fork: forkAt(above.timestamp) };
			const addresses = txs.map(({ from }) => from);
			const senders = await readSenders(ask, addresses, header.number);
			if (senders === null) throw stateUnavailable(header.number);
			const problems = txs.map((tx) => ownProblem(tx, senders.get(tx.from), block, options.rules));
			const signed = txs.filter((_, i) => problems[i] === null).map((tx) => transactionCall(tx));
			const calls = measured
				? [balanceCall(block), ...signed.flatMap((one) => [one, balanceCall(block)])]
				: signed;
			const plan = {
				state: header,
				overrides: measured ? BALANCE_READER : {},
				blocks: [{ block, mayMove: request.timestamp === null, calls }],
			};
			const { isExact, gasCap } = simulating;
			const traced = { ...plan, overrides: { ...plan.overrides, ...systemWrites(header, block) } };
			const results = isExact
				? await simulate(plan, { validation: true, gasCap, senders }, ask)
				: await trace(traced, senders, ask, recoverFor(request.client));
			if (results !== null) return { txs, block, problems, results };
			// The URL may now lead to another node.
			known = null;
			throw notRunnable(request, header);
		});
	return {
		async runTransactions(request) {
			const { problems, results } = await runSigned(request, false);
			let next = 0;
			return [problems.map((error) => (error === null ? resultOf(results[next++]) : { value: "", error }))];
		},
		async runBundle(request) {
			const { txs, block, problems, results } = await runSigned(request, true);
			let next = 0;
			const all = txs.map((tx, i): BundleResult => {
				const error = problems[i] ?? null;
				if (error !== null) return { tx, value: "", error, gasUsed: 0n, coinbaseDiff: 0n, gasFees: 0n };
				const [before, ran, behind] = results.slice(next, next + 3);
				next += 2;
				const coinbaseDiff = before?.ok && behind?.ok ? balanceIn(behind) - balanceIn(before) : 0n;
				const gasUsed = ran?.gasUsed ?? 0n;
				const gasFees = gasUsed * (effectiveGasPrice(tx, block.baseFee) - block.baseFee);
				return { tx, ...resultOf(ran), gasUsed, coinbaseDiff, gasFees };
			});
			return { stateBlock: block.stateBlock, results: all };
		},
		runCalls: (request) =>
			bounded(request.client, async (ask, simulatingOf) => {
				const simulating = await simulatingOf();
				const within = await blockOf(ask, request.block, "context.blockNumber");
				const { length } = within.transactions;
				const count = request.transactionIndex ?? length;
				if (count > length) {
					const most = `a number of ${length} at most, the number of transactions in the block`;
					throw new RpcError("invalidParams", `invalid params: context.transactionIndex: expected ${most}`);
				}
				const recover = recoverFor(request.client);
				const results = await runCalls(request, within, count, { nextBlock }, simulating, ask, recover);
				if (results !== null) return results;
				known = null;
				throw new RpcError("rejected", `node cannot replay block ${within.header.number}`);
			}),
	};
}

/**
 * The run of signed transactions. `results` has those of transactions without a problem, and of the
 * balance reads between them.
 */
interface SignedRun {
	readonly txs: readonly DecodedTransaction[];
	readonly block: CallBlock;
	readonly problems: readonly (string | null)[];
	readonly results: readonly Ended[];
}

const USUAL_NAMES: BlockNames = {
	stateBlock: "bundle.stateBlockNumber",
	blockNumber: "bundle.blockNumber",
	timestamp: "bundle.timestamp",
};

function namesOf({ names = USUAL_NAMES }: TransactionsRequest): BlockNames {
	return names;
}

/**
 * State overrides for reading the fee recipient's balance: the contract, and a caller with funds.
 */
const BALANCE_READER: StateOverrides = {
	[PROBE_ADDRESS]: { code: BALANCES_CODE },
	[PROBE_CALLER]: { balance: toQuantity(2n ** 100n) },
};

/** Reads the fee recipient's balance without paying a tip. */
function balanceCall({ baseFee, feeRecipient }: CallBlock): PlannedCall {
	const word = feeRecipient.slice(2).padStart(64, "0");
	const object = {
		from: PROBE_CALLER,
		to: PROBE_ADDRESS,
		input: `0x${word}${word}`,
		gas: toQuantity(BALANCES_GAS),
		maxFeePerGas: toQuantity(baseFee),
		maxPriorityFeePerGas: "0x0",
	};
	const signer = { from: PROBE_CALLER, chainId: 0n, authorizationList: [] };
	return { object, gas: BALANCES_GAS, signer, tx: null, mined: null };
}

function balanceIn(ran: Ended | undefined): bigint {
	return ran === undefined || ran.value === "" ? 0n : BigInt(`0x${ran.value.slice(0, 64)}`);
}

/** Error codes of a node in trouble: internal error, busy, over a limit. */
const TROUBLE: ReadonlySet<number> = new Set([-32603, -32002, -32005]);

/**
 * Returns a function that asks the node within `timeoutMs` in total. After that, or if the node
 * fails, it throws {@link nodeUnavailable}.
 */
function askWithin(node: Pick<SimulationNode, "call">, clock: Clock, timeoutMs: number): AskNode {
	const end = clock.monotonic() + timeoutMs;
	return async (call) => {
		const left = end - clock.monotonic();
		if (left <= 0) throw nodeUnavailable();
		try {
			const answer = await node.call(call, left);
			if (answer.ok || !TROUBLE.has(answer.error.code) || readAnswer(answer).kind !== "fault") return answer;
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
		}
		throw nodeUnavailable();
	};
}

function nodeUnavailable(): RpcError {
	return new RpcError("internal", "internal error: the node is unavailable, try again", {
		reason: "node unavailable",
	});
}

function resolve(
	elements: TransactionsRequest["txs"],
	sharedTransaction: CallManyDependencies["sharedTransaction"],
): Promise<readonly DecodedTransaction[]> {
	return Promise.all(
		elements.map(async (element) => {
			if (typeof element !== "string") return element;
			const tx = await sharedTransaction(element);
			// Unknown and unshared transactions get the same error, so that private ones are not
			// revealed.
			if (tx === null) throw new RpcError("rejected", "target transaction not found");
			return tx;
		}),
	);
}

async function blockOf(ask: AskNode, named: NamedBlock, parameter: string): Promise<NodeBlock> {
	const block = await readBlock(ask, named);
	if (block === undefined) throw nodeUnavailable();
	if (block !== null) return block;
	throw new RpcError("invalidParams", `invalid params: ${parameter}: expected a block that the node has`);
}

function drawn(): string {
	return `0x${randomBytes(32).toString("hex")}`;
}

/** The future block that the client named. */
async function blockAbove(
	request: TransactionsRequest,
	head: Header,
	{ feeRecipientOf, randaoOf = drawn }: CallManyOptions,
	nextBlock: CallManyDependencies["nextBlock"],
): Promise<CallBlock> {
	const { timestamp } = request;
	const above = request.blockNumber === null ? 1n : request.blockNumber - BigInt(head.number);
	if (above < 1n || above > BigInt(MAX_BLOCKS_ABOVE)) {
		const expected = `1 to ${MAX_BLOCKS_ABOVE} above the state block, which is ${head.number}`;
		throw new RpcError(
			"invalidParams",
			`invalid params: ${namesOf(request).blockNumber}: expected ${expected}`,
		);
	}
	const next = await nextBlock(head);
	return {
		stateBlock: head.number,
		number: head.number + Number(above),
		timestamp: timestamp ?? timestampBehind(next, Number(above) - 1),
		baseFee: next.baseFee,
		blobBaseFee: next.blobBaseFee,
		gasLimit: next.gasLimit,
		feeRecipient: feeRecipientOf(),
		prevRandao: randaoOf(),
		beaconRoot: null,
	};
}

/**
 * Why the node did not run transactions: its state is gone, or the client's timestamp is too early
 * for the block.
 */
function notRunnable(request: TransactionsRequest, head: Header): RpcError {
	const { blockNumber, timestamp } = request;
	const earliest = head.timestamp + (blockNumber === null ? 1 : Number(blockNumber) - head.number);
	if (timestamp === null || timestamp >= earliest) return stateUnavailable(head.number);
	return new RpcError(
		"invalidParams",
		`invalid params: ${namesOf(request).timestamp}: expected ${earliest} at least`,
	);
}

function stateUnavailable(block: number): RpcError {
	return new RpcError("rejected", `node cannot run transactions on the state of block ${block}`);
}
