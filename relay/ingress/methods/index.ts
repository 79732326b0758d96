// The relay's own methods: the list from which the dispatcher, rpc.discover and the README's table are made. Reads
// that the node answers are passed on elsewhere.

import { eth_getTransactionByHash } from "./eth_getTransactionByHash.ts";
import { eth_getTransactionCount } from "./eth_getTransactionCount.ts";
import { eth_sendPrivateTransaction } from "./eth_sendPrivateTransaction.ts";
import { eth_sendRawTransaction } from "./eth_sendRawTransaction.ts";
import { rpc_discover } from "./rpc_discover.ts";

export const METHODS = [
	eth_sendRawTransaction,
	eth_getTransactionCount,
	eth_getTransactionByHash,
	eth_sendPrivateTransaction,
	rpc_discover,
] as const;
