// Filters that clients poll (`eth_newFilter`, `eth_newBlockFilter`). Anybody who knows a filter's
// random id may poll it, from any address: the address of a mobile wallet changes. A filter expires
// after five minutes without a poll. All filters share one history of the chain's changes.
// https://geth.ethereum.org/docs/interacting-with-geth/rpc/ns-eth

import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../shared/clock.ts";
import { JsonPieces } from "../../shared/jsonrpc/answers.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { NODE_UNAVAILABLE, RpcError } from "../../shared/jsonrpc/errors.ts";
import type { LogCriteria } from "../../shared/jsonrpc/logs.ts";
import { elementsOf, type LogTable, type SelectedLogs } from "../../shared/jsonrpc/logTable.ts";
import type { EventLoopQueue } from "../../shared/shares/scheduler.ts";
import { Shares } from "../../shared/shares/shares.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import type { Caller } from "../domain/ports.ts";
import type { BlockLogs } from "./blockLogs.ts";

interface Filter {
	/** The client that made the filter; it counts against this client's quota. */
	readonly client: string;
	/** Null for a block filter. */
	readonly logs: LogCriteria | null;
	/** Number of the first change that the client has not polled yet. */
	next: number;
	usedAt: number;
}

/** A block that was added to the chain or removed from it. */
interface Step {
	readonly hash: string;
	readonly number: number;
	readonly removed: boolean;
	readonly at: number;
}

/** How long a filter lives without a poll, in ms, as in go-ethereum. */
const LIFE_MS = 300_000;
const MAX_FILTERS = 8_192;
const MAX_PER_CLIENT = 64;
const ID_BYTES = 16;
/**
 * Maximum size of the polls of one request, in bytes, as for the answer to any read. The rest comes
 * with the next poll.
 */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
/** Maximum size of unanswered polls, in bytes. A batch has its polls twice for a moment. */
const ANSWERS = { total: 64 * 1024 * 1024, perClient: 16 * 1024 * 1024 };
/** Maximum size of the cached results of filters, in bytes. Equal filters share a result. */
const KEPT_BYTES = 16 * 1024 * 1024;
const EMPTY = Buffer.from("[]");
const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");
const TOO_MUCH = new RpcError(
	"limit",
	"limit exceeded: too many results for one batch, poll fewer filters at once",
);

