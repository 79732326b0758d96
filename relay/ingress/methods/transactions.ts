// The methods that submit, cancel and read transactions.

import { z } from "zod";
import { clientOf } from "../../../shared/client.ts";
import { toQuantity } from "../../../shared/ethereum/hex.ts";
import { type RpcTransaction, withoutSignature } from "../../../shared/ethereum/rpcObjects.ts";
import type { CallContext } from "../../../shared/http/callContext.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import {
	AnswerLater,
	address,
	blockReference,
	hash,
	RAW_PARAMS_SIZE,
	rawBytes,
} from "../../../shared/jsonrpc/method.ts";
import { unknownMethod } from "../../../shared/jsonrpc/methodNotFound.ts";
import { NOT_CANCELLABLE, STILL_WANTED, STILL_WANTED_REASON } from "../../../shared/ownership.ts";
import { CANCEL_PARAMS, cancelSigner } from "../../../shared/signedCancels.ts";
import { badParameter, readSubmissionQuery } from "../../../shared/submissionQuery.ts";
import { neverMined, syncTimeoutMs } from "../../../shared/syncWaits.ts";
import {
	DEFAULT_PATH,
	ENDPOINTS,
	isSubmissionPath,
	policyOf,
	type SubmissionPath,
} from "../../domain/endpoints.ts";
import type { Submission, SubmissionOptions, SubmitOutcome } from "../../domain/transaction.ts";
import {
	type CoreNeeds,
	callerOf,
	chargeAuthorizations,
	chargeBlobs,
	coreMethod,
	relayMethod,
	requesterOf,
} from "../methodDependencies.ts";
import { core_pendingNonce, core_pendingTransaction } from "./betweenRelays.ts";

export const eth_sendRawTransaction = coreMethod({
	name: "eth_sendRawTransaction",
	summary:
		"Takes a signed transaction privately; the URL path selects how it is treated. Answers its hash once it is on disk.",
	params: [{ name: "raw", schema: rawBytes("a signed transaction as 0x hex") }],
	maxParamsSize: RAW_PARAMS_SIZE,
	result: z.string().describe("the transaction's hash"),
	ordered: true,
	async handle([raw], context, dependencies) {
		const { hash } = await submitRaw(raw, context, dependencies);
		return hash;
	},
});

export const eth_sendRawTransactionSync = coreMethod({
	name: "eth_sendRawTransactionSync",
	summary:
		"As eth_sendRawTransaction, but answers the receipt (EIP-7966); error 4 with the hash when the time is up, 5 when it cannot be mined soon or is a soft cancel.",
	params: [
		{ name: "raw", schema: rawBytes("a signed transaction as 0x hex") },
		{ name: "timeoutMs", schema: syncTimeoutMs },
	],
	maxParamsSize: RAW_PARAMS_SIZE,
	result: z.record(z.string(), z.unknown()).describe("the receipt as eth_getTransactionReceipt gives it"),
	// Only the submission is ordered: in a batch, all waits run at the same time after it.
	ordered: true,
	async handle([raw, timeout], context, dependencies) {
		const { receipts, clock } = dependencies;
		const begun = clock.monotonic();
		const { hash, outcome } = await submitRaw(raw, context, dependencies);
		if (outcome === "cancels") throw neverMined(hash);
		const { client, life } = context;
		return new AnswerLater((requestLeftMs) => {
			const until = Math.min(begun + timeout, clock.monotonic() + requestLeftMs);
			return receipts.wait({ hash, client: clientOf(client.address), life, begun, until });
		});
	},
});

export const eth_sendPrivateTransaction = relayMethod({
	name: "eth_sendPrivateTransaction",
	summary: "Not supported: eth_sendRawTransaction never shares transactions in the public mempool.",
	// Accepts any parameters, so that each client gets this error and not one about its parameters.
	params: [
		{ name: "transaction", schema: z.unknown().optional() },
		{ name: "options", schema: z.unknown().optional() },
		{ name: "more", schema: z.unknown().optional() },
	],
	maxParamsSize: RAW_PARAMS_SIZE,
	result: z.never(),
	handle() {
		throw unknownMethod("eth_sendPrivateTransaction", []);
	},
});

export const eth_cancelTransaction = coreMethod({
	name: "eth_cancelTransaction",
	summary:
		"Cancels a pending transaction: for its sender, by a signature, or its submitter, by network address. Each submitter takes back its own request; the sender ends it for all.",
	params: CANCEL_PARAMS,
	result: z.literal(true),
	ordered: true,
	async handle([wanted, signature], context, { pipeline, chainId }) {
		const { address, signer: signedBody } = requesterOf(context);
		const signer = signature === undefined ? signedBody : cancelSigner(chainId, wanted, signature);
		const carried = context.client.ends?.carried.find(({ hash }) => hash === wanted);
		const outcome = await pipeline.cancel({ hash: wanted, address, signer, carried });
		if (outcome === "cancelled") return true as const;
		if (outcome === "notPending") throw new RpcError("rejected", NOT_CANCELLABLE);
		throw new RpcError("rejected", STILL_WANTED, { reason: STILL_WANTED_REASON });
	},
});

