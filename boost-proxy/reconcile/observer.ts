// Watches what becomes of the rows until they are final: the relay is asked for those that it holds, the chain and the
// fallback for those that it can't speak for. What follows from it is the plan's.

import { type Background, Loop, type Pass } from "../../shared/background.ts";
import type { Component } from "../../shared/lifecycle.ts";
import type { Observed } from "./observed.ts";
import { ObserveChain, ObservePages } from "./observeOthers.ts";
import { ObserveRelay } from "./observeRelay.ts";

export interface ObserverOptions {
	/** Between two questions to the relay, in ms; short, so that a cancel there is known before the relay is out. */
	readonly intervalMs: number;
	readonly slotMs: number;
}

export interface ObserverDependencies extends Omit<Observed, "slotMs" | "stopping"> {
	readonly background: Background;
}

/** The observer as its owner and the views see it. */
export interface Observer extends Component {
	/** The relay was just seen to say this stage of a transaction. */
	learn(hash: string, stage: string): void;
	/** A request was passed through to the relay, which may have ended one of ours: it is asked at once. */
	passed(): void;
}

/** However much is passed through, the relay is asked once in so many ms. */
const PASSED_MS = 100;
/** Something new may come at any time: there is always a next pass. */
const AGAIN: Pass = { left: true, scanMs: 0 };

export function createObserver(options: ObserverOptions, dependencies: ObserverDependencies): Observer {
	const { intervalMs: tickMs, slotMs } = options;
	const { rows, upstreams, clock } = dependencies;
	const { relay, fallback } = upstreams;
	const stopping = new AbortController();
	const observed: Observed = { ...dependencies, slotMs, stopping: stopping.signal };
	const ofRelay = new ObserveRelay(observed);
	const ofChain = new ObserveChain(observed, ofRelay);
	const ofFallback = fallback === null ? null : new ObservePages(observed, fallback);

	// A relay that has just come back is asked for all at once, before anything of its is handed on again.
	let everything = true;
	const relayLoop = new Loop({ task: "following the relay", tickMs }, dependencies, async () => {
		const all = everything;
		everything = false;
		await ofRelay.ask(all);
		return AGAIN;
	});
	// On its own: what waits for the chain must not hold up what the relay says.
	const chainLoop = new Loop({ task: "following the chain", tickMs }, dependencies, async () => {
		await ofChain.ask();
		await ofFallback?.ask();
		return AGAIN;
	});
	const trigger = (): void => {
		relayLoop.trigger();
		chainLoop.trigger();
	};

	let isPassing = false;
	let wasOut = relay.breaker.isUnavailable;
	relay.breaker.onChange(() => {
		const { isUnavailable } = relay.breaker;
		ofRelay.changed();
		if (wasOut === isUnavailable) return;
		if (wasOut) everything = true;
		wasOut = isUnavailable;
		trigger();
	});

	return {
		name: "observer",
		start: async () => trigger(),
		learn: (hash, stage) => ofRelay.learn(hash, stage),
		passed() {
			if (rows.depth === 0 || isPassing) return;
			isPassing = true;
			clock.after(PASSED_MS, () => {
				isPassing = false;
				relayLoop.trigger();
			});
		},
		async stop() {
			stopping.abort();
			await Promise.all([relayLoop.stop(), chainLoop.stop()]);
		},
	};
}
