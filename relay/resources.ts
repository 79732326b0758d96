// The connections to the node: made before everything else and closed last.

import type { LookupFunction } from "node:net";
import type { Clock } from "../shared/clock.ts";
import { JsonRpcClient } from "../shared/jsonrpc/client.ts";
import { createLookup } from "../shared/outgoing/lookup.ts";
import type { RelayConfig } from "./config.ts";

/** Default deadline of a call to the node, in ms. */
export const NODE_TIMEOUT_MS = 5_000;
/** Enough for all client reads and simulations that may run at once. */
const READ_CONNECTIONS = 64;

export interface Resources {
	/** For the relay's own calls. */
	readonly client: JsonRpcClient;
	/** For clients' reads, which must not delay what submissions need. */
	readonly readClient: JsonRpcClient;
	/** Finds the addresses of the node, the builders and the core. */
	readonly lookup: LookupFunction;
	close(): Promise<void>;
}

/** Makes the clients; makes no call yet. */
export function openResources(
	config: Pick<RelayConfig, "ETH_RPC_URL">,
	dependencies: { readonly clock: Clock; readonly lookup?: LookupFunction | undefined },
): Resources {
	const { clock, lookup = createLookup({}, { clock }) } = dependencies;
	const options = { url: config.ETH_RPC_URL, timeoutMs: NODE_TIMEOUT_MS };
	const client = new JsonRpcClient(options, { clock, lookup });
	const readClient = new JsonRpcClient({ ...options, connections: READ_CONNECTIONS }, { clock, lookup });
	return {
		lookup,
		client,
		readClient,
		async close() {
			await Promise.all([client.close(), readClient.close()]);
		},
	};
}
