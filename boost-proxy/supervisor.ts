// Supervises relay and boost behind one port and divides the environment between them. A relay that
// ends is restarted while boost keeps running. When boost ends, both end.

import { type Clock, pause, withDeadline } from "../shared/clock.ts";
import { stopLimitMs } from "../shared/lifecycle.ts";
import type { Logger } from "../shared/log.ts";

/** How a process ended. */
export interface ChildExit {
	readonly code: number | null;
	readonly signal: string | null;
}

/** A process that was started. Its promises never reject. */
export interface Child {
	/** Resolves once it serves; never if it ends before. */
	readonly started: Promise<void>;
	readonly exited: Promise<ChildExit>;
	/** Asks it to shut down. */
	stop(): void;
	/** Ends it at once. */
	kill(): void;
}

export interface PairDependencies {
	readonly clock: Clock;
	readonly log: Logger;
	/** How long boost takes to close its websockets when it stops. */
	readonly drainSeconds: number;
	/** Aborted when both must stop. */
	readonly stop: AbortSignal;
}

/** Delay before a relay that ended is restarted, in ms, doubling up to the maximum. */
const AGAIN_MS = 250;
const AGAIN_MOST_MS = 30_000;
/** After a run of this many ms, the restart delay is the shortest again. */
const SETTLED_MS = 60_000;
/**
 * How long boost waits for the relay to start, in ms. If boost came first, the relay would look
 * unavailable.
 */
const RELAY_FIRST_MS = 5_000;
/** If one process has bad settings, the other gets this many ms to report its own. */
const BOTH_CHECKED_MS = 5_000;
/**
 * Limits after which the relay is stopped even if boost still runs, in ms. The first counts from
 * the signal, the second from the end of boost's drain. The later one applies.
 */
const BOOST_STOP_MS = 17_000;
const BOOST_DRAINED_MS = 3_000;

/**
 * Starts both and restarts the relay when it ends. Resolves with the exit code when both have
 * ended.
 */
export async function runPair(
	start: { relay(): Child; boost(): Child },
	dependencies: PairDependencies,
): Promise<number> {
	const { clock, stop } = dependencies;
	const relay = new RelayKeeper(start.relay, dependencies);
	await within(clock, RELAY_FIRST_MS, Promise.race([relay.settled, aborted(stop)]));
	if (stop.aborted) return stopBoth(NOT_STARTED, relay, dependencies);
	const boost = start.boost();
	const end = await Promise.race([
		boost.exited,
		relay.misconfigured.then(() => "misconfigured" as const),
		aborted(stop).then(() => "asked" as const),
	]);
	if (end === "asked") return stopBoth(boost, relay, dependencies);
	// If the settings of one are bad, the other can still report its own in the same start.
	const other = end === "misconfigured" ? Promise.race([boost.started, boost.exited]) : relay.settled;
	await within(clock, BOTH_CHECKED_MS, Promise.race([other, aborted(stop)]));
	await stopBoth(boost, relay, dependencies);
	return end === "misconfigured" ? 1 : (end.code ?? 1);
}

/** A placeholder for boost when it was never started. */
const NOT_STARTED: Child = {
	started: new Promise(() => {}),
	exited: Promise.resolve({ code: 0, signal: null }),
	stop() {},
	kill() {},
};

/** Stops boost first, which may still need the relay. */
async function stopBoth(
	boost: Child,
	relay: RelayKeeper,
	{ clock, drainSeconds }: PairDependencies,
): Promise<number> {
	const begun = clock.monotonic();
	boost.stop();
	const boostMs = Math.max(BOOST_STOP_MS, drainSeconds * 1_000 + BOOST_DRAINED_MS);
	const ended = await within(clock, boostMs, boost.exited);
	relay.stop();
	const left = stopLimitMs(drainSeconds) - (clock.monotonic() - begun);
	const exits = await within(clock, left, Promise.all([boost.exited, relay.exited]));
	if (exits === null) {
		boost.kill();
		relay.kill();
		await Promise.all([boost.exited, relay.exited]);
		return 1;
	}
	const [, relayExit] = exits;
	return ended !== null && [ended, relayExit].every((exit) => exit === null || exit.code === 0) ? 0 : 1;
}

