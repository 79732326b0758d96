// Reads the params of eth_sendBundle and mev_sendBundle into an order, or says what is wrong. It is as strict as real
// builders, so that a relay's mistake is seen here.

import { concat, getAddress, isAddress, isHexString, keccak256 } from "ethers";
import type { DecodedTransaction, TransactionDecoder } from "./builderTransactions.ts";
import type { NewOrder, OrderRefund } from "./orderBook.ts";

/** The caller's mistake, answered as a JSON-RPC error. */
export class WireError extends Error {
	readonly code: number;
	constructor(message: string, code = -32602) {
		super(message);
		this.name = "WireError";
		this.code = code;
	}
}

/** What reading an order needs beside its params. */
export interface ReadingContext {
	readonly method: string;
	readonly at: number;
	readonly signer: string | null;
	readonly chainId: bigint;
	/** The chain's head + 1. */
	readonly nextBlock: number;
	readonly decoder: TransactionDecoder;
}

/** What eth_sendBundle asks for. */
export type BundleRequest =
	| { readonly kind: "order"; readonly order: NewOrder }
	| { readonly kind: "cancel"; readonly uuid: string };

const WHOLE_MILLIONTHS = 10_000n;
const MAX_TRANSACTIONS = 100;
/** https://docs.flashbots.net: maxBlock at most 30 above block. */
const MAX_BLOCK_RANGE = 30;

/** Reads the only param of eth_sendBundle. Throws {@link WireError}. */
export function readBundle(param: unknown, context: ReadingContext): BundleRequest {
	const bundle = object(param, "bundle");
	const uuid = readUuid(bundle.replacementUuid ?? bundle.uuid ?? null);
	const raws = array(bundle.txs, "txs");
	if (raws.length === 0) {
		if (uuid === null) throw new WireError("empty bundle without replacementUuid");
		return { kind: "cancel", uuid };
	}
	const transactions = raws.map((raw, i) => decode(raw, `txs[${i}]`, context));
	const hashes = transactions.map(({ hash }) => hash);
	const reverting = readHashes(bundle.revertingTxHashes, "revertingTxHashes", hashes);
	const dropping = readHashes(bundle.droppingTxHashes, "droppingTxHashes", hashes);
	const block = readBlock(bundle.blockNumber, "blockNumber") ?? context.nextBlock;
	return {
		kind: "order",
		order: {
			kind: "bundle",
			method: context.method,
			at: context.at,
			signer: context.signer,
			uuid,
			hash: bundleHash(hashes),
			transactions: transactions.map((tx) => ({
				...tx,
				mayRevert: reverting.includes(tx.hash),
				mayDrop: dropping.includes(tx.hash),
			})),
			firstBlock: block,
			lastBlock: block,
			minTimestamp: readTimestamp(bundle.minTimestamp, "minTimestamp"),
			maxTimestamp: readTimestamp(bundle.maxTimestamp, "maxTimestamp"),
			refunds: readRefund(bundle, transactions),
		},
	};
}

/** Reads the only param of mev_sendBundle, v0.1. Throws {@link WireError}. */
export function readShareBundle(param: unknown, context: ReadingContext): NewOrder {
	const bundle = object(param, "bundle");
	if (bundle.version !== "v0.1" && bundle.version !== "beta-1") throw new WireError("unknown version");
	const inclusion = object(bundle.inclusion, "inclusion");
	const first = readBlock(inclusion.block, "inclusion.block");
	if (first === null) throw new WireError("inclusion.block is missing");
	const last = readBlock(inclusion.maxBlock, "inclusion.maxBlock") ?? first;
	if (last < first || last - first > MAX_BLOCK_RANGE) throw new WireError("inclusion.maxBlock out of range");
	const body = array(bundle.body, "body").map((item, i) => {
		const { tx, canRevert = false, ...rest } = object(item, `body[${i}]`);
		if (typeof canRevert !== "boolean") throw new WireError(`body[${i}].canRevert is not a boolean`);
		if (Object.keys(rest).length > 0) throw new WireError(`body[${i}] holds more than tx and canRevert`);
		return { ...decode(tx, `body[${i}].tx`, context), mayRevert: canRevert, mayDrop: false };
	});
	if (body.length === 0) throw new WireError("empty body");
	return {
		kind: "bundle",
		method: context.method,
		at: context.at,
		signer: context.signer,
		uuid: readUuid(bundle.replacementUuid ?? null),
		hash: bundleHash(body.map(({ hash }) => hash)),
		transactions: body,
		firstBlock: first,
		lastBlock: last,
		minTimestamp: null,
		maxTimestamp: null,
		refunds: readValidity(bundle.validity, body),
	};
}

/** A signed transaction of this chain. Throws {@link WireError}. */
export function decode(raw: unknown, what: string, context: ReadingContext): DecodedTransaction {
	const tx = context.decoder.decode(raw);
	if (tx === null) throw new WireError(`${what} is not a signed transaction`);
	if (tx.chainId !== null && tx.chainId !== context.chainId) throw new WireError(`${what}: wrong chain id`);
	return tx;
}

