// The status record of `GET /tx/{hash}` (interface section 2.1): its fields, the record of an
// unknown hash, and the meaning of each stage for the user. Relay and boost fill it in.

import { isoTime } from "../clock.ts";

/** A block that contained a transaction and has left the chain. */
export interface Exposure {
	readonly block: number;
	/** Number of blocks that left, from the head down to that one. 1 if it was the head. */
	readonly depth: number;
}

/** Additional fields for a known hash. */
interface StageReport {
	/** See docs/api.md. */
	readonly stage: string;
	/** The stage in plain English. */
	readonly state: string;
	/** The block that includes it. */
	readonly blockNumber: number | null;
	/** Why it is not being sent to builders, or has failed in a block. */
	readonly reason: string | null;
	/** Paid to the user, as a decimal string. */
	readonly refundWei: string;
	/** Advice to the user. */
	readonly nextStep: string | null;
	/**
	 * Present if it was in a block that has left the chain. `message` explains that in plain
	 * English.
	 */
	readonly exposed?: Exposure & { readonly message: string };
	/**
	 * Present if the public mempool had it before any block did. `at`: ISO 8601, UTC, milliseconds.
	 */
	readonly seenInPublic?: { readonly at: string; readonly message: string };
}

/** The interface's status record, with the fields of {@link StageReport} for a known hash. */
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

/** Why a simulation fails. */
export interface StatusError {
	/** From a closed list: `EXECUTION_REVERTED`, … */
	readonly code: string;
	/** With the decoded revert reason. */
	readonly message: string;
	/** Revert data as 0x hex. */
	readonly data?: string;
}

/** The record of an unknown hash. */
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

/** The stages of a transaction that is not over: it may be mined, replaced, cancelled or expire. */
export const LIVE_STAGES = ["PENDING", "QUEUED", "SIMULATION_FAILED", "SHARED", "BROADCAST"] as const;
/** The live stages in which it is sent for each block: builders have it, or soon will. */
export const OUTGOING_STAGES = ["PENDING", "SHARED", "BROADCAST"] as const;
export const MINED_STAGES = ["INCLUDED", "REVERTED"] as const;
/** The stages of a transaction that ended without being mined. */
export const ENDED_STAGES = ["REPLACED", "CANCELLED", "EXPIRED", "DROPPED"] as const;
/**
 * All stages that a relay gives a transaction. `HELD` is boost's, for a transaction that boost or
 * the fallback has, but not the relay.
 */
export const STAGES = [...LIVE_STAGES, ...MINED_STAGES, ...ENDED_STAGES] as const;
export type Stage = (typeof STAGES)[number];

/** The reason of `HELD` while the relay is down. */
export const RELAY_OUT = "the relay is down: boost keeps it, and another relay may have it";

/** State, reason and next step by stage, as far as the stage alone determines them. */
const STATES: Readonly<
	Record<Stage | "HELD", readonly [state: string, reason: string | null, nextStep: string | null]>
> = {
	PENDING: ["received", null, null],
	QUEUED: [
		"waiting",
		"an earlier transaction of the sender must go first",
		"send the transaction with the missing nonce, or raise the fees of the unsent one, or cancel it",
	],
	SIMULATION_FAILED: ["failing", null, "wait, as it is tried again with each block, or cancel it"],
	SHARED: ["shown to searchers", null, null],
	BROADCAST: ["sent to builders", null, null],
	INCLUDED: ["included", null, null],
	REVERTED: ["reverted", "its execution failed in the block and was undone, and its gas was paid", null],
	REPLACED: ["replaced", "another transaction of the sender replaced it", null],
	CANCELLED: ["cancelled", "the sender cancelled it", null],
	EXPIRED: ["expired", "no block included it in time", "send it again, with a higher priority fee"],
	DROPPED: ["dropped", "another transaction with its nonce was mined", null],
	HELD: ["held", RELAY_OUT, null],
};

/**
 * State of a pending transaction that waits for a fee to fall, by code of the simulation error. It
 * has not failed.
 */
const WAITING: Readonly<Record<string, string>> = {
	FEE_CAP_TOO_LOW: "waiting for the base fee to fall",
	BLOB_FEE_CAP_TOO_LOW: "waiting for the blob base fee to fall",
};

/**
 * Next steps after expiry, by code of the error of its last simulation. For any other code its call
 * failed.
 */
