// The status record of `GET /tx/{hash}` (interface section 2.1): its shape, the blank one of a hash of which nothing is
// known, and what a stage means to the transaction's user. Who fills it in knows what is true of the transaction.

/** What is told beside the interface's fields of a hash that is held. */
export interface StageReport {
	/** See docs/api.md; relay/domain/record.ts has the relay's own. */
	readonly stage: string;
	/** The stage in a plain word. */
	readonly state: string;
	/** The block that holds it. */
	readonly blockNumber: number | null;
	/** Why it is not on its way into a block, or was there in vain, in a sentence. */
	readonly reason: string | null;
	/** What was paid to its user, as a decimal string. */
	readonly refundWei: string;
	/** What its user can do. */
	readonly nextStep: string | null;
}

/** The transaction status record of the interface, with the fields of {@link StageReport} for a hash that is held. */
export interface StatusRecord extends Partial<StageReport> {
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

/** By stage: the plain word, the reason and the next step, where these follow from the stage alone. */
const STATES: Readonly<
	Record<string, readonly [state: string, reason: string | null, nextStep: string | null]>
> = {
	PENDING: ["received", null, null],
	QUEUED: [
		"waiting",
		"an earlier transaction of the sender must go first",
		"send the transaction with the missing nonce, or raise or cancel the one that is held",
	],
	SIMULATION_FAILED: ["failing", null, "wait, since it is tried again with each block, or cancel it"],
	SHARED: ["shown to searchers", null, null],
	BROADCAST: ["sent to builders", null, null],
	INCLUDED: ["included", null, null],
	REVERTED: ["reverted", "it is in the block, where its execution was undone", null],
	REPLACED: ["replaced", "another transaction of the sender took its nonce", null],
	CANCELLED: ["cancelled", "the sender cancelled it", null],
	EXPIRED: ["expired", "no block took it in time", "send it again, with a higher priority fee"],
	DROPPED: ["dropped", "another transaction with its nonce was mined", null],
	HELD: ["held", "the relay is out: boost keeps it, and another relay may have it", null],
};

/** What can be done, by the code of the simulation error. */
const NEXT_STEPS: Readonly<Record<string, string>> = {
	INSUFFICIENT_FUNDS: "add Ether to the sender's account, or cancel it",
	BLOB_FEE_CAP_TOO_LOW: "raise the fee cap for blobs, or wait until the blob base fee falls",
	OUT_OF_GAS: "send it again with a higher gas limit, or cancel it",
	GAS_LIMIT_TOO_HIGH: "send it again with a lower gas limit, or cancel it",
	NODE_UNAVAILABLE: "wait: the relay's node does not answer",
};

/** What follows for the user of a transaction in `stage`; `error`: why its simulation fails. */
export function stageReport(
	stage: string,
	facts: Partial<Pick<StageReport, "blockNumber" | "refundWei">> & {
		readonly error?: StatusError | null;
	} = {},
): StageReport {
	const { error = null, blockNumber = null, refundWei = "0" } = facts;
	const [state, reason, nextStep] = STATES[stage] ?? [stage.toLowerCase(), null, null];
	const told = { stage, state, blockNumber, reason: error?.message ?? reason, refundWei };
	if (error === null) return { ...told, nextStep };
	return { ...told, nextStep: raisedFeeCap(error) ?? NEXT_STEPS[error.code] ?? nextStep };
}

/** With the base fee that the relay's own message ends with, and an eighth more, by which it may rise in a block. */
function raisedFeeCap({ code, message }: StatusError): string | null {
	const [, baseFee] = /base fee (\d+)$/.exec(message) ?? [];
	if (code !== "FEE_CAP_TOO_LOW" || baseFee === undefined) return null;
	const gwei = Number(((BigInt(baseFee) * 9n) / 8n).toString()) / 1e9;
	return `raise the fee cap to ${Number(gwei.toPrecision(2))} gwei, or wait until the base fee falls`;
}
