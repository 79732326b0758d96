// Builds the chain's next block: chooses it from the order book by trials, and mines it in one
// burst. It knows no clients and no times.

import type { Wallet } from "ethers";
import type { Clock } from "../../shared/clock.ts";
import { ForkSchedule } from "../../shared/ethereum/forkSchedule.ts";
import type { Fork } from "../../shared/ethereum/forks.ts";
import type { BurstLock } from "./anvilPool.ts";
import {
	type BuiltOrder,
	type ChosenBlock,
	chooseBlock,
	type LeftOutOrder,
	type LeftOutReason,
} from "./blockBuilding.ts";
import type { BlockTerms, BuildingNode } from "./buildingNode.ts";
import { type ChainHead, type ChainRpc, type MinedBlock, quantity } from "./chainRpc.ts";
import type { Order, OrderBook } from "./orderBook.ts";

/** A built block. */
export interface BuiltBlock extends MinedBlock {
	/** Its bundles and private transactions, in order. */
	readonly orders: readonly BuiltOrder[];
	/** Hashes of the public mempool's transactions in the block, after all others. */
	readonly publicTransactions: readonly string[];
	/** Live orders that are not in it. */
	readonly leftOut: readonly LeftOutOrder[];
	/** The coinbase's gain by the block, in wei, without refunds and their gas. */
	readonly coinbaseGain: bigint;
	/**
	 * Whether every order's transactions had the same outcome as in the trial; false is a defect, or
	 * caused by a test.
	 */
	readonly asTried: boolean;
	/** Wall time of the choice and of the burst, in ms. */
	readonly triedMs: number;
	readonly burstMs: number;
}

/** The options of {@link BlockMaker}. */
interface BlockMakerOptions {
	readonly coinbase: Wallet;
	readonly chainId: bigint;
	/**
	 * Gas whose cost, at the base fee, each refund pays itself; undefined: what the block's fork
	 * takes.
	 */
	readonly refundGas: bigint | undefined;
	/** The timestamp, in Unix seconds, of the block after this head. */
	readonly nextTimestamp: (head: ChainHead) => number;
	readonly chain: ChainRpc;
	readonly node: BuildingNode;
	readonly book: OrderBook;
	readonly clock: Clock;
	readonly lock: BurstLock;
}

/** Maximum attempts if the head moves while a block is chosen. */
const MAX_ATTEMPTS = 5;

/** Builds blocks, one at a time. */
export class BlockMaker {
	readonly #options: BlockMakerOptions;
	readonly #forks: ForkSchedule;

	constructor(options: BlockMakerOptions) {
		this.#options = options;
		this.#forks = new ForkSchedule({ chainId: () => options.chainId });
	}

