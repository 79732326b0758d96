// eth_callMany: runs a bundle of signed transactions, or bundles of unsigned calls, and returns
// each result. https://docs.erigon.tech/interacting-with-erigon/interacting-with-erigon/eth

import { z } from "zod";
import { clientOf } from "../../../shared/client.ts";
import { decodeTransaction } from "../../../shared/ethereum/transaction.ts";
import type { CallContext } from "../../../shared/http/callContext.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import {
	address,
	blockNumberOrTag,
	boundedList,
	count,
	exactObject,
	hash,
	hexData,
	quantity,
	RAW_PARAMS_SIZE,
	rawBytes,
	seconds,
	time,
} from "../../../shared/jsonrpc/method.ts";
import {
	type CallBundle,
	type CallResult,
	MAX_CALL_BUNDLES,
	MAX_CALLS,
	type TransactionsRequest,
	type UnsignedCall,
} from "../../domain/callMany.ts";
import { bundleClient, bundleObject, withoutEffect } from "../bundleRequests.ts";
import { chargeAuthorizations, type MethodDependencies, relayMethod } from "../methodDependencies.ts";

const ZERO_ADDRESS = `0x${"0".repeat(40)}`;
/** Largest gas and fee: nodes read them into 64 bits. */
const MAX_UINT64 = 2n ** 64n - 1n;

const uint64 = quantity.refine((value) => value <= MAX_UINT64, { error: "expected a number of 64 bits" });

const element = z.union([hash, rawBytes("a signed transaction, or the hash of a shared one, as 0x hex")], {
	error: "expected a signed transaction, or the hash of a shared one, as 0x hex",
});

/** 1 to 100 signed transactions, or hashes of shared ones. */
export const bundleTransactions = boundedList(element, MAX_CALLS, `1 to ${MAX_CALLS} transactions`, 1);

const signedBundle = bundleObject(
	{
		txs: bundleTransactions,
		blockNumber: quantity,
		stateBlockNumber: blockNumberOrTag,
		timestamp: seconds.nullish(),
		replacementUuid: withoutEffect,
	},
	"expected an object",
);

/** Maximum number of addresses in an access list, and of storage keys of each. */
const MAX_ACCESS = 1_000;
const EXPECTED_ACCESS = `an access list (EIP-2930) of ${MAX_ACCESS} addresses with ${MAX_ACCESS} keys each at most`;

const accessList = boundedList(
	exactObject({ address, storageKeys: boundedList(hash, MAX_ACCESS, EXPECTED_ACCESS) }),
	MAX_ACCESS,
	EXPECTED_ACCESS,
);

const call = exactObject({
	from: address.nullish(),
	to: address.nullish(),
	gas: uint64.nullish(),
	gasPrice: uint64.nullish(),
	maxFeePerGas: uint64.nullish(),
	maxPriorityFeePerGas: uint64.nullish(),
	value: quantity.nullish(),
	data: hexData.nullish(),
	input: hexData.nullish(),
	accessList: accessList.nullish(),
	// Accepted as in eth_call, but ignored: the nonce is the account's.
	nonce: quantity.nullish(),
	chainId: quantity.nullish(),
	type: quantity.nullish(),
})
	.refine(({ data, input }) => data == null || input == null || data === input, {
		error: "expected data and input to be equal if both are given",
	})
	.refine(
		({ gasPrice, maxFeePerGas, maxPriorityFeePerGas }) =>
			gasPrice == null || (maxFeePerGas == null && maxPriorityFeePerGas == null),
		{ error: "expected gasPrice, or maxFeePerGas and maxPriorityFeePerGas, not both" },
	)
	.transform(
		(fields): UnsignedCall => ({
			from: fields.from ?? ZERO_ADDRESS,
			to: fields.to ?? null,
			gas: fields.gas ?? null,
			gasPrice: fields.gasPrice ?? null,
			maxFeePerGas: fields.maxFeePerGas ?? null,
			maxPriorityFeePerGas: fields.maxPriorityFeePerGas ?? null,
			value: fields.value ?? 0n,
			data: fields.input ?? fields.data ?? "0x",
			accessList: fields.accessList ?? [],
		}),
	);

const blockOverride = exactObject({
	blockNumber: count.optional(),
	timestamp: time.optional(),
	coinbase: address.optional(),
	gasLimit: uint64.optional(),
	baseFee: uint64.optional(),
});