/** Filters that clients poll. */
export class PolledFilters {
	readonly #logs: BlockLogs;
	readonly #turns: EventLoopQueue;
	readonly #clock: Clock;
	/** By id, least recently used first. */
	readonly #filters = new Map<string, Filter>();
	readonly #shares = new Shares({ total: MAX_FILTERS, perClient: MAX_PER_CLIENT });
	/** Bytes of answers that are not sent yet. */
	readonly #answers = new Shares(ANSWERS);
	/** Cached results, by block and filter. */
	readonly #made = new LRUCache<string, Buffer>({
		maxSize: KEPT_BYTES,
		sizeCalculation: ({ length }, name) => length + name.length,
	});
	/** Bytes that each request, which may be a batch, has used. */
	readonly #taken = new WeakMap<Caller["life"], number>();
	/** The changes of the last {@link LIFE_MS}, and the number of older ones. */
	#steps: Step[] = [];
	#dropped = 0;

	constructor(dependencies: {
		readonly logs: BlockLogs;
		readonly turns: EventLoopQueue;
		readonly clock: Clock;
	}) {
		this.#logs = dependencies.logs;
		this.#turns = dependencies.turns;
		this.#clock = dependencies.clock;
	}

	/** Records a chain update. */
	onUpdate({ reverted, applied }: ChainUpdate): void {
		const at = this.#clock.monotonic();
		const oldest = this.#steps.findIndex((step) => step.at > at - LIFE_MS);
		const expired = oldest < 0 ? this.#steps.length : oldest;
		this.#dropped += expired;
		this.#steps = this.#steps.slice(expired);
		for (const { hash, number } of reverted) this.#steps.push({ hash, number, removed: true, at });
		for (const { hash, number } of applied) this.#steps.push({ hash, number, removed: false, at });
	}

	/**
	 * Creates a filter of logs, or of blocks if `logs` is null, and returns its id. Throws RpcError
	 * `limit` if `client` has too many.
	 */
	open(client: string, logs: LogCriteria | null): string {
		this.#sweep();
		if (this.#shares.take(client, 1) !== null) {
			throw new RpcError("limit", `limit exceeded: ${MAX_PER_CLIENT} filters per client`);
		}
		const id = `0x${randomBytes(ID_BYTES).toString("hex")}`;
		const next = this.#dropped + this.#steps.length;
		this.#filters.set(id, { client, logs, next, usedAt: this.#clock.monotonic() });
		return id;
	}

	/**
	 * The changes since the last call as a list: hashes of new blocks, or logs. If they exceed the
	 * limit of an answer, it has those of the first blocks, and the next call gets the others.
	 * Throws RpcError, for an unknown id too.
	 */
	async changes(id: string, { client, life }: Caller): Promise<JsonPieces> {
		const filter = this.#use(id);
		const from = Math.max(filter.next, this.#dropped);
		const steps = this.#steps.slice(from - this.#dropped);
		const pieces: Buffer[] = [];
		for (const [i, step] of steps.entries()) {
			const found = await this.#found(filter.logs, step, client);
			if (found !== null) {
				if (!this.#takes(client, life, found.bytes)) {
					if (pieces.length === 0) throw TOO_MUCH;
					break;
				}
				pieces.push(pieces.length === 0 ? OPEN : COMMA, await this.#turns.result(client, found.elements));
			}
			filter.next = Math.max(filter.next, from + i + 1);
		}
		return new JsonPieces(pieces.length === 0 ? [EMPTY] : [...pieces, CLOSE]);
	}

	/**
	 * The size of the filter's results for a step, and a function that makes them as list elements;
	 * null if there are none.
	 */
	async #found(
		logs: LogCriteria | null,
		{ hash, number, removed }: Step,
		client: string,
	): Promise<{ readonly bytes: number; readonly elements: () => Buffer } | null> {
		if (logs === null) {
			return removed ? null : { bytes: hash.length, elements: () => Buffer.from(JSON.stringify(hash)) };
		}
		if (number < (logs.from ?? 0n) || (logs.to !== null && number > logs.to)) return null;
		const table = await this.#logsOf(hash, client);
		return this.#turns.result(client, () => {
			const name = `${hash} ${removed} ${JSON.stringify(logs.filter)}`;
			const made = this.#made.get(name);
			if (made !== undefined) return { bytes: made.length, elements: () => made };
			const selected = table.select(logs.filter, removed);
			if (selected.heads.length === 0) return null;
			return { bytes: selected.bytes + selected.heads.length, elements: () => this.#make(name, selected) };
		});
	}

	#make(name: string, selected: SelectedLogs): Buffer {
		const elements = this.#made.get(name) ?? elementsOf(selected);
		this.#made.set(name, elements);
		return elements;
	}

	/**
	 * Reserves the bytes of an answer until its request is answered. Returns false if the request
	 * or its client has too many.
	 */
	#takes(client: string, life: Caller["life"], bytes: number): boolean {
		const taken = this.#taken.get(life);
		if (taken !== undefined && taken + bytes > MAX_ANSWER_BYTES) return false;
		if (this.#answers.take(client, bytes) !== null) return false;
		this.#taken.set(life, (taken ?? 0) + bytes);
		life.onGone(() => this.#answers.release(client, bytes));
		return true;
	}

	/** The query of a log filter, for eth_getLogs. Throws RpcError. */
	query(id: string): object {
		const { logs } = this.#use(id);
		if (logs === null) throw unknown();
		return logs.query;
	}

	/** Removes a filter; false if there is none with this id. */
	close(id: string): boolean {
		const filter = this.#filters.get(id);
		if (filter === undefined) return false;
		this.#filters.delete(id);
		this.#shares.release(filter.client, 1);
		return true;
	}

	#use(id: string): Filter {
		this.#sweep();
		const filter = this.#filters.get(id);
		if (filter === undefined) throw unknown();
		this.#filters.delete(id);
		this.#filters.set(id, filter);
		filter.usedAt = this.#clock.monotonic();
		return filter;
	}

	#sweep(): void {
		const now = this.#clock.monotonic();
		for (const [id, { usedAt }] of this.#filters) {
			if (usedAt > now - LIFE_MS) return;
			this.close(id);
		}
	}

	async #logsOf(blockHash: string, client: string): Promise<LogTable> {
		try {
			return await this.#logs.of(blockHash, client);
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			throw new RpcError("internal", "internal error", NODE_UNAVAILABLE);
		}
	}
}

/** go-ethereum's error, by which clients know that they must make the filter again. */
function unknown(): RpcError {
	return new RpcError("rejected", "filter not found");
}
