// What happens to the chain in a sequence: blocks that are built or pass, reorganisations, and what others than the
// relay bring to its node and its builder. Each is done to the real chain, and then told to the model.

import type { Wallet } from "ethers";
import { BuilderClient } from "../devnet/builderClient.ts";
import { REVERTS } from "../support/contracts.ts";
import type { TestSystem } from "../support/systems.ts";
import type { ChainReader } from "./chainReader.ts";
import type { ControlModel } from "./model.ts";
import { type ModelTx, type SignedTx, short } from "./modelTransaction.ts";
import type { Moment, SendRules } from "./sendRules.ts";

export interface BlocksDependencies {
	readonly system: TestSystem;
	readonly model: ControlModel;
	readonly chain: ChainReader;
	readonly sends: SendRules;
	/** Address of the contract that reverts while it is shut. */
	readonly gate: string;
	/** Who sends to builders beside the relay. */
	readonly stranger: Wallet;
	/** The bytes of a transaction of this sequence. */
	readonly rawOf: (hash: string) => string | undefined;
}

/** The gate's code while it is open: it does nothing. */
export const OPEN = "0x00";

export class Blocks {
	readonly #deps: BlocksDependencies;
	/** Brought to the node or to a builder by others than the relay. */
	readonly #foreign = new Map<string, SignedTx>();

	constructor(dependencies: BlocksDependencies) {
		this.#deps = dependencies;
	}

	/** Puts it into the node's mempool; what the node makes of it is the node's. */
	async publish(tx: SignedTx): Promise<string> {
		const sent = await this.#deps.system.chain.rpc("eth_sendRawTransaction", [tx.raw]).catch(() => null);
		if (sent === null) return `${short(tx)} not taken by the node`;
		this.#foreign.set(tx.hash, tx);
		return `${short(tx)} published`;
	}

	/** Gives it to the builder that builds, as a stranger who has it too. */
	async push(tx: SignedTx): Promise<string> {
		const { builder } = this.#deps.system;
		const client = new BuilderClient({ url: builder.url, wallet: this.#deps.stranger });
		await client.call("eth_sendPrivateRawTransaction", tx.raw);
		this.#foreign.set(tx.hash, tx);
		return `${short(tx)} pushed`;
	}

	/** Has the next block built of what the builder holds and the mempool has. */
	async build(): Promise<string> {
		const due = this.#deps.model.all().filter(isUnavailable);
		const possible = this.#deps.model.all().filter((tx) => this.#deps.sends.mayBeBuilt(this.#deps.model, tx));
		const foreign = [...this.#foreign.values()];
		const before = this.#deps.sends.now();
		const { transactions } = await this.#deps.system.builder.buildBlock();
		const inIt = new Set(transactions);
		// Another one that uses its nonce, or one before it, may keep it out.
		const rivals = (tx: ModelTx) =>
			foreign.some(({ account, nonce }) => account === tx.account && nonce <= tx.nonce);
		const missing = due.filter((tx) => !inIt.has(tx.hash) && !rivals(tx));
		if (missing.length > 0) throw new Error(`the block lacks ${missing.map(short).join(", ")}`);
		const fine = new Set([...possible, ...due, ...foreign].map(({ hash }) => hash));
		const strange = transactions.filter(
			(hash) => !fine.has(hash) && this.#deps.model.get(hash) !== undefined,
		);
		if (strange.length > 0) throw new Error(`the block holds what is not out: ${strange.join(", ")}`);
		await this.#follow(before);
		return `block of ${transactions.length}`;
	}

	/** Mines a block of the mempool alone; with `gate` that opens or shuts before it. */
	async pass(gate?: "open" | "shut"): Promise<string> {
		if (gate !== undefined) this.#deps.model.gateOpen = gate === "open";
		const before = this.#deps.sends.now();
		await this.#unseen(async () => {
			await this.#setGate();
			await this.#mine();
		});
		await this.#follow(before);
		return `head ${this.#deps.model.chain.head}`;
	}

	/**
	 * The last `depth` blocks go, as far as they are of this sequence; the first `kept` of the transactions in them come
	 * again in the first new block. A block more comes behind that, unless `sameHeight` and the relay shows that it has
	 * seen it by sending again what was mined.
	 */
	async reorganise(depth: number, kept: number, sameHeight: boolean): Promise<string> {
		const { model } = this.#deps;
		const blocks = Math.min(depth, model.chain.head - this.#deps.chain.base);
		if (blocks === 0) return "nothing to reorganise";
		const gone = (await this.#deps.chain.last(blocks)).slice(0, kept);
		const raws = gone.flatMap((hash) => this.#deps.rawOf(hash) ?? []);
		const before = this.#deps.sends.now();
		await this.#unseen(async () => {
			await this.#deps.system.chain.rpc("anvil_reorg", [blocks, raws.map((raw) => [raw, 0])]);
			await this.#setGate();
			const after = model.copy();
			after.moveTo(await this.#deps.chain.view());
			const isSeen = after.all().some((tx) => model.mined(tx) !== undefined && isUnavailable(tx));
			if (!sameHeight || !isSeen) await this.#mine();
		});
		await this.#follow(before);
		return `${blocks} blocks gone, ${raws.length} transactions kept`;
	}

	/** Tells the model what the chain is now. */
	async #follow(before: Moment): Promise<void> {
		const { model, chain, sends } = this.#deps;
		const { head } = model.chain;
		model.moveTo(await chain.view());
		if (model.chain.head !== head) sends.moved(before);
	}

	/** What is done in it, the relay sees all at once. */
	async #unseen(act: () => Promise<void>): Promise<void> {
		const release = this.#deps.system.node?.hold();
		await act().finally(release);
	}

	async #mine(): Promise<void> {
		const { chain } = this.#deps.system;
		const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		await chain.rpc("evm_mine", [{ timestamp: Number(head.timestamp) + chain.slotSeconds }]);
	}

	/** What anvil takes back with a block, and the gate must be in its state again. */
	async #setGate(): Promise<void> {
		await this.#deps.system.chain.rpc("anvil_setCode", [
			this.#deps.gate,
			this.#deps.model.gateOpen ? OPEN : REVERTS,
		]);
	}
}

/** It is to be sent for the next block. */
function isUnavailable({ now }: ModelTx): boolean {
	return now === "send" || now === "sendPrivately";
}
