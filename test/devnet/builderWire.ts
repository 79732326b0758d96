// Answers one JSON-RPC call as builders do, and updates the order book. It decides nothing about blocks and knows no
// HTTP.

import { isHexString } from "ethers";
import {
	bundleHash,
	decode,
	object,
	type ReadingContext,
	readBlock,
	readBundle,
	readShareBundle,
	readUuid,
	WireError,
} from "./bundleReading.ts";
import type { NewOrder, OrderBook } from "./orderBook.ts";

/** What a call does: its result, and what became of which orders, in words. */
export interface WireAnswer {
	readonly result: unknown;
	readonly effects: readonly string[];
}

type Handler = (params: readonly unknown[], context: ReadingContext, book: OrderBook) => WireAnswer;

/** How long builders keep a private transaction, in blocks. */
const PRIVATE_BLOCKS = 25;

/** Every method of the wire by its name. */
const METHODS: Readonly<Record<string, Handler>> = {
	eth_sendBundle([param], context, book) {
		const request = readBundle(param, context);
		if (request.kind === "order") return take(request.order, book, { bundleHash: request.order.hash });
		return { result: { bundleHash: bundleHash([]) }, effects: cancelUuid(request.uuid, context, book) };
	},
	mev_sendBundle([param], context, book) {
		const order = readShareBundle(param, context);
		return take(order, book, { bundleHash: order.hash });
	},
	eth_cancelBundle([param], context, book) {
		const uuid = readUuid(object(param, "params[0]").replacementUuid ?? null);
		if (uuid === null) throw new WireError("replacementUuid is missing");
		return { result: 200, effects: cancelUuid(uuid, context, book) };
	},
	eth_sendPrivateTransaction([param], context, book) {
		const { tx, maxBlockNumber } = object(param, "params[0]");
		return takePrivate(tx, readBlock(maxBlockNumber, "maxBlockNumber"), context, book);
	},
	eth_sendPrivateRawTransaction([raw], context, book) {
		return takePrivate(raw, null, context, book);
	},
	eth_sendRawTransaction([raw], context, book) {
		return takePrivate(raw, null, context, book);
	},
	eth_cancelPrivateTransaction([param], context, book) {
		const { txHash } = object(param, "params[0]");
		if (!isHexString(txHash, 32)) throw new WireError("txHash is not a hash");
		const id = book.cancelTransaction(context.signer, txHash.toLowerCase());
		return { result: id !== null, effects: told(id, "cancelled") };
	},
};

/** Answers one call. Throws {@link WireError} for what builders refuse. */
export function answerCall(params: unknown, context: ReadingContext, book: OrderBook): WireAnswer {
	const handler = Object.hasOwn(METHODS, context.method) ? METHODS[context.method] : undefined;
	if (handler === undefined) throw new WireError("method not found", -32601);
	if (!Array.isArray(params)) throw new WireError("params is not an array");
	return handler(params, context, book);
}

function take(order: NewOrder, book: OrderBook, result: unknown): WireAnswer {
	const { id, replaced } = book.add(order);
	return { result, effects: [`order ${id} taken`, ...told(replaced, "replaced")] };
}

function takePrivate(
	raw: unknown,
	maxBlock: number | null,
	context: ReadingContext,
	book: OrderBook,
): WireAnswer {
	const tx = decode(raw, "the transaction", context);
	const lastBlock = context.nextBlock + PRIVATE_BLOCKS - 1;
	const order: NewOrder = {
		kind: "private",
		method: context.method,
		at: context.at,
		signer: context.signer,
		uuid: null,
		hash: tx.hash,
		transactions: [{ ...tx, mayRevert: true, mayDrop: false }],
		firstBlock: context.nextBlock,
		lastBlock: maxBlock === null ? lastBlock : Math.min(maxBlock, lastBlock),
		minTimestamp: null,
		maxTimestamp: null,
		refunds: [],
	};
	return take(order, book, tx.hash);
}

function cancelUuid(uuid: string, context: ReadingContext, book: OrderBook): string[] {
	return told(book.cancelUuid(context.signer, uuid), "cancelled");
}

function told(id: number | null, what: string): string[] {
	return id === null ? [] : [`order ${id} ${what}`];
}
