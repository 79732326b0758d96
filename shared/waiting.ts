// Waits at a start for something that another host may start at the same time, such as a node or a
// database. The wait never gives up, since a process that exits would only be restarted. The log
// lines become rarer with time.

import { type Clock, pause } from "./clock.ts";
import { StoppedError } from "./lifecycle.ts";
import { safeError } from "./log.ts";

/** Dependencies and callbacks of a wait. */
export interface Waiting {
	readonly clock: Clock;
	/** Ends the wait. */
	readonly stopped: AbortSignal;
	/**
	 * The reason of a failed attempt, for the log and for /readyz, so it is public. Throws errors
	 * that no later attempt would change.
	 */
	reasonOf(thrown: unknown): string;
	/** Called and awaited with the reason of each failure. */
	onFailure(reason: string): Promise<void> | void;
	/** Called with the first failure, with each new reason, and then after pauses that double. */
	tell(failure: WaitingFailure): void;
}

/** For the log. */
export interface WaitingFailure {
	readonly reason: string;
	readonly fault: ReturnType<typeof safeError>;
	/** Since the first try, in ms. */
	readonly ms: number;
}

/** Pauses between two tries, doubled each time, in ms. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 4_000;
/** Pauses between two log lines with one reason, doubled each time, in ms. */
const FIRST_SILENCE_MS = 5_000;
const LONGEST_SILENCE_MS = 600_000;

/**
 * The result of the first `attempt` that does not fail. Rejects with {@link StoppedError} as soon
 * as it is stopped. If a result arrives later, `discard` receives it.
 */
export async function untilDone<T>(
	what: string,
	attempt: () => Promise<T>,
	{ clock, stopped, reasonOf, onFailure, tell }: Waiting,
	discard: (late: T) => void = () => {},
): Promise<T> {
	const begun = clock.monotonic();
	let logged: string | null = null;
	let silenceMs = 0;
	let silentUntil = begun;
	for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
		if (stopped.aborted) throw new StoppedError(what);
		let reason: string;
		let fault: WaitingFailure["fault"];
		try {
			return await unlessStopped(what, stopped, attempt(), discard);
		} catch (thrown) {
			if (stopped.aborted) throw new StoppedError(what);
			reason = reasonOf(thrown);
			fault = safeError(thrown);
		}
		await onFailure(reason);
		const now = clock.monotonic();
		if (reason !== logged || now >= silentUntil) {
			silenceMs = reason === logged ? Math.min(2 * silenceMs, LONGEST_SILENCE_MS) : FIRST_SILENCE_MS;
			silentUntil = now + silenceMs;
			logged = reason;
			tell({ reason, fault, ms: Math.round(now - begun) });
		}
		await pause(clock, pauseMs, stopped);
	}
}

/** Rejects as soon as `stopped` is aborted, without waiting for `work`. */
function unlessStopped<T>(
	what: string,
	stopped: AbortSignal,
	work: Promise<T>,
	discard: (late: T) => void,
): Promise<T> {
	return new Promise((resolve, reject) => {
		let isOver = false;
		const end = () => {
			isOver = true;
			stopped.removeEventListener("abort", onStop);
		};
		const onStop = () => {
			end();
			reject(new StoppedError(what));
		};
		stopped.addEventListener("abort", onStop);
		work.then(
			(value) => {
				if (isOver) return discard(value);
				end();
				resolve(value);
			},
			(thrown) => {
				end();
				reject(thrown);
			},
		);
	});
}
