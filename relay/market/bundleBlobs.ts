// Prepares the blob transactions of bundles and bids. Their proofs must be right, and they get cell
// proofs if the next block needs them. Builders drop others silently.

import type { BlobProofs } from "../../shared/ethereum/blobProofs.ts";
import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { nodeUnavailable } from "../admission/admission.ts";
import { type BundleOutcome, rejectedBundle } from "../domain/bundle.ts";
import type { Tip } from "../domain/chain.ts";
import { type ChainRules, firstRejection, STATIC_RULES } from "../domain/transactionRules.ts";

const BLOB_TYPE = 3;

export interface BundleBlobsDependencies {
	readonly blobProofs: Pick<BlobProofs, "ready">;
	readonly tip: Tip;
}

/**
 * The bytes to send in place of `raw`, or the reason why the bundle is rejected. `raw` is the
 * transaction with number `i` of a bundle's `count`. Bytes without blobs stay as they are, even if
 * they are no transaction. `client`: see clientOf.
 */
export async function withReadyBlobs(
	{ raw, i, count }: { readonly raw: Uint8Array; readonly i: number; readonly count: number },
	client: string,
	rules: ChainRules,
	{ blobProofs, tip }: BundleBlobsDependencies,
): Promise<Uint8Array | BundleOutcome> {
	if (raw[0] !== BLOB_TYPE) return raw;
	const place = count === 1 ? "" : ` (body[${i}])`;
	const decoded = decodeTransaction(raw);
	if (!decoded.ok) return rejectedBundle("BAD_TRANSACTION", `${decoded.message}${place}`);
	const next = tip.next();
	if (next === null) throw nodeUnavailable();
	const rejected = firstRejection(STATIC_RULES, decoded.tx, rules, next);
	if (rejected !== null) return rejectedBundle("BAD_TRANSACTION", `${rejected.message}${place}`);
	const verdict = await blobProofs.ready(decoded.tx, next.fork.sidecarVersion, client);
	if (verdict.ok) return verdict.tx.raw;
	const { code, message } = verdict.rejection;
	return code === "BLOBS"
		? rejectedBundle("BAD_TRANSACTION", `${message}${place}`)
		: rejectedBundle("LIMIT", `limit exceeded: ${message}`);
}
