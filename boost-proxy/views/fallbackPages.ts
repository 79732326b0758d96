// Reads the status pages of fallbacks. They are a third party's: only fields that are known pass, with values of their type.

import { type StatusError, type StatusRecord, unknownStatus } from "../../shared/ethereum/statusRecord.ts";
import type { DialectName } from "../domain/ports.ts";
import { isObject } from "./chainFacts.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The record that `page` amounts to, null where it is about nothing or not about `hash`. */
export function readFallbackPage(dialect: DialectName, page: unknown, hash: string): StatusRecord | null {
	if (!isObject(page)) return null;
	if (page.hash !== undefined && text(page.hash).toLowerCase() !== hash) return null;
	return dialect === "flashbots" ? protectRecord(page, hash) : relayRecord(page, hash);
}

/** Stages of what is pending there: to our users it is held, by whom does not matter. */
const PENDING: ReadonlySet<string> = new Set(["PENDING", "QUEUED", "SHARED", "BROADCAST", "HELD"]);
const STAGES: ReadonlySet<string> = new Set([
	"SIMULATION_FAILED",
	"INCLUDED",
	"REVERTED",
	"REPLACED",
	"CANCELLED",
	"EXPIRED",
	"DROPPED",
]);

/** The interface's own record; `stage` where it is another relay of our kind. */
function relayRecord(page: Fields, hash: string): StatusRecord | null {
	const blank = unknownStatus(hash);
	const stage = text(page.stage);
	const flags = { fastMode: page.fastMode === true, shared: page.shared === true };
	if (page.status === "UNKNOWN") return PENDING.has(stage) ? { ...blank, ...flags, stage: "HELD" } : blank;
	if (page.status !== "INCLUDED" && page.status !== "FAILED") return null;
	return {
		...blank,
		...flags,
		status: page.status,
		rpc_timestamp: textOrNull(page.rpc_timestamp),
		transaction: transactionOf(page.transaction, "gas"),
		simulationError: errorOf(page.simulationError),
		backruns: count(page.backruns),
		referrer: textOrNull(page.referrer),
		refundRecipient: textOrNull(page.refundRecipient),
		refund: count(page.refund),
		...(STAGES.has(stage) ? { stage } : {}),
	};
}

/**
 * What Flashbots Protect says of a transaction. FAILED is one that was tried for 25 blocks.
 * https://docs.flashbots.net/flashbots-protect/rpc/status-api
 */
const PROTECT: Readonly<Record<string, Pick<StatusRecord, "status" | "stage">>> = {
	PENDING: { status: "UNKNOWN", stage: "HELD" },
	INCLUDED: { status: "INCLUDED", stage: "INCLUDED" },
	FAILED: { status: "FAILED", stage: "EXPIRED" },
	CANCELLED: { status: "FAILED", stage: "CANCELLED" },
	UNKNOWN: { status: "UNKNOWN" },
};

function protectRecord(page: Fields, hash: string): StatusRecord | null {
	const name = text(page.status);
	const row = Object.hasOwn(PROTECT, name) ? PROTECT[name] : undefined;
	if (row === undefined) return null;
	const blank = { ...unknownStatus(hash), ...row };
	if (row.stage === undefined) return blank;
	const fastMode = page.fastMode === true;
	if (row.status === "UNKNOWN") return { ...blank, fastMode };
	const reverted = row.status === "INCLUDED" && page.isRevert === true;
	return {
		...blank,
		fastMode,
		transaction: transactionOf(page.transaction, "gasLimit"),
		...(reverted ? { stage: "REVERTED" } : {}),
	};
}

function transactionOf(value: unknown, gas: "gas" | "gasLimit"): StatusRecord["transaction"] {
	const fields: Fields = isObject(value) ? value : {};
	return {
		from: text(fields.from).toLowerCase(),
		to: text(fields.to).toLowerCase(),
		gas: text(fields[gas]),
		nonce: text(fields.nonce),
		value: text(fields.value),
	};
}

/** Of a third party's, which may word it as it likes, the words. */
function errorOf(value: unknown): StatusError | null {
	if (typeof value === "string" && value !== "") return { code: "EXECUTION_FAILED", message: value };
	if (!isObject(value)) return null;
	const { code, message, data } = value;
	return {
		code: text(code) || "EXECUTION_FAILED",
		message: text(message),
		...(typeof data === "string" ? { data } : {}),
	};
}

function text(value: unknown): string {
	return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

function textOrNull(value: unknown): string | null {
	return typeof value === "string" && value !== "" ? value : null;
}

function count(value: unknown): number {
	return typeof value === "number" && value >= 0 ? value : 0;
}
