// Reads the logs of single blocks. Each block is read once, however many clients ask for its logs.

import { LRUCache } from "lru-cache";
import { JsonText } from "../../shared/jsonrpc/answers.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Log } from "../../shared/jsonrpc/logs.ts";
import type { NodeReader } from "./nodeReader.ts";

/** Deadline of a block's logs, in ms. */
const LOGS_MS = 3_000;
/** Blocks whose logs are cached; reorganisations do not go further back in practice. */
const KEPT_BLOCKS = 64;
/** Maximum size of an answer in bytes; mainnet blocks have under a million. */
const MAX_BYTES = 8 * 1024 * 1024;

export class BlockLogs {
	readonly #node: Pick<NodeReader, "call">;
	readonly #kept = new LRUCache<string, Promise<readonly Log[]>>({ max: KEPT_BLOCKS });

	constructor(dependencies: { readonly node: Pick<NodeReader, "call"> }) {
		this.#node = dependencies.node;
	}

	/** All logs of the block with this hash, in order. Throws UpstreamError if the node does not answer with logs. */
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
