// The chain as the independent node or the fallback tells it, for subscribers to heads and logs while the relay is out.

import { LRUCache } from "lru-cache";
import { readQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import { type Log, type LogFilter, takes } from "../../shared/jsonrpc/logs.ts";
import type { ChainReads } from "../domain/ports.ts";

/** A block as a node tells it. */
export type ToldBlock = Readonly<Record<string, unknown>> & {
	readonly number: string;
	readonly hash: string;
	readonly parentHash: string;
};

/** Blocks that are remembered, and that one look catches up with at most. */
const KEPT_BLOCKS = 64;
const READ_MS = 2_000;
const ANY: LogFilter = { address: [], topics: [] };

/** Follows the head. */
export class ChainFollower {
	readonly #chain: ChainReads;
	/** The newest last. */
	#known: readonly ToldBlock[] = [];
	/** Those of them that have come since the first look. */
	#recent: readonly ToldBlock[] = [];
	#left: readonly ToldBlock[] = [];
	#looking: Promise<void> | null = null;
	/** Of the blocks that were asked for last: many want some of them. */
	readonly #logs = new LRUCache<string, Promise<readonly Log[] | null>>({ max: KEPT_BLOCKS });

	constructor(dependencies: { readonly chain: ChainReads }) {
		this.#chain = dependencies.chain;
	}

	/** The newest blocks that have come since the first look, the oldest first. */
	get recent(): readonly ToldBlock[] {
		return this.#recent;
	}

	/** Those that have left the chain since then, each chain's newest first. */
	get left(): readonly ToldBlock[] {
		return this.#left;
	}

	/** Learns what is new. */
	look(): Promise<void> {
		this.#looking ??= this.#look().finally(() => {
			this.#looking = null;
		});
		return this.#looking;
	}

	async #look(): Promise<void> {
		const latest = await this.#block("eth_getBlockByNumber", "latest");
		if (latest === null || this.#known.some(({ hash }) => hash === latest.hash)) return;
		if (this.#known.length === 0) {
			this.#known = [latest];
			return;
		}
		const added = [latest];
		let at = this.#indexOf(latest.parentHash);
		while (at === -1 && added.length < KEPT_BLOCKS) {
			const parent = await this.#block("eth_getBlockByHash", added[0]?.parentHash ?? "");
			if (parent === null) return;
			added.unshift(parent);
			at = this.#indexOf(parent.parentHash);
		}
		// Too far behind to know what has left the chain.
		const left = at === -1 ? [] : this.#known.slice(at + 1).reverse();
		this.#left = [...this.#left, ...left].slice(-KEPT_BLOCKS);
		this.#known = [...this.#known.slice(0, at + 1), ...added].slice(-KEPT_BLOCKS);
		this.#recent = [...this.#recent.filter((one) => !left.includes(one)), ...added].slice(-KEPT_BLOCKS);
	}

	/** The logs of one block that `filter` takes; null where nobody tells. */
	async logs({ hash }: ToldBlock, filter: LogFilter): Promise<readonly Log[] | null> {
		const asked = this.#logs.get(hash) ?? this.#ask(hash);
		this.#logs.set(hash, asked);
		const logs = await asked;
		if (logs === null) this.#logs.delete(hash);
		return logs?.filter((log) => takes(filter, log)) ?? null;
	}

	/** Whether somebody tells heads and logs. */
	async canTell(): Promise<boolean> {
		const latest = await this.#block("eth_getBlockByNumber", "latest");
		return latest !== null && (await this.logs(latest, ANY)) !== null;
	}

	/** Forgets the chain: what was while nobody asked is nobody's. */
	reset(): void {
		this.#known = [];
		this.#recent = [];
		this.#left = [];
	}

	async #ask(blockHash: string): Promise<readonly Log[] | null> {
		const call = { method: "eth_getLogs", params: [{ blockHash }] };
		const [answer] = (await this.#chain.batch([call], READ_MS)) ?? [];
		return answer?.ok === true && Array.isArray(answer.result) ? (answer.result as Log[]) : null;
	}

	#indexOf(hash: string): number {
		return this.#known.findIndex((one) => one.hash === hash);
	}

	async #block(method: string, which: string): Promise<ToldBlock | null> {
		const [answer] = (await this.#chain.batch([{ method, params: [which, false] }], READ_MS)) ?? [];
		const block = (answer?.ok === true ? answer.result : null) as Partial<ToldBlock> | null;
		const number = readQuantity(block?.number);
		if (number === null || typeof block?.hash !== "string" || typeof block.parentHash !== "string")
			return null;
		return { ...block, number: toQuantity(number), hash: block.hash, parentHash: block.parentHash };
	}
}
