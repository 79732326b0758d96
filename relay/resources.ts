// What is opened before any stage and closed last: the store and the connections to the node.

import { JsonRpcClient } from "../shared/jsonrpc/client.ts";
import type { OpenStore, OpenStoreDependencies } from "../shared/kv/openStore.ts";
import type { SharedStore } from "../shared/kv/port.ts";
import type { RelayConfig } from "./config.ts";

/** Calls to the node that have no deadline of their own, in ms. */
export const NODE_TIMEOUT_MS = 5_000;
/** As many as clients' reads and simulations are asked for at once: none of them waits for a connection. */
const READ_CONNECTIONS = 64;

export interface Resources {
	readonly kv: SharedStore;
	/** For the relay itself. */
	readonly client: JsonRpcClient;
	/** For what clients read: that must not hold up what submissions need. */
	readonly readClient: JsonRpcClient;
	close(): Promise<void>;
}

/** Opens them. Throws as `openStore` does; the node is not asked yet. */
export async function openResources(
	config: RelayConfig,
	openStore: OpenStore,
	dependencies: OpenStoreDependencies,
): Promise<Resources> {
	const { clock } = dependencies;
	const kv = await openStore("relay", config, dependencies);
	const options = { url: config.ETH_RPC_URL, timeoutMs: NODE_TIMEOUT_MS };
	const client = new JsonRpcClient(options, { clock });
	const readClient = new JsonRpcClient({ ...options, connections: READ_CONNECTIONS }, { clock });
	return {
		kv,
		client,
		readClient,
		async close() {
			await Promise.all([client.close(), readClient.close()]);
			await kv.close();
		},
	};
}
