// Runs the observers that follow rows until they are final: the relay is asked for the rows that it holds, the chain and the
// fallback for the others. What boost then does is decided in plan.ts.

import { type Background, Loop, type Pass } from "../../shared/background.ts";
import type { Component } from "../../shared/lifecycle.ts";
import { ChainObserver } from "./observeChain.ts";
import type { ObserverContext } from "./observed.ts";
import { PageObserver } from "./observePages.ts";
import { RelayObserver } from "./observeRelay.ts";

export interface ObserverOptions {
	/** Between two questions to the relay, in ms; short, so that a cancel there is known before the relay becomes unavailable. */
	readonly intervalMs: number;
}

export interface ObserverDependencies extends Omit<ObserverContext, "stopping"> {
	readonly background: Background;
}

export interface Observer extends Component {
	/** Takes a stage that a client's request read at the relay. */
	learn(hash: string, stage: string): void;
	/** A request was passed through to the relay, which may have ended a row: the relay is asked soon. */
	passed(): void;
}

/** However many requests are passed through, the relay is asked at most once in so many ms. */
const PASSED_MS = 100;
/** There is always a next pass. It does not go through all rows. */
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

	// A relay that has just come back is asked for all rows, before any of them is handed over.
	let everything = true;
	const relayLoop = new Loop({ task: "following the relay", tickMs }, dependencies, async () => {
		const all = everything;
		everything = false;
		await ofRelay.ask(all);
		return AGAIN;
	});
	// Separate, so that slow answers of the chain do not delay the relay's.
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
