// `GET /stats/service.json`: the state of the service by quarter of an hour, for everybody. Boost
// answers it with its own looks, which know when the fallback carried the service.

import type { Clock } from "../clock.ts";
import { dayText, shownDays } from "../days.ts";
import type { Uptime } from "../uptime.ts";
import { type HttpAnswer, jsonAnswer } from "./messages.ts";
import type { Route } from "./routes.ts";

export const SERVICE_PATH = "/stats/service.json";
/**
 * How long the same answer is given, in ms. Many clients may ask, and each answer reads the store.
 */
const SHOWN_MS = 60_000;

export function serviceRoute(uptime: Pick<Uptime, "days">, clock: Clock): Route {
	let shown: Promise<HttpAnswer> | null = null;
	let until = 0;
	const read = async (): Promise<HttpAnswer> => {
		const days = await uptime.days(...shownDays(clock.now()));
		return jsonAnswer(
			200,
			days.map(({ day, quarters }) => ({ day: dayText(day), quarters })),
		);
	};
	return {
		path: SERVICE_PATH,
		async handle() {
			const now = clock.monotonic();
			if (shown === null || now >= until) {
				shown = read();
				until = now + SHOWN_MS;
			}
			try {
				return await shown;
			} catch {
				shown = null;
				return jsonAnswer(503, { error: "the store is unavailable, try again" }, { "retry-after": "1" });
			}
		},
	};
}