	/** Builds the block after the head. Throws if the chain fails, or its head moves too often. */
	async build(): Promise<BuiltBlock> {
		// Transactions that the chain refuses although the trial accepted them, left out so that they
		// can't stop the chain.
		const refused = new Set<string>();
		for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
			const built = await this.#tryBuild(refused);
			if (built !== null) return built;
		}
		throw new Error("the head of the chain moves faster than blocks are built");
	}

	async #tryBuild(refused: Set<string>): Promise<BuiltBlock | null> {
		const { node, book, clock, lock, nextTimestamp } = this.#options;
		const coinbase = this.#options.coinbase.address;
		const started = clock.monotonic();
		const head = await node.readHead();
		const timestamp = nextTimestamp(head);
		const orders: Order[] = [];
		const leftOut: LeftOutOrder[] = [];
		for (const order of book.liveFor(head.number + 1, await this.#goneBlocks())) {
			const reason = unfit(order, timestamp, refused);
			if (reason === null) orders.push(order);
			else leftOut.push({ order: order.id, uuid: order.uuid, reason, at: null });
		}
		const before = await this.#balanceAt(head.number);
		const chosen = await this.#choose(orders, { head, timestamp, balance: before });
		const tried = clock.monotonic();
		const { transactions } = chosen;
		const burst = await lock.during(() => node.mine({ head, coinbase, timestamp, transactions }));
		if (burst.outcome === "refused") for (const hash of burst.hashes) refused.add(hash);
		if (burst.outcome !== "mined") return null;
		const mined = clock.monotonic();
		const { block, publicTransactions } = burst;
		const built = new Set(chosen.orders.map(({ order }) => order));
		book.landed(built, { number: block.number, hash: block.hash }, new Set(block.transactions));
		return {
			...{ ...block, publicTransactions, orders: chosen.orders, leftOut: [...chosen.leftOut, ...leftOut] },
			coinbaseGain: (await this.#balanceAt(block.number)) - before,
			asTried: refused.size === 0 && (await this.#isAsTried(block, chosen)),
			...{ triedMs: tried - started, burstMs: mined - tried },
		};
	}

	/** `balance`: the coinbase's at the head, in wei. */
	async #choose(
		orders: readonly Order[],
		{ head, timestamp, balance }: Pick<BlockTerms, "head" | "timestamp"> & { readonly balance: bigint },
	): Promise<ChosenBlock> {
		if (orders.length === 0) return { transactions: [], reverted: new Set(), orders: [], leftOut: [] };
		const { chain, node, coinbase: wallet, chainId, refundGas } = this.#options;
		const transactions = orders.flatMap((order) => order.transactions);
		const tag = quantity(head.number);
		const senders = [...new Set(transactions.map(({ from }) => from)), wallet.address];
		const recipients = [
			...new Set(orders.flatMap(({ refunds }) => refunds.map(({ recipient }) => recipient))),
		];
		const found = await chain.all([
			...senders.map((address) => ({ method: "eth_getTransactionCount", params: [address, tag] })),
			...recipients.map((address) => ({ method: "eth_getCode", params: [address, tag] })),
		]);
		const counts = found.slice(0, senders.length).map(Number);
		const codes = found.slice(senders.length);
		const targets = transactions.flatMap(({ to }) => (to === null ? [] : [to]));
		const terms = { head, coinbase: wallet.address, timestamp };
		const hasBlobs = transactions.some(({ type }) => type === 3);
		await node.prepare(terms, [...senders, ...targets, ...recipients], hasBlobs);
		return chooseBlock({
			...{ orders, chainId, refundGas, baseFee: head.nextBaseFee, gasLimit: head.nextGasLimit },
			fork: await this.#forkOf({ number: head.number + 1, timestamp }),
			trialRoom: node.trialRoom,
			nonces: new Map(senders.map((address, i) => [address, counts[i] ?? 0])),
			coinbase: { wallet, nonce: counts.at(-1) ?? 0, balance },
			withCode: new Set(recipients.filter((_, i) => codes[i] !== "0x")),
			tryBlock: (pushed, gasLimit) => node.tryBlock(terms, pushed, gasLimit),
		});
	}

	/** The rules of the block, of which the node is asked as often as the schedule says. */
	async #forkOf(block: { readonly number: number; readonly timestamp: number }): Promise<Fork> {
		if (this.#forks.isDue(block)) {
			const [config] = await this.#options.chain.batch([{ method: "eth_config", params: [] }]);
			if (config?.ok === true) this.#forks.learn(config.result);
		}
		return this.#forks.at(block.timestamp);
	}

	/** Blocks in which orders landed, and which are no longer part of the chain. */
	async #goneBlocks(): Promise<Set<string>> {
		const { chain, book } = this.#options;
		const blocks = book.landedBlocks();
		const asked = blocks.map(({ number }) => [quantity(number), false]);
		const found = (await chain.each("eth_getBlockByNumber", asked)) as ({ hash: string } | null)[];
		return new Set(blocks.flatMap(({ hash }, i) => (found[i]?.hash === hash ? [] : [hash])));
	}

	async #isAsTried({ number, transactions }: MinedBlock, chosen: ChosenBlock): Promise<boolean> {
		if (chosen.transactions.length === 0) return true;
		const receipts = (await this.#options.chain.call("eth_getBlockReceipts", [quantity(number)])) as {
			status: string;
		}[];
		return chosen.transactions.every(
			({ hash }, i) =>
				transactions[i] === hash && (receipts[i]?.status === "0x1") !== chosen.reverted.has(hash),
		);
	}

	async #balanceAt(number: number): Promise<bigint> {
		const { chain, coinbase } = this.#options;
		return BigInt(String(await chain.call("eth_getBalance", [coinbase.address, quantity(number)])));
	}
}

/** Why an order can't be in the block, whatever a trial says; null if it may be. */
function unfit(
	{ minTimestamp, maxTimestamp, transactions }: Order,
	timestamp: number,
	refused: ReadonlySet<string>,
): LeftOutReason | null {
	if (timestamp < (minTimestamp ?? 0) || timestamp > (maxTimestamp ?? timestamp)) return "timestamp";
	return transactions.some(({ hash }) => refused.has(hash)) ? "invalid" : null;
}
