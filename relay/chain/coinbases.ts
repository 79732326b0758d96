// The coinbases of the last 64 blocks. The next block's coinbase is not known beforehand, so
// simulations draw one of these, each in proportion to its frequency. So contracts can't recognise
// a simulation by an unusual coinbase or balance.

import { randomInt } from "node:crypto";
import { parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Logger } from "../../shared/log.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import { fieldsOf, readAddress } from "../domain/nodeJson.ts";

/** Blocks that are remembered. */
const BLOCKS = 64;
const READ_MS = 5_000;

export class Coinbases {
	/** By block number, lower case. */
	readonly #miners = new Map<number, string>();

	/** Reads the blocks before the relay's start. If the node fails, only new blocks are known. */
	async read(node: Pick<JsonRpcClient, "call" | "batch">, log: Logger): Promise<void> {
		try {
			const answer = await node.call({ method: "eth_blockNumber", params: [] }, READ_MS);
			const head = Number((answer.ok ? parseNodeQuantity(answer.result) : null) ?? 0n);
			const numbers = Array.from({ length: BLOCKS }, (_, i) => head - i).filter((number) => number > 0);
			const params = numbers.map((number) => [toQuantity(number), false]);
			const calls = params.map((block) => ({ method: "eth_getBlockByNumber", params: block }));
			const answers = calls.length === 0 ? [] : await node.batch(calls, READ_MS);
			for (const [i, number] of numbers.entries()) {
				const block = answers[i];
				const miner = block?.ok === true ? readAddress(fieldsOf(block.result)?.miner) : null;
				if (miner !== null) this.#miners.set(number, miner);
			}
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			log.warn("could not read the coinbases of the last blocks", { code: thrown.code });
		}
	}

	/** Applies a change of the canonical chain. */
	blocksCame({ reverted, applied }: Pick<ChainUpdate, "reverted" | "applied">): void {
		for (const { number } of reverted) this.#miners.delete(number);
		for (const { number, miner } of applied) this.#miners.set(number, miner);
		const newest = Math.max(...this.#miners.keys());
		for (const number of this.#miners.keys()) {
			// The genesis block has no real coinbase.
			if (number <= newest - BLOCKS || (number === 0 && newest > 0)) this.#miners.delete(number);
		}
	}

	/** A random coinbase in lower case; the zero address before the first block. */
	draw(): string {
		const miners = [...this.#miners.values()];
		return miners[randomInt(Math.max(miners.length, 1))] ?? `0x${"0".repeat(40)}`;
	}
}
