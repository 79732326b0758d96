// Reads third parties' answers about a transaction: whether it is in a block, and fallbacks' status
// pages. An answer must be about the hash, and only known fields of the right type are used.

import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { RpcTransaction } from "../../shared/ethereum/rpcObjects.ts";
import {
	LIVE_STAGES,
	STAGES,
	type StatusError,
	type StatusRecord,
	stageReport,
	unknownStatus,
} from "../../shared/ethereum/statusRecord.ts";
import type { RpcAnswer } from "../../shared/jsonrpc/client.ts";
import { type Fields, isObject } from "../../shared/jsonrpc/fields.ts";
import type { ChainReads, Dialect } from "../domain/ports.ts";

/** A mined transaction. */
export interface Mined {
	/** The node's object, or null if it gave none. */
	readonly transaction: RpcTransaction | null;
	readonly reverted: boolean;
	readonly blockNumber: number | null;
}

/** The mined transaction; null if it is not mined, undefined if the answer is unreadable. */
export async function minedOnChain(
	chain: ChainReads,
	hash: string,
	deadlineMs: number,
): Promise<Mined | null | undefined> {
	const params = [hash];
	const calls = [
		{ method: "eth_getTransactionReceipt", params },
		{ method: "eth_getTransactionByHash", params },
	];
	const [receipt, transaction] = (await chain.batch(calls, deadlineMs)) ?? [];
	if (receipt?.ok !== true) return undefined;
	if (receipt.result === null) return null;
	const mined = isObject(receipt.result) ? receipt.result : {};
	if (!isHash(mined.transactionHash, hash) || typeof mined.blockHash !== "string") return undefined;
	const number = parseNodeQuantity(mined.blockNumber);
	return {
		transaction: transactionOf(transaction, hash) ?? null,
		reverted: mined.status === "0x0",
		blockNumber: number === null ? null : Number(number),
	};
}

/**
 * The object in an answer to `eth_getTransactionByHash`; null if the hash is unknown, undefined if
 * the answer is malformed.
 */
export function transactionOf(
	answer: RpcAnswer | null | undefined,
	hash: string,
): RpcTransaction | null | undefined {
	if (answer?.ok !== true) return undefined;
	if (answer.result === null) return null;
	return isObject(answer.result) && isHash(answer.result.hash, hash) ? answer.result : undefined;
}

/** Whether a transaction object is in a block. */
export function isInBlock(transaction: RpcTransaction): boolean {
	return typeof transaction.blockHash === "string";
}

function isHash(value: unknown, hash: string): boolean {
	return typeof value === "string" && value.toLowerCase() === hash;
}

type PageFormat = NonNullable<Dialect["pages"]>;

/** Converts a fallback's status page to our record; null if it is malformed or not about `hash`. */
export function readFallbackPage(format: PageFormat, page: unknown, hash: string): StatusRecord | null {
	if (!isObject(page)) return null;
	if (page.hash !== undefined && text(page.hash).toLowerCase() !== hash) return null;
	return format === "protect" ? protectRecord(page, hash) : relayRecord(page, hash);
}

/** The fallback's stages of pending transactions, which our users see as HELD. */
const PENDING: ReadonlySet<string> = new Set([
	...LIVE_STAGES.filter((stage) => stage !== "SIMULATION_FAILED"),
	"HELD",
]);
const TOLD: ReadonlySet<string> = new Set(STAGES.filter((stage) => !PENDING.has(stage)));

/** A page in our own format; only a relay like ours has `stage`. */
function relayRecord(page: Fields, hash: string): StatusRecord | null {
	const blank = unknownStatus(hash);
	const stage = text(page.stage);
	const flags = { fastMode: page.fastMode === true, shared: page.shared === true };
	if (page.status === "UNKNOWN")
		return PENDING.has(stage) ? { ...blank, ...flags, ...stageReport("HELD") } : blank;
	if (page.status !== "INCLUDED" && page.status !== "FAILED") return null;
	const error = errorOf(page.simulationError);
	const blockNumber = typeof page.blockNumber === "number" ? page.blockNumber : null;
	const refundWei = /^\d{1,30}$/.test(text(page.refundWei))
		? text(page.refundWei)
		: weiOf(count(page.refund));
	return {
		...blank,
		...flags,
		status: page.status,
		rpc_timestamp: textOrNull(page.rpc_timestamp),
		transaction: pageTransaction(page.transaction, "gas"),
		simulationError: error,
		backruns: count(page.backruns),
		referrer: textOrNull(page.referrer),
		refundRecipient: textOrNull(page.refundRecipient),
		refund: count(page.refund),
		refundWei,
		...(TOLD.has(stage) ? stageReport(stage, { error, blockNumber, refundWei }) : {}),
	};
}

/**
 * Flashbots Protect's statuses as ours. FAILED means that it was tried for 25 blocks.
 * https://docs.flashbots.net/flashbots-protect/rpc/status-api
 */
const PROTECT = new Map<unknown, readonly [StatusRecord["status"], string | null]>([
	["PENDING", ["UNKNOWN", "HELD"]],
	["INCLUDED", ["INCLUDED", "INCLUDED"]],
	["FAILED", ["FAILED", "EXPIRED"]],
	["CANCELLED", ["FAILED", "CANCELLED"]],
	["UNKNOWN", ["UNKNOWN", null]],
]);

function protectRecord(page: Fields, hash: string): StatusRecord | null {
	const [status, stage] = PROTECT.get(page.status) ?? [];
	if (status === undefined || stage === undefined) return null;
	const blank = { ...unknownStatus(hash), status };
	if (stage === null) return blank;
	const reverted = status === "INCLUDED" && page.isRevert === true;
	const transaction = pageTransaction(page.transaction, "gasLimit");
	return {
		...blank,
		fastMode: page.fastMode === true,
		...(status === "UNKNOWN" ? {} : { transaction }),
		...stageReport(reverted ? "REVERTED" : stage),
	};
}

function pageTransaction(value: unknown, gas: "gas" | "gasLimit"): StatusRecord["transaction"] {
	const fields: Fields = isObject(value) ? value : {};
	return {
		from: text(fields.from).toLowerCase(),
		to: text(fields.to).toLowerCase(),
		gas: text(fields[gas]),
		nonce: text(fields.nonce),
		value: text(fields.value),
	};
}

/** A third party's simulation error, a string or an object. */
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

/** An amount in ETH as wei, from its decimal text, rounded down; "0" for more ETH than exists. */
function weiOf(ether: number): string {
	const [, whole = "", decimals = "", exponent = "0"] =
		/^(\d+)(?:\.(\d+))?(?:e(-\d+))?$/.exec(String(ether)) ?? [];
	const places = 18 - decimals.length + Number(exponent);
	const digits = BigInt(whole + decimals);
	return String(places < 0 ? digits / 10n ** BigInt(-places) : digits * 10n ** BigInt(places));
}

function count(value: unknown): number {
	return typeof value === "number" && value >= 0 ? value : 0;
}
