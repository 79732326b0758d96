// Reads payments from the node: the transfers of a block, and a transaction's payment to the
// coinbase, from the block's access list or from traces. Other modules judge bids and refunds.

import { parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, UpstreamError, type UpstreamFault } from "../../shared/jsonrpc/client.ts";
import type { Fields } from "../../shared/jsonrpc/fields.ts";
import { isEmpty } from "../domain/chain.ts";
import { ACCOUNT_METHODS, fieldsOf, readAccount, readAddress } from "../domain/nodeJson.ts";
import { address, hash as hashOf, quantity, record } from "./blockReader.ts";

const ASK_MS = 5_000;
/** The calls of 400,000 gas can be gigabytes as text, so the node may give up. */
const CALLS = { tracer: "callTracer", timeout: "2s" };
/** The balances before and after a transaction, regardless of its calls. */
const BALANCES = {
	tracer: "prestateTracer",
	tracerConfig: { diffMode: true, disableCode: true, disableStorage: true },
};

/** The fields of a mined block that refunds need. */
export interface PaidBlock {
	readonly number: number;
	/** Seconds since the epoch. */
	readonly timestamp: number;
	/** Lower case. */
	readonly coinbase: string;
	/** Wei per gas. */
	readonly baseFee: bigint;
	/** The block's hash, where it has an access list that nodes may serve (EIP-7928). */
	readonly accessListOf?: string;
	/** In order; `to` is null for a creation, `value` in wei. */
	readonly transactions: readonly {
		readonly hash: string;
		readonly from: string;
		readonly to: string | null;
		readonly value: bigint;
	}[];
}

/**
 * Wei that `address` received in a frame of the call tracer and its nested frames, less what it
 * sent.
 */
export type ReceivedByFrames = (frame: Readonly<Record<string, unknown>>, address: string) => bigint;

/** Reads payments in blocks from the node. */
export type PaymentReader = ReturnType<typeof paymentReader>;

export function paymentReader(dependencies: {
	readonly node: Pick<JsonRpcClient, "call">;
	readonly received: ReceivedByFrames;
}) {
	const { node, received } = dependencies;
	/** The result as an object, or null. */
	const ask = async (method: string, params: readonly unknown[]): Promise<Fields | null> => {
		const answer = await node.call({ method, params }, ASK_MS);
		if (!answer.ok) throw new UpstreamError("notJsonRpc");
		return fieldsOf(answer.result);
	};
	/** The trace as an object; null if the node gives none, or fails with a fault in `excused`. */
	const trace = async (
		hash: string,
		options: Fields,
		...excused: readonly UpstreamFault[]
	): Promise<Fields | null> => {
		try {
			const call = { method: "debug_traceTransaction", params: [hash, options] };
			const answer = await node.call(call, ASK_MS);
			return answer.ok ? fieldsOf(answer.result) : null;
		} catch (thrown) {
			if (thrown instanceof UpstreamError && excused.includes(thrown.code)) return null;
			throw thrown;
		}
	};
	/**
	 * Wei that the coinbase gained by the transaction, from the block's access list; null without
	 * one.
	 */
	const listedGain = async (hash: string, block: PaidBlock): Promise<bigint | null> => {
		const { accessListOf, coinbase, number, transactions } = block;
		if (accessListOf === undefined) return null;
		const answer = await node.call({ method: "eth_getBlockAccessList", params: [accessListOf] }, ASK_MS);
		const balances = answer.ok ? balancesIn(answer.result, coinbase) : null;
		if (balances === null) return null;
		// Index 0 is before the first transaction.
		const index = transactions.findIndex((tx) => tx.hash === hash) + 1;
		const [after, before] = [index, index - 1].map(
			(at) => balances.findLast((one) => one.index <= at)?.value,
		);
		if (after === undefined) return 0n;
		if (before !== undefined) return after - before;
		const params = [coinbase, toQuantity(number - 1)];
		const parent = await node.call({ method: "eth_getBalance", params }, ASK_MS);
		const had = parent.ok ? parseNodeQuantity(parent.result) : null;
		return had === null ? null : after - had;
	};
	return {
		/** The block, or null if the node does not have it. Throws an UpstreamError. */
		async block(hash: string): Promise<PaidBlock | null> {
			const block = await ask("eth_getBlockByHash", [hash, true]);
			return block === null ? null : readPaidBlock(block, hash);
		},
		/**
		 * The wei that a mined transaction brought to the coinbase: priority fees, and transfers
		 * including internal ones. The transfers are null if the node can't trace them. Throws an
		 * UpstreamError.
		 */
		async brought(
			hash: string,
			block: PaidBlock,
		): Promise<{ readonly fees: bigint; readonly transfers: bigint | null }> {
			const receipt = await ask("eth_getTransactionReceipt", [hash]);
			const price = parseNodeQuantity(receipt?.effectiveGasPrice);
			const gas = parseNodeQuantity(receipt?.gasUsed);
			if (price === null || gas === null) throw new UpstreamError("notJsonRpc");
			const fees = gas * (price - block.baseFee);
			const isOwn = readAddress(receipt?.from) === block.coinbase;
			const spent = isOwn ? gas * price : 0n;
			const listed = await listedGain(hash, block);
			// If the list shows less than the fees for another sender's transaction, it is not this
			// block's list.
			if (listed !== null && (isOwn || listed >= fees))
				return { fees, transfers: atLeast0(listed + spent - fees) };
			const calls = await trace(hash, CALLS, "tooLarge", "timeout");
			if (calls !== null) return { fees, transfers: received(calls, block.coinbase) };
			if (receipt?.status === "0x0") return { fees, transfers: 0n };
			// Nobody can hide a payment behind too many calls: the balances still show it.
			const gained = gainOf(await trace(hash, BALANCES, "tooLarge"), block.coinbase);
			if (gained === null) return { fees, transfers: null };
			return { fees, transfers: atLeast0(gained + spent - fees) };
		},
		/** Whether an account held nothing at all right after a block. Throws an UpstreamError. */
		async isEmpty(account: string, blockNumber: number): Promise<boolean> {
			const results = ACCOUNT_METHODS.map(async (method) => {
				const answer = await node.call({ method, params: [account, toQuantity(blockNumber)] }, ASK_MS);
				return answer.ok ? answer.result : null;
			});
			const state = readAccount(await Promise.all(results));
			if (state === null) throw new UpstreamError("notJsonRpc");
			return isEmpty(state);
		},
		/** The hash of the canonical block with this number, or null. Throws an UpstreamError. */
		async canonicalHash(number: number): Promise<string | null> {
			const block = await ask("eth_getBlockByNumber", [toQuantity(number), false]);
			return block === null ? null : hashOf(block.hash);
		},
	};
}

