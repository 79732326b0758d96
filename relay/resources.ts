// What is opened before any stage can be made, and closed last: settings come in, the store's engine and the
// connections to the node go out.

import type { Clock } from "../shared/clock.ts";
import { JsonRpcClient } from "../shared/jsonrpc/client.ts";
import { dataFolder } from "../shared/kv/dataFolder.ts";
import { openLmdb } from "../shared/kv/lmdb.ts";
import type { KeyValueStore } from "../shared/kv/port.ts";
import type { RelayConfig } from "./config.ts";

/** Calls to the node that have no deadline of their own, in ms. */
export const NODE_TIMEOUT_MS = 5_000;

export interface Resources {
	readonly kv: KeyValueStore;
	/** For the relay itself. */
	readonly client: JsonRpcClient;
	/** For what clients read: that must not hold up what submissions need. */
	readonly readClient: JsonRpcClient;
	close(): Promise<void>;
}

/** Opens them. Throws DataFolderError or FolderInUseError; the node is not asked yet. */
export async function openResources(config: RelayConfig, clock: Clock): Promise<Resources> {
	const kv = await openLmdb(dataFolder(config.DATA_DIR, "relay"));
	const options = { url: config.ETH_RPC_URL, timeoutMs: NODE_TIMEOUT_MS };
	const client = new JsonRpcClient(options, { clock });
	const readClient = new JsonRpcClient(options, { clock });
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
