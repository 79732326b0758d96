// Follows the chain by a subscription or by polling. Reports each change of the canonical chain
// block by block, with reorganisations.

import type { LookupFunction } from "node:net";
import { type Clock, pause, type Timer } from "../../shared/clock.ts";
import { toQuantity } from "../../shared/ethereum/hex.ts";
import type { Slots } from "../../shared/ethereum/slots.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Component } from "../../shared/lifecycle.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { advice } from "../../shared/outgoing/advice.ts";
import type { Block, ChainUpdate, Header, NextBlock } from "../domain/chain.ts";
import { fieldsOf, readHash, readHeader } from "../domain/nodeJson.ts";
import type { Recoveries } from "../domain/recoveries.ts";
import { hash as hashOf, readBlock, record } from "./blockReader.ts";
import { type WalkLimits, walk } from "./chainWalk.ts";
import { HeadTimes } from "./headTimes.ts";
import { BLOCK_TRIES, judgeLeap } from "./leap.ts";
import { NodeSubscription } from "./nodeSubscription.ts";

export interface HeadTrackerOptions {
	/**
	 * Polling interval without announced heads, in ms. Default: a quarter of a slot, a second at
	 * most.
	 */
	readonly pollMs?: number | undefined;
	/** Websocket for announced heads; if absent, heads are polled. */
	readonly wsUrl?: string | undefined;
	/**
	 * Polling interval with announced heads, in ms, because rollbacks are not announced. Default:
	 * half a slot, at least 2 s.
	 */
	readonly safetyPollMs?: number;
	readonly limits?: WalkLimits;
}

export interface HeadTrackerDependencies {
	readonly node: Pick<JsonRpcClient, "call" | "batch">;
	/** Describes the block after a head. */
	readonly nextBlock: (head: Block) => Promise<NextBlock>;
	/** Learns the slot length from the heads, before the block after them is described. */
	readonly slots: Pick<Slots, "ms" | "missingBefore" | "came">;
	readonly recoveries: Pick<Recoveries, "each">;
	/** The chain that is followed. */
	readonly chainId: bigint;
	/** For the websocket. Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	readonly clock: Clock;
	readonly log: Logger;
	/** 0 to 1; Math.random unless given. */
	readonly random?: () => number;
}

const LIMITS: WalkLimits = { kept: 128, missed: 64 };
/** Deadline for reading a block, in ms. */
const BLOCK_MS = 5_000;
/**
 * If no answer begins within this time, the read is sent again, because its connection may hang. In
 * ms.
 */
const ASK_AGAIN_MS = 500;
const MAX_POLL_MS = 1_000;
const MIN_SAFETY_POLL_MS = 2_000;
/** Deadline for reading the blocks before the first head, in ms. */
const HISTORY_MS = 1_000;
/** Pause before the next check if the node's answers were inconsistent, in ms. */
const CHECK_AGAIN_MS = 250;
/**
 * How long the head must stay lower before a rollback is accepted, in ms, and at least half a slot;
 * see `#isBelieved`.
 */
const BACK_MS = 1_000;
/** Heads found by polling but not announced, after which the subscription counts as dead. */
const UNANNOUNCED = 3;

/** Follows the chain of one node, or of many behind a load balancer. */
export class HeadTracker implements Component {
	readonly name = "heads";
	/** Age of the tracked head, and the difference of the clocks. */
	readonly times: HeadTimes;
	readonly #options: HeadTrackerOptions;
	readonly #dependencies: HeadTrackerDependencies;
	readonly #subscription: NodeSubscription | null;
	readonly #listeners: ((update: ChainUpdate) => Promise<void>)[] = [];
	readonly #stopping = new AbortController();
	#running: Promise<void> = Promise.resolve();
	/** The last blocks, oldest first; the last one is the tracked head. */
	#chain: readonly Block[] = [];
	#next: NextBlock | null = null;
	/** Ends the pause before the next check. */
	#rest = new AbortController();
	/** The last announced head, until it is tracked or a slot has passed (`until`, monotonic). */
	#announced: { readonly hash: string; readonly until: number } | null = null;
	/**
	 * The last two heads that one connection announced, if the later one is tracked and the earlier
	 * one is not among its ancestors.
	 */
	#announcedBack: { readonly from: string; readonly to: string } | null = null;
	/** The last head that the connection announced, or null. */
	#lastAnnounced: string | null = null;
	#unannounced = 0;
	/** Since when the node's head is an ancestor of the tracked one; null if it is not. */
	#backSince: number | null = null;
	#checkAgain = false;
	#isAgainDue = false;
	#isUnavailable = false;
	/** Why the last head that did not fit was refused; valid for a slot (`until`, monotonic). */
	#misfit: { readonly trouble: string; readonly until: number } | null = null;

