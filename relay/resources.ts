// The store and the connections to the node: opened before everything else and closed last.

import type { LookupFunction } from "node:net";
import { JsonRpcClient } from "../shared/jsonrpc/client.ts";
import type { OpenStore, OpenStoreDependencies } from "../shared/kv/openStore.ts";
import type { SharedStore } from "../shared/kv/port.ts";
import { createLookup } from "../shared/outgoing/lookup.ts";
import type { RelayConfig } from "./config.ts";

/** Default deadline of a call to the node, in ms. */
export const NODE_TIMEOUT_MS = 5_000;
/** Enough for all client reads and simulations that may run at once. */
const READ_CONNECTIONS = 64;

export interface Resources {
	readonly kv: SharedStore;
	/** For the relay's own calls. */
	readonly client: JsonRpcClient;
	/** For clients' reads, which must not delay what submissions need. */
	readonly readClient: JsonRpcClient;
	/** Finds the addresses of the node and the builders. */
	readonly lookup: LookupFunction;
	close(): Promise<void>;
}

/** Opens the store and the clients. Throws as `openStore` does; makes no call to the node yet. */
export async function openResources(
	config: RelayConfig,
	openStore: OpenStore,
	dependencies: OpenStoreDependencies & { readonly lookup?: LookupFunction | undefined },
): Promise<Resources> {
	const { clock, lookup = createLookup({}, { clock }) } = dependencies;
	const kv = await openStore("relay", config, dependencies);
	const options = { url: config.ETH_RPC_URL, timeoutMs: NODE_TIMEOUT_MS };
	const client = new JsonRpcClient(options, { clock, lookup });
	const readClient = new JsonRpcClient({ ...options, connections: READ_CONNECTIONS }, { clock, lookup });
	return {
		kv,
		lookup,
		client,
		readClient,
		async close() {
			await Promise.all([client.close(), readClient.close()]);
			await kv.close();
		},
	};
}
