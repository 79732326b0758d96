// What the chain says: calls come in, the answers of the independent node go out where there is one, else those of the
// relay, else those of the fallback. It judges no answer.

import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Call, CallResult, ChainReads, Upstreams } from "../domain/ports.ts";

/** Reads of the chain; `node` is null where no independent one is set. */
export function createChainReads(dependencies: {
	readonly node: JsonRpcClient | null;
	readonly upstreams: Upstreams;
}): ChainReads {
	const { node, upstreams } = dependencies;
	return {
		async batch(calls: readonly Call[], deadlineMs: number): Promise<readonly CallResult[] | null> {
			if (node !== null) {
				try {
					return await node.batch(calls, deadlineMs);
				} catch (thrown) {
					if (!(thrown instanceof UpstreamError)) throw thrown;
				}
			}
			const options = { deadlineMs, asker: null };
			const answers = await upstreams.relay.batch(calls, options);
			return answers ?? (await upstreams.fallback?.batch(calls, options)) ?? null;
		},
	};
}
