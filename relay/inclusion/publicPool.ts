// Watches the node's public mempool for private transactions, by a subscription or by a polled
// filter. A hash that is not ours costs one look-up in a table.

import type { LookupFunction } from "node:net";
import { type Clock, pause } from "../../shared/clock.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Component } from "../../shared/lifecycle.ts";
import type { Logger } from "../../shared/log.ts";
import { fieldsOf } from "../domain/nodeJson.ts";
import { NodeSubscription } from "./nodeSubscription.ts";

export interface PublicPoolOptions {
	/** Websocket for a subscription; absent, or while it offers none, a filter is polled. */
	readonly wsUrl?: string | undefined;
	/** How often the filter is polled, in ms. Default: a quarter of a slot, a second at most. */
	readonly pollMs?: number | undefined;
	readonly slot: { readonly ms: number };
}

export interface PublicPoolDependencies {
	readonly node: Pick<JsonRpcClient, "call">;
	/** Whether a sighting of this hash is news. */
	readonly isWatched: (hash: string) => boolean;
	/** It was in the public mempool at `at`, in ms since the epoch, and in no block soon after. */
	readonly onSeen: (hash: string, at: number) => void;
	/** Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	readonly clock: Clock;
	readonly log: Logger;
	/** 0 to 1; Math.random unless given. */
	readonly random?: () => number;
}

/**
 * A node may announce a transaction of a block that it is importing, or of one that leaves the
 * chain. So a sighting counts only if the mempool still has it after this time, in ms.
 */
const CONFIRM_MS = 1_000;
/** Sightings that wait for that; more are not looked at. */
const MAX_WAITING = 1_000;
const CALL_MS = 5_000;
const MAX_POLL_MS = 1_000;
/** Pause before a node that offers no filter is asked again, in ms. */
const REFUSED_MS = 10_000;

/** Reports private transactions that the public mempool has. */
export class PublicPool implements Component {
	readonly name = "public mempool";
	readonly #options: PublicPoolOptions;
	readonly #dependencies: PublicPoolDependencies;
	readonly #subscription: NodeSubscription | null;
	readonly #stopping = new AbortController();
	#polling: Promise<void> = Promise.resolve();
	/** The filter at the node; null: none. */
	#filter: string | null = null;
	/** Whether the last poll of the filter was answered. */
	#isPolled = false;
	/** Hashes of sightings that are not confirmed yet. */
	readonly #waiting = new Set<string>();

	constructor(options: PublicPoolOptions, dependencies: PublicPoolDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
		const { clock, lookup, log, random = Math.random } = dependencies;
		this.#subscription =
			options.wsUrl === undefined
				? null
				: new NodeSubscription(
						{ url: options.wsUrl, topic: "newPendingTransactions" },
						{
							onResult: (hash) => this.#announced(hash),
							onLive: () => log.info("node announces its public mempool"),
							onAway(isNew) {
								if (isNew) log.info("node does not announce its public mempool: polling");
							},
							...{ random, lookup, clock },
						},
					);
	}

	/** Whether the node shows its public mempool, as far as is known, so that leaks can be seen. */
	get isSeen(): boolean {
		return this.#subscription?.live === true || this.#isPolled;
	}

	async start(): Promise<void> {
		this.#subscription?.start();
		this.#polling = this.#poll();
	}

	async stop(): Promise<void> {
		this.#stopping.abort();
		await this.#subscription?.stop();
		await this.#polling;
	}

	#announced(hash: unknown): void {
		const { isWatched, clock } = this.#dependencies;
		if (typeof hash !== "string" || !isWatched(hash)) return;
		if (this.#waiting.has(hash) || this.#waiting.size >= MAX_WAITING) return;
		this.#waiting.add(hash);
		const at = clock.now();
		clock.after(CONFIRM_MS, () => void this.#confirm(hash, at));
	}

	async #confirm(hash: string, at: number): Promise<void> {
		const { isWatched, onSeen, clock } = this.#dependencies;
		const isOver = (): boolean => this.#stopping.signal.aborted || !isWatched(hash);
		const answer = isOver() ? null : await this.#ask("eth_getTransactionByHash", [hash]);
		if (answer === undefined && !isOver()) {
			clock.after(CONFIRM_MS, () => void this.#confirm(hash, at));
			return;
		}
		this.#waiting.delete(hash);
		const found = fieldsOf(answer);
		if (found !== null && (found.blockHash ?? null) === null && !isOver()) onSeen(hash, at);
	}

	/** Polls the filter while nothing is announced. */
	async #poll(): Promise<void> {
		const { clock } = this.#dependencies;
		const { pollMs, slot } = this.#options;
		const { signal } = this.#stopping;
		while (!signal.aborted) {
			const isDue = this.#subscription?.live !== true;
			if (isDue) await this.#readFilter();
			else this.#isPolled = false;
			const isRefused = isDue && this.#filter === null;
			const ms = isRefused ? REFUSED_MS : (pollMs ?? Math.min(MAX_POLL_MS, slot.ms / 4));
			await pause(clock, ms, signal);
		}
	}

	/** Reads the filter. One that has just been answered and is lost now is made again at once. */
	async #readFilter(): Promise<void> {
		const wasPolled = this.#isPolled;
		const isNew = this.#filter === null;
		const hashes = isNew ? undefined : await this.#ask("eth_getFilterChanges", [this.#filter]);
		this.#isPolled = Array.isArray(hashes);
		if (Array.isArray(hashes)) {
			for (const hash of hashes) this.#announced(hash);
			return;
		}
		// The node has forgotten the filter, or another node behind a load balancer has it.
		const made = isNew || wasPolled ? await this.#ask("eth_newPendingTransactionFilter", []) : null;
		this.#filter = typeof made === "string" ? made : null;
	}

	/** The result; undefined if the node fails or refuses, which tells nothing. */
	async #ask(method: string, params: readonly unknown[]): Promise<unknown> {
		try {
			const answer = await this.#dependencies.node.call({ method, params }, CALL_MS);
			return answer.ok ? answer.result : undefined;
		} catch (thrown) {
			if (thrown instanceof UpstreamError) return undefined;
			throw thrown;
		}
	}
}