function atLeast0(wei: bigint): bigint {
	return wei > 0n ? wei : 0n;
}

/** Wei that `account` gained by the transaction; null if the trace does not show that. */
function gainOf(trace: Fields | null, account: string): bigint | null {
	const [before, after] = [fieldsOf(trace?.pre), fieldsOf(trace?.post)];
	if (before === null || after === null) return null;
	const had = balanceIn(before, account) ?? 0n;
	// An account without an entry after the transaction has not changed.
	return (balanceIn(after, account) ?? had) - had;
}

function balanceIn(accounts: Fields, account: string): bigint | null {
	return parseNodeQuantity(fieldsOf(accounts[account])?.balance);
}

/**
 * The balances of an account in a block access list, in order of their index; null for anything
 * else. Names as in
 * https://github.com/ethereum/execution-apis/blob/main/src/schemas/block-access-list.yaml or as in
 * go-ethereum.
 */
function balancesIn(list: unknown, account: string): readonly { index: number; value: bigint }[] | null {
	if (!Array.isArray(list)) return null;
	const entry = list.map(fieldsOf).find((one) => readAddress(one?.address) === account);
	const changes = entry?.balanceChanges ?? [];
	if (!Array.isArray(changes)) return null;
	const balances = changes.map((change: unknown) => {
		const { index, blockAccessIndex, value, postBalance } = fieldsOf(change) ?? {};
		return {
			index: parseNodeQuantity(index ?? blockAccessIndex),
			value: parseNodeQuantity(value ?? postBalance),
		};
	});
	if (balances.some((one) => one.index === null || one.value === null)) return null;
	return balances
		.map(({ index, value }) => ({ index: Number(index), value: value ?? 0n }))
		.sort((one, other) => one.index - other.index);
}

function readPaidBlock(block: Fields, hash: string): PaidBlock {
	const { transactions } = block;
	if (!Array.isArray(transactions)) throw new UpstreamError("notJsonRpc");
	return {
		number: Number(quantity(block.number)),
		timestamp: Number(quantity(block.timestamp)),
		coinbase: address(block.miner),
		baseFee: parseNodeQuantity(block.baseFeePerGas) ?? 0n,
		...(block.blockAccessListHash == null ? {} : { accessListOf: hash }),
		transactions: transactions.map((one: unknown) => {
			const tx = record(one);
			return {
				hash: hashOf(tx.hash),
				from: address(tx.from),
				to: readAddress(tx.to),
				value: quantity(tx.value),
			};
		}),
	};
}
