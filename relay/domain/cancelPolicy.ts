// Who may cancel a transaction by its hash. Hashes are public on the searchers' feed, so the hash alone proves
// nothing. Pure.

import type { CancelRequest } from "./transaction.ts";

/** `origin`: who submitted it, by the network address, or its sender, by signature; `open`: anyone. */
export const CANCEL_POLICIES = ["origin", "open"] as const;
export type CancelPolicy = (typeof CANCEL_POLICIES)[number];

/** Whose a transaction is; `origin` is the network address that submitted it, null where that is forgotten. */
export interface TransactionOwner {
	readonly from: string;
	readonly origin: string | null;
}

/** Whether the client may take back the transaction of `owner`. */
export function mayCancelTransaction(
	policy: CancelPolicy,
	{ address, signer }: Pick<CancelRequest, "address" | "signer">,
	{ from, origin }: TransactionOwner,
): boolean {
	return policy === "open" || signer === from || (address !== null && address === origin);
}
