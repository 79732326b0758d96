// Runs the observers that follow rows until they are final. The relay is asked about its own rows,
// the chain and the fallback about the others. plan.ts decides what boost then does.

import { type Background, Loop, type Pass } from "../../shared/background.ts";
import type { Component } from "../../shared/lifecycle.ts";
import { ChainObserver } from "./observeChain.ts";
import type { ObserverContext } from "./observed.ts";
import { PageObserver } from "./observePages.ts";
import { RelayObserver } from "./observeRelay.ts";

export interface ObserverOptions {
	/**
	 * Delay between two requests to the relay, in ms. It is short, to learn of a cancel there before
	 * the relay becomes unavailable.
	 */
	readonly intervalMs: number;
}

export interface ObserverDependencies extends Omit<ObserverContext, "stopping"> {
	readonly background: Background;
}

export interface Observer extends Component {
	/** Handles a stage that a client's request read at the relay. */
	learn(hash: string, stage: string): void;
	/**
	 * A request was passed through to the relay and may have ended a row there, so the relay is asked
	 * soon.
	 */
	passed(): void;
}

/** The minimum time between two requests to the relay for passed-through requests, in ms. */
const PASSED_MS = 100;
/** There is always a next pass. It does not scan all rows. */
const AGAIN: Pass = { left: true, scanMs: 0 };

export function createObserver(options: ObserverOptions, dependencies: ObserverDependencies): Observer {
	const { intervalMs: tickMs } = options;
	const { rows, upstreams, clock } = dependencies;
	const { relay, fallback } = upstreams;
	const stopping = new AbortController();
	const observed: ObserverContext = { ...dependencies, stopping: stopping.signal };
	const ofRelay = new RelayObserver(observed);
	const ofChain = new ChainObserver(observed, ofRelay);
	const ofFallback = fallback === null ? null : new PageObserver(observed, fallback);

	// A relay that has just come back is asked for all rows before any of them is delivered again.
	let everything = true;
	const relayLoop = new Loop({ task: "following the relay", tickMs }, dependencies, async () => {
		const all = everything;
		everything = false;
		await ofRelay.ask(all);
		return AGAIN;
	});
	// Separate, so that a slow chain does not delay the relay's answers.
	const chainLoop = new Loop({ task: "following the chain", tickMs }, dependencies, async () => {
		const scanMs = (await ofChain.ask()) + ((await ofFallback?.ask()) ?? 0);
		return { left: true, scanMs };
	});
	const trigger = (): void => {
		relayLoop.trigger();
		chainLoop.trigger();
	};

	let isAskedSoon = false;
	let wasUnavailable = relay.breaker.isUnavailable;
	relay.breaker.onChange(() => {
		const { isUnavailable } = relay.breaker;
		ofRelay.breakerChanged();
		if (wasUnavailable === isUnavailable) return;
		if (wasUnavailable) everything = true;
		wasUnavailable = isUnavailable;
		trigger();
	});

	return {
		name: "observer",
		start: async () => trigger(),
		learn: (hash, stage) => ofRelay.learn(hash, stage),
		passed() {
			if (rows.liveCount === 0 || isAskedSoon) return;
			isAskedSoon = true;
			clock.after(PASSED_MS, () => {
				isAskedSoon = false;
				relayLoop.trigger();
			});
		},
		async stop() {
			stopping.abort();
			await Promise.all([relayLoop.stop(), chainLoop.stop()]);
		},
	};
}
