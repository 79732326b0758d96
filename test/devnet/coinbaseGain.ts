// Sums, from a block's traces (trace_block), the wei that each transaction moved to one address by calls, creations
// and self-destructs. Priority fees are no calls: they are not in it.

/** One trace, as parity's format has it. */
export interface BlockTrace {
	readonly type: string;
	readonly transactionHash: string;
	/** Place in the tree of calls: [] for the transaction itself, [0, 2] for the third call of its first. */
	readonly traceAddress: readonly number[];
	readonly error?: string;
	readonly action: {
		readonly callType?: string;
		readonly from?: string;
		readonly to?: string;
		readonly value?: string;
		readonly refundAddress?: string;
		readonly balance?: string;
	};
}

/** Wei moved to `recipient` (any case), by transaction hash; what was moved in a call that failed is not counted. */
export function paidTo(recipient: string, traces: readonly BlockTrace[]): Map<string, bigint> {
	const address = recipient.toLowerCase();
	const paid = new Map<string, bigint>();
	let transaction = "";
	let failed: string[] = [];
	for (const trace of traces) {
		// A transaction's traces come in a row, callers before what they call.
		if (trace.transactionHash !== transaction) failed = [];
		transaction = trace.transactionHash;
		const place = trace.traceAddress.map((step) => `${step}/`).join("");
		if (failed.some((caller) => place.startsWith(caller))) continue;
		if (trace.error !== undefined) {
			failed.push(place);
			continue;
		}
		const wei = moved(trace, address);
		if (wei !== 0n) paid.set(transaction, (paid.get(transaction) ?? 0n) + wei);
	}
	return paid;
}

function moved(trace: BlockTrace, address: string): bigint {
	const { action } = trace;
	if (trace.type === "suicide" && action.refundAddress === address) return BigInt(action.balance ?? 0);
	// A delegatecall's value is only shown, and a callcode's goes to the caller itself.
	const transfers = trace.type === "call" && action.callType === "call" && action.from !== address;
	return transfers && action.to === address ? BigInt(action.value ?? 0) : 0n;
}
