// Waits for the receipt of a transaction (EIP-7966). It asks again and again, since the holder may change meanwhile, and
// submits nothing.

import { type Clock, pause } from "../../shared/clock.ts";
import { type SyncCall, SyncWaits, type WaitingRoomLimits } from "../../shared/http/syncWaits.ts";
import { notSoon } from "../../shared/jsonrpc/sendSync.ts";
import type { RequestState } from "../domain/request.ts";

export interface SyncWaitDependencies {
	/** The receipt, null where there is none yet or nobody answers within `deadlineMs`. */
	readonly readReceipt: (hash: string, state: RequestState, deadlineMs: number) => Promise<unknown>;
	/** Why it can't be mined soon, in words for {@link notSoon}; null where it can, or nobody tells in time. */
	readonly whyNotSoon: (hash: string, deadlineMs: number) => Promise<string | null>;
	readonly clock: Clock;
}

/** What somebody waits for. */
export interface SyncRequest extends SyncCall {
	/** Of the request that it came with. */
	readonly state: RequestState;
}

/** Each wait asks every second: fewer than the relay's own, which is told. */
const MAX_WAITS = 2_000;
/** How soon it is asked for the first time, how much later each time, and how late at most, in ms. */
const FIRST_MS = 250;
const GROWTH = 1.5;
const LATEST_MS = 1_000;
/** How long one question may take: who hangs shall not take the whole time. */
const QUESTION_MS = 3_000;

const STOPPING = "boost is shutting down, and the transaction is kept";

/** All waits of the process. `options`: who comes when there is no room is told at once that the time is up. */
export function createSyncWaits(
	options: Partial<WaitingRoomLimits>,
	dependencies: SyncWaitDependencies,
): SyncWaits<SyncRequest> {
	return new SyncWaits(
		{ limits: { maxWaits: MAX_WAITS, ...options }, stopping: STOPPING },
		{ clock: dependencies.clock, find: (request, signal) => findReceipt(request, dependencies, signal) },
	);
}

/** Asks for the receipt, and every second time, not the first, why there is none: it has just come. */
async function findReceipt(
	{ hash, state, until }: SyncRequest,
	{ readReceipt, whyNotSoon, clock }: SyncWaitDependencies,
	signal: AbortSignal,
): Promise<unknown> {
	const questionMs = () => Math.max(1, Math.min(QUESTION_MS, until - clock.monotonic()));
	let delayMs = FIRST_MS;
	for (let asked = 1; ; asked += 1) {
		await pause(clock, delayMs, signal);
		if (signal.aborted) return null;
		delayMs = Math.min(delayMs * GROWTH, LATEST_MS);
		const receipt = await readReceipt(hash, state, questionMs());
		if (receipt !== null && receipt !== undefined) return receipt;
		if (signal.aborted || asked % 2 === 1) continue;
		const why = await whyNotSoon(hash, questionMs());
		if (why !== null) throw notSoon(hash, why);
	}
}
