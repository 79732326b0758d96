// Builds blocks on anvil: tries them on a second anvil, a fork of the first at its head, and mines
// through the first one's pool.

import { mineBlock } from "./anvilPool.ts";
import type {
	BlockTerms,
	BlockToMine,
	BuildingNode,
	MiningOutcome,
	Pushed,
	TriedBlock,
} from "./buildingNode.ts";
import { type ChainHead, type ChainRpc, quantity, readHead } from "./chainRpc.ts";
import { TrialChain, takeBlobsUnchecked, warmKzg } from "./trialChain.ts";

export class AnvilNode implements BuildingNode {
	readonly trialRoom = 4n;
	readonly #chain: ChainRpc;
	readonly #url: string;
	readonly #checksBlobs: boolean;
	/** The other anvil, from the first block with orders on: most builders never build one. */
	#trial: Promise<TrialChain> | null = null;
	/** Both nodes are ready for blobs. */
	#isWarm = false;

	/** Builds on the anvil at `url` (http). */
	constructor(
		chain: ChainRpc,
		{ url, checksBlobs }: { readonly url: string; readonly checksBlobs: boolean },
	) {
		this.#chain = chain;
		this.#url = url;
		this.#checksBlobs = checksBlobs;
	}

	readHead(): Promise<ChainHead> {
		return readHead(this.#chain);
	}

	async prepare(terms: BlockTerms, addresses: readonly string[], hasBlobs: boolean): Promise<void> {
		this.#trial ??= TrialChain.start(this.#url);
		const trial = await this.#trial;
		if (hasBlobs && !this.#isWarm) {
			const ready = this.#checksBlobs ? warmKzg : takeBlobsUnchecked;
			await Promise.all([ready(this.#chain), trial.forBlobs(ready)]);
			this.#isWarm = true;
		}
		await trial.reset(terms, addresses);
	}

	async tryBlock(terms: BlockTerms, transactions: readonly Pushed[], gasLimit: bigint): Promise<TriedBlock> {
		if (this.#trial === null) throw new Error("the block was not prepared");
		return (await this.#trial).tryBlock(terms, transactions, gasLimit);
	}

	mine(block: BlockToMine): Promise<MiningOutcome> {
		return mineBlock(this.#chain, block);
	}

	async fund(address: string, wei: bigint): Promise<void> {
		await this.#chain.call("anvil_setBalance", [address, quantity(wei)]);
	}

	async stop(): Promise<void> {
		const trial = await this.#trial?.catch(() => null);
		await trial?.stop();
	}
}
