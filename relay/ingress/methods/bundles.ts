// The methods for searchers' bundles: bids, plain bundles and cancels.

import { z } from "zod";
import { bytesToHex } from "../../../shared/ethereum/hex.ts";
import { keccak256 } from "../../../shared/ethereum/signatures.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import { PARAMS_SIZE, RAW_PARAMS_SIZE } from "../../../shared/jsonrpc/method.ts";
import type { PlainBundleRequest } from "../../domain/bundle.ts";
import {
	acceptedHash,
	bundleClient,
	bundleOwner,
	cancelBundle,
	mayCancel,
	type ShareBundle,
	sendBundle,
	shareBundle,
} from "../bundleRequests.ts";
import { chargeAuthorizations, chargeBlobs, coreMethod } from "../methodDependencies.ts";

/**
 * The hash of an empty bundle: the answer to every cancel, which must not reveal whether there was
 * a bundle.
 */
const NO_BUNDLE = bytesToHex(keccak256(new Uint8Array()));

export const eth_sendBundle = coreMethod({
	name: "eth_sendBundle",
	summary:
		"Bids on a shared pending transaction: its hash and a signed backrun that pays the fee recipient. Empty txs cancel.",
	params: [{ name: "bundle", schema: sendBundle }],
	maxParamsSize: RAW_PARAMS_SIZE,
	result: z.string().describe("the bundle's hash"),
	ordered: true,
	answeredWithoutId: true,
	async handle([bundle], context, { market, digests, charge }) {
		digests.check(context);
		const client = bundleClient(context);
		if (bundle.kind === "cancel") {
			if (mayCancel(context)) market.cancel(client.owner, bundle.uuid);
			return NO_BUNDLE;
		}
		const { target, backrun, block, times, uuid } = bundle;
		const blocks = { first: block, last: null };
		chargeAuthorizations([backrun], context.client, charge);
		chargeBlobs([backrun], context.client, charge);
		const outcome = await market.bid({ ...client, blocks, times, uuid, builders: null, target, backrun });
		return acceptedHash(outcome, context.client, charge);
	},
});

export const eth_cancelBundle = coreMethod({
	name: "eth_cancelBundle",
	summary: "Cancels the client's bundle with this replacementUuid; 200 also if there is none.",
	params: [{ name: "bundle", schema: cancelBundle }],
	maxParamsSize: 4 * PARAMS_SIZE,
	result: z.literal(200),
	ordered: true,
	answeredWithoutId: true,
	handle([{ replacementUuid }], context, { market, digests }) {
		digests.check(context);
		if (mayCancel(context)) market.cancel(bundleOwner(context), replacementUuid);
		return 200;
	},
});

export const mev_sendBundle = coreMethod({
	name: "mev_sendBundle",
	summary:
		"Takes a bundle for a range of blocks, or with {hash} first a bid on a shared pending transaction.",
	params: [{ name: "bundle", schema: shareBundle }],
	maxParamsSize: RAW_PARAMS_SIZE,
	result: z.object({ bundleHash: z.string() }).describe("the bundle's hash"),
	ordered: true,
	answeredWithoutId: true,
	async handle([bundle], context, { market, digests, builderNames, refundPercent, charge }) {
		digests.check(context);
		const { blocks, times, builders, uuid, body } = bundle;
		const unknown = builders?.findIndex((name) => !builderNames.includes(name)) ?? -1;
		if (unknown >= 0) throw bad(`privacy.builders[${unknown}]`, "the name of a builder of this relay");
		const envelope = { ...bundleClient(context), blocks, times, uuid, builders };
		const [first, second] = body;
		const raws = body.flatMap((entry) => (entry.kind === "tx" ? [entry.raw] : []));
		chargeAuthorizations(raws, context.client, charge);
		chargeBlobs(raws, context.client, charge);
		let outcome: Awaited<ReturnType<typeof market.bid>>;
		if (first?.kind === "hash" && second?.kind === "tx") {
			checkBidRefund(bundle, refundPercent);
			outcome = await market.bid({ ...envelope, target: first.hash, backrun: second.raw });
		} else {
			const refund = plainRefund(bundle);
			const transactions = body.flatMap((entry) =>
				entry.kind === "tx" ? [{ raw: entry.raw, canRevert: entry.canRevert }] : [],
			);
			// Each transaction costs the node an account read and an execution.
			charge(context.client, transactions.length - 1);
			outcome = await market.submit({ ...envelope, body: transactions, refund });
		}
		return { bundleHash: acceptedHash(outcome, context.client, charge) };
	},
});

/** The refund to a target's user is fixed: a bid may repeat it or promise more, but not less. */
function checkBidRefund({ refund }: ShareBundle, refundPercent: number): void {
	const [own] = refund;
	if (own === undefined) return;
	if (refund.length > 1) throw bad("validity.refund", "at most one with a hash in the body");
	if (own.bodyIdx !== 0) throw bad("validity.refund[0].bodyIdx", "0, the target");
	if (own.percent < refundPercent) throw bad("validity.refund[0].percent", `${refundPercent} at least`);
}

/** Builders support one refund to one recipient. */
function plainRefund({ refund, refundConfig }: ShareBundle): PlainBundleRequest["refund"] {
	if (refund.length > 1) throw bad("validity.refund", "at most one");
	if (refundConfig.length > 1) throw bad("validity.refundConfig", "at most one");
	const [only] = refund;
	if (only === undefined) return null;
	const [config] = refundConfig;
	const percent = Math.floor((only.percent * (config?.percent ?? 100)) / 100);
	if (percent === 0) return null;
	return { bodyIdx: only.bodyIdx, percent, recipient: config?.address ?? null };
}

function bad(place: string, expected: string): RpcError {
	return new RpcError("invalidParams", `invalid params: bundle.${place}: expected ${expected}`);
}
