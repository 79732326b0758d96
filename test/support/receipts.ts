// Asks a relay or boost for the receipt of a transaction, as its owner or as a stranger does.

import type { Receipt } from "../../docs/examples/verify.ts";
import { RelayClient, type WireAnswer } from "./relayClient.ts";
import type { TestAccount } from "./txFactory.ts";
import { READ_SIGNATURE, readHeader } from "./typedSignatures.ts";
import { until } from "./until.ts";

/** The whole answer; `by`: the account that signs the read; `from`: the client's address. */
export async function askReceipt(
	url: string,
	{ hash }: { readonly hash: string },
	by?: TestAccount,
	from?: string,
): Promise<WireAnswer> {
	const headers: Record<string, string> = {};
	if (by !== undefined) headers[READ_SIGNATURE] = await readHeader(by.keyHex, { scope: "receipts" });
	if (from !== undefined) headers["x-forwarded-for"] = from;
	return new RelayClient(url, headers).ask("service_receipt", [hash]);
}

/** The receipt, for the network address that submitted the transaction or for `by`. */
export async function receiptOf(...args: Parameters<typeof askReceipt>): Promise<Receipt> {
	const { result, error } = await askReceipt(...args);
	if (error !== undefined) throw new Error(`${error.code} ${error.message}`);
	return result as Receipt;
}

/** The receipt once the transaction has ended as `stage`. */
export async function endedReceipt(
	url: string,
	tx: { readonly hash: string },
	stage: string,
): Promise<Receipt> {
	return until(`the receipt of ${tx.hash} at ${stage}`, async () => {
		const receipt = await receiptOf(url, tx);
		return receipt.ended?.statement.stage === stage && receipt;
	});
}

/** The address that signs receipts, as GET /info reports it. */
export async function receiptSigner(url: string): Promise<string> {
	const { receiptSigner } = (await (await fetch(`${url}/info`)).json()) as { receiptSigner: string };
	return receiptSigner;
}
