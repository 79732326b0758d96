// The logs of blocks, each asked for once however many clients want some of them, and told to `logs` subscribers as the
// chain changes: those of blocks that left it come again as removed, as go-ethereum does.

import { LRUCache } from "lru-cache";
import type { Background } from "../../shared/background.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { JsonText } from "../../shared/jsonrpc/envelope.ts";
import { type Log, type LogFilter, takes, told } from "../../shared/jsonrpc/logs.ts";
import type { Logger } from "../../shared/log.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import { LOGS } from "../domain/endpoints.ts";
import type { Publisher } from "../domain/ports.ts";
import type { NodeReader } from "./nodeReader.ts";

/** How long the node may take for a block's logs, in ms. */
const LOGS_MS = 3_000;
/** Blocks whose logs are remembered: no reorganisation goes back further without far worse trouble. */
const KEPT_BLOCKS = 64;
/** Bytes of an answer at most: blocks of the mainnet have under a million. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Changes of the chain that may wait for the node; beyond that subscribers miss the oldest. */
const MAX_WAITING = 64;

/** Reads the logs of single blocks. */
export class BlockLogs {
	readonly #node: Pick<NodeReader, "call">;
	readonly #kept = new LRUCache<string, Promise<readonly Log[]>>({ max: KEPT_BLOCKS });

	constructor(dependencies: { readonly node: Pick<NodeReader, "call"> }) {
		this.#node = dependencies.node;
	}

	/** All logs of the block with this hash, in their order. Throws UpstreamError where the node gives none. */
	of(blockHash: string): Promise<readonly Log[]> {
		const known = this.#kept.get(blockHash);
		if (known !== undefined) return known;
		const asked = this.#ask(blockHash);
		this.#kept.set(blockHash, asked);
		asked.catch(() => this.#kept.delete(blockHash));
		return asked;
	}

	async #ask(blockHash: string): Promise<readonly Log[]> {
		const call = { method: "eth_getLogs", params: [{ blockHash }] };
		const answer = await this.#node.call(call, LOGS_MS, MAX_BYTES);
		const given = answer.ok ? answer.result : null;
		const result: unknown = given instanceof JsonText ? JSON.parse(given.text) : given;
		if (!Array.isArray(result) || !result.every(isLog)) throw new UpstreamError("notJsonRpc");
		return result;
	}
}

function isLog(value: unknown): value is Log {
	const { address, topics } = (value ?? {}) as Partial<Log>;
	return typeof address === "string" && Array.isArray(topics);
}

export interface LogFeedDependencies {
	readonly logs: BlockLogs;
	readonly publisher: Publisher & {
		/** What the topics that begin with `prefix` and that somebody listens to go on with. */
		heardAfter(prefix: string): readonly string[];
	};
	readonly background: Pick<Background, "run">;
	readonly log: Logger;
}

/** Tells subscribers of logs. */
export interface LogFeed {
	/** Takes a change of the chain; returns at once. */
	onUpdate(update: ChainUpdate): void;
}

/** The feed of the topics that begin with `LOGS` and go on with a filter as JSON. */
export function createLogFeed(dependencies: LogFeedDependencies): LogFeed {
	const { logs, publisher, background, log } = dependencies;
	let waiting: ChainUpdate[] = [];
	let running = false;

	const tell = async (blockHash: string, removed: boolean): Promise<void> => {
		const filters = publisher.heardAfter(LOGS);
		if (filters.length === 0) return;
		try {
			const all = await logs.of(blockHash);
			for (const text of filters) {
				const filter = JSON.parse(text) as LogFilter;
				for (const one of all) {
					if (takes(filter, one)) publisher.publish(`${LOGS}${text}`, () => told(one, removed));
				}
			}
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			log.warn("subscribers miss the logs of a block", { code: thrown.code });
		}
	};
	const work = async (): Promise<void> => {
		try {
			for (let update = waiting.shift(); update !== undefined; update = waiting.shift()) {
				for (const { hash } of update.reverted) await tell(hash, true);
				for (const { hash } of update.applied) await tell(hash, false);
			}
		} finally {
			running = false;
		}
	};
	return {
		onUpdate(update) {
			if (publisher.heardAfter(LOGS).length === 0) return;
			waiting = [...waiting, update].slice(-MAX_WAITING);
			if (running) return;
			running = true;
			background.run("logs", work);
		},
	};
}
