// The relay's GET routes: a transaction's status, and its life as one JSON page or, for clients that accept
// `text/event-stream`, event by event as it happens; a bundle's status; what the relay is.

import { parseHash } from "../../shared/ethereum/hex.ts";
import type { StatusRecord } from "../../shared/ethereum/statusRecord.ts";
import {
	asksForEvents,
	EVENTS_OVER,
	type EventMessage,
	type EventStreams,
	wholeEventStream,
} from "../../shared/http/eventStreams.ts";
import { type HttpAnswer, jsonAnswer } from "../../shared/http/messages.ts";
import type { Route, RouteRequest } from "../../shared/http/routes.ts";
import type { TxEvent } from "../domain/events.ts";
import type { Following, RecordReader } from "../domain/ports.ts";
import type { TransactionRecord } from "../domain/record.ts";
import { type BundleRouteDependencies, bundleRoute } from "./bundleViews.ts";

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

/** One thing that happened; `at` in ms since the epoch, `data` JSON values. */
export interface EventNews {
	readonly at: number;
	readonly data: object;
}

/** How the events of a record are shown. */
interface EventViews {
	/** The JSON page. */
	readonly events: (record: TransactionRecord) => unknown;
	/** What has happened so far, in order of time. */
	readonly history: (record: TransactionRecord) => readonly EventNews[];
	/** What the record has just been through; null where that is not told. */
	readonly news: (record: TransactionRecord, event: TxEvent) => EventNews | null;
}

interface TransactionEventsDependencies {
	readonly records: RecordReader;
	readonly following: Following;
	readonly views: EventViews;
	/** Whether anything can still happen to the transaction with a hash. */
	readonly isOpen: (hash: string) => boolean;
	readonly streams: EventStreams;
}

const NOT_FOUND: HttpAnswer = jsonAnswer(404, { error: "no transaction with this hash was seen here" });
/** For a hash that is none. */
const NO_HASH: HttpAnswer = jsonAnswer(400, {
	error: "expected a transaction hash of 32 bytes as 0x hex",
});
/** A cache must not give the one form to who asked for the other. */
const VARY = { vary: "accept" };

/**
 * The route. As server-sent events: first what has happened, in order of time, then each further event as it happens, one
 * message each and all of them for `onmessage`:
 *
 *     id: 1769900706007
 *     data: {"type":"included","at":"2026-01-31T23:05:06.007Z","block":7,…,"stage":"INCLUDED"}
 *
 * `data` is the event as the JSON page lists it; with `stage`, where the transaction stands after it, and where its user
 * has ended it `cancels`, how many builders have confirmed that. Of those that happened before the client came the last
 * one alone has the two. What is told later of an earlier event, such as the bid that was mined, is in the JSON page only.
 *
 * `id` is the event's time in ms. A client that comes back with `Last-Event-ID` gets what happened at that time or
 * after: what falls into that very millisecond may come twice. Where nothing more can happen the answer ends behind the
 * last event, and a client that comes back then gets 204, by which an EventSource stops.
 */
export function transactionEventsRoute(dependencies: TransactionEventsDependencies): Route {
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
			return jsonAnswer(200, views.events(record), VARY);
		},
	};
}

function eventStream(
	{ headers, address }: RouteRequest,
	record: TransactionRecord,
	{ following, views, isOpen, streams }: TransactionEventsDependencies,
): HttpAnswer {
	const { hash } = record;
	const since = readEventId(headers["last-event-id"]);
	const past = (): EventMessage[] =>
		views
			.history(record)
			.filter(({ at }) => at >= since)
			.map(message);
	if (!isOpen(hash)) {
		const isTold = views.history(record).every(({ at }) => at <= since);
		return isTold ? EVENTS_OVER : wholeEventStream(past());
	}
	return streams.answer(address, {
		begin(send) {
			send(past());
			return following.follow(hash, (now, event) => {
				const news = views.news(now, event);
				if (news !== null) send([message(news)]);
			});
		},
		isOver: () => !isOpen(hash),
	});
}

function message({ at, data }: EventNews): EventMessage {
	return { id: String(at), data };
}

/** The time that a client has been told everything before, in ms; before everything where it says none. */
function readEventId(header: string | string[] | undefined): number {
	return typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : Number.NEGATIVE_INFINITY;
}
