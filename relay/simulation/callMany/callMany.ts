// `eth_callMany`: signed transactions or unsigned calls come in, how each fared on the node goes out. It finds the block
// and the state they run in, and the first way that the node serves and that is exact. It keeps nothing but what the
// node was seen to serve.

import type { Clock } from "../../../shared/clock.ts";
import { toQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import {
	type CallMany,
	type CallResults,
	type CallsRequest,
	MAX_BLOCKS_ABOVE,
	type TransactionsRequest,
} from "../../domain/callMany.ts";
import type { Header, NextBlock } from "../../domain/chain.ts";
import type { SharedTransactions } from "../../domain/ports.ts";
import type { ChainRules } from "../../domain/transactionRules.ts";
import type { Ask, StateOverrides } from "../engines/engine.ts";
import { drawnBalance } from "../feeRecipients.ts";
import { type Asking, askWithin, type CallManyNode, nodeUnavailable } from "./asking.ts";
import { type BaseState, type CallBlock, historyWrite, type NodeBlock, readBlock } from "./blocks.ts";
import { askCallMany, isPlain, servesCallMany } from "./nodeCallMany.ts";
import { REFUSED, type RoadAnswer } from "./outcome.ts";
import { Places } from "./places.ts";
import { stateWithin } from "./replay.ts";
import { readSenders, stateUnavailable } from "./senders.ts";
import type { SignedRun } from "./signedRun.ts";
import { simulateCalls, simulateTransactions } from "./simulated.ts";
import { isBaseFeeKept } from "./simulations.ts";
import { traceCalls, traceTransactions } from "./traces.ts";
import { type CallsRun, planBlocks } from "./unsignedRun.ts";

export interface CallManyOptions extends ChainRules {
	readonly slotSeconds: number;
	/** The coinbase of blocks that are not there yet. */
	readonly feeRecipientOf: () => string;
	/** Whether that is a real address; if not, it holds some ether, as where bids are simulated. */
	readonly fixedFeeRecipient: boolean;
	/** All that the node is asked for one request, in ms. Default 5,000. */
	readonly timeoutMs?: number;
	/** Requests at the same time; one more is refused. Default 16. */
	readonly maxAtOnce?: number;
	/** The same, of one client. Default 4. */
	readonly maxPerClient?: number;
}

export interface CallManyDependencies {
	readonly node: CallManyNode;
	/** What the block after a head allows; it never throws. */
	readonly nextBlock: (head: Header) => Promise<NextBlock>;
	readonly shared: SharedTransactions;
	readonly clock: Clock;
	readonly log: Logger;
}

const TIMEOUT_MS = 5_000;
/** Each may keep a core of the node busy. */
const MAX_AT_ONCE = 16;
const MAX_PER_CLIENT = 4;

/** One way to run a request; asked for in the order of a list. */
interface Road {
	readonly name: string;
	run(): Promise<RoadAnswer>;
}

/** The `eth_callMany` of `node`. */
export function createCallMany(options: CallManyOptions, dependencies: CallManyDependencies): CallMany {
	const { node, clock, nextBlock } = dependencies;
	const served = new Served();
	const places = new Places(options.maxAtOnce ?? MAX_AT_ONCE, options.maxPerClient ?? MAX_PER_CLIENT);
	const bounded = async (
		client: string,
		run: (asking: Asking) => Promise<CallResults>,
	): Promise<CallResults> => {
		places.take(client);
		try {
			return await run(askWithin(node, clock, options.timeoutMs ?? TIMEOUT_MS));
		} finally {
			places.leave(client);
		}
	};
	return {
		runTransactions: (request) =>
			bounded(request.client, async (asking) => {
				const txs = resolve(request.txs, dependencies.shared);
				const state = await readBlock(asking.ask, request.stateBlock);
				if (state === null) throw noSuchBlock("bundle.stateBlockNumber");
				const block = await blockAbove(request, state.header, options, nextBlock);
				const { header } = state;
				const base = { block: header.number, overrides: atStart(block, header, options.fixedFeeRecipient) };
				const addresses = txs.map(({ from }) => from);
				const senders = await readSenders(asking, addresses, header.number);
				const run: SignedRun = { base, block, txs, rules: options, senders };
				const results = await takeRoad(signedRoads(run, served, asking.ask), asking, dependencies.log);
				if (results === null) throw stateUnavailable(header.number);
				return results;
			}),
		runCalls: (request) =>
			bounded(request.client, async (asking) => {
				const within = await readBlock(asking.ask, request.block);
				if (within === null) throw noSuchBlock("context.blockNumber");
				const count = within.transactions.length;
				const index = request.transactionIndex;
				if (index !== null && index > count) {
					const most = `a number of ${count} at most, as many transactions are in the block`;
					throw new RpcError("invalidParams", `invalid params: context.transactionIndex: expected ${most}`);
				}
				const { number } = within.header;
				const { base, blobBaseFee } = await stateOf(within, index, nextBlock, asking);
				const blocks = planBlocks(request.bundles, within, blobBaseFee, options.slotSeconds);
				const run: CallsRun = { base, blocks };
				const roads = unsignedRoads(request, run, within, served, asking.ask);
				const results = await takeRoad(roads, asking, dependencies.log);
				if (results === null) throw notReplayed(number);
				return results;
			}),
	};
}

/** The first answer that says all; where none does, the first that says most; null where none ran. */
async function takeRoad(roads: readonly Road[], asking: Asking, log: Logger): Promise<CallResults | null> {
	let vague: CallResults | null = null;
	for (const road of roads) {
		const answer = await road.run();
		if (answer.kind === "refused") continue;
		log.debug("calls were run", { engine: road.name, count: answer.results.length });
		if (!answer.vague) return answer.results;
		vague ??= answer.results;
	}
	if (vague === null && asking.isTroubled()) throw nodeUnavailable();
	return vague;
}

function signedRoads(run: SignedRun, served: Served, ask: Ask): readonly Road[] {
	return [
		{
			name: "eth_simulateV1",
			run: async () => ((await served.validated(ask)) ? simulateTransactions(run, ask) : REFUSED),
		},
		{ name: "debug_traceCall", run: () => traceTransactions(run, ask) },
	];
}

function unsignedRoads(
	request: CallsRequest,
	run: CallsRun,
	within: NodeBlock,
	served: Served,
	ask: Ask,
): readonly Road[] {
	const simulated = (roomy: boolean): Road => ({
		name: "eth_simulateV1",
		run: async () => ((await served.free(ask)) ? simulateCalls(run, roomy, ask) : REFUSED),
	});
	const own: Road = {
		name: "eth_callMany",
		run: async () =>
			isPlain(request) && (await served.callMany(ask))
				? askCallMany(run, within, request.transactionIndex, ask)
				: REFUSED,
	};
	return [
		own,
		simulated(false),
		{ name: "debug_traceCall", run: () => traceCalls(run, ask) },
		simulated(true),
	];
}

/** What the node was seen to serve, asked once each; where it gave no verdict, again the next time. */
class Served {
	readonly #known = new Map<string, boolean>();

	callMany(ask: Ask): Promise<boolean> {
		return this.#once("callMany", () => servesCallMany(ask));
	}

	/** eth_simulateV1, by a block's own rules. */
	validated(ask: Ask): Promise<boolean> {
		return this.#once("validated", () => isBaseFeeKept(true, ask));
	}

	/** eth_simulateV1, for calls that need not pay. */
	free(ask: Ask): Promise<boolean> {
		return this.#once("free", () => isBaseFeeKept(false, ask));
	}

	async #once(what: string, probe: () => Promise<boolean | null>): Promise<boolean> {
		const known = this.#known.get(what);
		if (known !== undefined) return known;
		const answer = await probe();
		if (answer !== null) this.#known.set(what, answer);
		return answer ?? false;
	}
}

