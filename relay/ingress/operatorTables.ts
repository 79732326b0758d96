// The operator's tables: the sums of refunds, and the builders' conduct. The core has them, and an
// edge asks it.

import { type AdminRoute, adminRoutes } from "../../shared/http/adminRoutes.ts";
import { type HttpAnswer, jsonAnswer } from "../../shared/http/messages.ts";
import type { Route } from "../../shared/http/routes.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { type ConductSum, type ConductView, conductRows } from "./builderConduct.ts";
import { csvAnswer } from "./csv.ts";
import { isPlace, type RefundSumsPage, SUM_COLUMNS } from "./refundSums.ts";

/** A page of the sums of refunds, from a place on. Throws RpcError without a core. */
export type ReadRefundSums = (from: string | null) => Promise<RefundSumsPage>;

/** The data of the tables. */
export interface OperatorTables {
	readonly refundSums: ReadRefundSums;
	/** The builders' conduct by day, and in sums. They throw RpcError without a core. */
	readonly days: () => Promise<readonly ConductView[]>;
	readonly sums: () => Promise<readonly ConductSum[]>;
}

/**
 * `GET /operator/refunds.csv`, `/operator/builders.csv` and `/operator/builders.json`, and all of
 * them below `/relay`, for boost streams those to the relay.
 */
export function operatorTables(
	token: string | undefined,
	{ refundSums, days, sums }: OperatorTables,
): Route[] {
	const routes: AdminRoute[] = [
		{
			path: "/operator/refunds.csv",
			verb: "GET",
			handle: ({ query, path }) => ofCore(() => refundsCsv(path, query, refundSums)),
		},
		{
			path: "/operator/builders.csv",
			verb: "GET",
			handle: () => ofCore(async () => csvAnswer("builders.csv", conductRows(await days()))),
		},
		{
			path: "/operator/builders.json",
			verb: "GET",
			handle: () => ofCore(async () => jsonAnswer(200, await sums())),
		},
	];
	const below = routes.map((route) => ({ ...route, path: `/relay${route.path}` }));
	return adminRoutes("relay", token, [...routes, ...below]);
}

/** The answer of the core, or 503 without one. */
async function ofCore(answer: () => Promise<HttpAnswer>): Promise<HttpAnswer> {
	try {
		return await answer();
	} catch (thrown) {
		if (thrown instanceof RpcError) return jsonAnswer(503, { error: thrown.message }, { "retry-after": "1" });
		throw thrown;
	}
}

async function refundsCsv(
	path: string,
	query: URLSearchParams,
	refundSums: ReadRefundSums,
): Promise<HttpAnswer> {
	const from = query.get("from");
	if (from !== null && !isPlace(from))
		return jsonAnswer(400, { error: "from: expected the value in the Link header of the page before" });
	const { lines, next } = await refundSums(from);
	const link = next === null ? {} : { link: `<${path}?${new URLSearchParams({ from: next })}>; rel="next"` };
	return csvAnswer("refunds.csv", [SUM_COLUMNS, ...lines], link);
}
