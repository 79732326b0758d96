// `GET /refunds/{address}`: the refunds of an address, as JSON or CSV, for the owner of its key.
// `GET /totals`: all transactions and refunds of the relay, for everybody. Both report only mined
// blocks. Wei are decimal strings, times ISO 8601.

import { READ_SIGNATURE } from "../../shared/client.ts";
import { type Clock, isoTime } from "../../shared/clock.ts";
import { parseAddress } from "../../shared/ethereum/hex.ts";
import { type HttpAnswer, jsonAnswer, VARY_ACCEPT } from "../../shared/http/messages.ts";
import type { Route, RouteRequest } from "../../shared/http/routes.ts";
import type { RefundRow } from "../domain/refundRow.ts";
import type { RefundPage, RefundTable, Sums, Totals } from "../transactions/refundTable.ts";
import { csvAnswer } from "./csv.ts";
import type { VerifyRead } from "./readSignatures.ts";

export interface RefundRouteDependencies {
	readonly refunds: Pick<RefundTable, "refundsOf" | "totals" | "since">;
	readonly verifyRead: VerifyRead;
	readonly clock: Clock;
}

/** The cost of 1,000 rows, like `eth_getLogs`. */
export const REFUNDS_WEIGHT = 10;
const BLOCK = /^\d{1,12}$/;
const COLUMNS = [
	"block",
	"blockHash",
	"hash",
	"sender",
	"recipient",
	"wei",
	"payer",
	"owed",
	"paid",
] as const satisfies readonly (keyof RefundView)[];

/**
 * A refund in a response. `wei` is the amount that arrived, a column name for lists of payments.
 */
interface RefundView extends Omit<RefundRow, "referrer" | "at"> {
	readonly wei: string;
}

export function refundsRoute(dependencies: RefundRouteDependencies): Route {
	return {
		path: "/refunds/{address}",
		weight: REFUNDS_WEIGHT,
		async handle(request) {
			const address = parseAddress(request.params.address ?? "");
			if (address === null) return refused(400, "expected an address of 20 bytes as 0x hex");
			const { query } = request;
			const format =
				query.get("format") ?? (/\btext\/csv\b/i.test(request.headers.accept ?? "") ? "csv" : "json");
			if (format !== "json" && format !== "csv") return refused(400, "format: expected json or csv");
			const blocks = [query.get("fromBlock") ?? "0", query.get("toBlock") ?? "999999999999"] as const;
			if (!blocks.every((one) => BLOCK.test(one)))
				return refused(400, "fromBlock, toBlock: expected a block's number in decimal digits");
			const [fromBlock, toBlock] = blocks.map(Number) as [number, number];
			if (fromBlock > toBlock) return refused(400, "fromBlock: expected toBlock or an earlier block");
			const refusal = judge(address, request, dependencies);
			if (refusal !== null) return refusal;
			const page = await dependencies.refunds.refundsOf(address, fromBlock, toBlock);
			const next = page.nextToBlock === null ? null : nextPath(address, query, page.nextToBlock);
			return format === "csv"
				? refundsCsv(address, page, next)
				: jsonAnswer(200, refundsView(address, dependencies.refunds.since, page, next), VARY_ACCEPT);
		},
	};
}

/** The refusal if the caller may not see the refunds of `address`; else null. */
function judge(
	address: string,
	{ headers }: RouteRequest,
	{ verifyRead }: RefundRouteDependencies,
): HttpAnswer | null {
	const checked = verifyRead(String(headers[READ_SIGNATURE] ?? ""), "refunds");
	if ("error" in checked) return refused(401, checked.error);
	if (checked.signer === address) return null;
	return refused(403, `expected a signature by ${address}; this one is by ${checked.signer}`);
}

function refused(status: number, error: string): HttpAnswer {
	return jsonAnswer(status, { error }, VARY_ACCEPT);
}

/** The path of the next part: the same query, up to an earlier block. */
function nextPath(address: string, query: URLSearchParams, toBlock: number): string {
	const next = new URLSearchParams(query);
	next.set("toBlock", String(toBlock));
	return `/refunds/${address}?${next}`;
}

function refundsView(address: string, since: number, { rows }: RefundPage, next: string | null) {
	return {
		address,
		since: isoTime(since),
		owed: sumOf(rows, "owed"),
		paid: sumOf(rows, "paid"),
		refunds: rows.map(refundView),
		next,
	};
}

function refundView(row: RefundRow): RefundView {
	const { block, blockHash, hash, sender, recipient, payer, owed, paid } = row;
	return { block, blockHash, hash, sender, recipient, wei: paid, payer, owed, paid };
}

function sumOf(rows: readonly RefundRow[], name: "owed" | "paid"): string {
	return rows.reduce((sum, row) => sum + BigInt(row[name]), 0n).toString();
}

function refundsCsv(address: string, { rows }: RefundPage, next: string | null): HttpAnswer {
	const lines = rows.map(refundView).map((row) => COLUMNS.map((name) => String(row[name])));
	return csvAnswer(`refunds-${address}.csv`, [COLUMNS, ...lines], {
		...VARY_ACCEPT,
		...(next === null ? {} : { link: `<${next}>; rel="next"` }),
	});
}

/**
 * How long the same answer is given, in ms. Many clients may ask, and each count visits all
 * recently mined transactions.
 */
const SHOWN_MS = 1_000;

export function totalsRoute({ refunds, clock }: RefundRouteDependencies): Route {
	let shown: HttpAnswer | null = null;
	let until = 0;
	return {
		path: "/totals",
		handle() {
			const now = clock.monotonic();
			if (shown === null || now >= until) {
				shown = jsonAnswer(200, totalsView(refunds.totals(clock.now())));
				until = now + SHOWN_MS;
			}
			return shown;
		},
	};
}

function totalsView({ since, lastDay, ...all }: Totals) {
	return { since: isoTime(since), ...sumsView(all), lastDay: sumsView(lastDay) };
}

function sumsView({ transactions, refunded }: Sums) {
	return { transactions, refundedWei: String(refunded) };
}
