// The relay's GET routes: a transaction's status and its events, a bundle's status, and what the relay is. Pages and
// JSON-RPC are not served here.

import { parseHash } from "../../shared/ethereum/hex.ts";
import type { StatusRecord } from "../../shared/ethereum/statusRecord.ts";
import { jsonAnswer } from "../../shared/http/messages.ts";
import type { Route } from "../../shared/http/routes.ts";
import type { TransactionRecord } from "../domain/record.ts";
import { type BundleRouteDependencies, bundleRoute } from "./bundleViews.ts";
import {
	type EventViews,
	NO_HASH,
	type TransactionEventsDependencies,
	transactionEventsRoute,
} from "./transactionEvents.ts";

/** How a record is shown: the status stage's views. */
export interface RecordViews extends EventViews {
	readonly status: (record: TransactionRecord) => StatusRecord;
	readonly unknown: (hash: string) => unknown;
}

export interface RouteDependencies extends BundleRouteDependencies, TransactionEventsDependencies {
	readonly views: RecordViews;
	/** What `GET /info` answers. */
	readonly info: () => unknown;
}

/** The routes. */
export function relayRoutes(dependencies: RouteDependencies): readonly Route[] {
	const { records, views, info } = dependencies;
	return [
		{
			path: "/tx/{hash}",
			async handle({ params }) {
				const hash = parseHash(params.hash ?? "");
				if (hash === null) return NO_HASH;
				const record = await records.record(hash);
				return jsonAnswer(200, record === null ? views.unknown(hash) : views.status(record));
			},
		},
		transactionEventsRoute(dependencies),
		bundleRoute(dependencies),
		{ path: "/info", handle: () => jsonAnswer(200, info()) },
	];
}
