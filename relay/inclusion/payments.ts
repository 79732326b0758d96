// Reads payments from the node: the transfers of a block, and what a transaction paid to the coinbase. Bids and refunds are
// judged elsewhere.

import { parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, UpstreamError, type UpstreamFault } from "../../shared/jsonrpc/client.ts";
import { isEmpty } from "../domain/chain.ts";
import { ACCOUNT_METHODS, type Fields, fieldsOf, readAccount, readAddress } from "../domain/nodeJson.ts";
import type { PaidBlock, PaymentReader } from "../domain/ports.ts";
import { address, hash as hashOf, quantity, record } from "./blockReader.ts";

const ASK_MS = 5_000;
/** The calls of 400,000 gas can be gigabytes as text: the node may give up. */
const CALLS = { tracer: "callTracer", timeout: "2s" };
/** The balances before and after a transaction, whatever it called. */
const BALANCES = {
	tracer: "prestateTracer",
	tracerConfig: { diffMode: true, disableCode: true, disableStorage: true },
};

/** Wei that `address` received in a frame of the call tracer and its nested frames, less what it sent. */
export type ReceivedByFrames = (frame: Readonly<Record<string, unknown>>, address: string) => bigint;

export function paymentReader(dependencies: {
	readonly node: Pick<JsonRpcClient, "call">;
	readonly received: ReceivedByFrames;
}): PaymentReader {
	const { node, received } = dependencies;
	/** The result as an object, or null. */
	const ask = async (method: string, params: readonly unknown[]): Promise<Fields | null> => {
		const answer = await node.call({ method, params }, ASK_MS);
		if (!answer.ok) throw new UpstreamError("notJsonRpc");
		return fieldsOf(answer.result);
	};
	/** The trace as an object; null if the node gives none, or a fault that is one of `excused`. */
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
	return {
		async block(hash) {
			const block = await ask("eth_getBlockByHash", [hash, true]);
			return block === null ? null : readPaidBlock(block);
		},
		async brought(hash, block) {
			const receipt = await ask("eth_getTransactionReceipt", [hash]);
			const price = parseNodeQuantity(receipt?.effectiveGasPrice);
			const gas = parseNodeQuantity(receipt?.gasUsed);
			if (price === null || gas === null) throw new UpstreamError("notJsonRpc");
			const fees = gas * (price - block.baseFee);
			const calls = await trace(hash, CALLS, "tooLarge", "timeout");
			if (calls !== null) return { fees, transfers: received(calls, block.coinbase) };
			if (receipt?.status === "0x0") return { fees, transfers: 0n };
			// Nobody hides what it pays behind calls that are too many to read.
			const gained = gainOf(await trace(hash, BALANCES, "tooLarge"), block.coinbase);
			if (gained === null) return { fees, transfers: null };
			const spent = readAddress(receipt?.from) === block.coinbase ? gas * price : 0n;
			const transfers = gained + spent - fees;
			return { fees, transfers: transfers > 0n ? transfers : 0n };
		},
		async isEmpty(account, blockNumber) {
			const results = ACCOUNT_METHODS.map(async (method) => {
				const answer = await node.call({ method, params: [account, toQuantity(blockNumber)] }, ASK_MS);
				return answer.ok ? answer.result : null;
			});
			const state = readAccount(await Promise.all(results));
			if (state === null) throw new UpstreamError("notJsonRpc");
			return isEmpty(state);
		},
		async canonicalHash(number) {
			const block = await ask("eth_getBlockByNumber", [toQuantity(number), false]);
			return block === null ? null : hashOf(block.hash);
		},
	};
}

/** Wei that `account` has more behind the transaction than before it; null where the trace does not show that. */
function gainOf(trace: Fields | null, account: string): bigint | null {
	const [before, after] = [fieldsOf(trace?.pre), fieldsOf(trace?.post)];
	if (before === null || after === null) return null;
	const had = balanceIn(before, account) ?? 0n;
	// What is not named behind it has not changed.
	return (balanceIn(after, account) ?? had) - had;
}

function balanceIn(accounts: Fields, account: string): bigint | null {
	return parseNodeQuantity(fieldsOf(accounts[account])?.balance);
}

function readPaidBlock(block: Fields): PaidBlock {
	const { transactions } = block;
	if (!Array.isArray(transactions)) throw new UpstreamError("notJsonRpc");
	return {
		number: Number(quantity(block.number)),
		timestamp: Number(quantity(block.timestamp)),
		coinbase: address(block.miner),
		baseFee: parseNodeQuantity(block.baseFeePerGas) ?? 0n,
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
