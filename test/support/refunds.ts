// Asks a relay or boost for the refunds of an account, as its owner does, and for the totals.

import type { TestAccount } from "./txFactory.ts";
import { READ_SIGNATURE, readHeader } from "./typedSignatures.ts";

interface Row extends Readonly<Record<string, string | number>> {
	readonly block: number;
	readonly hash: string;
	readonly paid: string;
}

export interface Refunds {
	readonly address: string;
	readonly since: string;
	readonly owed: string;
	readonly paid: string;
	readonly refunds: readonly Row[];
	readonly next: string | null;
}

export interface Totals {
	readonly since: string;
	readonly transactions: number;
	readonly refundedWei: string;
	readonly lastDay: { readonly transactions: number; readonly refundedWei: string };
}

/**
 * The answer of the server at `base` about an account's refunds, to its owner; `query` is more of
 * the query.
 */
export async function askRefunds(
	base: string,
	account: TestAccount,
	query = "",
	accept = "application/json",
): Promise<Response> {
	const header = await readHeader(account.keyHex, { scope: "refunds" });
	return fetch(`${base}/refunds/${account.address}?${query}`, {
		headers: { accept, [READ_SIGNATURE]: header },
	});
}

export async function askTotals(base: string): Promise<Totals> {
	return (await (await fetch(`${base}/totals`)).json()) as Totals;
}
