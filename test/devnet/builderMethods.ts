// The JSON-RPC methods of a builder: reads params into orders, as strictly as real builders, so
// that tests find a relay's mistakes, and updates the order book. It knows neither blocks nor HTTP.

import { concat, getAddress, isAddress, keccak256 } from "ethers";
import { z } from "zod";
import type { RecordedAnswer } from "./builderRecord.ts";
import { type DecodedTransaction, decodeTransaction } from "./builderTransactions.ts";
import type { ChainRpc } from "./chainRpc.ts";
import type { NewOrder, OrderBook, OrderRefund } from "./orderBook.ts";

/** A JSON-RPC call, with the signer and time of its request. */
export interface ReceivedCall {
	readonly method: string;
	readonly params: unknown;
	/** Checksummed. */
	readonly signer: string | null;
	/** Unix ms. */
	readonly at: number;
}

/** The result of a call, and its effects on orders as text. */
export interface CallOutcome {
	readonly answer: RecordedAnswer;
	readonly effects: readonly string[];
}

/** The state that calls read and change. */
interface Context extends Omit<ReceivedCall, "params"> {
	readonly chainId: bigint;
	/** The block that a bundle names; for other calls the number of the chain's head + 1. */
	readonly nextBlock: number;
	readonly book: OrderBook;
}

type Handler = (param: unknown, context: Context) => Omit<CallOutcome, "answer"> & { result: unknown };

/** An error of the caller. */
class WireError extends Error {
	readonly code: number;
	constructor(message: string, code = -32602) {
		super(message);
		this.code = code;
	}
}

const WHOLE_MILLIONTHS = 10_000n;
/** https://docs.flashbots.net: maxBlock at most 30 above block. */
const MAX_BLOCK_RANGE = 30;
/** The number of blocks for which builders keep a private transaction. */
const PRIVATE_BLOCKS = 25;

const list = <T extends z.ZodType>(item: T) => z.array(item).max(100);
const hash = z
	.string()
	.regex(/^0x[0-9a-f]{64}$/i)
	.toLowerCase();
const hashes = list(hash).nullish();
/** Null if the builder decides ("0x", null, absent). */
const block = z
	.string()
	.regex(/^0x(0|[1-9a-f][0-9a-f]{0,11})?$/i)
	.nullish()
	.transform((text) => (text == null || text === "0x" ? null : Number(text)));
const uuid = z.uuid().toLowerCase().nullish();
const seconds = z.int().nonnegative().nullish();
const address = z.string().refine(isAddress).transform(getAddress).nullish();
const percent = (max: number) => z.int().min(0).max(max).transform(BigInt);

const BUNDLE = z.object({
	txs: list(z.unknown()),
	...{ replacementUuid: uuid, uuid, blockNumber: block, minTimestamp: seconds, maxTimestamp: seconds },
	...{ revertingTxHashes: hashes, droppingTxHashes: hashes },
	refundTxHashes: list(hash).max(1).nullish(),
	refundRecipient: address,
	refundPercent: percent(99).nullish(),
});

/** Version 0.1. */
const SHARE_BUNDLE = z.object({
	version: z.enum(["v0.1", "beta-1"]),
	inclusion: z.object({ block, maxBlock: block }),
	body: list(z.strictObject({ tx: z.unknown(), canRevert: z.boolean().default(false) })).min(1),
	replacementUuid: uuid,
	validity: z
		.object({
			refund: list(z.object({ bodyIdx: z.int(), percent: percent(100) })).default([]),
			refundConfig: list(z.object({ address: address.unwrap().unwrap(), percent: percent(100) })).default([]),
		})
		.nullish(),
});