	constructor(options: HeadTrackerOptions, dependencies: HeadTrackerDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
		const { clock, log, lookup, random = Math.random } = dependencies;
		this.times = new HeadTimes({ slot: dependencies.slots }, { clock, log });
		const onChange = () => {
			this.#lastAnnounced = null;
			this.#rest.abort();
		};
		this.#subscription =
			options.wsUrl === undefined
				? null
				: new NodeSubscription(
						{ url: options.wsUrl, topic: "newHeads" },
						{
							onResult: (head) => this.#onAnnounced(readHash(fieldsOf(head)?.hash)),
							onLive() {
								log.info("node announces heads");
								onChange();
							},
							onAway(isNew, fault) {
								if (!isNew) return;
								const reason = fault === null ? {} : { fault: safeError(fault) };
								log.warn("node announces no heads: polling", reason);
								onChange();
							},
							...{ random, lookup, clock },
						},
					);
	}

	/** The tracked head, or null before the first one. It changes before the listeners are called. */
	current(): Block | null {
		return this.#chain.at(-1) ?? null;
	}

	/**
	 * Whether the block with this hash is in the followed chain; null if its number is below the
	 * remembered blocks.
	 */
	has(number: number, hash: string): boolean | null {
		const first = this.#chain[0];
		if (first === undefined || number < first.number) return null;
		return this.#chain[number - first.number]?.hash === hash;
	}

	/** The coinbase of the followed block with this number; undefined if it is not remembered. */
	coinbaseAt(number: number): string | undefined {
		return this.#chain[number - (this.#chain[0]?.number ?? 0)]?.miner;
	}

	/** The block after the tracked head; null before the first head. */
	next(): NextBlock | null {
		return this.#next;
	}

	/**
	 * Calls `listener` for each change, one at a time. The next change waits for its promise, and
	 * heads that arrive meanwhile become one change. The first change after the start has `gap`
	 * set. An error of a listener is only logged.
	 */
	subscribe(listener: (update: ChainUpdate) => Promise<void>): void {
		this.#listeners.push(listener);
	}

	/**
	 * Gives the listeners the tracked head once more, as a change with a gap, for a listener that
	 * begins now.
	 */
	again(): void {
		this.#isAgainDue = true;
		this.#rest.abort();
	}

	/** Checks the node's head at once, because a later one was seen. */
	checkNow(): void {
		this.#rest.abort();
	}

	/** Whether the last check of the node's head failed. */
	get isUnavailable(): boolean {
		return this.#isUnavailable;
	}

	/**
	 * The fault of the heads that the node has answered with in the last slot, for the operator;
	 * null if there is none.
	 */
	get trouble(): string | null {
		const misfit = this.#misfit;
		return misfit === null || misfit.until < this.#dependencies.clock.monotonic() ? null : misfit.trouble;
	}

	/** Starts to follow the chain, without waiting for the node. */
	async start(): Promise<void> {
		this.#subscription?.start();
		this.#running = this.#follow();
	}

	/** Stops, and resolves when the listeners have ended too. */
	async stop(): Promise<void> {
		this.#stopping.abort();
		this.#rest.abort();
		await this.#subscription?.stop();
		await this.#running;
	}

