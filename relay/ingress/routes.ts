// The relay's GET routes: a transaction's status and its events, a bundle's status, and what the relay is. Pages and
// JSON-RPC are not served here.

import { parseHash } from "../../shared/ethereum/hex.ts";
import { type HttpAnswer, jsonAnswer } from "../../shared/http/httpAnswer.ts";
import type { Route } from "../../shared/http/routes.ts";
import type { RecordReader } from "../domain/ports.ts";
import type { TransactionRecord } from "../domain/record.ts";
import { type BundleRouteDependencies, bundleRoute } from "./bundleRoute.ts";

/** How a record is shown: the status stage's two views. */
export interface RecordViews {
	readonly status: (record: TransactionRecord) => unknown;
	readonly unknown: (hash: string) => unknown;
	readonly events: (record: TransactionRecord) => unknown;
}

export interface RouteDependencies extends BundleRouteDependencies {
	readonly records: RecordReader;
	readonly views: RecordViews;
	/** What `GET /info` answers. */
	readonly info: () => unknown;
}

/** The routes. */
export function relayRoutes(dependencies: RouteDependencies): readonly Route[] {
	const { records, views, info } = dependencies;
	const withHash = async (
		text: string | undefined,
		answer: (hash: string, record: TransactionRecord | null) => HttpAnswer,
	): Promise<HttpAnswer> => {
		const hash = parseHash(text ?? "");
		if (hash === null) {
			return jsonAnswer(400, { error: "expected a transaction hash of 32 bytes as 0x hex" });
		}
		return answer(hash, await records.record(hash));
	};
	return [
		{
			path: "/tx/{hash}",
			handle: ({ params }) =>
				withHash(params.hash, (hash, record) =>
					jsonAnswer(200, record === null ? views.unknown(hash) : views.status(record)),
				),
		},
		{
			path: "/tx/{hash}/events",
			handle: ({ params }) =>
				withHash(params.hash, (_hash, record) =>
					record === null
						? jsonAnswer(404, { error: "no transaction with this hash was seen here" })
						: jsonAnswer(200, views.events(record)),
				),
		},
		bundleRoute(dependencies),
		{ path: "/info", handle: () => jsonAnswer(200, info()) },
	];
}
