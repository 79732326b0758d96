// Tells websocket subscribers of new heads and of logs as the chain changes, in order and in the node's own JSON: the logs
// of blocks that left the chain come again as removed, as go-ethereum does. The node is asked nothing while nobody listens.

import type { Background } from "../../shared/background.ts";
import { toQuantity } from "../../shared/ethereum/hex.ts";
import { headerOf } from "../../shared/ethereum/rpcObjects.ts";
import { type RpcAnswer, UpstreamError } from "../../shared/jsonrpc/client.ts";
import { type LogFilter, takes, withRemoved } from "../../shared/jsonrpc/logs.ts";
import type { Logger } from "../../shared/log.ts";
import type { Block, ChainUpdate, Header } from "../domain/chain.ts";
import { LOGS, NEW_HEADS } from "../domain/endpoints.ts";
import { fieldsOf } from "../domain/nodeJson.ts";
import type { Publisher } from "../domain/ports.ts";
import type { BlockLogs } from "./blockLogs.ts";
import type { NodeReader } from "./nodeReader.ts";

interface FeedDependencies {
	readonly publisher: Publisher & {
		/** Whether anybody listens to `topic`. */
		isHeard(topic: string): boolean;
		/** What the topics that begin with `prefix` and that somebody listens to go on with. */
		heardAfter(prefix: string): readonly string[];
	};
	readonly background: Pick<Background, "run">;
	readonly log: Logger;
}

/** How long the node may take for the headers, in ms: a head that comes late is worth little. */
const HEADERS_MS = 1_000;
/** Heads, or changes of the chain, that may wait for the node; beyond that subscribers miss the oldest. */
const MAX_WAITING = 64;

/** Hands what comes to `work`, one round after another so that all stays in order; what comes meanwhile goes together. */
function inRounds<T>(
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

/** The feed of `NEW_HEADS`: headers as geth's `newHeads` has them; what the relay knows itself where the node fails. */
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
			log.warn("subscribers get short headers", { code: thrown.code, count: heads.length });
			return [];
		}
	};
	const tell = inRounds<Header>(background, "heads", async (heads) => {
		const answers = await askHeaders(heads);
		for (const [i, head] of heads.entries()) {
			publisher.publish(NEW_HEADS, () => toldHeader(answers[i], head) ?? knownHeader(head));
		}
	});
	return {
		/** Takes new blocks of the canonical chain, oldest first; returns at once. */
		onHeads(blocks: readonly Block[]): void {
			if (publisher.isHeard(NEW_HEADS)) tell(blocks);
		},
	};
}

/** The feed of the topics that begin with `LOGS` and go on with a filter as JSON. */
export function createLogFeed(dependencies: FeedDependencies & { readonly logs: BlockLogs }) {
	const { logs, publisher, background, log } = dependencies;
	const tellBlock = async (blockHash: string, removed: boolean): Promise<void> => {
		const filters = publisher.heardAfter(LOGS);
		if (filters.length === 0) return;
		try {
			const all = await logs.of(blockHash);
			for (const text of filters) {
				const filter = JSON.parse(text) as LogFilter;
				for (const one of all) {
					if (takes(filter, one)) publisher.publish(`${LOGS}${text}`, () => withRemoved(one, removed));
				}
			}
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			log.warn("subscribers miss the logs of a block", { code: thrown.code });
		}
	};
	const tell = inRounds<ChainUpdate>(background, "logs", async (updates) => {
		for (const { reverted, applied } of updates) {
			for (const { hash } of reverted) await tellBlock(hash, true);
			for (const { hash } of applied) await tellBlock(hash, false);
		}
	});
	return {
		/** Takes a change of the chain; returns at once. */
		onUpdate(update: ChainUpdate): void {
			if (publisher.heardAfter(LOGS).length > 0) tell([update]);
		},
	};
}

/** The node's header of `head`; null where it did not tell, or told of another block. */
function toldHeader(answer: RpcAnswer | undefined, head: Header): Record<string, unknown> | null {
	const block = answer?.ok === true ? fieldsOf(answer.result) : null;
	return block !== null && block.hash === head.hash ? headerOf(block) : null;
}

/** The fields that the relay has itself, as a node writes them. */
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
