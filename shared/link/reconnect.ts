// Connects again and again with a server that may be away.

import { type Clock, pause } from "../clock.ts";

interface ReconnectDependencies {
	readonly clock: Clock;
	/** 0 to 1. */
	readonly random: () => number;
}

/** Pauses between two connections, doubled after each one that failed, in ms. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;

/**
 * Calls `connect` until `stopped`. It resolves at the end of its connection, to whether the server
 * was of use: a load balancer ends each connection after a while, and that is no failure.
 */
export async function reconnect(
	connect: () => Promise<boolean>,
	stopped: AbortSignal,
	{ clock, random }: ReconnectDependencies,
): Promise<void> {
	let failures = 0;
	while (!stopped.aborted) {
		failures = (await connect()) ? 0 : failures + 1;
		const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS);
		// Half of it is random, so that many processes do not reconnect at the same time.
		await pause(clock, pauseMs * (0.5 + random() / 2), stopped);
	}
}
