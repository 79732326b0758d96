// The coinbases of the last blocks. Nobody knows whose the next block will be, so a simulated one is drawn from them: as
// often as they came, with what they really hold, so that no contract can tell the one from the other.

import { randomInt } from "node:crypto";
import { readQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Logger } from "../../shared/log.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import { fieldsOf, readAddress } from "../domain/nodeJson.ts";

/** Blocks that are remembered. */
const BLOCKS = 64;
const READ_MS = 5_000;

/** Who was paid for the last 64 canonical blocks. */
export class Coinbases {
	/** By block number, lower case. */
	readonly #miners = new Map<number, string>();

	/** Asks the node for those before the relay's start. Without an answer there are those of the blocks that come. */
	async read(node: Pick<JsonRpcClient, "call" | "batch">, log: Logger): Promise<void> {
		try {
			const answer = await node.call({ method: "eth_blockNumber", params: [] }, READ_MS);
			const head = Number((answer.ok ? readQuantity(answer.result) : null) ?? 0n);
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
			log.warn("the coinbases of the last blocks are not known yet", { code: thrown.code });
		}
	}

	/** Takes a change of the canonical chain. */
	blocksCame({ reverted, applied }: Pick<ChainUpdate, "reverted" | "applied">): void {
		for (const { number } of reverted) this.#miners.delete(number);
		for (const { number, miner } of applied) this.#miners.set(number, miner);
		const newest = Math.max(...this.#miners.keys());
		for (const number of this.#miners.keys()) {
			// Nobody made the genesis.
			if (number <= newest - BLOCKS || (number === 0 && newest > 0)) this.#miners.delete(number);
		}
	}

	/** One of them, by chance, lower case; before the first block nobody's. */
	draw(): string {
		const miners = [...this.#miners.values()];
		return miners[randomInt(Math.max(miners.length, 1))] ?? `0x${"0".repeat(40)}`;
	}
}
