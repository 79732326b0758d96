// The data of an operator's page, below /admin: its state as JSON and as an event stream, and its
// figures over time.

import type { Clock, Timer } from "../clock.ts";
import type { HistoryReport } from "../history.ts";
import type { Problem } from "../problems.ts";
import type { Build } from "../version.ts";
import type { AdminRoute } from "./adminRoutes.ts";
import { dataText, EventStreams } from "./eventStreams.ts";
import { jsonAnswer } from "./messages.ts";

/** The part of the state that both operators' pages have. */
export interface OperatorState extends Build {
	/** The most serious one first; empty if nothing is wrong. */
	readonly problems: readonly Problem[];
}

/** The answer of `GET /admin/history`. */
export interface OperatorHistory {
	/** The process's own figures. */
	readonly own: HistoryReport;
	/** The relay's core's; null while no core answers. Boost has none. */
	readonly core: HistoryReport | null;
}

/** The sources of the data. */
export interface OperatorData {
	readonly state: () => Promise<OperatorState>;
	readonly history: () => Promise<OperatorHistory>;
	/**
	 * A text that differs once something has changed that the page must show at once. It is read
	 * often while a page is open, so it must be cheap.
	 */
	readonly sign: () => string;
}

/** How often the state is sent anyway, since ages and counts change all the time, in ms. */
const STATE_MS = 2_000;
/** How often the sign is read while a page is open, in ms. */
const SIGN_MS = 200;

/** `GET /admin/state`, `/admin/events` and `/admin/history`. */
export function operatorData(
	{ state, history, sign }: OperatorData,
	{ clock }: { readonly clock: Clock },
): readonly AdminRoute[] {
	const streams = new EventStreams({ clock });
	const feed = (write: (text: string) => void) => {
		let timer: Timer | undefined;
		let isOver = false;
		let last = "";
		let sentAt = Number.NEGATIVE_INFINITY;
		const look = async (): Promise<void> => {
			const now = sign();
			if (now !== last || clock.monotonic() - sentAt >= STATE_MS) {
				last = now;
				sentAt = clock.monotonic();
				const text = await state().then((one) => dataText(JSON.stringify(one)));
				if (!isOver) write(text);
			}
			if (!isOver) timer = clock.after(SIGN_MS, next);
		};
		const next = (): void => {
			look().catch(() => {
				// The next look tries again.
				if (!isOver) timer = clock.after(SIGN_MS, next);
			});
		};
		next();
		return () => {
			isOver = true;
			timer?.cancel();
		};
	};
	return [
		{ path: "/admin/state", verb: "GET", handle: async () => jsonAnswer(200, await state()) },
		{ path: "/admin/history", verb: "GET", handle: async () => jsonAnswer(200, await history()) },
		{
			path: "/admin/events",
			verb: "GET",
			handle: ({ address }) => streams.answer(address, { begin: feed, isOver: () => false }),
		},
	];
}
