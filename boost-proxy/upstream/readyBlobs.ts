// Blob transactions in the form that a fallback gets: with cell proofs, as in our relay, regardless
// of the wallet's proofs. Cell proofs follow from the blobs. So the bytes are the same even while
// the relay is down.

import { LRUCache } from "lru-cache";
import { clientOf } from "../../shared/client.ts";
import { type Clock, within } from "../../shared/clock.ts";
import type { BlobProofs } from "../../shared/ethereum/blobProofs.ts";
import type { SidecarVersion } from "../../shared/ethereum/sidecar.ts";
import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { RPC_ERRORS } from "../../shared/jsonrpc/errors.ts";
import type { Sendable } from "../domain/ports.ts";
import type { Delivery } from "../domain/request.ts";

/**
 * The transaction to send, or why nothing is sent. `address`: the client's; null for boost's own.
 */
export type ReadyBlobs = (
	tx: Sendable,
	address: string | null,
	deadlineMs: number,
) => Promise<Sendable | Delivery>;

export interface ReadyBlobsDependencies {
	readonly proofs: Pick<BlobProofs, "ready">;
	/** The version of sidecars in the next block. */
	readonly version: () => SidecarVersion;
	readonly clock: Clock;
}

/** Bytes of transactions that are kept, since a fallback may need several attempts. */
const KEPT_BYTES = 16 * 1024 * 1024;

export function createReadyBlobs({ proofs, version, clock }: ReadyBlobsDependencies): ReadyBlobs {
	const kept = new LRUCache<string, Buffer>({ maxSize: KEPT_BYTES, sizeCalculation: ({ length }) => length });
	return async (tx, address, deadlineMs) => {
		const raw = kept.get(tx.hash);
		if (raw !== undefined) return { ...tx, raw };
		const decoded = decodeTransaction(tx.raw);
		if (!decoded.ok) throw new Error("a row whose bytes are no transaction");
		const client = address === null ? "" : clientOf(address);
		const checking = proofs.ready(decoded.tx, version(), client).then((verdict) => {
			// It may complete after this request's time is over. A sidecar from before Osaka is soon
			// useless.
			if (verdict.ok && verdict.tx.sidecar?.version === 1) kept.set(tx.hash, verdict.tx.raw);
			return verdict;
		});
		// Null: the time is over, or the thread has ended.
		const verdict = await within(clock, "the blobs' proofs", deadlineMs, checking).catch(() => null);
		if (verdict === null) return UNSENT;
		if (verdict.ok) return { ...tx, raw: verdict.tx.raw };
		const { code: reason, message, data } = verdict.rejection;
		const error = { code: CODES[reason], message, data: { reason, ...data } };
		return reason === "POOL_FULL" ? { ...UNSENT, error } : { kind: "rejected", error };
	};
}

const CODES = {
	BLOBS: RPC_ERRORS.rejected.code,
	CLIENT_FULL: RPC_ERRORS.limit.code,
	POOL_FULL: RPC_ERRORS.internal.code,
};
const UNSENT = { kind: "failed", fault: "internal", sent: false } as const;
