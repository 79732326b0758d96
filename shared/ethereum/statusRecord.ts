// The status record of `GET /tx/{hash}` (interface section 2.1): its shape, and the blank one of a hash of which nothing
// is known. Who fills it in knows what is true of the transaction.

/** The transaction status record of the interface; `stage` only for a hash that is held. */
export interface StatusRecord {
	readonly status: "INCLUDED" | "FAILED" | "UNKNOWN";
	/** Lower case. */
	readonly hash: string;
	/** ISO 8601, UTC, milliseconds. */
	readonly rpc_timestamp: string | null;
	/** `gas`, `nonce`, `value` (wei): decimal strings; `to` is empty for a creation. */
	readonly transaction: {
		readonly from: string;
		readonly to: string;
		readonly gas: string;
		readonly nonce: string;
		readonly value: string;
	};
	readonly fastMode: boolean;
	readonly shared: boolean;
	readonly simulationError: StatusError | null;
	readonly backruns: number;
	readonly referrer: string | null;
	readonly refundRecipient: string | null;
	/** ETH. */
	readonly refund: number;
	readonly stage?: string;
}

/** Why its simulation fails. */
export interface StatusError {
	/** Of a closed list, see decisions: `EXECUTION_REVERTED`, … */
	readonly code: string;
	/** With the decoded revert reason. */
	readonly message: string;
	/** Revert data as 0x hex. */
	readonly data?: string;
}

/** The record of a hash that was never seen. */
export function unknownStatus(hash: string): StatusRecord {
	return {
		status: "UNKNOWN",
		hash,
		rpc_timestamp: null,
		transaction: { from: "", to: "", gas: "", nonce: "", value: "" },
		fastMode: false,
		shared: false,
		simulationError: null,
		backruns: 0,
		referrer: null,
		refundRecipient: null,
		refund: 0,
	};
}
