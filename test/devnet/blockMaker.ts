// Makes the chain's next block: chosen from the order book on the trial chain, mined in one burst. It neither speaks
// to clients nor knows when a block is due.

import type { Wallet } from "ethers";
import type { Clock } from "../../shared/clock.ts";
import {
	type BuiltOrder,
	type ChosenBlock,
	chooseBlock,
	type LeftOutOrder,
	type LeftOutReason,
} from "./blockBuilding.ts";
import { mineBlock } from "./blockBurst.ts";
import { type ChainHead, quantity, readHead, readNonces } from "./chainHead.ts";
import type { ChainRpc } from "./chainRpc.ts";
import type { Order, OrderBook } from "./orderBook.ts";
import { type TrialChain, warmKzg } from "./trialChain.ts";

/** A block as it was built. */
export interface BuiltBlock {
	readonly number: number;
	readonly hash: string;
	/** Unix seconds. */
	readonly timestamp: number;
	/** Wei. */
	readonly baseFeePerGas: bigint;
	readonly gasUsed: bigint;
	/** All transactions of the block in order: hashes. */
	readonly transactions: readonly string[];
	/** What is in it of bundles and private transactions, in order. */
	readonly orders: readonly BuiltOrder[];
	/** Public mempool transactions in the block, hashes: they are behind all others. */
	readonly publicTransactions: readonly string[];
	/** Live orders that stayed out. */
	readonly leftOut: readonly LeftOutOrder[];
	/** What the coinbase has more after the block than before, wei (refunds and their gas subtracted). */
	readonly coinbaseGain: bigint;
	/** Whether chain and trial agree in every transaction of the orders; false is a defect, or a test's doing. */
	readonly asTried: boolean;
	/** Wall time of choosing and of the burst, ms. */
	readonly triedMs: number;
	readonly burstMs: number;
}

/** What a maker of blocks is made with. */
export interface BlockMakerOptions {
	readonly coinbase: Wallet;
	readonly chainId: bigint;
	/** Gas, at the base fee, that each refund bears itself. */
	readonly refundGas: bigint;
	/** Unix seconds of the block after one with the given timestamp. */
	readonly nextTimestamp: (parent: number) => number;
}

export interface BlockMakerDependencies {
	readonly chain: ChainRpc;
	readonly trial: TrialChain;
	readonly book: OrderBook;
	readonly clock: Clock;
	/** Runs the burst; nothing else that must not see it runs at that time. */
	readonly duringBurst: <T>(fn: () => Promise<T>) => Promise<T>;
}

/** When the head moves while a block is chosen, it is chosen again; so often. */
const MAX_ATTEMPTS = 5;

/** Builds blocks, one at a time. */
export class BlockMaker {
	readonly #options: BlockMakerOptions;
	readonly #dependencies: BlockMakerDependencies;
	/** Both nodes are ready for blobs. */
	#warm = false;

	constructor(options: BlockMakerOptions, dependencies: BlockMakerDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
	}