export const eth_getTransactionByHash = relayMethod({
	name: "eth_getTransactionByHash",
	summary:
		"A transaction, pending private ones included. gasPrice, v, r, s and yParity are 0x0; with SIGNATURE_HIDING=pending only those of pending private ones.",
	params: [{ name: "hash", schema: hash }],
	result: z.record(z.string(), z.unknown()).nullable().describe("the transaction, or null"),
	async handle([wanted], context, { core, node, chainId, signatureHiding }) {
		const own = await core.run(core_pendingTransaction, [wanted], context);
		if (own !== null) return own;
		const found = await node.transactionByHash(wanted, callerOf(context));
		if (found === null || signatureHiding === "pending") return found;
		return withoutSignature(found as RpcTransaction, chainId);
	},
});

export const eth_getTransactionCount = relayMethod({
	name: "eth_getTransactionCount",
	summary: "The account's next nonce; with the tag pending, private transactions count too.",
	params: [
		{ name: "address", schema: address },
		{ name: "block", schema: blockReference.optional() },
	],
	result: z.string().describe("the count as 0x hex"),
	async handle([account, block = "latest"], context, { core, node }) {
		const caller = callerOf(context);
		if (block !== "pending") return node.transactionCount(account, block, caller);
		const count = toQuantity(await node.pendingCount(account, caller));
		return core.run(core_pendingNonce, [account, count], context);
	},
});

/** The outcome of a submission that was not rejected. */
type NotRejected = Exclude<SubmitOutcome, { readonly outcome: "rejected" }>;

/**
 * Submits `raw` with the options of the request's path and query. Resolves once it is on disk.
 * Throws RpcError: `rejected` for a rejection, `limit` if the client has used its quota of the
 * pool, `invalidParams` for a bad query. Also throws the submitter's errors.
 */
async function submitRaw(
	raw: Uint8Array,
	context: CallContext,
	needs: Pick<CoreNeeds, "pipeline" | "charge"> & QueryNeeds,
): Promise<NotRejected> {
	const { pipeline, charge } = needs;
	const options = submissionOptions(context.path, context.query, needs);
	const { address: submitterAddress } = context.client;
	chargeAuthorizations([raw], context.client, charge);
	chargeBlobs([raw], context.client, charge);
	const outcome = await pipeline.submit({
		raw,
		submitterAddress,
		address: requesterOf(context).address,
		requestId: context.requestId,
		trace: context.trace,
		recovered: context.recovered,
		ends: context.client.ends,
		...options,
	});
	if (outcome.outcome !== "rejected") return outcome;
	const { code, message, data } = outcome.rejection;
	// The message is go-ethereum's, which wallets know. With the data, clients need not match the
	// message.
	throw new RpcError(code === "CLIENT_FULL" ? "limit" : "rejected", message, { reason: code, ...data });
}

/** Paths that accept JSON-RPC; `/` and `/ws` are `/fast`. */
export const RPC_PATHS: readonly string[] = ["/", "/ws", ...Object.keys(ENDPOINTS).map((name) => `/${name}`)];

function submissionPath(path: string): SubmissionPath {
	const name = path.slice(1);
	return isSubmissionPath(name) ? name : DEFAULT_PATH;
}

/** The settings that decide whether Flashbots' parameters can be honoured. */
type QueryNeeds = Pick<CoreNeeds, "buildersOf" | "refundPercent" | "txTtlBlocks">;

/**
 * The options of a request. Throws RpcError `invalidParams` naming the parameter and what was
 * expected.
 */
function submissionOptions(
	path: string,
	query: URLSearchParams,
	needs: QueryNeeds,
): SubmissionOptions & Pick<Submission, "again"> {
	const name = submissionPath(path);
	const { softCancellations, builders, refundPercent, blockRange, ...rest } = readSubmissionQuery(query);
	if (refundPercent !== null && refundPercent !== needs.refundPercent)
		throw badParameter("refund", `${needs.refundPercent} percent, as for every refund`);
	if (blockRange !== null && blockRange !== needs.txTtlBlocks)
		throw badParameter("blockRange", `${needs.txTtlBlocks}, as for every transaction`);
	return {
		...rest,
		path: name,
		softCancellations: softCancellations && policyOf(name).softCancellations,
		builders: builders?.map((builder) => builderOf(builder, needs.buildersOf(name))) ?? null,
	};
}

function builderOf(given: string, allowed: readonly string[]): string {
	const found = allowed.find((name) => name.toLowerCase() === given.toLowerCase());
	if (found === undefined) throw badParameter("builder", "the name of a builder that this path sends to");
	return found;
}
