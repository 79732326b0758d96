// Asks a relay or boost for the refunds of an account, as its owner does, and for the totals.

import { createBodySigner } from "../../shared/ethereum/signatures.ts";
import type { TestAccount } from "./txFactory.ts";

const HOUR_S = 3_600;

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

/** Seconds since 1970, an hour from now unless said. */
export function soon(seconds = HOUR_S): string {
	return String(Math.floor(Date.now() / 1_000) + seconds);
}

/** The answer of the server at `base` about an account's refunds, to its owner; `query` is more of the query. */
export function askRefunds(
	base: string,
	account: TestAccount,
	query = "",
	accept = "application/json",
): Promise<Response> {
	const end = soon();
	const signature = createBodySigner(account.keyHex).sign(`refunds of ${account.address} until ${end}`);
	return fetch(`${base}/refunds/${account.address}?until=${end}${query}`, {
		headers: { accept, "x-flashbots-signature": signature },
	});
}

export async function askTotals(base: string): Promise<Totals> {
	return (await (await fetch(`${base}/totals`)).json()) as Totals;
}
