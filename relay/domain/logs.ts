// Event logs of blocks, and which of them a client asks for: by address and by topics, as `eth_getLogs` does. Pure.

/** A log as the node tells it. */
export interface Log {
	readonly address: string;
	readonly topics: readonly string[];
}

/** Lower-case hex; an empty list takes any. */
export interface LogFilter {
	readonly address: readonly string[];
	/** By position. A log with fewer topics is not taken. */
	readonly topics: readonly (readonly string[])[];
}

/** What a filter that is polled asks for. */
export interface LogCriteria {
	readonly filter: LogFilter;
	/** The first and the last block; null: any. */
	readonly from: bigint | null;
	readonly to: bigint | null;
	/** The same as the object that `eth_getLogs` takes. */
	readonly query: object;
}

/** Whether `filter` takes `log`. */
export function takes(filter: LogFilter, { address, topics }: Log): boolean {
	if (filter.address.length > 0 && !filter.address.includes(address)) return false;
	if (topics.length < filter.topics.length) return false;
	return filter.topics.every((wanted, i) => wanted.length === 0 || wanted.includes(topics[i] ?? ""));
}

/** The log as it is told where its block has left the chain, or is in it. */
export function told(log: Log, removed: boolean): Log & { readonly removed: boolean } {
	return { ...log, removed };
}
