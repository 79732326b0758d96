// `GET /mev-share`: the searchers' feed for MEV-Share's clients, as server-sent events. Each stream
// is a subscriber to pending transactions like a websocket: it gets the same transactions, in the
// same turn.

import { clientOf } from "../../shared/client.ts";
import { Ending } from "../../shared/http/callContext.ts";
import { dataText, type EventStreams } from "../../shared/http/eventStreams.ts";
import type { LaterMessages } from "../../shared/http/laterMessages.ts";
import type { Results } from "../../shared/http/notifications.ts";
import type { Route } from "../../shared/http/routes.ts";
import { PENDING_TRANSACTIONS } from "../domain/endpoints.ts";
import { mevShareEvent } from "../domain/mevShareEvent.ts";
import type { Subscriber, SubscriptionHub } from "./subscriptions.ts";

/** The path of MEV-Share's streams; its history is below it. */
export const MEV_SHARE = "/mev-share";

/**
 * How long a stream lasts, in ms: a day, since a client misses the transactions that are shared
 * while it reconnects. Comments every 15 s find a lost connection.
 */
export const FEED_STREAM_LIFE_MS = 24 * 3_600_000;
/** How long clients wait before they reconnect, in ms. */
export const FEED_STREAM_RETRY_MS = 1_000;

export interface MevShareStreamDependencies {
	readonly subscriptions: Pick<SubscriptionHub, "subscribe">;
	/** The feed's own streams, so that they use no slots of the streams that follow a transaction. */
	readonly streams: EventStreams;
}

export function mevShareStream({ subscriptions, streams }: MevShareStreamDependencies): Route {
	const eventTexts = eventMaker();
	const make = (_id: string, results: Results): LaterMessages => new FeedEvents(results, eventTexts(results));
	return {
		path: MEV_SHARE,
		handle: ({ address }) =>
			streams.answer(address, {
				begin(write) {
					const closed = new Ending();
					const subscriber: Subscriber = {
						client: clientOf(address),
						sendLater(messages) {
							while (messages.count > 0) write(String(messages.next()));
						},
						// A stream has no id that the client must get first.
						hold: () => () => {},
						onClose: (listener) => closed.onEnd(listener),
					};
					subscriptions.subscribe(subscriber, PENDING_TRANSACTIONS, null, make);
					return () => closed.end();
				},
				isOver: () => false,
			}),
	};
}

/** Makes the texts of events, once for all who get the same results. */
function eventMaker(): (results: Results) => readonly string[] {
	const made = new WeakMap<Results, readonly string[]>();
	return (results) => {
		const known = made.get(results);
		if (known !== undefined) return known;
		const texts = Array.from({ length: results.count }, (_, at) =>
			dataText(JSON.stringify(mevShareEvent(JSON.parse(results.text(at)) as Record<string, unknown>))),
		);
		made.set(results, texts);
		return texts;
	};
}

/** Shared transactions as events. */
class FeedEvents implements LaterMessages {
	readonly #texts: readonly string[];
	#at = 0;
	readonly bytes: number;

	constructor({ bytes }: Results, texts: readonly string[]) {
		this.#texts = texts;
		this.bytes = bytes;
	}

	get count(): number {
		return this.#texts.length - this.#at;
	}

	next(): string {
		const text = this.#texts[this.#at] ?? "";
		this.#at += 1;
		return text;
	}
}