/** All methods by name; each has one param. */
const METHODS: Readonly<Record<string, Handler>> = {
	eth_sendBundle(param, context) {
		const bundle = read(BUNDLE, param);
		const name = bundle.replacementUuid ?? bundle.uuid ?? null;
		if (bundle.txs.length > 0) return take(bundleOrder(bundle, name, context), context);
		if (name === null) throw new WireError("empty bundle without replacementUuid");
		return { result: { bundleHash: hashOf([]) }, effects: cancelUuid(name, context) };
	},
	mev_sendBundle: (param, context) => take(shareOrder(read(SHARE_BUNDLE, param), context), context),
	eth_cancelBundle(param, context) {
		const { replacementUuid } = read(z.object({ replacementUuid: uuid.unwrap().unwrap() }), param);
		return { result: 200, effects: cancelUuid(replacementUuid, context) };
	},
	eth_sendPrivateTransaction(param, context) {
		const { tx, maxBlockNumber } = read(z.object({ tx: z.unknown(), maxBlockNumber: block }), param);
		return takePrivate(tx, context, maxBlockNumber ?? Number.POSITIVE_INFINITY);
	},
	eth_sendPrivateRawTransaction: takePrivate,
	eth_sendRawTransaction: takePrivate,
	eth_cancelPrivateTransaction(param, { book, signer }) {
		const id = book.cancelTransaction(signer, read(z.object({ txHash: hash }), param).txHash);
		return { result: id !== null, effects: told(id, "cancelled") };
	},
};

/** Answers a call; refusals and failures become JSON-RPC errors. */
export async function answerCall(
	{ params, ...call }: ReceivedCall,
	{ chain, ...of }: { readonly chainId: bigint; readonly chain: ChainRpc; readonly book: OrderBook },
): Promise<CallOutcome> {
	try {
		const nextBlock = namedBlock(params) ?? Number(await chain.call("eth_blockNumber")) + 1;
		const handler = Object.hasOwn(METHODS, call.method) ? METHODS[call.method] : undefined;
		if (handler === undefined) throw new WireError("method not found", -32601);
		if (!Array.isArray(params)) throw new WireError("params is not an array");
		const { result, effects } = handler(params[0], { ...call, ...of, nextBlock });
		return { answer: { result }, effects };
	} catch (thrown) {
		const { code, message } =
			thrown instanceof WireError ? thrown : { code: -32603, message: "internal error" };
		return { answer: { error: { code, message } }, effects: [] };
	}
}

/**
 * The block that a bundle of `eth_sendBundle` names: the node need not be asked for the next one.
 */
function namedBlock(params: unknown): number | null {
	const [bundle] = Array.isArray(params) ? params : [];
	const named = BUNDLE.shape.blockNumber.safeParse(bundle?.blockNumber);
	return named.success ? named.data : null;
}

function read<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
	const parsed = schema.safeParse(value);
	if (parsed.success) return parsed.data;
	const [{ path, message } = { path: [], message: "invalid" }] = parsed.error.issues;
	throw new WireError(`${path.join(".") || "params[0]"}: ${message}`);
}

function bundleOrder(bundle: z.output<typeof BUNDLE>, name: string | null, context: Context): NewOrder {
	const transactions = bundle.txs.map((raw, i) => decode(raw, `txs[${i}]`, context));
	const own = transactions.map((tx) => tx.hash);
	const named = (key: "revertingTxHashes" | "droppingTxHashes" | "refundTxHashes"): readonly string[] => {
		const given = bundle[key] ?? [];
		if (given.some((one) => !own.includes(one)))
			throw new WireError(`${key}: not a transaction of the bundle`);
		return given;
	};
	const [reverting, dropping] = [named("revertingTxHashes"), named("droppingTxHashes")];
	const [of = own.at(-1) ?? ""] = named("refundTxHashes");
	const share = bundle.refundPercent ?? 0n;
	const recipient = bundle.refundRecipient ?? transactions[0]?.from ?? "";
	const number = bundle.blockNumber ?? context.nextBlock;
	return {
		...orderOf(context),
		uuid: name,
		hash: hashOf(own),
		transactions: transactions.map((tx) => ({
			...tx,
			mayRevert: reverting.includes(tx.hash),
			mayDrop: dropping.includes(tx.hash),
		})),
		firstBlock: number,
		lastBlock: number,
		minTimestamp: bundle.minTimestamp || null,
		maxTimestamp: bundle.maxTimestamp || null,
		refunds: share === 0n ? [] : [{ millionths: share * WHOLE_MILLIONTHS, recipient, of: [of] }],
	};
}

