// Identifies the node and its chain at the start, waiting until it answers, and offers the reads that the relay's own methods
// need. Nothing is cached.

import { type Clock, pause } from "../../shared/clock.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import { NODE_UNAVAILABLE, RpcError } from "../../shared/jsonrpc/errors.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { fieldsOf, readHash } from "../domain/nodeJson.ts";
import type { NodeReads } from "../domain/ports.ts";
import type { Passthrough } from "./passthrough.ts";

export interface NodeProbe {
	readonly chainId: bigint;
	/** Lower-case. */
	readonly genesisHash: string;
	/** The node's `web3_clientVersion`, in 100 printable characters at most; "unknown" if it has none. */
	readonly clientVersion: string;
}

const PROBE_MS = 5_000;

/** Reads the node's chain and version within five seconds. Throws an UpstreamError. */
export async function probeNode(node: Pick<JsonRpcClient, "call">): Promise<NodeProbe> {
	const ask = async (method: string, params: readonly unknown[]): Promise<unknown> => {
		const answer = await node.call({ method, params }, PROBE_MS);
		return answer.ok ? answer.result : null;
	};
	const [chain, genesis, version] = await Promise.all([
		ask("eth_chainId", []),
		ask("eth_getBlockByNumber", ["0x0", false]),
		ask("web3_clientVersion", []),
	]);
	const chainId = parseNodeQuantity(chain);
	const genesisHash = readHash(fieldsOf(genesis)?.hash);
	if (chainId === null || genesisHash === null) throw new UpstreamError("notJsonRpc");
	return { chainId, genesisHash, clientVersion: printable(version) };
}

/** The reads for the relay's own methods. They are shared like the listed ones, but never cached. */
export function nodeReads(passthrough: Pick<Passthrough, "read" | "call">): NodeReads {
	return {
		async pendingCount(address, caller) {
			const answer = await passthrough.read("eth_getTransactionCount", [address, "pending"], caller);
			const count = parseNodeQuantity(answer);
			if (count !== null) return count;
			throw new RpcError("internal", "internal error", NODE_UNAVAILABLE);
		},
		transactionCount: (address, block, caller) =>
			passthrough.read("eth_getTransactionCount", [address, block], caller),
		transactionByHash: (hash, caller) => passthrough.read("eth_getTransactionByHash", [hash], caller),
		receipt: (hash, caller) => passthrough.read("eth_getTransactionReceipt", [hash], caller),
		logs: (criteria, caller) => passthrough.call("eth_getLogs", [criteria], caller),
	};
}

function printable(version: unknown): string {
	if (typeof version !== "string" || version === "") return "unknown";
	return version.replace(/[^\x20-\x7e]/g, "?").slice(0, 100);
}

/** The node does not answer, or is on another chain. */
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
	/** Ends the wait. */
	readonly stopped?: AbortSignal;
}

/** How long a start waits for the node, in ms: a host may start both at the same time. */
const WAIT_MS = 30_000;
/** Pauses between two tries, doubled each time, in ms. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 4_000;

/** Waits for the node's first answer, until it is `stopped`. Throws {@link WrongNodeError}. */
export async function awaitNode(
	node: Pick<JsonRpcClient, "call">,
	options: AwaitNodeOptions,
): Promise<NodeProbe> {
	const { chainId, clock, log, stopped } = options;
	const until = clock.monotonic() + WAIT_MS;
	for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
		try {
			const probe = await probeNode(node);
			if (chainId !== undefined && probe.chainId !== chainId) {
				throw new WrongNodeError(`ETH_RPC_URL is on chain ${probe.chainId}: expected CHAIN_ID ${chainId}`);
			}
			log.info("node found", { chainId: probe.chainId.toString() });
			return probe;
		} catch (thrown) {
			if (thrown instanceof WrongNodeError) throw thrown;
			if (stopped?.aborted === true || clock.monotonic() > until) {
				throw new WrongNodeError("ETH_RPC_URL does not answer: expected an execution node's JSON-RPC");
			}
			log.warn("the node does not answer yet", { fault: safeError(thrown), ms: pauseMs });
			await pause(clock, pauseMs, stopped);
		}
	}
}
