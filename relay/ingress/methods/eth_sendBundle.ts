// eth_sendBundle: a bid on a shared pending transaction, or a plain bundle. Answers with its hash after simulation; an
// empty `txs` cancels.

import { z } from "zod";
import { bytesToHex } from "../../../shared/ethereum/hex.ts";
import { keccak256 } from "../../../shared/ethereum/recover.ts";
import { RAW_PARAMS_SIZE } from "../../../shared/jsonrpc/method.ts";
import { bundleHash } from "../bundleOutcome.ts";
import { bundleClient, mayCancel } from "../bundleOwner.ts";
import { sendBundle } from "../bundleSchemas.ts";
import { relayMethod } from "../methodDependencies.ts";

/** The hash of no bundle: the answer to every cancel, so that it tells nothing of what there was. */
const NO_BUNDLE = bytesToHex(keccak256(new Uint8Array()));

export const eth_sendBundle = relayMethod({
	name: "eth_sendBundle",
	summary:
		"Bids on a shared pending transaction: its hash and a signed backrun that pays the fee recipient. Empty txs cancel.",
	params: [{ name: "bundle", schema: sendBundle }],
	maxParamsSize: RAW_PARAMS_SIZE,
	result: z.string().describe("the bundle's hash"),
	ordered: true,
	async handle([bundle], context, { market, charge }) {
		const client = bundleClient(context);
		if (bundle.kind === "cancel") {
			if (mayCancel(context)) market.cancel(client.owner, bundle.uuid);
			return NO_BUNDLE;
		}
		const { target, backrun, block, uuid } = bundle;
		const blocks = { first: block, last: null };
		const outcome = await market.bid({ ...client, blocks, uuid, builders: null, target, backrun });
		return bundleHash(outcome, context.client, charge);
	},
});
