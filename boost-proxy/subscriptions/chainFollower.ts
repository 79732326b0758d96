// Follows new blocks and their logs at the node or the fallback, for subscribers while the relay is
// unavailable.

import { LRUCache } from "lru-cache";
import { parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import { headerOf } from "../../shared/ethereum/rpcObjects.ts";
import { type LogTable, readLogs } from "../../shared/jsonrpc/logTable.ts";
import type { ChainReads, ReportedHeads } from "../domain/ports.ts";

/** A node's block object. */
export type ChainBlock = Readonly<Record<string, unknown>> & {
	readonly number: string;
	readonly hash: string;
	readonly parentHash: string;
};

/** The maximum number of blocks that are remembered, and that one update catches up with. */
const KEPT_BLOCKS = 64;
const READ_MS = 2_000;
/** The logs kept in memory, in bytes. */
const KEPT_BYTES = 16 * 1024 * 1024;
/** The size of a block's entry without logs, in bytes. */
const ENTRY_BYTES = 1_024;

export interface FollowerDependencies {
	readonly chain: ChainReads;
	readonly reported: Pick<ReportedHeads, "height">;
}

export class ChainFollower {
	readonly #chain: ChainReads;
	readonly #dependencies: FollowerDependencies;
	/** Oldest first. */
	#known: readonly ChainBlock[] = [];
	/** Those of them that are newer than the first update. */
	#recent: readonly ChainBlock[] = [];
	#left: readonly ChainBlock[] = [];
	#updating: Promise<void> | null = null;
	/** By block, since many subscribers need the same logs. */
	readonly #logs = new LRUCache<string, LogTable>({
		max: KEPT_BLOCKS,
		maxSize: KEPT_BYTES,
		sizeCalculation: ({ bytes }) => bytes + ENTRY_BYTES,
	});
	readonly #reading = new Map<string, Promise<LogTable | null>>();
	/** As JSON, once for all subscribers. */
	readonly #headers = new WeakMap<ChainBlock, string>();

	constructor(dependencies: FollowerDependencies) {
		this.#chain = dependencies.chain;
		this.#dependencies = dependencies;
	}

	/** The newest blocks since the first update, oldest first. */
	get recent(): readonly ChainBlock[] {
		return this.#recent;
	}

	/** Blocks removed by reorganisations since then, newest first within each. */
	get left(): readonly ChainBlock[] {
		return this.#left;
	}

	/** The highest number that clients may have received. */
	get #height(): number {
		return this.#dependencies.reported.height ?? Number(this.#known.at(-1)?.number ?? 0);
	}

	/** Reads new blocks. */
	update(): Promise<void> {
		this.#updating ??= this.#readNew().finally(() => {
			this.#updating = null;
		});
		return this.#updating;
	}

	async #readNew(): Promise<void> {
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
		// A source that is so far behind may be on the same chain, at an earlier time.
		if (at === -1 && Number(latest.number) < this.#height) return;
		// If it is too far ahead, it is unknown which blocks were removed.
		const left = at === -1 ? [] : this.#known.slice(at + 1).reverse();
		this.#left = [...this.#left, ...left].slice(-KEPT_BLOCKS);
		this.#known = [...this.#known.slice(0, at + 1), ...added].slice(-KEPT_BLOCKS);
		this.#recent = [...this.#recent.filter((one) => !left.includes(one)), ...added].slice(-KEPT_BLOCKS);
	}

	/** The header of a block as JSON. */
	header(block: ChainBlock): string {
		const known = this.#headers.get(block) ?? JSON.stringify(headerOf(block));
		this.#headers.set(block, known);
		return known;
	}

	/** The logs of one block; null if they are unreadable. */
	async logs({ hash }: ChainBlock): Promise<LogTable | null> {
		const known = this.#logs.get(hash) ?? this.#reading.get(hash);
		if (known !== undefined) return known;
		const reading = this.#ask(hash).finally(() => this.#reading.delete(hash));
		this.#reading.set(hash, reading);
		const table = await reading;
		if (table !== null) this.#logs.set(hash, table);
		return table;
	}

	/** Whether heads and logs are readable. */
	async isReadable(): Promise<boolean> {
		const latest = await this.#block("eth_getBlockByNumber", "latest");
		return latest !== null && (await this.logs(latest)) !== null;
	}

	/** Forgets the chain, when there are no subscribers left. */
	reset(): void {
		this.#known = [];
		this.#recent = [];
		this.#left = [];
	}

	async #ask(blockHash: string): Promise<LogTable | null> {
		const call = { method: "eth_getLogs", params: [{ blockHash }] };
		const [answer] = (await this.#chain.batch([call], READ_MS)) ?? [];
		return answer?.ok === true ? readLogs(answer.result) : null;
	}

	#indexOf(hash: string): number {
		return this.#known.findIndex((one) => one.hash === hash);
	}

	async #block(method: string, which: string): Promise<ChainBlock | null> {
		const [answer] = (await this.#chain.batch([{ method, params: [which, false] }], READ_MS)) ?? [];
		const block = (answer?.ok === true ? answer.result : null) as Partial<ChainBlock> | null;
		const number = parseNodeQuantity(block?.number);
		if (number === null || typeof block?.hash !== "string" || typeof block.parentHash !== "string")
			return null;
		return { ...block, number: toQuantity(number), hash: block.hash, parentHash: block.parentHash };
	}
}
