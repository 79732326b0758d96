// `GET /mev-share/api/v1/history` and its `/info`: past events for MEV-Share's clients.

import { type HttpAnswer, jsonAnswer } from "../../shared/http/messages.ts";
import type { Route } from "../../shared/http/routes.ts";
import type { HistoryQuery, SharedHistory } from "../status/sharedHistory.ts";
import { MEV_SHARE } from "./mevShareStream.ts";

/** The paths, and what each costs in the client's rate limit. */
export const HISTORY_PATHS: readonly Required<Pick<Route, "path" | "weight">>[] = [
	{ path: `${MEV_SHARE}/api/v1/history/info`, weight: 10 },
	{ path: `${MEV_SHARE}/api/v1/history`, weight: 10 },
];
const [INFO, PAGE] = HISTORY_PATHS as [Pick<Route, "path" | "weight">, Pick<Route, "path" | "weight">];

export interface HistoryRouteDependencies {
	readonly history: Pick<SharedHistory, "info" | "page">;
	/** Maximum number of entries of a page. */
	readonly maxLimit: number;
}

export function historyRoutes({ history, maxLimit }: HistoryRouteDependencies): readonly Route[] {
	return [
		{ ...INFO, handle: () => jsonAnswer(200, history.info()) },
		{
			...PAGE,
			handle({ query }): HttpAnswer {
				const read = readQuery(query, maxLimit);
				return typeof read === "string"
					? jsonAnswer(400, { error: read })
					: { status: 200, body: history.page(read) };
			},
		},
	];
}

/** The query, or a description of its fault. */
function readQuery(query: URLSearchParams, maxLimit: number): HistoryQuery | string {
	const numbers = {
		...{ blockStart: 0, blockEnd: Number.MAX_SAFE_INTEGER },
		...{ timestampStart: 0, timestampEnd: Number.MAX_SAFE_INTEGER },
		...{ offset: 0, limit: maxLimit },
	};
	for (const name of Object.keys(numbers) as (keyof HistoryQuery)[]) {
		const given = query.get(name);
		if (given === null) continue;
		if (!/^\d{1,15}$/.test(given)) return `${name}: expected a whole number`;
		numbers[name] = Number(given);
	}
	return numbers.limit < 1 || numbers.limit > maxLimit ? `limit: expected 1 to ${maxLimit}` : numbers;
}
