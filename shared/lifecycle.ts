// Starts the components of a process in order and stops them in reverse order. Only this file
// handles signals.

import { type Clock, withDeadline } from "./clock.ts";
import { type Logger, safeError } from "./log.ts";

/**
 * A component that is started and stopped. `stop` is called once after `start`, and waits for all
 * work that the component has begun.
 */
export interface Component {
	readonly name: string;
	/**
	 * How long its stop may take before the next component is stopped anyway, in ms. Default {@link
	 * COMPONENT_STOP_MS}.
	 */
	readonly stopMs?: number;
	start(): Promise<void>;
	stop(): Promise<void>;
}

/** See {@link Component.stopMs}. */
export const COMPONENT_STOP_MS = 8_000;

/**
 * Combines components: they are started in the order given and stopped in reverse order. If a start
 * fails, those already started are stopped. A component that hangs or fails at its stop does not
 * keep the others from stopping.
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
			const { name: task, stopMs = COMPONENT_STOP_MS } = component;
			try {
				await withDeadline(clock, `stop of ${task}`, stopMs, () => component.stop());
			} catch (thrown) {
				log.error("component did not stop cleanly", { task, fault: safeError(thrown) });
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

/** A component that needs no start, only a stop. */
export function onStop(name: string, stop: () => Promise<void>): Component {
	return { name, start: async () => {}, stop };
}

/** A component that listens. */
export interface Server extends Component {
	/** The port it listens on, once started; 0 before and after. */
	readonly port: number;
}

/** The parts of a server, before their start. */
export interface Assembly {
	readonly component: Component;
	readonly port: () => number;
}

/** Thrown by a start that was interrupted by a stop. */
export class StoppedError extends Error {
	readonly code = "STOPPED";
	constructor(name: string) {
		super(`${name} was stopped while it started`);
		this.name = "StoppedError";
	}
}

/**
 * A server whose components are made at its start. `assemble` may wait for their dependencies, and
 * may reject. A stop aborts its signal. `assemble` should then reject, and the start rejects with
 * {@link StoppedError}.
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

const STOP_LIMIT_MS = 28_000;
const AFTER_DRAIN_MS = 8_000;

/**
 * How long the whole stop may take, in ms. It must end before the host's SIGKILL, which comes 30 s
 * after its SIGTERM. For a drain of more than 20 s the operator must configure a later SIGKILL.
 */
export function stopLimitMs(drainSeconds: number): number {
	return Math.max(STOP_LIMIT_MS, drainSeconds * 1_000 + AFTER_DRAIN_MS);
}

interface StopDependencies {
	readonly log: Logger;
	readonly clock: Clock;
	/** See {@link stopLimitMs}. */
	readonly limitMs: number;
	readonly exit: (code: number) => void;
}

/**
 * Stops `component` on the first SIGTERM or SIGINT and then calls `exit` with 0, or with 1 when the
 * stop took longer than `limitMs`. Further signals are ignored: hosts send several.
 */
export function stopOnSignals(component: Component, dependencies: StopDependencies): void {
	const stop = stopOnce(component, dependencies);
	process.on("SIGTERM", stop);
	process.on("SIGINT", stop);
}

/**
 * Stops `component` when the channel to the parent closes. Signals are ignored, since the parent
 * gets them too.
 */
export function stopOnParent(component: Component, dependencies: StopDependencies): void {
	const stop = stopOnce(component, dependencies);
	process.on("disconnect", () => stop("disconnect"));
	process.on("SIGTERM", () => {});
	process.on("SIGINT", () => {});
	// The parent may have ended before the listener was added.
	if (!process.connected) stop("disconnect");
}

function stopOnce(component: Component, dependencies: StopDependencies): (signal: string) => void {
	const { log, clock, limitMs, exit } = dependencies;
	let stopping = false;
	return (signal) => {
		if (stopping) return;
		stopping = true;
		log.info("stopping", { signal });
		withDeadline(clock, "stop", limitMs, () => component.stop()).then(
			() => {
				log.info("stopped");
				exit(0);
			},
			(thrown: unknown) => {
				log.error("shutdown did not finish in time", { fault: safeError(thrown) });
				exit(1);
			},
		);
	};
}
