// The methods for filters that clients poll: of logs and of blocks. Pending transactions have none, since whom they are shown
// to is not everybody.

import { z } from "zod";
import { toQuantity } from "../../../shared/ethereum/hex.ts";
import { clientOf } from "../../../shared/http/callContext.ts";
import { methodNotFound } from "../../../shared/jsonrpc/dispatch.ts";
import {
	address,
	type BlockTag,
	blockNumberOrTag,
	boundedList,
	hash,
	readParamsSize,
} from "../../../shared/jsonrpc/method.ts";
import type { LogCriteria } from "../../domain/logs.ts";
import { callerOf, relayMethod } from "../methodDependencies.ts";

const MAX_VALUES = 100;
const MAX_TOPICS = 4;
/** As go-ethereum weighs it: it may read many blocks. */
const HEAVY = 10;

/** One value, a list of them, or null for any. */
function anyOf<T extends typeof hash>(value: T, expected: string) {
	const list = boundedList(value, MAX_VALUES, `${MAX_VALUES} at most`);
	return z.union([value.transform((one) => [one]), list], { error: `expected ${expected}` }).nullish();
}

/** The filter object of `eth_newFilter` and of `eth_subscribe ["logs", …]`. */
export const logCriteria = z
	.object({
		address: anyOf(address, "an address of 20 bytes as 0x hex, or a list of them"),
		topics: boundedList(
			anyOf(hash, "a topic of 32 bytes as 0x hex, a list of them, or null"),
			MAX_TOPICS,
			`a list of ${MAX_TOPICS} topics at most`,
		).nullish(),
		fromBlock: blockNumberOrTag.nullish(),
		toBlock: blockNumberOrTag.nullish(),
	})
	.transform(({ address, topics, fromBlock, toBlock }): LogCriteria => {
		const filter = { address: address ?? [], topics: (topics ?? []).map((topic) => topic ?? []) };
		const wire = (block: bigint | BlockTag) => (typeof block === "bigint" ? toQuantity(block) : block);
		return {
			filter,
			from: typeof fromBlock === "bigint" ? fromBlock : null,
			to: typeof toBlock === "bigint" ? toBlock : null,
			query: {
				address: filter.address,
				topics: filter.topics.map((wanted) => (wanted.length === 0 ? null : wanted)),
				...(fromBlock == null ? {} : { fromBlock: wire(fromBlock) }),
				...(toBlock == null ? {} : { toBlock: wire(toBlock) }),
			},
		};
	});

const id = z.string({ error: "expected the id of a filter" });

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
	summary: "Not supported: pending transactions are private.",
	params: [],
	result: z.never(),
	handle() {
		throw methodNotFound("eth_newPendingTransactionFilter", "pending transactions are private");
	},
});

export const eth_getFilterChanges = relayMethod({
	name: "eth_getFilterChanges",
	summary: "The hashes of blocks, or the logs, that have come since the filter was asked last.",
	params: [{ name: "id", schema: id }],
	weight: HEAVY,
	result: z
		.array(z.unknown())
		.describe("block hashes, or logs; those of blocks that left the chain are removed"),
	handle: ([wanted], { client }, { filters }) => filters.changes(clientOf(client.address), wanted),
});

export const eth_getFilterLogs = relayMethod({
	name: "eth_getFilterLogs",
	summary: "All logs that a filter of logs takes, as eth_getLogs answers them.",
	params: [{ name: "id", schema: id }],
	weight: HEAVY,
	result: z.array(z.unknown()).describe("logs"),
	handle: ([wanted], context, { filters, node }) =>
		node.logs(filters.query(clientOf(context.client.address), wanted), callerOf(context)),
});

export const eth_uninstallFilter = relayMethod({
	name: "eth_uninstallFilter",
	summary: "Ends a filter.",
	params: [{ name: "id", schema: id }],
	result: z.boolean().describe("whether its client had it"),
	handle: ([wanted], { client }, { filters }) => filters.close(clientOf(client.address), wanted),
});

export const eth_accounts = relayMethod({
	name: "eth_accounts",
	summary: "An empty list: the relay holds nobody's keys.",
	params: [],
	result: z.array(z.string()),
	handle: () => [],
});
