// The state at GET /admin/state, which the page /operator shows: that of this process and of the
// core, which an edge asks. It has only counts, times and names: no hash, no address, no key.

import type { Clock } from "../../shared/clock.ts";
import { adminRoutes } from "../../shared/http/adminRoutes.ts";
import { type OperatorData, type OperatorState, operatorData } from "../../shared/http/operatorData.ts";
import type { Route } from "../../shared/http/routes.ts";
import { PROBLEMS, type Problem, problemElsewhere } from "../../shared/problems.ts";
import type { AgedReport } from "../edge/relayReports.ts";
import type { Role } from "./info.ts";

/** The answer of `GET /admin/state`. */
export interface RelayState extends OperatorState {
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
	/** The last report of each relay; empty if the store is no database. */
	readonly relays: readonly AgedReport[];
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

/** The age at which the alert TransactionsStuck fires, in s. */
const PENDING_LONG_S = 900;

/** Problems that the core knows of: a transaction that waits, and what relays but `own` report. */
export function coreProblems(
	{ pool: { oldestSeconds }, relays }: CoreState,
	own: string,
): readonly Problem[] {
	const { text, todo } = PROBLEMS.pendingLong;
	return [
		...((oldestSeconds ?? 0) > PENDING_LONG_S ? [{ text, todo, isSerious: false }] : []),
		...relays
			.filter(({ name }) => name !== own)
			.flatMap(({ name, problems }) => problems.map((text) => problemElsewhere(text, name))),
	];
}

/**
 * The routes of {@link operatorData}, and the same below `/relay`. Boost has its own, so it streams
 * the other paths to the relay.
 */
export function operatorRoutes(
	token: string | undefined,
	data: OperatorData,
	dependencies: { readonly clock: Clock },
): Route[] {
	return adminRoutes("relay", token, operatorData(data, dependencies)).flatMap((route) => [
		route,
		{ ...route, path: `/relay${route.path}` },
	]);
}
