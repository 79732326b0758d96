// Reads the logs of single blocks. Each block is read once, no matter how many clients ask for its
// logs.

import { LRUCache } from "lru-cache";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { type LogTable, readLogs } from "../../shared/jsonrpc/logTable.ts";
import { FairScheduler } from "../../shared/shares/scheduler.ts";
import type { NodeReader } from "./nodeReader.ts";

/** Deadline of a block's logs, in ms. */
const LOGS_MS = 3_000;
/** Blocks whose logs are cached; reorganisations do not go further back in practice. */
const KEPT_BLOCKS = 64;
/** Bytes of cached logs, enough for five minutes of mainnet. */
const KEPT_BYTES = 16 * 1024 * 1024;
/** Maximum size of an answer in bytes; mainnet blocks have under a million. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Bytes that each block takes in the cache besides its logs. */
const ENTRY_BYTES = 1_024;
/** The client of the feed's reads, which belong to no client and go first. */
const FEED = { client: "", urgent: true };

export class BlockLogs {
	readonly #node: Pick<NodeReader, "call">;
	readonly #kept = new LRUCache<string, LogTable>({
		max: KEPT_BLOCKS,
		maxSize: KEPT_BYTES,
		sizeCalculation: ({ bytes }) => bytes + ENTRY_BYTES,
	});
	readonly #reading = new Map<string, Promise<LogTable>>();
	/** Answers are long, so they are read in turns of the event loop. */
	readonly #turns = new FairScheduler({ concurrency: 2, maxWaiting: Number.POSITIVE_INFINITY });

	constructor(dependencies: { readonly node: Pick<NodeReader, "call"> }) {
		this.#node = dependencies.node;
	}

	/**
	 * All logs of the block with this hash, for a client or the feed. Throws UpstreamError if the
	 * node does not answer with logs.
	 */
	async of(blockHash: string, client: string | null = null): Promise<LogTable> {
		const known = this.#kept.get(blockHash) ?? this.#reading.get(blockHash);
		if (known !== undefined) return known;
		const whose = client === null ? FEED : { client };
		const reading = this.#turns.run({ ...whose, cost: 1 }, () => this.#ask(blockHash));
		this.#reading.set(blockHash, reading);
		try {
			const table = await reading;
			this.#kept.set(blockHash, table);
			return table;
		} finally {
			this.#reading.delete(blockHash);
		}
	}

	async #ask(blockHash: string): Promise<LogTable> {
		const call = { method: "eth_getLogs", params: [{ blockHash }] };
		const answer = await this.#node.call(call, LOGS_MS, MAX_BYTES);
		const table = answer.ok ? await readLogs(answer.result) : null;
		if (table === null) throw new UpstreamError("notJsonRpc");
		return table;
	}
}
