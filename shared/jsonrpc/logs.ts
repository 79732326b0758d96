// Filters of event logs by address and topics, in the form that `eth_getLogs` accepts. Pure.

import { z } from "zod";
import { toQuantity } from "../ethereum/hex.ts";
import { address, type BlockTag, blockNumberOrTag, boundedList, exactObject, hash } from "./method.ts";

const MAX_VALUES = 100;
const MAX_TOPICS = 4;

/** A log from the node. */
export interface Log {
	readonly address: string;
	readonly topics: readonly string[];
}

/** Lower-case hex; an empty list matches anything. */
export interface LogFilter {
	readonly address: readonly string[];
	/** By position. A log with fewer topics does not match. */
	readonly topics: readonly (readonly string[])[];
}

/** A parsed filter object. */
export interface LogCriteria {
	readonly filter: LogFilter;
	/** The first and the last block; null: any. */
	readonly from: bigint | null;
	readonly to: bigint | null;
	/** The filter as a parameter of `eth_getLogs`. */
	readonly query: object;
}

/** One value, a list of them, or null for any. */
function anyOf<T extends typeof hash>(value: T, expected: string) {
	const list = boundedList(value, MAX_VALUES, `${MAX_VALUES} at most`);
	return z.union([value.transform((one) => [one]), list], { error: `expected ${expected}` }).nullish();
}

/** The filter object of `eth_newFilter` and of `eth_subscribe ["logs", …]`. */
export const logCriteria = exactObject({
	address: anyOf(address, "an address of 20 bytes as 0x hex, or a list of them"),
	topics: boundedList(
		anyOf(hash, "a topic of 32 bytes as 0x hex, a list of them, or null"),
		MAX_TOPICS,
		`a list of ${MAX_TOPICS} topics at most`,
	).nullish(),
	fromBlock: blockNumberOrTag.nullish(),
	toBlock: blockNumberOrTag.nullish(),
	blockHash: z.never({ error: "expected none: eth_getLogs has the logs of one block" }).nullish(),
}).transform(({ address, topics, fromBlock, toBlock }): LogCriteria => {
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