	/** Builds the block after the head. Throws when the chain fails, or does not hold still. */
	async build(): Promise<BuiltBlock> {
		// What the chain refuses though it went through in the trial: it shall not hold up the chain.
		const refused = new Set<string>();
		for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
			const built = await this.#tryBuild(refused);
			if (built !== null) return built;
		}
		throw new Error("the head of the chain moves faster than blocks are built");
	}

	async #tryBuild(refused: Set<string>): Promise<BuiltBlock | null> {
		const { chain, book, clock, duringBurst } = this.#dependencies;
		const coinbase = this.#options.coinbase.address;
		const started = clock.monotonic();
		const head = await readHead(chain);
		const timestamp = this.#options.nextTimestamp(head.timestamp);
		const live = book.liveFor(head.number + 1, await this.#goneBlocks());
		const [untimely, timely] = split(live, (order) => isInTime(order, timestamp));
		const [doubtful, orders] = split(timely, ({ transactions }) =>
			transactions.every(({ hash }) => !refused.has(hash)),
		);
		const chosen = await this.#choose(orders, head, timestamp);
		const before = await balanceOf(chain, coinbase, head.number);
		const tried = clock.monotonic();
		const burst = await duringBurst(() =>
			mineBlock(chain, { head, coinbase, timestamp, transactions: chosen.transactions }),
		);
		if (burst.outcome === "refused") for (const hash of burst.hashes) refused.add(hash);
		if (burst.outcome !== "mined") return null;
		const mined = clock.monotonic();
		const { block, publicTransactions } = burst;
		const landed = { number: block.number, hash: block.hash };
		book.landed(new Set(chosen.orders.map(({ order }) => order)), landed, new Set(block.transactions));
		return {
			...block,
			orders: chosen.orders,
			publicTransactions,
			leftOut: [
				...chosen.leftOut,
				...untimely.map((order) => leftOut(order, "timestamp")),
				...doubtful.map((order) => leftOut(order, "invalid")),
			],
			coinbaseGain: (await balanceOf(chain, coinbase, block.number)) - before,
			asTried: refused.size === 0 && (await this.#isAsTried(block, chosen)),
			triedMs: tried - started,
			burstMs: mined - tried,
		};
	}

	async #choose(orders: readonly Order[], head: ChainHead, timestamp: number): Promise<ChosenBlock> {
		if (orders.length === 0) return { transactions: [], reverted: new Set(), orders: [], leftOut: [] };
		const { chain, trial } = this.#dependencies;
		const { coinbase: wallet, chainId, refundGas } = this.#options;
		const transactions = orders.flatMap((order) => order.transactions);
		if (!this.#warm && transactions.some(({ type }) => type === 3)) {
			await Promise.all([warmKzg(chain), trial.warmKzg()]);
			this.#warm = true;
		}
		const senders = [...new Set(transactions.map(({ from }) => from)), wallet.address];
		const recipients = [
			...new Set(orders.flatMap(({ refunds }) => refunds.map(({ recipient }) => recipient))),
		];
		const targets = transactions.flatMap(({ to }) => (to === null ? [] : [to]));
		const nonces = await readNonces(chain, senders, head.number);
		await trial.reset({ head, coinbase: wallet.address, timestamp }, [...senders, ...targets, ...recipients]);
		return chooseBlock({
			orders,
			nonces,
			gasLimit: head.nextGasLimit,
			account: {
				nonce: nonces.get(wallet.address) ?? 0,
				balance: await balanceOf(chain, wallet.address, head.number),
			},
			refundTerms: {
				wallet,
				chainId,
				baseFee: head.nextBaseFee,
				refundGas,
				withCode: await withCode(chain, recipients, head.number),
			},
			tryBlock: (pushed, gasLimit) => trial.tryBlock(pushed, gasLimit),
		});
	}

	/** Blocks that orders have landed in and that are no longer part of the chain. */
	async #goneBlocks(): Promise<Set<string>> {
		const { chain, book } = this.#dependencies;
		const blocks = book.landedBlocks();
		const calls = blocks.map(({ number }) => ({
			method: "eth_getBlockByNumber",
			params: [quantity(number), false],
		}));
		const found = (await chain.all(calls)) as ({ hash: string } | null)[];
		return new Set(blocks.flatMap(({ hash }, i) => (found[i]?.hash === hash ? [] : [hash])));
	}

	async #isAsTried(
		block: { readonly number: number; readonly transactions: readonly string[] },
		chosen: ChosenBlock,
	): Promise<boolean> {
		if (chosen.transactions.some(({ hash }, i) => block.transactions[i] !== hash)) return false;
		const receipts = (await this.#dependencies.chain.call("eth_getBlockReceipts", [
			quantity(block.number),
		])) as { transactionHash: string; status: string }[];
		return chosen.transactions.every(
			({ hash }, i) => (receipts[i]?.status === "0x1") !== chosen.reverted.has(hash),
		);
	}
}

function isInTime({ minTimestamp, maxTimestamp }: Order, timestamp: number): boolean {
	return timestamp >= (minTimestamp ?? 0) && timestamp <= (maxTimestamp ?? timestamp);
}

function leftOut({ id, uuid }: Order, reason: LeftOutReason): LeftOutOrder {
	return { order: id, uuid, reason, at: null };
}

/** Those that do not pass, and those that do. */
function split<T>(items: readonly T[], passes: (item: T) => boolean): [T[], T[]] {
	return [items.filter((item) => !passes(item)), items.filter(passes)];
}

async function balanceOf(chain: ChainRpc, address: string, number: number): Promise<bigint> {
	return BigInt(String(await chain.call("eth_getBalance", [address, quantity(number)])));
}

async function withCode(chain: ChainRpc, addresses: readonly string[], number: number): Promise<Set<string>> {
	const tag = quantity(number);
	const codes = await chain.all(
		addresses.map((address) => ({ method: "eth_getCode", params: [address, tag] })),
	);
	return new Set(addresses.filter((_, i) => codes[i] !== "0x"));
}
