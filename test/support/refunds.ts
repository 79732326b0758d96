// Asks a relay or boost for the refunds of an account, as its owner does, for the totals, and for
// the operator's sums.

import assert from "node:assert/strict";
import { readCsv } from "./csv.ts";
import { ADMIN_TOKEN } from "./relayClient.ts";
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

/** A line of the operator's list; wei as decimal text. */
export interface Sum extends Readonly<Record<string, string>> {
	readonly month: string;
	readonly recipient: string;
	readonly sender: string;
	readonly referrer: string;
	readonly builder: string;
	readonly refunds: string;
	readonly owed: string;
	readonly paid: string;
	readonly unpaid: string;
}

/** All lines of the operator's list, page by page. */
export async function askSums(base: string): Promise<readonly Sum[]> {
	const sums: Sum[] = [];
	const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
	for (let path: string | undefined = "/operator/refunds.csv"; path !== undefined; ) {
		const answer: Response = await fetch(`${base}${path}`, { headers });
		assert.equal(answer.status, 200);
		const [names = [], ...lines] = readCsv(await answer.text());
		for (const line of lines) sums.push(Object.fromEntries(names.map((name, i) => [name, line[i]])) as Sum);
		path = /^<([^>]+)>; rel="next"$/.exec(answer.headers.get("link") ?? "")?.[1];
	}
	return sums;
}
