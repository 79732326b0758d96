// Filters that clients poll (`eth_newFilter`, `eth_newBlockFilter`): each is its client's own, and ends when it was not asked
// for five minutes. What has changed since the last poll is read from one history of the chain's changes.
// https://geth.ethereum.org/docs/interacting-with-geth/rpc/ns-eth

import { randomBytes } from "node:crypto";
import type { Clock } from "../../shared/clock.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { type LogCriteria, takes, withRemoved } from "../../shared/jsonrpc/logs.ts";
import { Shares } from "../../shared/shares/shares.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import type { Filters } from "../domain/ports.ts";
import type { BlockLogs } from "./blockLogs.ts";

interface Filter {
	readonly client: string;
	/** Null: a filter of blocks. */
	readonly logs: LogCriteria | null;
	/** The number of the first change that it was not told. */
	next: number;
	usedAt: number;
}

/** A block that came to the chain, or left it. */
interface Step {
	readonly hash: string;
	readonly number: number;
	readonly removed: boolean;
	readonly at: number;
}

/** How long a filter lives that nobody asks for, in ms: as in go-ethereum. */
const LIFE_MS = 300_000;
const MAX_FILTERS = 8_192;
const MAX_PER_CLIENT = 64;
const ID_BYTES = 16;

/** The filters of all clients. */
export class PolledFilters implements Filters {
	readonly #logs: BlockLogs;
	readonly #clock: Clock;
	/** By id, least recently used first. */
	readonly #filters = new Map<string, Filter>();
	readonly #shares = new Shares({ total: MAX_FILTERS, perClient: MAX_PER_CLIENT });
	/** The changes of the last {@link LIFE_MS}, and how many there were before. */
	#steps: Step[] = [];
	#dropped = 0;

	constructor(dependencies: { readonly logs: BlockLogs; readonly clock: Clock }) {
		this.#logs = dependencies.logs;
		this.#clock = dependencies.clock;
	}

	/** Takes a change of the chain. */
	onUpdate({ reverted, applied }: ChainUpdate): void {
		const at = this.#clock.monotonic();
		const oldest = this.#steps.findIndex((step) => step.at > at - LIFE_MS);
		const gone = oldest < 0 ? this.#steps.length : oldest;
		this.#dropped += gone;
		this.#steps = this.#steps.slice(gone);
		for (const { hash, number } of reverted) this.#steps.push({ hash, number, removed: true, at });
		for (const { hash, number } of applied) this.#steps.push({ hash, number, removed: false, at });
	}

	/** Makes one, of logs or of blocks; answers its id. Throws RpcError `limit` where its client has too many. */
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

	/** What has changed since it was asked last: hashes of new blocks, or logs. Throws RpcError. */
	async changes(client: string, id: string): Promise<readonly unknown[]> {
		const filter = this.#use(client, id);
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

	/** What the log filter asks for. Throws RpcError. */
	query(client: string, id: string): object {
		const { logs } = this.#use(client, id);
		if (logs === null) throw unknown();
		return logs.query;
	}

	/** Ends it; false where its client has none with this id. */
	close(client: string, id: string): boolean {
		const filter = this.#filters.get(id);
		if (filter?.client !== client) return false;
		this.#filters.delete(id);
		this.#shares.give(client, 1);
		return true;
	}

	#use(client: string, id: string): Filter {
		this.#sweep();
		const filter = this.#filters.get(id);
		if (filter?.client !== client) throw unknown();
		this.#filters.delete(id);
		this.#filters.set(id, filter);
		filter.usedAt = this.#clock.monotonic();
		return filter;
	}

	#sweep(): void {
		const now = this.#clock.monotonic();
		for (const [id, { client, usedAt }] of this.#filters) {
			if (usedAt > now - LIFE_MS) return;
			this.close(client, id);
		}
	}

	async #logsOf(blockHash: string) {
		try {
			return await this.#logs.of(blockHash);
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			throw new RpcError("internal", "internal error", { reason: "node unavailable" });
		}
	}
}

/** go-ethereum's words. */
function unknown(): RpcError {
	return new RpcError("rejected", "filter not found");
}
