// Filters that clients poll (`eth_newFilter`, `eth_newBlockFilter`). Who knows a filter's random id may poll it, from whatever
// address: wallets on the move change theirs. It expires when not polled for five minutes. All filters share one history of the
// chain's changes.
// https://geth.ethereum.org/docs/interacting-with-geth/rpc/ns-eth

import { randomBytes } from "node:crypto";
import type { Clock } from "../../shared/clock.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { NODE_UNAVAILABLE, RpcError } from "../../shared/jsonrpc/errors.ts";
import { type LogCriteria, takes, withRemoved } from "../../shared/jsonrpc/logs.ts";
import { Shares } from "../../shared/shares/shares.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import type { Filters } from "../domain/ports.ts";
import type { BlockLogs } from "./blockLogs.ts";

interface Filter {
	/** Who made it, and in whose share it counts. */
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

export class PolledFilters implements Filters {
	readonly #logs: BlockLogs;
	readonly #clock: Clock;
	/** By id, least recently used first. */
	readonly #filters = new Map<string, Filter>();
	readonly #shares = new Shares({ total: MAX_FILTERS, perClient: MAX_PER_CLIENT });
	/** The changes of the last {@link LIFE_MS}, and the count of older ones. */
	#steps: Step[] = [];
	#dropped = 0;

	constructor(dependencies: { readonly logs: BlockLogs; readonly clock: Clock }) {
		this.#logs = dependencies.logs;
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

	/** Creates a filter of logs, or of blocks if `logs` is null; returns its id. Throws RpcError `limit`. */
	open(client: string, logs: LogCriteria | null): string {
		this.#sweep();
		if (this.#shares.take(client, 1) !== null) {
			throw new RpcError("limit", `limit exceeded: ${MAX_PER_CLIENT} filters a client`);
		}
		const id = `0x${randomBytes(ID_BYTES).toString("hex")}`;
		const next = this.#dropped + this.#steps.length;
		this.#filters.set(id, { client, logs, next, usedAt: this.#clock.monotonic() });
		return id;
	}

	/** The block hashes or logs since the last poll. Throws RpcError. */
	async changes(id: string): Promise<readonly unknown[]> {
		const filter = this.#use(id);
		const steps = this.#steps.slice(Math.max(0, filter.next - this.#dropped));
		const next = this.#dropped + this.#steps.length;
		const { logs } = filter;
		const found: unknown[] = [];
		for (const { hash, number, removed } of steps) {
			if (logs === null && !removed) found.push(hash);
			if (
				logs === null ||
				BigInt(number) < (logs.from ?? 0n) ||
				(logs.to !== null && BigInt(number) > logs.to)
			)
				continue;
			for (const log of await this.#logsOf(hash))
				if (takes(logs.filter, log)) found.push(withRemoved(log, removed));
		}
		filter.next = next;
		return found;
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

	async #logsOf(blockHash: string) {
		try {
			return await this.#logs.of(blockHash);
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			throw new RpcError("internal", "internal error", NODE_UNAVAILABLE);
		}
	}
}

/** The same error as go-ethereum's, by which clients know that they must make it again. */
function unknown(): RpcError {
	return new RpcError("rejected", "filter not found");
}
