// The relay's GET routes: a transaction's status, its events, a bundle's status, an address's
// refunds and the totals. Events come as JSON, or live for clients that accept `text/event-stream`.

import { parseHash } from "../../shared/ethereum/hex.ts";
import {
	asksForEvents,
	EVENTS_OVER,
	type EventMessage,
	type EventStreams,
	eventsText,
	wholeEventStream,
} from "../../shared/http/eventStreams.ts";
import { type HttpAnswer, jsonAnswer, VARY_ACCEPT } from "../../shared/http/messages.ts";
import type { Route, RouteRequest } from "../../shared/http/routes.ts";
import type { ShownEvent } from "../domain/events.ts";
import type { TransactionRecord } from "../domain/record.ts";
import type { Followers } from "../status/followers.ts";
import type { EventViews, RecordViews } from "../status/views.ts";
import type { Transactions } from "../transactions/transactions.ts";
import { type BundleRouteDependencies, bundleRoute } from "./bundleViews.ts";
import { HISTORY_PATHS, type HistoryRouteDependencies, historyRoutes } from "./mevShareHistory.ts";
import { REFUNDS_WEIGHT, type RefundRouteDependencies, refundsRoute, totalsRoute } from "./refundViews.ts";
import { STATS_PATHS, type StatsRouteDependencies, statsRoutes } from "./statsViews.ts";

export interface RecordRouteDependencies
	extends BundleRouteDependencies,
		RefundRouteDependencies,
		TransactionEventsDependencies,
		HistoryRouteDependencies {
	readonly views: RecordViews;
	/** The public statistics; null if they are not served. */
	readonly stats: StatsRouteDependencies | null;
}

/** The routes of transactions, bundles and refunds. */
export function recordRoutes(dependencies: RecordRouteDependencies): readonly Route[] {
	const { records, views } = dependencies;
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
		refundsRoute(dependencies),
		totalsRoute(dependencies),
		...(dependencies.stats === null ? [] : statsRoutes(dependencies.stats)),
		...historyRoutes(dependencies),
	];
}

/** The paths of {@link recordRoutes}, and the cost of each in the client's rate limit. */
const RECORD_PATHS: readonly Pick<Route, "path" | "weight">[] = [
	{ path: "/tx/{hash}" },
	{ path: "/tx/{hash}/events" },
	{ path: "/bundle/{hash}" },
	{ path: "/refunds/{address}", weight: REFUNDS_WEIGHT },
	{ path: "/totals" },
	...HISTORY_PATHS,
];

/**
 * These routes on a relay that may or may not be the core. `hasStats`: whether the public
 * statistics are served.
 */
export function recordRoutesOf(
	hasStats: boolean,
	/** Null while this process is not the core. */
	local: () => readonly Route[] | null,
	/** Asks the core. */
	ask: (request: RouteRequest) => Promise<HttpAnswer>,
): readonly Route[] {
	return [...RECORD_PATHS, ...(hasStats ? STATS_PATHS : [])].map((one) => ({
		...one,
		handle(request) {
			const route = local()?.find(({ path }) => path === one.path);
			return route === undefined ? ask(request) : route.handle(request);
		},
	}));
}

interface TransactionEventsDependencies {
	readonly records: Pick<Transactions, "record">;
	readonly followers: Pick<Followers, "follow">;
	readonly views: EventViews;
	/** Whether the transaction with this hash can still have events. */
	readonly isOpen: (hash: string) => boolean;
	readonly streams: EventStreams;
}

const NOT_FOUND: HttpAnswer = jsonAnswer(404, {
	error: "the relay has received no transaction with this hash",
});
const NO_HASH: HttpAnswer = jsonAnswer(400, {
	error: "expected a transaction hash of 32 bytes as 0x hex",
});

/**
 * The route. As server-sent events, it sends first the past events in order of time, then each new
 * one, one message each, for `onmessage`:
 *
 *     id: 1769900706007
 *     data: {"type":"included","at":"2026-01-31T23:05:06.007Z","block":7,…,"stage":"INCLUDED"}
 *
 * `data` is the event as in the JSON page, with `stage`, the transaction's stage after it. After a
 * cancel it also has `cancels`, the number of builders that have confirmed it. Among the past
 * events, only the last one has these two. Facts about an earlier event that become known later,
 * such as the bid that was mined, are only in the JSON page.
 *
 * `id` is the event's time in ms. A client that reconnects with `Last-Event-ID` gets the events
 * from that time on, so events of that millisecond may come twice. When no more events can follow,
 * the answer ends. A client that reconnects then gets 204, which stops an EventSource.
 */
function transactionEventsRoute(dependencies: TransactionEventsDependencies): Route {
	const { records, views } = dependencies;
	return {
		path: "/tx/{hash}/events",
		async handle(request) {
			const hash = parseHash(request.params.hash ?? "");
			if (hash === null) return NO_HASH;
			const record = await records.record(hash);
			if (record === null) return NOT_FOUND;
			if (asksForEvents(request.headers.accept)) {
				return eventStream(request, record, dependencies);
			}
			return jsonAnswer(200, views.events(record), VARY_ACCEPT);
		},
	};
}

function eventStream(
	{ headers, address }: RouteRequest,
	record: TransactionRecord,
	{ followers, views, isOpen, streams }: TransactionEventsDependencies,
): HttpAnswer {
	const { hash } = record;
	const since = readEventId(headers["last-event-id"]);
	const past = (): EventMessage[] =>
		views
			.history(record)
			.filter(({ at }) => at >= since)
			.map(message);
	if (!isOpen(hash)) {
		const isComplete = views.history(record).every(({ at }) => at <= since);
		return isComplete ? EVENTS_OVER : wholeEventStream(past());
	}
	return streams.answer(address, {
		begin(write) {
			write(eventsText(past()));
			return followers.follow(hash, (now, event) => {
				const news = views.news(now, event);
				if (news !== null) write(eventsText([message(news)]));
			});
		},
		isOver: () => !isOpen(hash),
	});
}

function message({ at, data }: ShownEvent): EventMessage {
	return { id: String(at), data };
}

/** The time up to which the client has all events, in ms; -Infinity without a valid header. */
function readEventId(header: string | string[] | undefined): number {
	return typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : Number.NEGATIVE_INFINITY;
}
