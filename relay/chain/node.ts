// Identifies the node and its chain at the start. Waits until the node answers and is not far
// behind its chain.

import type { Clock } from "../../shared/clock.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, type RpcAnswer, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Logger } from "../../shared/log.ts";
import { advice } from "../../shared/outgoing/advice.ts";
import { untilDone } from "../../shared/waiting.ts";
import { fieldsOf, readHash } from "../domain/nodeJson.ts";

export interface NodeProbe {
	readonly chainId: bigint;
	/** Lower-case. */
	readonly genesisHash: string;
	/**
	 * The node's `web3_clientVersion`, at most 100 printable characters; "unknown" if it has none.
	 */
	readonly clientVersion: string;
}

const PROBE_MS = 5_000;

/** How many blocks the node may be behind the highest block that it knows. */
const MAX_BLOCKS_BEHIND = 64n;

/**
 * Reads the node's chain and version within five seconds. Throws an UpstreamError, or {@link
 * NodeNotReadyError} if its answers are not usable yet.
 */
export async function probeNode(node: Pick<JsonRpcClient, "call">): Promise<NodeProbe> {
	const ask = (method: string, params: readonly unknown[]) => node.call({ method, params }, PROBE_MS);
	const [chain, genesis, syncing, version] = await Promise.all([
		ask("eth_chainId", []),
		ask("eth_getBlockByNumber", ["0x0", false]),
		ask("eth_syncing", []),
		ask("web3_clientVersion", []),
	]);
	const chainId = chain.ok ? parseNodeQuantity(chain.result) : null;
	if (chainId === null) throw unusable("eth_chainId", chain);
	const genesisHash = genesis.ok ? readHash(fieldsOf(genesis.result)?.hash) : null;
	if (genesisHash === null) throw unusable("eth_getBlockByNumber of block 0", genesis);
	const behind = syncing.ok ? blocksBehind(syncing.result) : null;
	if (behind !== null) throw new NodeNotReadyError(`the node is syncing: ${behind}`);
	return { chainId, genesisHash, clientVersion: printable(version.ok ? version.result : null) };
}

function unusable(what: string, answer: RpcAnswer): NodeNotReadyError {
	const how = answer.ok ? "without a result of use" : `with the JSON-RPC error ${answer.error.code}`;
	return new NodeNotReadyError(`the node answers ${what} ${how}`);
}

/**
 * How far a node is behind its chain, by its answer to `eth_syncing`; null if it is not behind, or
 * does not say.
 */
function blocksBehind(syncing: unknown): string | null {
	const { currentBlock, highestBlock } = fieldsOf(syncing) ?? {};
	const [current, highest] = [parseNodeQuantity(currentBlock), parseNodeQuantity(highestBlock)];
	// Nodes also report that they sync while they index old blocks, or when they are one block
	// behind.
	if (current === null || highest === null || highest - current <= MAX_BLOCKS_BEHIND) return null;
	return `it is at block ${current} of ${highest}`;
}

function printable(version: unknown): string {
	if (typeof version !== "string" || version === "") return "unknown";
	return version.replace(/[^\x20-\x7e]/g, "?").slice(0, 100);
}

/**
 * The node answers, but is not usable yet. The message is for the operator and public, so it has no
 * text of the node.
 */
class NodeNotReadyError extends Error {
	readonly code = "NODE_NOT_READY";
	constructor(message: string) {
		super(message);
		this.name = "NodeNotReadyError";
	}
}

/** The node is on another chain. */
export class WrongNodeError extends Error {
	readonly code = "WRONG_NODE";
	constructor(message: string) {
		super(message);
		this.name = "WrongNodeError";
	}
}

export interface AwaitNodeOptions {
	/** The chain that the node must be on, if set. */
	readonly chainId: bigint | undefined;
	readonly clock: Clock;
	readonly log: Logger;
	/**
	 * Called and awaited if the node is not usable yet, and when the reason changes. The reason is
	 * public.
	 */
	readonly onWait: (reason: string) => Promise<void> | void;
	/** Ends the wait. */
	readonly stopped: AbortSignal;
}

/**
 * Waits for a usable node, without a time limit. Throws {@link WrongNodeError}, or StoppedError.
 */
export async function awaitNode(
	node: Pick<JsonRpcClient, "call">,
	options: AwaitNodeOptions,
): Promise<NodeProbe> {
	const { chainId, clock, log, onWait, stopped } = options;
	const probe = await untilDone("the wait for the node", () => probeNode(node), {
		clock,
		stopped,
		reasonOf,
		onFailure: onWait,
		tell: (failure) => log.warn("waiting for the node of ETH_RPC_URL", { ...failure }),
	});
	if (chainId !== undefined && probe.chainId !== chainId) {
		throw new WrongNodeError(`ETH_RPC_URL is on chain ${probe.chainId}: expected CHAIN_ID ${chainId}`);
	}
	log.info("node found", { chainId: probe.chainId.toString() });
	return probe;
}

/**
 * Why the node can't be used yet, without a URL or a text of its own. Other errors are thrown
 * again.
 */
function reasonOf(thrown: unknown): string {
	if (thrown instanceof NodeNotReadyError) return thrown.message;
	if (!(thrown instanceof UpstreamError)) throw thrown;
	const hint = advice("ETH_RPC_URL", thrown.symptom);
	if (hint !== null) return `the node gives no JSON-RPC answer: ${hint}`;
	if (thrown.code === "timeout") return `the node does not answer within ${PROBE_MS / 1000} s`;
	return `the node does not answer${thrown.reason === undefined ? "" : ` (${thrown.reason})`}`;
}