function shareOrder(bundle: z.output<typeof SHARE_BUNDLE>, context: Context): NewOrder {
	const { block: first, maxBlock } = bundle.inclusion;
	if (first === null) throw new WireError("inclusion.block is missing");
	const last = maxBlock ?? first;
	if (last < first || last - first > MAX_BLOCK_RANGE) throw new WireError("inclusion.maxBlock out of range");
	const transactions = bundle.body.map(({ tx, canRevert }, i) => ({
		...decode(tx, `body[${i}].tx`, context),
		...{ mayRevert: canRevert, mayDrop: false },
	}));
	return {
		...orderOf(context),
		uuid: bundle.replacementUuid ?? null,
		hash: hashOf(transactions.map((tx) => tx.hash)),
		transactions,
		firstBlock: first,
		lastBlock: last,
		refunds: shareRefunds(bundle.validity ?? { refund: [], refundConfig: [] }, transactions),
	};
}

/** MEV-Share's refunds: a percentage of what the other entries pay, split by refundConfig. */
function shareRefunds(
	{ refund, refundConfig }: NonNullable<z.output<typeof SHARE_BUNDLE>["validity"]>,
	body: readonly DecodedTransaction[],
): OrderRefund[] {
	const isOver = (parts: readonly { readonly percent: bigint }[]) =>
		parts.reduce((sum, part) => sum + part.percent, 0n) > 100n;
	if (isOver(refund) || isOver(refundConfig)) throw new WireError("validity: more than 100 percent");
	if (refund.some(({ bodyIdx }) => body[bodyIdx] === undefined))
		throw new WireError("validity.refund: bodyIdx is no entry of the body");
	const others = body.filter((_, i) => !refund.some(({ bodyIdx }) => bodyIdx === i));
	const of = (others.length > 0 ? others : body).map((tx) => tx.hash);
	return refund.flatMap(({ bodyIdx, percent: part }) => {
		const whole = { address: body[bodyIdx]?.from ?? "", percent: 100n };
		return (refundConfig.length > 0 ? refundConfig : [whole]).map((share) => ({
			millionths: (part * share.percent * WHOLE_MILLIONTHS) / 100n,
			recipient: share.address,
			of,
		}));
	});
}

function takePrivate(raw: unknown, context: Context, maxBlock = Number.POSITIVE_INFINITY) {
	const tx = decode(raw, "the transaction", context);
	const order: NewOrder = {
		...orderOf(context),
		kind: "private",
		hash: tx.hash,
		transactions: [{ ...tx, mayRevert: true, mayDrop: false }],
		lastBlock: Math.min(maxBlock, context.nextBlock + PRIVATE_BLOCKS - 1),
	};
	return { ...take(order, context), result: tx.hash };
}

/** The default fields of an order. */
function orderOf({ method, at, signer, nextBlock }: Context): NewOrder {
	return {
		...{ kind: "bundle", method, at, signer, uuid: null, hash: "", transactions: [], refunds: [] },
		...{ firstBlock: nextBlock, lastBlock: nextBlock, minTimestamp: null, maxTimestamp: null },
	};
}

function take(order: NewOrder, { book }: Context) {
	const { id, replaced } = book.add(order);
	return {
		result: { bundleHash: order.hash },
		effects: [`order ${id} taken`, ...told(replaced, "replaced")],
	};
}

/** Decodes a signed transaction of this chain. */
function decode(raw: unknown, what: string, { chainId }: Context): DecodedTransaction {
	const tx = decodeTransaction(raw);
	if (tx === null) throw new WireError(`${what} is not a signed transaction`);
	if (tx.chainId !== null && tx.chainId !== chainId) throw new WireError(`${what}: wrong chain id`);
	return tx;
}

/** keccak256 of the concatenated hashes. */
function hashOf(all: readonly string[]): string {
	return keccak256(concat(all));
}

function cancelUuid(name: string, { book, signer }: Context): string[] {
	return told(book.cancelUuid(signer, name), "cancelled");
}

function told(id: number | null, what: string): string[] {
	return id === null ? [] : [`order ${id} ${what}`];
}
