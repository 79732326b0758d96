// The two processes behind one port: what each is told, and how they are kept up. A relay that ends is started again while
// boost carries on; boost's end is the end of both.

import { type Clock, pause, withDeadline } from "../shared/clock.ts";
import type { Logger } from "../shared/log.ts";

/** How a process ended. */
export interface ChildExit {
	readonly code: number | null;
	readonly signal: string | null;
}

/** A process that was started. Its promises never reject. */
export interface Child {
	/** Resolves once it serves; never where it ends before. */
	readonly started: Promise<void>;
	readonly exited: Promise<ChildExit>;
	/** Asks it to stop, in order. */
	stop(): void;
	/** Ends it at once. */
	kill(): void;
}

export interface PairDependencies {
	readonly clock: Clock;
	readonly log: Logger;
	/** Aborted when all of it has to stop. */
	readonly stop: AbortSignal;
}

/** How soon a relay that ended is started again, in ms, doubling up to the most. */
const AGAIN_MS = 250;
const AGAIN_MOST_MS = 30_000;
/** Having been up so long, it starts from the shortest again. */
const SETTLED_MS = 60_000;
/** Boost waits so long for the relay's start: one that is not there yet would look like one that is down. */
const RELAY_FIRST_MS = 5_000;
/** When one refuses to start, the other gets so long to say what is wrong with its own settings. */
const BOTH_TOLD_MS = 5_000;
/** From the signal on, in ms: when the relay is stopped although boost has not ended, and when nothing is waited for. */
const BOOST_STOP_MS = 17_000;
const ALL_STOPPED_MS = 28_000;

/** Starts both and keeps them up. Resolves with the code for the process to end with, when both are gone. */
export async function runPair(
	start: { relay(): Child; boost(): Child },
	dependencies: PairDependencies,
): Promise<number> {
	const { clock, stop } = dependencies;
	const relay = new RelayKeeper(start.relay, dependencies);
	await within(clock, RELAY_FIRST_MS, Promise.race([relay.firstWord, aborted(stop)]));
	if (stop.aborted) return stopBoth(NOT_STARTED, relay, clock);
	const boost = start.boost();
	const end = await Promise.race([
		boost.exited,
		relay.refused.then(() => "refused" as const),
		aborted(stop).then(() => "asked" as const),
	]);
	if (end === "asked") return stopBoth(boost, relay, clock);
	// Whoever refuses its settings: the other one's are told in the same start.
	const other = end === "refused" ? Promise.race([boost.started, boost.exited]) : relay.firstWord;
	await within(clock, BOTH_TOLD_MS, Promise.race([other, aborted(stop)]));
	await stopBoth(boost, relay, clock);
	return end === "refused" ? 1 : (end.code ?? 1);
}

/** In the place of a boost that was not started any more. */
const NOT_STARTED: Child = {
	started: new Promise(() => {}),
	exited: Promise.resolve({ code: 0, signal: null }),
	stop() {},
	kill() {},
};

/** Boost first, so that what it still does finds a relay. */
async function stopBoth(boost: Child, relay: RelayKeeper, clock: Clock): Promise<number> {
	const begun = clock.monotonic();
	boost.stop();
	const ended = await within(clock, BOOST_STOP_MS, boost.exited);
	relay.stop();
	const left = ALL_STOPPED_MS - (clock.monotonic() - begun);
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

/** One relay at a time. */
class RelayKeeper {
	/** Resolves when the first one ends with code 1 before it served: it refuses its settings, and would again. */
	readonly refused: Promise<void>;
	/** Resolves when the first one serves or has ended. */
	readonly firstWord: Promise<unknown>;
	/** Resolves when none is left and none will be started; with how the last one ended, null where none was there. */
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
		this.firstWord = Promise.race([first.started, first.exited]);
		let refuse = (): void => {};
		this.refused = new Promise((resolve) => {
			refuse = resolve;
		});
		this.exited = this.#keep(first, () => refuse());
	}

	/** Asks it to stop, in order, and starts none again. */
	stop(): void {
		this.#stopping.abort();
		this.#child?.stop();
	}

	/** Ends it at once. */
	kill(): void {
		this.#child?.kill();
	}

	async #keep(first: Child, refuse: () => void): Promise<ChildExit | null> {
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
				refuse();
				return exit;
			}
			if (clock.monotonic() - begun >= SETTLED_MS) wait = AGAIN_MS;
			log.error("the relay has ended: it is started again", { ...reasonOf(exit), ms: wait });
			await pause(clock, wait, signal);
			if (signal.aborted) return null;
			wait = Math.min(2 * wait, AGAIN_MOST_MS);
		}
	}
}

function reasonOf({ code, signal }: ChildExit): { code?: number; signal?: string } {
	return { ...(code === null ? {} : { code }), ...(signal === null ? {} : { signal }) };
}

/** The value, or null when it is not there in time. */
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
	/** Settings that were given and have no effect here. */
	readonly unused: readonly string[];
}

/** Divides it. `relayPort` is free on loopback; `secret` is what both share unless the environment says. */
export function pairEnvironments(
	env: Environment,
	made: { readonly relayPort: number; readonly secret: string },
): PairEnvironments {
	const isSet = (name: string): boolean => (env[name]?.trim() ?? "") !== "";
	const shared = { ...env, BOOST_SECRET: isSet("BOOST_SECRET") ? env.BOOST_SECRET : made.secret };
	const relay: Record<string, string | undefined> = {
		...shared,
		HOST: "127.0.0.1",
		PORT: String(made.relayPort),
		// Nothing stands between the two.
		TRUST_PROXY: "0",
	};
	// Websockets come by the one port, and that one's metrics are boost's.
	delete relay.SEARCHER_PORT;
	if (isSet("METRICS_PORT")) relay.METRICS_PORT = nextPort(env.METRICS_PORT ?? "");
	return {
		relay,
		boost: { ...shared, RELAY_URL: `http://127.0.0.1:${made.relayPort}` },
		unused: ["SEARCHER_PORT", "RELAY_URL"].filter(isSet),
	};
}

/** The port behind it; 0 and what is no port stay as they are, to be taken or refused by who reads them. */
function nextPort(port: string): string {
	return /^[1-9]\d*$/.test(port.trim()) ? String(Number(port) + 1) : port;
}