const MAX_TOGETHER = `${MAX_CALLS} calls at most in all bundles`;

const callBundles = boundedList(
	exactObject({
		transactions: boundedList(call, MAX_CALLS, MAX_TOGETHER),
		blockOverride: blockOverride.nullish(),
	}).transform((bundle): CallBundle => ({ ...bundle, blockOverride: bundle.blockOverride ?? {} })),
	MAX_CALL_BUNDLES,
	`an object of signed transactions, or an array of 1 to ${MAX_CALL_BUNDLES} bundles of calls`,
	1,
).refine((bundles) => bundles.reduce((sum, { transactions }) => sum + transactions.length, 0) <= MAX_CALLS, {
	error: `expected ${MAX_TOGETHER}`,
});

const context = exactObject({
	blockNumber: blockNumberOrTag.optional(),
	transactionIndex: z
		.int({ error: "expected a number of transactions, or -1 for all" })
		.min(-1, { error: "expected a number of transactions, or -1 for all" })
		.nullish(),
});

const result = z.strictObject({
	value: z.string().describe("hex digits without 0x: return data, a creation's code, or revert data"),
	error: z
		.string()
		.optional()
		.describe(
			"why it failed, or with signed transactions which other one of the bundle; absent where it passed",
		),
});

export const eth_callMany = relayMethod({
	name: "eth_callMany",
	summary:
		"Simulates signed transactions in a block to come, or unsigned calls in a block of the chain, one after another.",
	params: [
		{ name: "bundle", schema: z.union([callBundles, signedBundle]) },
		{ name: "context", schema: context.optional() },
	],
	maxParamsSize: RAW_PARAMS_SIZE,
	result: z.array(z.array(result)).describe("one inner list for each bundle"),
	weight: 10,
	async handle([bundle, where], from, dependencies) {
		const { callMany } = dependencies;
		const client = bundleClient(from).network;
		if (Array.isArray(bundle)) {
			const index = where?.transactionIndex ?? -1;
			return callMany.runCalls({
				client,
				bundles: bundle,
				block: where?.blockNumber ?? "latest",
				transactionIndex: index === -1 ? null : index,
			});
		}
		if (where !== undefined) {
			throw new RpcError("invalidParams", "invalid params: context: expected none with signed transactions");
		}
		const [alone = []] = await callMany.runTransactions({
			client,
			txs: await readElements(bundle.txs, from, dependencies),
			blockNumber: bundle.blockNumber,
			stateBlock: bundle.stateBlockNumber,
			timestamp: bundle.timestamp || null,
		});
		return [asBundle(alone)];
	},
});

/**
 * Decodes the transactions of a bundle. Throws RpcError with the malformed element's name, from
 * `nameOf`.
 */
export async function readElements(
	elements: readonly (string | Uint8Array)[],
	context: CallContext,
	{ recoveries, charge }: Pick<MethodDependencies, "recoveries" | "charge">,
	nameOf = (index: number) => `bundle.txs[${index}]`,
): Promise<TransactionsRequest["txs"]> {
	const raws = elements.filter((element) => typeof element !== "string");
	chargeAuthorizations(raws, context.client, charge);
	const read: TransactionsRequest["txs"][number][] = [];
	const client = clientOf(context.client.address);
	const work = (element: string | Uint8Array) => read.push(readElement(element, nameOf(read.length)));
	await recoveries.each(elements, client, work, ({ length }) => length);
	return read;
}

/** Decodes bytes; a hash is returned as it is. */
function readElement(one: string | Uint8Array, name: string): TransactionsRequest["txs"][number] {
	if (typeof one === "string") return one;
	const decoded = decodeTransaction(one);
	if (decoded.ok) return decoded.tx;
	throw new RpcError("invalidParams", `invalid params: ${name}: ${decoded.message}`);
}

/**
 * The results of transactions that are mined together or not at all. If one fails, all fail, and
 * those behind it do not run.
 */
function asBundle(alone: readonly CallResult[]): readonly CallResult[] {
	const failed = alone.findIndex(({ error }) => error !== undefined);
	if (failed < 0) return alone;
	const error = `bundle failed at transaction ${failed}`;
	return alone.map((one, i) => (i === failed ? one : { value: i < failed ? one.value : "", error }));
}