	async #follow(): Promise<void> {
		const { clock, log } = this.#dependencies;
		while (!this.#stopping.signal.aborted) {
			this.#rest = new AbortController();
			try {
				await this.#check();
				if (this.#isUnavailable) log.info("node's head read again");
				this.#isUnavailable = false;
			} catch (thrown) {
				if (this.#stopping.signal.aborted) return;
				if (!this.#isUnavailable)
					log.warn("could not read the node's head", { fault: safeError(thrown), ...hintOf(thrown) });
				this.#isUnavailable = true;
			}
			if (this.#stopping.signal.aborted) return;
			await pause(clock, this.#restMs(), this.#rest.signal);
		}
	}

	#restMs(): number {
		const { slots } = this.#dependencies;
		const { pollMs = Math.min(MAX_POLL_MS, slots.ms / 4), safetyPollMs } = this.#options;
		if (this.#isUnavailable) return pollMs;
		if (this.#checkAgain) return Math.min(pollMs, CHECK_AGAIN_MS);
		// After an announcement without the head yet, another node behind the load balancer has it.
		if (this.#subscription?.live !== true || this.#announced !== null) return pollMs;
		return safetyPollMs ?? Math.max(MIN_SAFETY_POLL_MS, slots.ms / 2);
	}

	#onAnnounced(hash: string | null): void {
		if (hash === null) return;
		this.#unannounced = 0;
		const from = this.#lastAnnounced;
		this.#lastAnnounced = hash;
		this.#announcedBack = null;
		const hashes = this.#chain.map((block) => block.hash);
		const at = hashes.indexOf(hash);
		if (at >= 0) {
			// An announced head that is not tracked may be just being read.
			const isBack = from !== null && !hashes.slice(0, at + 1).includes(from);
			if (!isBack) return;
			this.#announcedBack = { from, to: hash };
			this.#rest.abort();
			return;
		}
		const until = this.#dependencies.clock.monotonic() + this.#dependencies.slots.ms;
		this.#announced = { hash, until };
		this.#rest.abort();
	}

	/** Compares the node's head with the tracked one, and applies the difference. */
	async #check(): Promise<void> {
		this.#checkAgain = false;
		const tracked = this.current();
		if (this.#isAgainDue && tracked !== null) {
			const update = { head: tracked, reverted: [], applied: [], gap: true };
			for (const listener of this.#listeners) await this.#call(listener, update);
		}
		this.#isAgainDue = false;
		const { clock } = this.#dependencies;
		const begun = clock.monotonic();
		const wasAnnounced = this.#announced !== null;
		if (this.#announced !== null && this.#announced.until < begun) this.#announced = null;
		const head = await this.#newHead();
		if (head === null) return;
		const limits = this.#options.limits ?? LIMITS;
		const found = await walk(this.#chain, head, ({ parentHash }) => this.#blockByHash(parentHash), limits);
		if (found === null || !this.#isBelieved(found.update)) {
			this.#checkAgain = true;
			return;
		}
		if (found.update.gap && !(await this.#fits(tracked, head))) {
			this.#checkAgain = true;
			return;
		}
		await this.#noteTimes(found.update);
		const next = await this.#dependencies.nextBlock(found.update.head);
		if (this.#stopping.signal.aborted) return;
		const isFirst = this.#chain.length === 0;
		this.#chain = found.chain;
		this.#next = next;
		if (found.update.applied.length > 0) this.times.arrived(found.update.head.timestamp);
		if (this.#chain.some(({ hash }) => hash === this.#announced?.hash)) this.#announced = null;
		if (!wasAnnounced && this.#subscription?.live === true) this.#onUnannounced();
		this.#logChange(found.update, isFirst, clock.monotonic() - begun);
		for (const listener of this.#listeners) await this.#call(listener, found.update);
	}

	/**
	 * The node's head with its transactions; null if it is the tracked head, or vanished before it
	 * was read.
	 */
	async #newHead(): Promise<Block | null> {
		const current = this.current();
		// An announced head is most likely new, so its transactions are requested at once.
		const whole = current === null || this.#announced !== null;
		const json = await this.#ask("eth_getBlockByNumber", ["latest", whole]);
		const hash = hashOf(record(json).hash);
		if (hash === current?.hash) {
			this.#backSince = null;
			return null;
		}
		const kept = this.#chain.find((block) => block.hash === hash);
		if (kept !== undefined) return kept;
		if (whole) return readBlock(json, this.#dependencies.recoveries);
		const block = await this.#blockByHash(hash);
		this.#checkAgain = block === null;
		return block;
	}

	/**
	 * Whether to accept the change. Behind a load balancer, "latest" may come from a node that
	 * lags, and then the head seems to go back. So a lower head is accepted only in two cases.
	 * Either it stays lower, as after a real rollback (anvil_rollback, evm_revert). Or the node has
	 * announced both heads in this order, as when a block's payload is withheld (EIP-7732). Another
	 * branch is accepted at once, unless the node is so far behind that it shares no known block.
	 */
	#isBelieved(update: ChainUpdate): boolean {
		const isFarBehind = update.gap && update.head.number < (this.current()?.number ?? 0);
		if ((update.applied.length > 0 && !isFarBehind) || this.#isAnnouncedBack(update)) {
			this.#backSince = null;
			return true;
		}
		const now = this.#dependencies.clock.monotonic();
		this.#backSince ??= now;
		if (now - this.#backSince < Math.max(BACK_MS, this.#dependencies.slots.ms / 2)) return false;
		this.#backSince = null;
		return true;
	}

	/** Whether a head that does not lead to the tracked one may be followed. */
	async #fits(tracked: Block | null, head: Block): Promise<boolean> {
		const { clock, slots, log } = this.#dependencies;
		const verdict = await judgeLeap(tracked, head, this.#dependencies);
		if (verdict.ok) return true;
		const { trouble } = verdict;
		if (trouble === null) return false;
		if (this.trouble === null)
			log.error("node's head not followed: it does not fit the chain", { reason: trouble });
		this.#misfit = { trouble, until: clock.monotonic() + slots.ms };
		return false;
	}

	/**
	 * Gives the new blocks to the slots. After a start or a gap, adds the blocks before them if the
	 * node answers soon.
	 */
	async #noteTimes({ applied }: ChainUpdate): Promise<void> {
		const { slots, node } = this.#dependencies;
		const [first] = applied;
		if (first === undefined) return;
		const numbers = slots.missingBefore(first);
		const before: Header[] = [];
		if (numbers.length > 0) {
			const calls = numbers.map((number) => ({
				method: "eth_getBlockByNumber",
				params: [toQuantity(number), false],
			}));
			const answers = await node.batch(calls, HISTORY_MS).catch((thrown: unknown) => {
				if (thrown instanceof UpstreamError) return [];
				throw thrown;
			});
			for (const answer of answers) {
				const header = answer.ok ? readHeader(answer.result) : null;
				if (header !== null) before.push(header);
			}
			if (!isUnbroken([...before, first])) before.length = 0;
		}
		slots.came([...before, ...applied]);
	}

	/** Whether one connection has announced a block that `update` reverts, and then its head. */
	#isAnnouncedBack({ head, applied, reverted }: ChainUpdate): boolean {
		const back = this.#announcedBack;
		return applied.length === 0 && back?.to === head.hash && reverted.some(({ hash }) => hash === back.from);
	}

	/**
	 * The block with this hash; null if no answer has it. Asks several times, since one of several
	 * nodes behind a load balancer may lack it.
	 */
	async #blockByHash(hash: string): Promise<Block | null> {
		let json: unknown = null;
		for (let left = BLOCK_TRIES; left > 0 && json === null; left--)
			json = await this.#ask("eth_getBlockByHash", [hash, true]);
		if (json === null) return null;
		const block = await readBlock(json, this.#dependencies.recoveries);
		if (block.hash !== hash) throw new UpstreamError("notJsonRpc");
		return block;
	}

	async #ask(method: string, params: readonly unknown[]): Promise<unknown> {
		const { signal } = this.#stopping;
		if (signal.aborted) throw new UpstreamError("unreachable");
		const answer = await unlessAborted(signal, this.#firstAnswer({ method, params }));
		if (!answer.ok) throw new UpstreamError("notJsonRpc");
		return answer.result;
	}

	/**
	 * Sends the call again every half second until an answer begins. Rejects if all fail. Once a
	 * long answer has begun, asking again would delay it and take more memory.
	 */
	#firstAnswer(call: Parameters<JsonRpcClient["call"]>[0]): ReturnType<JsonRpcClient["call"]> {
		const { node, clock } = this.#dependencies;
		const until = clock.monotonic() + BLOCK_MS;
		return new Promise((resolve, reject) => {
			let open = 0;
			let again: Timer | null = null;
			const onBegin = () => again?.cancel();
			const ask = (): void => {
				open += 1;
				again = clock.after(ASK_AGAIN_MS, ask);
				const leftMs = until - clock.monotonic();
				if (leftMs <= ASK_AGAIN_MS) again.cancel();
				node.call(call, leftMs, undefined, onBegin).then(
					(answer) => {
						again?.cancel();
						resolve(answer);
					},
					(thrown: unknown) => {
						open -= 1;
						if (open > 0) return;
						again?.cancel();
						reject(thrown);
					},
				);
			};
			ask();
		});
	}

	#onUnannounced(): void {
		this.#unannounced += 1;
		if (this.#unannounced < UNANNOUNCED) return;
		this.#unannounced = 0;
		this.#dependencies.log.warn("node stopped announcing heads: subscribing again");
		this.#subscription?.restart();
	}

	#logChange(update: ChainUpdate, isFirst: boolean, ms: number): void {
		const { log } = this.#dependencies;
		const block = update.head.number;
		if (update.gap && !isFirst) log.warn("blocks missed", { block });
		else if (update.reverted.length > 0) log.info("reorganisation", { block, count: update.reverted.length });
		else log.debug("head", { block, count: update.applied.length, ms: Math.round(ms) });
	}

	async #call(listener: (update: ChainUpdate) => Promise<void>, update: ChainUpdate): Promise<void> {
		try {
			await listener(update);
		} catch (thrown) {
			this.#dependencies.log.error("head listener failed", {
				block: update.head.number,
				fault: safeError(thrown),
			});
		}
	}
}

function hintOf(thrown: unknown): { readonly hint?: string } {
	const hint = thrown instanceof UpstreamError ? advice("ETH_RPC_URL", thrown.symptom) : null;
	return hint === null ? {} : { hint };
}

/** Whether each block is the parent of the next one. */
function isUnbroken(blocks: readonly Pick<Header, "hash" | "parentHash">[]): boolean {
	return blocks.every(({ hash }, i) => i === blocks.length - 1 || hash === blocks[i + 1]?.parentHash);
}

/** Rejects as soon as `signal` is aborted, without waiting for `work`. */
function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
	return new Promise((resolve, reject) => {
		const onAbort = () => reject(new UpstreamError("unreachable"));
		signal.addEventListener("abort", onAbort);
		work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
	});
}
