// Starts the parts of a process in order and stops them in reverse. Signals become one orderly stop here,
// and nowhere else.

import { type Clock, withDeadline } from "./clock.ts";
import { type Logger, safeError } from "./log.ts";

/** A part with a life. `stop` may be called once after `start`, and joins everything the part has begun. */
export interface Component {
	readonly name: string;
	start(): Promise<void>;
	stop(): Promise<void>;
}

/** How long one component may take to stop before the next one is stopped anyway, in ms. */
const COMPONENT_STOP_MS = 8_000;

/**
 * One component out of many: they are started in the order given and stopped in reverse. When a start fails,
 * those already started are stopped again. A component that hangs or fails at its stop holds up nobody.
 */
export function sequence(
	name: string,
	components: readonly Component[],
	dependencies: { log: Logger; clock: Clock },
): Component {
	const { log, clock } = dependencies;
	let started: Component[] = [];
	let stopping = false;
	const stopAll = async (): Promise<void> => {
		const last = started.reverse();
		started = [];
		for (const component of last) {
			try {
				await withDeadline(clock, `stop of ${component.name}`, COMPONENT_STOP_MS, () => component.stop());
			} catch (thrown) {
				log.error("a part did not stop as it should", { task: component.name, fault: safeError(thrown) });
			}
		}
	};
	return {
		name,
		async start() {
			stopping = false;
			try {
				for (const component of components) {
					await component.start();
					started.push(component);
					if (stopping) throw new StoppedError(name);
				}
			} catch (thrown) {
				await stopAll();
				throw thrown;
			}
		},
		stop() {
			stopping = true;
			return stopAll();
		},
	};
}

/** A component that is there from the start, and only has something to stop. */
export function sink(name: string, stop: () => Promise<void>): Component {
	return { name, start: async () => {}, stop };
}

/** A component that listens. */
export interface Server extends Component {
	/** The port it listens on, once started; 0 before and after. */
	readonly port: number;
}

/** A server's parts, made and not started. */
export interface Assembly {
	readonly component: Component;
	readonly port: () => number;
}

/** It was stopped before it had started. */
export class StoppedError extends Error {
	readonly code = "STOPPED";
	constructor(name: string) {
		super(`${name} was stopped while it started`);
		this.name = "StoppedError";
	}
}

/**
 * A server whose parts are made at its start: `assemble` may wait for what they need, and reject. It shall give up when its
 * signal is aborted, which is what a stop does; the start then rejects with {@link StoppedError}.
 */
export function assembled(name: string, assemble: (stopped: AbortSignal) => Promise<Assembly>): Server {
	let running: Assembly | null = null;
	let starting: { readonly stop: AbortController; readonly made: Promise<Assembly> } | null = null;
	return {
		name,
		get port() {
			return running?.port() ?? 0;
		},
		async start() {
			const stop = new AbortController();
			const made = assemble(stop.signal);
			starting = { stop, made };
			try {
				running = await made;
				await running.component.start();
			} catch (thrown) {
				throw stop.signal.aborted ? new StoppedError(name) : thrown;
			}
		},
		async stop() {
			starting?.stop.abort();
			await starting?.made.catch(() => {});
			await running?.component.stop();
			running = null;
		},
	};
}

/** The whole stop must be done before the host's SIGKILL, 30 s after its SIGTERM. */
export const STOP_LIMIT_MS = 28_000;

interface StopDependencies {
	readonly log: Logger;
	readonly clock: Clock;
	readonly exit: (code: number) => void;
}

/**
 * Stops `component` on the first SIGTERM or SIGINT and then calls `exit` with 0, or with 1 when the stop took
 * longer than {@link STOP_LIMIT_MS}. Further signals are ignored: hosts send several.
 */
export function stopOnSignals(component: Component, dependencies: StopDependencies): void {
	const stop = stopOnce(component, dependencies);
	process.on("SIGTERM", stop);
	process.on("SIGINT", stop);
}

/** The same when the channel to the parent process closes; signals are ignored: the parent gets them too. */
export function stopOnParent(component: Component, dependencies: StopDependencies): void {
	const stop = stopOnce(component, dependencies);
	process.on("disconnect", () => stop("disconnect"));
	process.on("SIGTERM", () => {});
	process.on("SIGINT", () => {});
	// The parent may have gone before there was anybody to hear of it.
	if (!process.connected) stop("disconnect");
}

function stopOnce(component: Component, dependencies: StopDependencies): (signal: string) => void {
	const { log, clock, exit } = dependencies;
	let stopping = false;
	return (signal) => {
		if (stopping) return;
		stopping = true;
		log.info("stopping", { signal });
		withDeadline(clock, "stop", STOP_LIMIT_MS, () => component.stop()).then(
			() => {
				log.info("stopped");
				exit(0);
			},
			(thrown: unknown) => {
				log.error("stop did not finish in time", { fault: safeError(thrown) });
				exit(1);
			},
		);
	};
}