/** keccak256 of the hashes in a row. */
export function bundleHash(hashes: readonly string[]): string {
	return keccak256(concat(hashes));
}

/** A JSON object. Throws {@link WireError}. */
export function object(value: unknown, what: string): Record<string, unknown> {
	if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
	throw new WireError(`${what} is not an object`);
}

/** A block number in hex, null where it is left to the builder ("0x", null, absent). Throws {@link WireError}. */
export function readBlock(value: unknown, what: string): number | null {
	if (value === undefined || value === null || value === "0x") return null;
	if (typeof value !== "string" || !/^0x(0|[1-9a-f][0-9a-f]{0,11})$/i.test(value)) {
		throw new WireError(`${what} is not a hex quantity`);
	}
	return Number(value);
}

/** Builders parse it as a UUID; null where there is none. Throws {@link WireError}. */
export function readUuid(value: unknown): string | null {
	if (value === null) return null;
	if (typeof value === "string" && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)) {
		return value.toLowerCase();
	}
	throw new WireError("replacementUuid is not a UUID");
}

function array(value: unknown, what: string): readonly unknown[] {
	if (!Array.isArray(value)) throw new WireError(`${what} is not an array`);
	if (value.length > MAX_TRANSACTIONS) throw new WireError(`${what} is too long`);
	return value;
}

function readTimestamp(value: unknown, what: string): number | null {
	if (value === undefined || value === null) return null;
	if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
		throw new WireError(`${what} is not a number of seconds`);
	}
	return value === 0 ? null : value;
}

function readHashes(value: unknown, what: string, of: readonly string[]): string[] {
	if (value === undefined || value === null) return [];
	return array(value, what).map((hash) => {
		if (typeof hash !== "string" || !isHexString(hash, 32)) throw new WireError(`${what}: not a hash`);
		const found = of.find((known) => known === hash.toLowerCase());
		if (found === undefined) throw new WireError(`${what}: not a transaction of the bundle`);
		return found;
	});
}

function readRefund(
	bundle: Record<string, unknown>,
	transactions: readonly DecodedTransaction[],
): OrderRefund[] {
	const named = readHashes(
		bundle.refundTxHashes,
		"refundTxHashes",
		transactions.map(({ hash }) => hash),
	);
	if (named.length > 1) throw new WireError("refundTxHashes: one at most");
	const recipient = readAddress(bundle.refundRecipient, "refundRecipient") ?? transactions[0]?.from ?? "";
	const percent = readPercent(bundle.refundPercent ?? 0, "refundPercent", 99);
	const of = named[0] ?? transactions.at(-1)?.hash ?? "";
	return percent === 0n ? [] : [{ millionths: percent * WHOLE_MILLIONTHS, recipient, of: [of] }];
}

/** MEV-Share's refunds: a percent of what the other entries bring, split as refundConfig says. */
function readValidity(value: unknown, body: readonly DecodedTransaction[]): OrderRefund[] {
	const validity = value === undefined || value === null ? {} : object(value, "validity");
	const refunds = array(validity.refund ?? [], "validity.refund").map((item, i) => {
		const { bodyIdx, percent } = object(item, `validity.refund[${i}]`);
		const entry = typeof bodyIdx === "number" ? body[bodyIdx] : undefined;
		if (entry === undefined) throw new WireError(`validity.refund[${i}].bodyIdx is no entry of the body`);
		return { entry, percent: readPercent(percent, `validity.refund[${i}].percent`, 100) };
	});
	const config = array(validity.refundConfig ?? [], "validity.refundConfig").map((item, i) => {
		const { address, percent } = object(item, `validity.refundConfig[${i}]`);
		const recipient = readAddress(address, `validity.refundConfig[${i}].address`);
		if (recipient === null) throw new WireError(`validity.refundConfig[${i}].address is missing`);
		return { recipient, percent: readPercent(percent, `validity.refundConfig[${i}].percent`, 100) };
	});
	const sum = (list: readonly { percent: bigint }[]) => list.reduce((all, { percent }) => all + percent, 0n);
	if (sum(refunds) > 100n || sum(config) > 100n) throw new WireError("validity: more than 100 percent");
	const refunded = new Set(refunds.map(({ entry }) => entry.hash));
	const others = body.map(({ hash }) => hash).filter((hash) => !refunded.has(hash));
	const of = others.length > 0 ? others : body.map(({ hash }) => hash);
	return refunds.flatMap(({ entry, percent }) => {
		const shares = config.length > 0 ? config : [{ recipient: entry.from, percent: 100n }];
		return shares.map((share) => ({
			millionths: (percent * share.percent * WHOLE_MILLIONTHS) / 100n,
			recipient: share.recipient,
			of,
		}));
	});
}

function readAddress(value: unknown, what: string): string | null {
	if (value === undefined || value === null) return null;
	if (typeof value !== "string" || !isAddress(value)) throw new WireError(`${what} is not an address`);
	return getAddress(value);
}

function readPercent(value: unknown, what: string, max: number): bigint {
	if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= max)
		return BigInt(value);
	throw new WireError(`${what} is not a whole number from 0 to ${max}`);
}
