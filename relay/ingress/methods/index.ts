// The list of the relay's own methods, used by the dispatcher, rpc.discover and the documentation. Reads that the node answers
// are passed on elsewhere.

import { eth_cancelBundle, eth_sendBundle, mev_sendBundle } from "./bundles.ts";
import { eth_callBundle } from "./eth_callBundle.ts";
import { eth_callMany } from "./eth_callMany.ts";
import {
	eth_getFilterChanges,
	eth_getFilterLogs,
	eth_newBlockFilter,
	eth_newFilter,
	eth_newPendingTransactionFilter,
	eth_uninstallFilter,
} from "./filters.ts";
import { eth_accounts, rpc_discover, service_client, service_transactionStatuses } from "./service.ts";
import { eth_subscribe, eth_unsubscribe } from "./subscriptions.ts";
import {
	eth_cancelTransaction,
	eth_getTransactionByHash,
	eth_getTransactionCount,
	eth_sendPrivateTransaction,
	eth_sendRawTransaction,
	eth_sendRawTransactionSync,
} from "./transactions.ts";

export const METHODS = [
	eth_sendRawTransaction,
	eth_sendRawTransactionSync,
	eth_cancelTransaction,
	eth_getTransactionCount,
	eth_getTransactionByHash,
	eth_callMany,
	eth_callBundle,
	eth_sendPrivateTransaction,
	eth_subscribe,
	eth_unsubscribe,
	eth_newFilter,
	eth_newBlockFilter,
	eth_newPendingTransactionFilter,
	eth_getFilterChanges,
	eth_getFilterLogs,
	eth_uninstallFilter,
	eth_accounts,
	eth_sendBundle,
	eth_cancelBundle,
	mev_sendBundle,
	service_client,
	service_transactionStatuses,
	rpc_discover,
] as const;