/** Runs one relay at a time and restarts it. */
class RelayKeeper {
	/** Resolves if the first relay ends with code 1 before it serves: its settings are bad. */
	readonly misconfigured: Promise<void>;
	/** Resolves when the first relay serves or has ended. */
	readonly settled: Promise<unknown>;
	/** Resolves when the last relay has ended, with its exit; null if none was running. */
	readonly exited: Promise<ChildExit | null>;
	readonly #start: () => Child;
	readonly #dependencies: PairDependencies;
	readonly #stopping = new AbortController();
	#child: Child | null;

	constructor(start: () => Child, dependencies: PairDependencies) {
		this.#start = start;
		this.#dependencies = dependencies;
		const first = start();
		this.#child = first;
		this.settled = Promise.race([first.started, first.exited]);
		let misconfigured = (): void => {};
		this.misconfigured = new Promise((resolve) => {
			misconfigured = resolve;
		});
		this.exited = this.#keep(first, () => misconfigured());
	}

	/** Asks it to shut down and does not restart it. */
	stop(): void {
		this.#stopping.abort();
		this.#child?.stop();
	}

	/** Ends it at once. */
	kill(): void {
		this.#child?.kill();
	}

	async #keep(first: Child, misconfigured: () => void): Promise<ChildExit | null> {
		const { clock, log } = this.#dependencies;
		const { signal } = this.#stopping;
		let hasServed = false;
		let wait = AGAIN_MS;
		for (let child = first; ; child = this.#start()) {
			this.#child = child;
			void child.started.then(() => {
				hasServed = true;
			});
			const begun = clock.monotonic();
			const exit = await child.exited;
			this.#child = null;
			if (signal.aborted) return exit;
			if (!hasServed && exit.code === 1) {
				misconfigured();
				return exit;
			}
			if (clock.monotonic() - begun >= SETTLED_MS) wait = AGAIN_MS;
			log.error("relay ended, restarting it", { ...reasonOf(exit), ms: wait });
			await pause(clock, wait, signal);
			if (signal.aborted) return null;
			wait = Math.min(2 * wait, AGAIN_MOST_MS);
		}
	}
}

function reasonOf({ code, signal }: ChildExit): { code?: number; signal?: string } {
	return { ...(code === null ? {} : { code }), ...(signal === null ? {} : { signal }) };
}

/** The value, or null if it is not there in time. */
function within<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | null> {
	return withDeadline(clock, "end of a process", Math.max(0, ms), () => work).catch(() => null);
}

function aborted(signal: AbortSignal): Promise<void> {
	return new Promise((resolve) => {
		if (signal.aborted) resolve();
		else signal.addEventListener("abort", () => resolve(), { once: true });
	});
}

type Environment = Readonly<Record<string, string | undefined>>;

export interface PairEnvironments {
	readonly relay: Environment;
	readonly boost: Environment;
	/** Settings that are set but have no effect here. */
	readonly unused: readonly string[];
}

/**
 * Divides the environment. `relayPort` is free on loopback; `secret` is used unless BOOST_SECRET is
 * set.
 */
export function pairEnvironments(
	env: Environment,
	made: { readonly relayPort: number; readonly secret: string },
): PairEnvironments {
	const isSet = (name: string): boolean => (env[name]?.trim() ?? "") !== "";
	const both = { ...env, BOOST_SECRET: isSet("BOOST_SECRET") ? env.BOOST_SECRET : made.secret };
	const relay: Record<string, string | undefined> = {
		...both,
		HOST: "127.0.0.1",
		PORT: String(made.relayPort),
		// There is no proxy between boost and the relay.
		TRUST_PROXY: "0",
		// Boost is its only client, and has closed its own clients' connections by then.
		DRAIN_SECONDS: "0",
	};
	// Websockets come through boost's port, and METRICS_PORT is boost's.
	delete relay.SEARCHER_PORT;
	if (isSet("METRICS_PORT")) relay.METRICS_PORT = nextPort(env.METRICS_PORT ?? "");
	return {
		relay,
		boost: { ...both, RELAY_URL: `http://127.0.0.1:${made.relayPort}` },
		unused: ["SEARCHER_PORT", "RELAY_URL"].filter(isSet),
	};
}

/** The next port number; 0 and invalid values are returned unchanged. */
function nextPort(port: string): string {
	return /^[1-9]\d*$/.test(port.trim()) ? String(Number(port) + 1) : port;
}
