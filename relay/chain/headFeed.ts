// Publishes new heads to `newHeads` subscribers, in order and in the node's own JSON. It asks the node nothing while
// nobody listens.

import type { Background } from "../../shared/background.ts";
import { toQuantity } from "../../shared/ethereum/hex.ts";
import { headerOf } from "../../shared/ethereum/rpcObjects.ts";
import { type RpcAnswer, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Logger } from "../../shared/log.ts";
import type { Block, Header } from "../domain/chain.ts";
import { NEW_HEADS } from "../domain/endpoints.ts";
import { fieldsOf } from "../domain/nodeJson.ts";
import type { Publisher } from "../domain/ports.ts";
import type { NodeReader } from "./nodeReader.ts";

export interface HeadFeedDependencies {
	readonly node: Pick<NodeReader, "batch">;
	readonly publisher: Publisher & {
		/** Whether anybody listens to `topic`. */
		isHeard(topic: string): boolean;
	};
	readonly background: Pick<Background, "run">;
	readonly log: Logger;
}

/** Tells subscribers of heads. */
export interface HeadFeed {
	/** Takes new blocks of the canonical chain, oldest first; returns at once. */
	onHeads(blocks: readonly Block[]): void;
}

/** How long the node may take for the headers, in ms: a head that comes late is worth little. */
const HEADERS_MS = 1_000;
/** Heads that may wait; of more, the newest are told. */
const MAX_WAITING = 64;
/** The feed of `NEW_HEADS`: headers as geth's `newHeads` has them; what the relay knows itself where the node fails. */
export function createHeadFeed(dependencies: HeadFeedDependencies): HeadFeed {
	const { node, publisher, background, log } = dependencies;
	let waiting: Header[] = [];
	let running = false;

	/** One round after another, so that heads stay in order; those that come meanwhile are asked together. */
	const work = async (): Promise<void> => {
		try {
			while (waiting.length > 0) {
				const heads = waiting;
				waiting = [];
				const answers = await askHeaders(heads);
				for (const [i, head] of heads.entries()) {
					publisher.publish(NEW_HEADS, () => toldHeader(answers[i], head) ?? knownHeader(head));
				}
			}
		} finally {
			running = false;
		}
	};
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
	return {
		onHeads(blocks) {
			if (!publisher.isHeard(NEW_HEADS)) return;
			waiting = [...waiting, ...blocks].slice(-MAX_WAITING);
			if (running || waiting.length === 0) return;
			running = true;
			background.run("heads", work);
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
