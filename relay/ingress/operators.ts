// What an operator is shown of the relay at GET /admin/state, which the page /operator draws: of this process, and of the core,
// which an edge asks. Counts, times and names alone: no hash, no address, no key.

import { type AdminRoute, adminRoutes } from "../../shared/http/adminRoutes.ts";
import { jsonAnswer } from "../../shared/http/messages.ts";
import type { Route } from "../../shared/http/routes.ts";
import type { Build } from "../../shared/version.ts";
import type { Role } from "./info.ts";

/** The answer of `GET /admin/state`. */
export interface RelayState extends Build {
	/** Whether this relay is the core, or an edge before it. */
	readonly role: Role;
	/** The core's term; null where the store is no database. */
	readonly term: number | null;
	readonly node: NodeState;
	/** Of this process. */
	readonly searchers: {
		/** Open websockets, those of wallets among them. */
		readonly websockets: number;
		readonly subscriptions: number;
		readonly eventStreams: number;
	};
	/** Null while no core answers. */
	readonly core: CoreState | null;
}

/** The execution node, as this process sees it. */
export interface NodeState {
	/** Number of the last block that was worked off; null before the first. */
	readonly head: number | null;
	readonly headAgeSeconds: number | null;
	/** How long it takes to answer now, in ms; null: it does not. */
	readonly answerMs: number | null;
	/** How far this machine's clock is ahead of the chain's. */
	readonly clockDifferenceSeconds: number;
}

/** What only the core has. */
export interface CoreState {
	readonly pool: {
		/** Transactions that are not settled yet, by stage. */
		readonly stages: Readonly<Record<string, number>>;
		readonly pending: number;
		/** Age of the oldest pending transaction; null if there is none. */
		readonly oldestSeconds: number | null;
	};
	readonly builders: readonly BuilderState[];
	/** What its node can simulate, as JSON. */
	readonly simulation: unknown;
	readonly store: {
		readonly kind: "LMDB" | "PostgreSQL";
		/** Why nothing can be written; null while it can, and the store is surely this relay's. */
		readonly trouble: string | null;
		/** On disk, of the file or the table; null: it does not say. */
		readonly bytes: number | null;
		/** How long the last write took, in ms; null before the first. */
		readonly writeMs: number | null;
	};
	/** Live bids, and whether any are taken. */
	readonly bids: number;
	readonly isBidding: boolean;
	/** Relays that are connected with the core. */
	readonly edges: number;
}

export interface BuilderState {
	readonly name: string;
	/** Deliveries that wait or are under way. */
	readonly waiting: number;
	/** Whether bidders have records there. */
	readonly hasRecords: boolean;
	/** Null if it was sent nothing since this relay is the core. */
	readonly last: { readonly answer: string; readonly secondsAgo: number; readonly ms: number } | null;
}

/** `GET /admin/state`, and the same at `/relay/admin/state`, which boost streams to the relay: its own path is another. */
export function operatorRoutes(token: string | undefined, state: () => Promise<RelayState>): Route[] {
	const shown: AdminRoute = {
		path: "state",
		verb: "GET",
		handle: async () => jsonAnswer(200, await state()),
	};
	return adminRoutes("relay", token, [shown]).flatMap((route) => [
		route,
		{ ...route, path: `/relay${route.path}` },
	]);
}