function resolve(
	elements: TransactionsRequest["txs"],
	shared: SharedTransactions,
): readonly DecodedTransaction[] {
	return elements.map((element) => {
		if (typeof element !== "string") return element;
		const tx = shared.shared(element);
		// One and the same answer, whether it is unknown or merely not shared.
		if (tx === null) throw new RpcError("rejected", "target transaction not found");
		return tx;
	});
}

/** The block that the client named, some blocks above `head`. */
async function blockAbove(
	{ blockNumber, timestamp }: TransactionsRequest,
	head: Header,
	{ slotSeconds, feeRecipientOf }: CallManyOptions,
	nextBlock: CallManyDependencies["nextBlock"],
): Promise<CallBlock> {
	const above = blockNumber - BigInt(head.number);
	if (above < 1n || above > BigInt(MAX_BLOCKS_ABOVE)) {
		const expected = `1 to ${MAX_BLOCKS_ABOVE} above the state block, which is ${head.number}`;
		throw new RpcError("invalidParams", `invalid params: bundle.blockNumber: expected ${expected}`);
	}
	const next = await nextBlock(head);
	const number = Number(blockNumber);
	return {
		stateBlock: head.number,
		number,
		timestamp: timestamp ?? head.timestamp + slotSeconds * Number(above),
		baseFee: next.baseFee,
		blobBaseFee: next.blobBaseFee,
		gasLimit: next.gasLimit,
		feeRecipient: feeRecipientOf(),
		prevRandao: null,
	};
}

/** What is there before the first transaction of a block that is not there yet. */
function atStart(block: CallBlock, parent: Header, fixedFeeRecipient: boolean): StateOverrides {
	return {
		...historyWrite(parent),
		...(fixedFeeRecipient ? {} : { [block.feeRecipient]: { balance: toQuantity(drawnBalance()) } }),
	};
}

/** The state behind the first `index` transactions of `within` (null: all), and its blob base fee in wei per blob gas. */
async function stateOf(
	within: NodeBlock,
	index: number | null,
	nextBlock: CallManyDependencies["nextBlock"],
	asking: Asking,
): Promise<{ readonly base: BaseState; readonly blobBaseFee: bigint }> {
	const { header, transactions } = within;
	const whole = { block: header.number, overrides: {} };
	// A chain's first block has no parent, and no transactions.
	if (header.number === 0) return { base: whole, blobBaseFee: 1n };
	const parent = await readBlock(asking.ask, BigInt(header.number - 1));
	if (parent === null) throw notReplayed(header.number);
	const { blobBaseFee } = await nextBlock(parent.header);
	if (index === null || (index > 0 && index === transactions.length)) return { base: whole, blobBaseFee };
	const base = await stateWithin(within, parent, index, asking.ask);
	if (base !== null) return { base, blobBaseFee };
	if (asking.isTroubled()) throw nodeUnavailable();
	throw notReplayed(header.number);
}

function notReplayed(block: number): RpcError {
	return new RpcError("rejected", `node cannot replay block ${block}`);
}

function noSuchBlock(parameter: string): RpcError {
	return new RpcError("invalidParams", `invalid params: ${parameter}: expected a block that the node has`);
}
