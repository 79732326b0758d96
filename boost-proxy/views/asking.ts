// How views ask an upstream for a client: who is out is not asked, and nobody longer than the request has.

import type { Call, CallResult } from "../domain/ports.ts";
import type { RequestState } from "../domain/request.ts";
import { attemptMs, verdictError } from "../requests/failover.ts";
import type { ViewsDependencies } from "./views.ts";

type Asking = Pick<ViewsDependencies, "upstreams" | "clock">;

/** Reads an answer; undefined where it is none. */
export type Read<T> = (answer: CallResult | null | undefined) => T | undefined;

/** The relay's word, undefined where it is out or gave none. Throws ForeignRpcError for what it refused. */
export async function askRelay<T>(
	call: Call,
	read: Read<T>,
	state: RequestState,
	{ upstreams: { relay }, clock }: Asking,
): Promise<T | undefined> {
	const { asker, trail, whole, path } = state;
	const deadlineMs = deadlineOf(state, clock);
	if (relay.breaker.isOut || deadlineMs === 0) return undefined;
	const answer = await relay.call(call, { deadlineMs, asker, trail, whole, path });
	if (answer?.ok === false) {
		trail.answeredBy.add(relay.name);
		throw verdictError(answer.error);
	}
	const found = read(answer);
	if (found !== undefined) trail.answeredBy.add(relay.name);
	return found;
}

/** The word of a fallback that knows private transactions; undefined where there is none. */
export async function askFallback<T>(
	call: Call,
	read: Read<T>,
	state: RequestState,
	{ upstreams: { fallback }, clock }: Asking,
): Promise<T | undefined> {
	const { asker, trail, path } = state;
	const deadlineMs = deadlineOf(state, clock);
	if (fallback?.dialect?.knowsPrivate !== true || fallback.breaker.isOut || deadlineMs === 0)
		return undefined;
	const found = read(await fallback.call(call, { deadlineMs, asker, trail, path }));
	if (found !== undefined) trail.answeredBy.add(fallback.name);
	return found;
}

function deadlineOf({ until }: RequestState, clock: { monotonic(): number }): number {
	const left = until - clock.monotonic();
	return attemptMs("read", left, left, true);
}
