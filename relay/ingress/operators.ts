// The operator's routes. GET /admin/state, which the page /operator shows, is the state of this
// process and of the core, which an edge asks. It has only counts, times and names: no hash, no
// address, no key. GET /operator/refunds.csv has the sums of refunds.

import { type AdminRoute, adminRoutes } from "../../shared/http/adminRoutes.ts";
import { type HttpAnswer, jsonAnswer } from "../../shared/http/messages.ts";
import type { Route } from "../../shared/http/routes.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { Build } from "../../shared/version.ts";
import { type ConductSum, type ConductView, conductRows } from "./builderConduct.ts";
import { csvAnswer } from "./csv.ts";
import type { Role } from "./info.ts";
import { isPlace, type RefundSumsPage, SUM_COLUMNS } from "./refundSums.ts";

/** The answer of `GET /admin/state`. */
export interface RelayState extends Build {
	/** Whether this relay is the core, or an edge before it. */
	readonly role: Role;
	/** The core's term; null if the store is not a database. */
	readonly term: number | null;
	readonly node: NodeState;
	/** The connections of this process. */
	readonly searchers: {
		/** Open websockets, including those of wallets. */
		readonly websockets: number;
		readonly subscriptions: number;
		readonly eventStreams: number;
	};
	/** Null while no core answers. */
	readonly core: CoreState | null;
}

/** The execution node, as this process sees it. */
export interface NodeState {
	/** Number of the last processed block; null before the first. */
	readonly head: number | null;
	readonly headAgeSeconds: number | null;
	/** How long the node takes to answer now, in ms; null if it does not answer. */
	readonly answerMs: number | null;
	/** How far this machine's clock is ahead of the chain's. */
	readonly clockDifferenceSeconds: number;
}

/** The state that only the core has. */
export interface CoreState {
	readonly pool: {
		/** Transactions that are not settled yet, by stage. */
		readonly stages: Readonly<Record<string, number>>;
		readonly pending: number;
		/** Age of the oldest pending transaction; null if there is none. */
		readonly oldestSeconds: number | null;
	};
	readonly builders: readonly BuilderState[];
	/** The simulation abilities of its node, as JSON. */
	readonly simulation: unknown;
	readonly store: {
		readonly kind: "LMDB" | "PostgreSQL";
		/** Why nothing can be written; null if writes work and this relay surely owns the store. */
		readonly trouble: string | null;
		/** The size of the file or table on disk; null if the store does not report it. */
		readonly bytes: number | null;
		/** How long the last write took, in ms; null before the first. */
		readonly writeMs: number | null;
	};
	/** Live bids, and whether new ones are accepted. */
	readonly bids: number;
	readonly isBidding: boolean;
	/** Relays that are connected to the core. */
	readonly edges: number;
	/** Sums of the last 30 days by builder, see builderConduct.ts; builders.csv has the days. */
	readonly conduct: readonly ConductSum[];
}

export interface BuilderState {
	readonly name: string;
	/** Deliveries waiting or in flight. */
	readonly waiting: number;
	/** Whether bidders have records there. */
	readonly hasRecords: boolean;
	/** Null if nothing was sent to it since this relay became the core. */
	readonly last: { readonly answer: string; readonly secondsAgo: number; readonly ms: number } | null;
}

/** A page of the sums of refunds, from a place on. Throws RpcError without a core. */
export type ReadRefundSums = (from: string | null) => Promise<RefundSumsPage>;

/** The operator's data. */
export interface OperatorData {
	readonly state: () => Promise<RelayState>;
	readonly refundSums: ReadRefundSums;
	/** The builders' conduct by day. Throws RpcError without a core. */
	readonly conduct: () => Promise<readonly ConductView[]>;
}

/**
 * `GET /admin/state`, `GET /operator/refunds.csv` and `GET /operator/builders.csv`, and all of them
 * below `/relay` too. Boost has an `/admin/state` of its own, so it streams the other paths to the
 * relay.
 */
export function operatorRoutes(
	token: string | undefined,
	{ state, refundSums, conduct }: OperatorData,
): Route[] {
	const routes: AdminRoute[] = [
		{ path: "/admin/state", verb: "GET", handle: async () => jsonAnswer(200, await state()) },
		{
			path: "/operator/refunds.csv",
			verb: "GET",
			handle: ({ query, path }) => ofCore(() => refundsCsv(path, query, refundSums)),
		},
		{
			path: "/operator/builders.csv",
			verb: "GET",
			handle: () => ofCore(async () => csvAnswer("builders.csv", conductRows(await conduct()))),
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
