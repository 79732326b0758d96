// The chain of a sequence: blocks that are built or pass, reorganisations, and what others than the
// relay bring to its node and its builder, each done to the real chain first; and what the chain
// then holds, read from the node itself.

import type { Wallet } from "ethers";
import { BuilderClient } from "../devnet/builderClient.ts";
import type { DevChain } from "../devnet/devChain.ts";
import { REVERTS } from "../support/contracts.ts";
import type { TestSystem } from "../support/systems.ts";
import type { Moment, SendRules } from "./builders.ts";
import {
	type ChainView,
	type ControlModel,
	type Mined,
	type ModelTx,
	type SignedTx,
	short,
} from "./model.ts";

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

	/** The current state of the chain. */
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

	/** The hashes among these that the node itself knows, in its mempool or its chain. */
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

export interface BlocksDependencies {
	readonly system: TestSystem;
	readonly model: ControlModel;
	readonly chain: ChainReader;
	readonly sends: SendRules;
	/** Address of the contract that reverts while it is shut. */
	readonly gate: string;
	/** Sends to builders beside the relay. */
	readonly stranger: Wallet;
	/** The bytes of a transaction of this sequence. */
	readonly rawOf: (hash: string) => string | undefined;
}

/** The gate's code while it is open: it does nothing. */
export const OPEN = "0x00";

export class Blocks {
	readonly #dependencies: BlocksDependencies;
	/** Brought to the node or to a builder by others than the relay. */
	readonly #foreign = new Map<string, SignedTx>();

	constructor(dependencies: BlocksDependencies) {
		this.#dependencies = dependencies;
	}

	/** Puts it into the node's mempool; what the node makes of it is the node's. */
	async publish(tx: SignedTx): Promise<string> {
		const sent = await this.#dependencies.system.chain
			.rpc("eth_sendRawTransaction", [tx.raw])
			.catch(() => null);
		if (sent === null) return `${short(tx)} not taken by the node`;
		this.#foreign.set(tx.hash, tx);
		return `${short(tx)} published`;
	}

	/** Gives it to the builder that builds, as a stranger who has it too. */
	async push(tx: SignedTx): Promise<string> {
		const { builder } = this.#dependencies.system;
		const client = new BuilderClient({ url: builder.url, wallet: this.#dependencies.stranger });
		await client.call("eth_sendPrivateRawTransaction", tx.raw);
		this.#foreign.set(tx.hash, tx);
		return `${short(tx)} pushed`;
	}

	/** Has the next block built of what the builder holds and the mempool has. */
	async build(): Promise<string> {
		const due = this.#dependencies.model.all().filter(isUnavailable);
		const possible = this.#dependencies.model
			.all()
			.filter((tx) => this.#dependencies.sends.mayBeBuilt(this.#dependencies.model, tx));
		const foreign = [...this.#foreign.values()];
		const before = this.#dependencies.sends.now();
		const { transactions } = await this.#dependencies.system.builder.buildBlock();
		const inIt = new Set(transactions);
		// Another one that uses its nonce, or one before it, may keep it out.
		const rivals = (tx: ModelTx) =>
			foreign.some(({ account, nonce }) => account === tx.account && nonce <= tx.nonce);
		const missing = due.filter((tx) => !inIt.has(tx.hash) && !rivals(tx));
		if (missing.length > 0) throw new Error(`the block lacks ${missing.map(short).join(", ")}`);
		const fine = new Set([...possible, ...due, ...foreign].map(({ hash }) => hash));
		const strange = transactions.filter(
			(hash) => !fine.has(hash) && this.#dependencies.model.get(hash) !== undefined,
		);
		if (strange.length > 0) throw new Error(`the block holds what is not out: ${strange.join(", ")}`);
		await this.#follow(before);
		return `block of ${transactions.length}`;
	}

	/** Mines a block of the mempool alone; with `gate` that opens or shuts before it. */
	async pass(gate?: "open" | "shut"): Promise<string> {
		if (gate !== undefined) this.#dependencies.model.gateOpen = gate === "open";
		const before = this.#dependencies.sends.now();
		await this.#unseen(async () => {
			await this.#setGate();
			await this.#mine();
		});
		await this.#follow(before);
		return `head ${this.#dependencies.model.chain.head}`;
	}

	/**
	 * The last `depth` blocks go, as far as they are of this sequence; the first `kept` of the
	 * transactions in them come again in the first new block. A block more comes behind that, unless
	 * `sameHeight` and the relay shows that it has seen it by sending again what was mined.
	 */
	async reorganise(depth: number, kept: number, sameHeight: boolean): Promise<string> {
		const { model } = this.#dependencies;
		const blocks = Math.min(depth, model.chain.head - this.#dependencies.chain.base);
		if (blocks === 0) return "nothing to reorganise";
		const gone = (await this.#dependencies.chain.last(blocks)).slice(0, kept);
		const raws = gone.flatMap((hash) => this.#dependencies.rawOf(hash) ?? []);
		const before = this.#dependencies.sends.now();
		await this.#unseen(async () => {
			await this.#dependencies.system.chain.rpc("anvil_reorg", [blocks, raws.map((raw) => [raw, 0])]);
			await this.#setGate();
			const after = model.copy();
			after.moveTo(await this.#dependencies.chain.view());
			const isSeen = after.all().some((tx) => model.mined(tx) !== undefined && isUnavailable(tx));
			if (!sameHeight || !isSeen) await this.#mine();
		});
		await this.#follow(before);
		return `${blocks} blocks gone, ${raws.length} transactions kept`;
	}

	/** Tells the model what the chain is now. */
	async #follow(before: Moment): Promise<void> {
		const { model, chain, sends } = this.#dependencies;
		const { head } = model.chain;
		model.moveTo(await chain.view());
		if (model.chain.head !== head) sends.moved(before);
	}

	/** Runs `act` so that the relay sees all of it at once. */
	async #unseen(act: () => Promise<void>): Promise<void> {
		const release = this.#dependencies.system.node?.hold();
		await act().finally(release);
	}

	async #mine(): Promise<void> {
		const { chain } = this.#dependencies.system;
		const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		await chain.rpc("evm_mine", [{ timestamp: Number(head.timestamp) + chain.slotSeconds }]);
	}

	/** Sets the gate to its state again: anvil takes it back with a block. */
	async #setGate(): Promise<void> {
		await this.#dependencies.system.chain.rpc("anvil_setCode", [
			this.#dependencies.gate,
			this.#dependencies.model.gateOpen ? OPEN : REVERTS,
		]);
	}
}

/** It is to be sent for the next block. */
function isUnavailable({ now }: ModelTx): boolean {
	return now === "send" || now === "sendPrivately";
}
