// eth_callBundle: simulates a bundle in a future block, and returns each transaction's gas and
// payment, like Flashbots' method.
// https://docs.flashbots.net/flashbots-auction/advanced/rpc-endpoint#eth_callbundle

import { z } from "zod";
import { blockNumberOrTag, quantity, RAW_PARAMS_SIZE, seconds } from "../../../shared/jsonrpc/method.ts";
import { bundleHash } from "../../domain/bundle.ts";
import type { BundleResult } from "../../domain/callMany.ts";
import { bundleClient, bundleObject, withoutEffect } from "../bundleRequests.ts";
import { relayMethod } from "../methodDependencies.ts";
import { bundleTransactions, readElements } from "./eth_callMany.ts";

const bundle = bundleObject(
	{
		txs: bundleTransactions,
		blockNumber: quantity,
		stateBlockNumber: blockNumberOrTag.default("latest"),
		timestamp: seconds.nullish(),
		minTimestamp: withoutEffect,
		maxTimestamp: withoutEffect,
		revertingTxHashes: withoutEffect,
		replacementUuid: withoutEffect,
	},
	"expected an object",
);

const wei = z.string().describe("wei, decimal");
const paid = z.object({
	coinbaseDiff: wei.describe("wei that the block's fee recipient gets, decimal"),
	gasFees: wei.describe("the part from priority fees"),
	ethSentToCoinbase: wei.describe("the part from transfers"),
});
const one = paid.extend({
	txHash: z.string(),
	fromAddress: z.string(),
	toAddress: z.string().describe("0x for a creation"),
	gasUsed: z.number(),
	gasPrice: wei.describe("coinbaseDiff per gas"),
	value: z.string().optional().describe("return data as 0x hex; absent where it failed"),
	error: z.string().optional().describe("why it failed; absent where it passed"),
	revert: z.string().optional().describe("revert data as 0x hex, where there is any"),
});

export const eth_callBundle = relayMethod({
	name: "eth_callBundle",
	summary: "Simulates a bundle in a block to come, and reports what each transaction uses and pays.",
	params: [{ name: "bundle", schema: bundle }],
	maxParamsSize: RAW_PARAMS_SIZE,
	result: paid.extend({
		bundleHash: z.string(),
		bundleGasPrice: wei,
		stateBlockNumber: z.number(),
		totalGasUsed: z.number(),
		results: z.array(one),
	}),
	weight: 10,
	async handle([{ txs, blockNumber, stateBlockNumber, timestamp }], context, dependencies) {
		const { callMany } = dependencies;
		const { stateBlock, results } = await callMany.runBundle({
			client: bundleClient(context).network,
			txs: await readElements(txs, context, dependencies),
			blockNumber,
			stateBlock: stateBlockNumber,
			timestamp: timestamp || null,
		});
		const sum = (of: (result: BundleResult) => bigint) => results.reduce((all, one) => all + of(one), 0n);
		const gasUsed = sum((result) => result.gasUsed);
		const total = {
			gasUsed,
			coinbaseDiff: sum((one) => one.coinbaseDiff),
			gasFees: sum((one) => one.gasFees),
		};
		return {
			bundleHash: bundleHash(results.map(({ tx }) => tx.hash)),
			bundleGasPrice: gasPrice(total),
			...paidBy(total),
			results: results.map(shown),
			stateBlockNumber: stateBlock,
			totalGasUsed: Number(gasUsed),
		};
	},
});

type Paid = Pick<BundleResult, "gasUsed" | "coinbaseDiff" | "gasFees">;

function shown(result: BundleResult): z.infer<typeof one> {
	const { tx, value, error, gasUsed } = result;
	return {
		txHash: tx.hash,
		fromAddress: tx.from,
		toAddress: tx.to ?? "0x",
		gasUsed: Number(gasUsed),
		gasPrice: gasPrice(result),
		...paidBy(result),
		...(error === undefined
			? { value: `0x${value}` }
			: { error, ...(value === "" ? {} : { revert: `0x${value}` }) }),
	};
}

function paidBy({ coinbaseDiff, gasFees }: Paid): z.infer<typeof paid> {
	return {
		coinbaseDiff: String(coinbaseDiff),
		gasFees: String(gasFees),
		ethSentToCoinbase: String(coinbaseDiff - gasFees),
	};
}

function gasPrice({ coinbaseDiff, gasUsed }: Paid): string {
	return gasUsed === 0n ? "0" : String(coinbaseDiff / gasUsed);
}
