// Waits at the start until the node answers, and refuses one on another chain than the settings say.

import { type Clock, pause } from "../../shared/clock.ts";
import type { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { type NodeProbe, probeNode } from "./node.ts";

/** The node does not answer, or is on another chain. */
export class WrongNodeError extends Error {
	readonly code = "WRONG_NODE";
	constructor(message: string) {
		super(message);
		this.name = "WrongNodeError";
	}
}

export interface AwaitNodeOptions {
	/** The chain that it must be on. */
	readonly chainId: bigint | undefined;
	readonly clock: Clock;
	readonly log: Logger;
	/** Ends the wait. */
	readonly stopped?: AbortSignal;
}

/** How long a start waits for the node, in ms: hosts start both at the same time. */
const WAIT_MS = 30_000;
const RETRY_MS = 500;

/** Waits for the node's first answer, until it is `stopped`. Throws {@link WrongNodeError}. */
export async function awaitNode(
	node: Pick<JsonRpcClient, "call">,
	options: AwaitNodeOptions,
): Promise<NodeProbe> {
	const { chainId, clock, log, stopped } = options;
	const until = clock.monotonic() + WAIT_MS;
	for (;;) {
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
			log.warn("the node does not answer yet", { fault: safeError(thrown) });
			await pause(clock, RETRY_MS, stopped);
		}
	}
}
