// The list of the relay's own methods, for the dispatcher, rpc.discover and the documentation.
// Other modules pass on the reads that the node answers.

import type { Client } from "../../../shared/client.ts";
import type { CallContext } from "../../../shared/http/callContext.ts";
import { methodNotFound } from "../../../shared/jsonrpc/methodNotFound.ts";
import type { CoreNeeds } from "../methodDependencies.ts";
import { BETWEEN_RELAYS } from "./betweenRelays.ts";
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
import { mev_simBundle } from "./mev_simBundle.ts";
import {
	flashbots_getBundleStats,
	flashbots_getBundleStatsV2,
	flashbots_getUserStats,
	flashbots_getUserStatsV2,
	service_bundles,
	service_searcherStats,
} from "./searcherStats.ts";
import { eth_accounts, rpc_discover, service_client, service_transactionStatuses } from "./service.ts";
import { service_receipt } from "./service_receipt.ts";
import { eth_subscribe, eth_unsubscribe } from "./subscriptions.ts";
import {
	eth_cancelTransaction,
	eth_getTransactionByHash,
	eth_getTransactionCount,
	eth_sendPrivateTransaction,
	eth_sendRawTransaction,
	eth_sendRawTransactionSync,
} from "./transactions.ts";

/** The methods that every relay answers by itself. */
export const EDGE_METHODS = [
	eth_getTransactionCount,
	eth_getTransactionByHash,
	eth_callMany,
	eth_callBundle,
	mev_simBundle,
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
	service_client,
	rpc_discover,
] as const;

/** The methods that only the core answers. */
export const CORE_METHODS = [
	eth_sendRawTransaction,
	eth_sendRawTransactionSync,
	eth_cancelTransaction,
	eth_sendBundle,
	eth_cancelBundle,
	mev_sendBundle,
	service_bundles,
	service_searcherStats,
	flashbots_getBundleStatsV2,
	flashbots_getUserStatsV2,
	flashbots_getBundleStats,
	flashbots_getUserStats,
	service_transactionStatuses,
	service_receipt,
] as const;

/** All methods that clients may call. */
export const METHODS = [...CORE_METHODS, ...EDGE_METHODS] as const;

/**
 * Runs the core's methods for other relays. Extra costs of a call go to `charge`, since the
 * client's rate limit is at the edge.
 */
export function coreCalls(needs: CoreNeeds) {
	const methods = new Map([...CORE_METHODS, ...BETWEEN_RELAYS].map((one) => [one.name as string, one]));
	return (
		method: string,
		params: readonly unknown[],
		context: CallContext,
		charge: (client: Client, weight: number) => void,
	): unknown => {
		const found = methods.get(method);
		if (found === undefined) throw methodNotFound(method);
		return found.invoke(params, context, { ...needs, charge });
	};
}
