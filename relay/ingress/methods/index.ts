// The relay's own methods: the list from which the dispatcher, rpc.discover and the documents' table are made. Reads
// that the node answers are passed on elsewhere.

import { eth_callMany } from "./eth_callMany.ts";
import { eth_cancelBundle } from "./eth_cancelBundle.ts";
import { eth_cancelTransaction } from "./eth_cancelTransaction.ts";
import { eth_getTransactionByHash } from "./eth_getTransactionByHash.ts";
import { eth_getTransactionCount } from "./eth_getTransactionCount.ts";
import { eth_sendBundle } from "./eth_sendBundle.ts";
import { eth_sendPrivateTransaction } from "./eth_sendPrivateTransaction.ts";
import { eth_sendRawTransaction } from "./eth_sendRawTransaction.ts";
import { eth_sendRawTransactionSync } from "./eth_sendRawTransactionSync.ts";
import { eth_subscribe } from "./eth_subscribe.ts";
import { eth_unsubscribe } from "./eth_unsubscribe.ts";
import { mev_sendBundle } from "./mev_sendBundle.ts";
import { rpc_discover } from "./rpc_discover.ts";
import { service_client } from "./service_client.ts";
import { service_transactionStatuses } from "./service_transactionStatuses.ts";

export const METHODS = [
	eth_sendRawTransaction,
	eth_sendRawTransactionSync,
	eth_cancelTransaction,
	eth_getTransactionCount,
	eth_getTransactionByHash,
	eth_callMany,
	eth_sendPrivateTransaction,
	eth_subscribe,
	eth_unsubscribe,
	eth_sendBundle,
	eth_cancelBundle,
	mev_sendBundle,
	service_client,
	service_transactionStatuses,
	rpc_discover,
] as const;
