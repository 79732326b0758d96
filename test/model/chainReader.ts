// Reads the canonical chain since a sequence began, from the node itself, never from the relay.

import type { DevChain } from "../devnet/devChain.ts";
import type { ChainView, Mined } from "./modelTransaction.ts";

interface BlockPart {
	readonly hash: string;
	readonly mined: readonly (readonly [string, Mined])[];
}

export class ChainReader {
	readonly #chain: DevChain;
	readonly #addresses: readonly string[];
	/** The last block before the sequence: no reorganisation reaches it. */
	readonly base: number;
	readonly #blocks = new Map<string, BlockPart>();

	constructor(chain: DevChain, options: { readonly addresses: readonly string[]; readonly base: number }) {
		this.#chain = chain;
		this.#addresses = options.addresses;
		this.base = options.base;
	}

	/** What the chain holds now. */
	async view(): Promise<ChainView> {
		const head = Number(await this.#chain.rpc("eth_blockNumber"));
		const numbers = Array.from({ length: head - this.base }, (_, i) => this.base + 1 + i);
		const blocks = (await this.#all([
			...numbers.map((number) => ["eth_getBlockByNumber", [quantity(number), false]] as const),
		])) as { hash: string; transactions: string[] }[];
		const parts = await Promise.all(blocks.map((block, i) => this.#part(numbers[i] ?? 0, block)));
		const counts = await this.#all(
			this.#addresses.map((address) => ["eth_getTransactionCount", [address, "latest"]] as const),
		);
		return { head, nonces: counts.map(Number), mined: new Map(parts.flatMap(({ mined }) => mined)) };
	}

	/** Hashes of all transactions in the last `depth` blocks, in their order. */
	async last(depth: number): Promise<readonly string[]> {
		const head = Number(await this.#chain.rpc("eth_blockNumber"));
		const numbers = Array.from({ length: depth }, (_, i) => head - depth + 1 + i);
		const calls = numbers.map((number) => ["eth_getBlockByNumber", [quantity(number), false]] as const);
		return ((await this.#all(calls)) as { transactions: string[] }[]).flatMap(
			({ transactions }) => transactions,
		);
	}

	/** Each account's next nonce, the node's mempool counted. */
	async pendingCounts(): Promise<readonly number[]> {
		const calls = this.#addresses.map(
			(address) => ["eth_getTransactionCount", [address, "pending"]] as const,
		);
		return (await this.#all(calls)).map(Number);
	}

	/** Of these hashes those that the node itself knows, in its mempool or its chain. */
	async knows(hashes: readonly string[]): Promise<ReadonlySet<string>> {
		const found = await this.#all(hashes.map((hash) => ["eth_getTransactionByHash", [hash]] as const));
		return new Set(hashes.filter((_, i) => found[i] !== null));
	}

	async #part(
		number: number,
		{ hash, transactions }: { hash: string; transactions: string[] },
	): Promise<BlockPart> {
		const known = this.#blocks.get(hash);
		if (known !== undefined) return known;
		const receipts =
			transactions.length === 0
				? []
				: ((await this.#chain.rpc("eth_getBlockReceipts", [quantity(number)])) as {
						transactionHash: string;
						status: string;
					}[]);
		const mined = receipts.map(({ transactionHash, status }) => {
			return [transactionHash, { block: number, blockHash: hash, reverted: status !== "0x1" }] as const;
		});
		const part = { hash, mined };
		this.#blocks.set(hash, part);
		return part;
	}

	async #all(calls: readonly (readonly [string, readonly unknown[]])[]): Promise<unknown[]> {
		const outcomes = await this.#chain.batch(calls.map(([method, params]) => ({ method, params })));
		return outcomes.map((outcome) => {
			if (!outcome.ok) throw new Error(`the node refuses: ${outcome.message}`);
			return outcome.result;
		});
	}
}

function quantity(number: number): string {
	return `0x${number.toString(16)}`;
}
