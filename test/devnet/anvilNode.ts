// Builds blocks on anvil: tries them on a second anvil, a fork of the first at its head, and mines through the first one's pool.

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
	readonly #trial: TrialChain;
	readonly #checksBlobs: boolean;
	/** Both nodes are ready for blobs. */
	#isWarm = false;

	private constructor(chain: ChainRpc, trial: TrialChain, checksBlobs: boolean) {
		this.#chain = chain;
		this.#trial = trial;
		this.#checksBlobs = checksBlobs;
	}

	/** Takes the anvil at `url` (http), and starts the other one. */
	static async start(
		chain: ChainRpc,
		{ url, checksBlobs }: { readonly url: string; readonly checksBlobs: boolean },
	): Promise<AnvilNode> {
		return new AnvilNode(chain, await TrialChain.start(url), checksBlobs);
	}

	readHead(): Promise<ChainHead> {
		return readHead(this.#chain);
	}

	async prepare(terms: BlockTerms, addresses: readonly string[], hasBlobs: boolean): Promise<void> {
		if (hasBlobs && !this.#isWarm) {
			const ready = this.#checksBlobs ? warmKzg : takeBlobsUnchecked;
			await Promise.all([ready(this.#chain), this.#trial.forBlobs(ready)]);
			this.#isWarm = true;
		}
		await this.#trial.reset(terms, addresses);
	}

	tryBlock(terms: BlockTerms, transactions: readonly Pushed[], gasLimit: bigint): Promise<TriedBlock> {
		return this.#trial.tryBlock(terms, transactions, gasLimit);
	}

	mine(block: BlockToMine): Promise<MiningOutcome> {
		return mineBlock(this.#chain, block);
	}

	async fund(address: string, wei: bigint): Promise<void> {
		await this.#chain.call("anvil_setBalance", [address, quantity(wei)]);
	}

	stop(): Promise<void> {
		return this.#trial.stop();
	}
}
