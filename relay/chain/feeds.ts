// Publishes new heads and logs to websocket subscribers, in order and in the node's JSON. Logs of
// reverted blocks are sent again as removed, as in go-ethereum. Without subscribers, nothing is
// read from the node.

import type { Background } from "../../shared/background.ts";
import { nextTurn } from "../../shared/clock.ts";
import { toQuantity } from "../../shared/ethereum/hex.ts";
import { headerOf } from "../../shared/ethereum/rpcObjects.ts";
import { logResults, type Results } from "../../shared/http/notifications.ts";
import { type RpcAnswer, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { LogFilter } from "../../shared/jsonrpc/logs.ts";
import type { Logger } from "../../shared/log.ts";
import type { EventLoopQueue } from "../../shared/shares/scheduler.ts";
import type { Block, ChainUpdate, Header } from "../domain/chain.ts";
import { LOGS, NEW_HEADS } from "../domain/endpoints.ts";
import { fieldsOf } from "../domain/nodeJson.ts";
import type { Publisher } from "../domain/ports.ts";
import type { BlockLogs } from "./blockLogs.ts";
import type { NodeReader } from "./nodeReader.ts";

interface FeedDependencies {
	readonly publisher: Publisher & {
		/** Whether `topic` has subscribers. */
		hasSubscribers(topic: string): boolean;
		/** Publishes serialized results. */
		publishAll(topic: string, results: Results): void;
		/**
		 * The rest, after `prefix`, of each subscribed topic that begins with it, and the client that
		 * subscribed first.
		 */
		subscribed(prefix: string): Iterable<{ readonly suffix: string; readonly client: string }>;
	};
	readonly background: Pick<Background, "run">;
	readonly log: Logger;
}

/** Deadline of the headers, in ms: a late head is of little use. */
const HEADERS_MS = 1_000;
/** Heads, or chain updates, that may wait for the node; beyond that, the oldest are skipped. */
const MAX_WAITING = 64;

/** Filters for which work is queued in one turn of the event loop. */
const FILTERS_A_TURN = 1_000;

/**
 * Passes items to `work` in batches, one after another, so that they stay in order. Items that
 * arrive during a batch form the next one.
 */
function inBatches<T>(
	background: FeedDependencies["background"],
	task: string,
	work: (items: readonly T[]) => Promise<void>,
): (items: readonly T[]) => void {
	let waiting: readonly T[] = [];
	let running = false;
	const run = async (): Promise<void> => {
		try {
			while (waiting.length > 0) {
				const items = waiting;
				waiting = [];
				await work(items);
			}
		} finally {
			running = false;
		}
	};
	return (items) => {
		waiting = [...waiting, ...items].slice(-MAX_WAITING);
		if (running || waiting.length === 0) return;
		running = true;
		background.run(task, run);
	};
}

/**
 * The feed of `NEW_HEADS`: headers as in geth's `newHeads`. If the node fails, they have only the
 * fields that the relay knows.
 */
export function createHeadFeed(
	dependencies: FeedDependencies & { readonly node: Pick<NodeReader, "batch"> },
) {
	const { node, publisher, background, log } = dependencies;
	const askHeaders = async (heads: readonly Header[]): Promise<readonly RpcAnswer[]> => {
		const calls = heads.map(({ hash }) => ({ method: "eth_getBlockByHash", params: [hash, false] }));
		try {
			return await node.batch(calls, HEADERS_MS);
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			log.warn("sending subscribers short headers", { code: thrown.code, count: heads.length });
			return [];
		}
	};
	const publish = inBatches<Header>(background, "heads", async (heads) => {
		const answers = await askHeaders(heads);
		for (const [i, head] of heads.entries()) {
			publisher.publish(NEW_HEADS, () => nodeHeader(answers[i], head) ?? knownHeader(head));
		}
	});
	return {
		/** Publishes new canonical blocks, oldest first; returns at once. */
		onHeads(blocks: readonly Block[]): void {
			if (publisher.hasSubscribers(NEW_HEADS)) publish(blocks);
		},
	};
}

/**
 * The feed of logs. Its topics are `LOGS` followed by a filter as JSON. Equal filters are one
 * topic, which is searched once.
 */
export function createLogFeed(
	dependencies: FeedDependencies & { readonly logs: BlockLogs; readonly turns: EventLoopQueue },
) {
	const { logs, publisher, background, log, turns } = dependencies;
	const isWanted = (): boolean => {
		for (const _ of publisher.subscribed(LOGS)) return true;
		return false;
	};
	const publishBlock = async (blockHash: string, removed: boolean): Promise<void> => {
		if (!isWanted()) return;
		try {
			const table = await logs.of(blockHash);
			const looking: Promise<void>[] = [];
			for (const { suffix, client } of publisher.subscribed(LOGS)) {
				const look = turns.result(client, () => {
					const selected = table.select(JSON.parse(suffix) as LogFilter, removed);
					if (selected.heads.length > 0) publisher.publishAll(`${LOGS}${suffix}`, logResults(selected));
				});
				if (looking.push(look) % FILTERS_A_TURN === 0) await nextTurn();
			}
			// Wait, so that each subscriber gets the next block's logs after these.
			await Promise.all(looking);
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			log.warn("could not send subscribers the logs of a block", { code: thrown.code });
		}
	};
	const publish = inBatches<ChainUpdate>(background, "logs", async (updates) => {
		for (const { reverted, applied } of updates) {
			for (const { hash } of reverted) await publishBlock(hash, true);
			for (const { hash } of applied) await publishBlock(hash, false);
		}
	});
	return {
		/** Publishes a chain update's logs; returns at once. */
		onUpdate(update: ChainUpdate): void {
			if (isWanted()) publish([update]);
		},
	};
}

/** The node's header of `head`; null if it failed or answered with another block. */
function nodeHeader(answer: RpcAnswer | undefined, head: Header): Record<string, unknown> | null {
	const block = answer?.ok === true ? fieldsOf(answer.result) : null;
	return block !== null && block.hash === head.hash ? headerOf(block) : null;
}

/** A header of the fields that the relay knows, in a node's JSON. */
function knownHeader(head: Header): Record<string, unknown> {
	return {
		number: toQuantity(head.number),
		hash: head.hash,
		parentHash: head.parentHash,
		miner: head.miner,
		gasLimit: toQuantity(head.gasLimit),
		gasUsed: toQuantity(head.gasUsed),
		timestamp: toQuantity(head.timestamp),
		baseFeePerGas: toQuantity(head.baseFee),
		blobGasUsed: toQuantity(head.blobGasUsed),
		excessBlobGas: toQuantity(head.excessBlobGas),
	};
}
