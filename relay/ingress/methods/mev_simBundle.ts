// mev_simBundle: simulates a bundle of mev_sendBundle, and returns its payment in the form that
// MEV-Share's clients read.
// https://docs.flashbots.net/flashbots-auction/advanced/rpc-endpoint#mev_simbundle

import { z } from "zod";
import { toQuantity } from "../../../shared/ethereum/hex.ts";
import { blockNumberOrTag, count, quantity, RAW_PARAMS_SIZE } from "../../../shared/jsonrpc/method.ts";
import type { BundleResult } from "../../domain/callMany.ts";
import { bundleClient, bundleObject, type ShareBundle, shareBundle } from "../bundleRequests.ts";
import { relayMethod } from "../methodDependencies.ts";
import { readElements } from "./eth_callMany.ts";

const options = bundleObject(
	{ parentBlock: blockNumberOrTag.nullish(), blockNumber: quantity.nullish(), timestamp: count.nullish() },
	"expected {parentBlock, blockNumber, timestamp}",
);

const amount = z.string().describe("0x hex");

/** The parameters' names, for errors about the block. */
const NAMES = {
	stateBlock: "options.parentBlock",
	blockNumber: "options.blockNumber",
	timestamp: "options.timestamp",
};

export const mev_simBundle = relayMethod({
	name: "mev_simBundle",
	summary:
		"Simulates a bundle of mev_sendBundle in a block to come, and reports what it pays, as MEV-Share does.",
	params: [
		{ name: "bundle", schema: shareBundle },
		{ name: "options", schema: options.nullish() },
	],
	maxParamsSize: RAW_PARAMS_SIZE,
	result: z.object({
		success: z.boolean().describe("whether all passed that may not revert"),
		error: z.string().optional().describe("the transaction that did not pass, and why"),
		stateBlock: amount.describe("number of the block on whose state it ran"),
		mevGasPrice: amount.describe("profit per gas, in wei"),
		profit: amount.describe("wei that the block's fee recipient gets, before any refund"),
		refundableValue: amount.describe("the part that the refund percentage applies to"),
		gasUsed: amount,
	}),
	weight: 10,
	async handle([bundle, given], context, dependencies) {
		const elements = bundle.body.map((entry) => (entry.kind === "hash" ? entry.hash : entry.raw));
		const { stateBlock, results } = await dependencies.callMany.runBundle({
			client: bundleClient(context).network,
			txs: await readElements(elements, context, dependencies, (index) => `bundle.body[${index}].tx`),
			blockNumber: given?.blockNumber ?? null,
			stateBlock: given?.parentBlock ?? "latest",
			timestamp: given?.timestamp || null,
			names: NAMES,
		});
		const failed = bundle.body.findIndex((entry, i) => {
			const mayFail = entry.kind === "tx" && entry.canRevert;
			return !mayFail && results[i]?.error !== undefined;
		});
		const refunded = refundedOf(bundle);
		const profit = sumOf(results, ({ coinbaseDiff }) => coinbaseDiff);
		const gasUsed = sumOf(results, (one) => one.gasUsed);
		const refundable = sumOf(
			results.filter((_, i) => !refunded.has(i)),
			({ coinbaseDiff }) => coinbaseDiff,
		);
		return {
			success: failed < 0,
			...(failed < 0 ? {} : { error: `${results[failed]?.error} (body[${failed}])` }),
			stateBlock: toQuantity(stateBlock),
			mevGasPrice: toQuantity(gasUsed === 0n ? 0n : profit / gasUsed),
			profit: toQuantity(profit),
			refundableValue: toQuantity(refundable),
			gasUsed: toQuantity(gasUsed),
		};
	},
});

/** The entries whose users get the refund: the others pay for it. */
function refundedOf({ body, refund }: Pick<ShareBundle, "body" | "refund">): ReadonlySet<number> {
	if (body[0]?.kind === "hash") return new Set([0]);
	return new Set(refund.filter(({ percent }) => percent > 0).map(({ bodyIdx }) => bodyIdx));
}

function sumOf(results: readonly BundleResult[], of: (result: BundleResult) => bigint): bigint {
	return results.reduce((sum, one) => sum + of(one), 0n);
}
