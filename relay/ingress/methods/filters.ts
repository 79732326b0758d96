// The methods for polled filters of logs and of blocks. A filter for pending transactions can be
// made, but not polled: see shared/jsonrpc/pendingTransactions.ts.

import { z } from "zod";
import { clientOf } from "../../../shared/client.ts";
import { logCriteria } from "../../../shared/jsonrpc/logs.ts";
import { readParamsSize } from "../../../shared/jsonrpc/method.ts";
import { NO_PENDING_TRANSACTIONS, PENDING_ID } from "../../../shared/jsonrpc/pendingTransactions.ts";
import { callerOf, relayMethod } from "../methodDependencies.ts";

/** A heavy call, because it may read the logs of many blocks. */
const HEAVY = 10;

const id = z.string({ error: "expected the id of a filter" });

/** The id of a filter to poll. Throws an RpcError if the filter is for pending transactions. */
function polled(wanted: string): string {
	if (wanted === PENDING_ID) throw NO_PENDING_TRANSACTIONS;
	return wanted;
}

export const eth_newFilter = relayMethod({
	name: "eth_newFilter",
	summary:
		"Makes a filter of logs, for eth_getFilterChanges; it ends when it was not asked for five minutes.",
	params: [{ name: "filter", schema: logCriteria }],
	maxParamsSize: readParamsSize(1),
	result: z.string().describe("the filter's id"),
	handle: ([criteria], { client }, { filters }) => filters.open(clientOf(client.address), criteria),
});

export const eth_newBlockFilter = relayMethod({
	name: "eth_newBlockFilter",
	summary:
		"Makes a filter of new blocks, for eth_getFilterChanges; it ends when it was not asked for five minutes.",
	params: [],
	result: z.string().describe("the filter's id"),
	handle: (_, { client }, { filters }) => filters.open(clientOf(client.address), null),
});

export const eth_newPendingTransactionFilter = relayMethod({
	name: "eth_newPendingTransactionFilter",
	summary: "Creates a filter whose polls are refused: pending transactions are private.",
	// go-ethereum's flag for whole transactions instead of hashes.
	params: [{ name: "full", schema: z.unknown().optional().describe("accepted, no effect") }],
	result: z.string().describe("the filter's id"),
	handle: () => PENDING_ID,
});

export const eth_getFilterChanges = relayMethod({
	name: "eth_getFilterChanges",
	summary: "The block hashes or logs since the filter's last poll.",
	params: [{ name: "id", schema: id }],
	weight: HEAVY,
	result: z
		.array(z.unknown())
		.describe("block hashes, or logs; those of blocks that left the chain are removed"),
	handle: ([wanted], context, { filters }) => filters.changes(polled(wanted), callerOf(context)),
});

export const eth_getFilterLogs = relayMethod({
	name: "eth_getFilterLogs",
	summary: "All logs that match a log filter, as eth_getLogs returns them.",
	params: [{ name: "id", schema: id }],
	weight: HEAVY,
	result: z.array(z.unknown()).describe("logs"),
	handle: ([wanted], context, { filters, node }) =>
		node.logs(filters.query(polled(wanted)), callerOf(context)),
});

export const eth_uninstallFilter = relayMethod({
	name: "eth_uninstallFilter",
	summary: "Ends a filter.",
	params: [{ name: "id", schema: id }],
	result: z.boolean().describe("whether there was one"),
	handle: ([wanted], _, { filters }) => wanted === PENDING_ID || filters.close(wanted),
});