const AFTER_EXPIRY: Readonly<Record<string, string>> = {
	INSUFFICIENT_FUNDS: "add Ether to the sender's account, and send it again",
	FEE_CAP_TOO_LOW: "send it again with a higher fee cap",
	BLOB_FEE_CAP_TOO_LOW: "send it again with a higher fee cap for blobs",
	OUT_OF_GAS: "send it again with a higher gas limit",
	GAS_LIMIT_TOO_HIGH: "send it again with a lower gas limit",
	FORK_RULES: "the chain has new rules: sign it again with the gas limit that they need",
	NODE_UNAVAILABLE: "send it again",
};
const CALL_FAILED =
	"its call failed whenever it was simulated: change it, or send it again when it can succeed";

/** Next steps by code of the simulation error. */
const NEXT_STEPS: Readonly<Record<string, string>> = {
	INSUFFICIENT_FUNDS: "add Ether to the sender's account, or cancel it",
	BLOB_FEE_CAP_TOO_LOW: "raise the fee cap for blobs, or wait until the blob base fee falls",
	OUT_OF_GAS: "send it again with a higher gas limit, or cancel it",
	GAS_LIMIT_TOO_HIGH: "send it again with a lower gas limit, or cancel it",
	FORK_RULES: "the chain has new rules: sign it again with the gas limit that they need, or cancel it",
	NODE_UNAVAILABLE: "wait: the relay's node gives no verdict now; on /fast what it can't simulate is sent",
};

/** Whether a pending transaction with this simulation error waits for a fee to fall. */
export function waitsForFee({ code }: Pick<StatusError, "code">): boolean {
	return WAITING[code] !== undefined;
}

/**
 * The report for a transaction in `stage`. `error`: why its simulation fails, or failed until it
 * expired.
 */
export function stageReport(
	stage: string,
	facts: Partial<Pick<StageReport, "blockNumber" | "refundWei">> & {
		readonly error?: StatusError | null;
		/** Wei that paying the refund would have cost, where that was more than the refund. */
		readonly refundCost?: string | null;
		readonly exposed?: Exposure | null;
		/** In ms since the epoch. */
		readonly seenAt?: number | null;
	} = {},
): StageReport {
	const { error = null, blockNumber = null, refundWei = "0", refundCost = null } = facts;
	const { exposed = null, seenAt = null } = facts;
	const [state, usual, usualStep] = (STATES as Partial<Record<string, (typeof STATES)[Stage]>>)[stage] ?? [
		stage.toLowerCase(),
		null,
		null,
	];
	const noRefund =
		refundCost && `no refund: paying it would have cost the builder ${refundCost} wei, which is more`;
	const report = {
		stage,
		state: (error !== null && stage === "PENDING" ? WAITING[error.code] : undefined) ?? state,
		blockNumber,
		reason: error?.message ?? usual ?? noRefund,
		refundWei,
		nextStep: error === null ? usualStep : (nextStepOf(stage, error) ?? usualStep),
	};
	if (exposed === null && seenAt === null) return report;
	return {
		...report,
		...(exposed === null ? {} : { exposed: { ...exposed, message: seenIn(exposed) } }),
		...(seenAt === null ? {} : { seenInPublic: { at: isoTime(seenAt), message: SEEN_IN_PUBLIC } }),
	};
}

const SEEN_IN_PUBLIC =
	"it was in the public mempool before any block had it, so anybody may use it: its sender, a wallet, a fallback or a builder may have published it";

function seenIn({ block }: Exposure): string {
	return `it was seen in block ${block}, which has left the chain, so it is public: only another transaction with its nonce can stop it`;
}

function nextStepOf(stage: string, error: StatusError): string | undefined {
	const cap = feeCapFor(error);
	if (stage === "EXPIRED") {
		return cap === null
			? (AFTER_EXPIRY[error.code] ?? CALL_FAILED)
			: `send it again with a fee cap of ${cap} gwei or more`;
	}
	return cap === null
		? NEXT_STEPS[error.code]
		: `raise the fee cap to ${cap} gwei, or wait until the base fee falls`;
}

/** As a decimal without an exponent, which wallets' fields for gwei do not accept. */
const GWEI = new Intl.NumberFormat("en", { maximumSignificantDigits: 2, useGrouping: false });

/**
 * In gwei: the base fee at the end of the relay's message, plus the maximum rise by one block (an
 * eighth).
 */
function feeCapFor({ code, message }: StatusError): string | null {
	const [, baseFee] = /base fee (\d+)$/.exec(message) ?? [];
	if (code !== "FEE_CAP_TOO_LOW" || baseFee === undefined) return null;
	return GWEI.format(Number((BigInt(baseFee) * 9n) / 8n) / 1e9);
}
