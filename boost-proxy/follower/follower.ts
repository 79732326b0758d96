// Follows what the journal holds until it is final: the relay is asked for its entries, the chain and the fallback for
// those that it can't speak for. What is handed to whom is handover.ts's.

import type { Background } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Component } from "../../shared/lifecycle.ts";
import type { Logger } from "../../shared/log.ts";
import type { Ending } from "../domain/journalEntry.ts";
import type { ChainReads, Journal, Upstreams } from "../domain/ports.ts";
import type { Handing } from "../handover/handover.ts";
import { type Look, Looks } from "../handover/handoverLooks.ts";
import { FollowBook } from "./followBook.ts";
import { FollowChain } from "./followChain.ts";
import { FollowEndings } from "./followEndings.ts";
import { MinedEntries } from "./followMined.ts";
import { FollowPages } from "./followPages.ts";
import { FollowRelay } from "./followRelay.ts";

export interface FollowerOptions {
	/** Between two questions to the relay, in ms; short, so that a cancel there is known before the relay is out. */
	readonly intervalMs: number;
	readonly slotMs: number;
	/** Hashes in one question to the relay. */
	readonly batch?: number;
	/** Of one question, in ms. It bounds the stop. */
	readonly deadlineMs?: number;
}

export interface FollowerDependencies {
	readonly journal: Journal;
	readonly upstreams: Upstreams;
	readonly chain: ChainReads;
	readonly handover: Handing;
	readonly clock: Clock;
	readonly background: Background;
	readonly log: Logger;
	readonly onEnd?: (ending: Ending) => void;
}

/** The follower as its owner and the views see it. */
export interface Follower extends Component {
	/** The relay was just seen to say this stage of a transaction. */
	learn(hash: string, stage: string): void;
	/** A request was passed through to the relay, which may have ended one of ours: it is asked at once. */
	passed(): void;
}

const BATCH = 1_000;
/** However much is passed through, the relay is asked once in so many ms. */
const PASSED_MS = 100;
const DEADLINE_MS = 2_000;
/** Blocks after which none is taken back. */
const REORG_SLOTS = 12;

export function createFollower(options: FollowerOptions, dependencies: FollowerDependencies): Follower {
	const { intervalMs, slotMs, batch = BATCH, deadlineMs = DEADLINE_MS } = options;
	const { journal, upstreams, chain, handover, clock, log, onEnd } = dependencies;
	const { relay, fallback } = upstreams;
	const book = new FollowBook({ journal, clock });
	const mined = new MinedEntries({ keepMs: REORG_SLOTS * slotMs }, { clock });
	const endings = new FollowEndings({ journal, mined, handover, log, onEnd });
	const ofRelay = new FollowRelay(
		{ batch, slotMs, deadlineMs },
		{ journal, relay, handover, book, mined, endings, clock, log },
	);
	const ofChain = new FollowChain(
		{ slotMs, deadlineMs },
		{ journal, chain, book, mined, endings, relay: ofRelay, clock },
	);
	const ofFallback =
		fallback === null
			? null
			: new FollowPages({ slotMs, deadlineMs }, { journal, fallback, handover, book, endings, clock });

	// Something new may come at any time: there is always a next look.
	const done: Look = { left: true, scanMs: 0 };
	// A relay that has just come back is asked for all at once, before anything of its is handed on again.
	let everything = false;
	const relayLooks = new Looks(
		{ task: "following the relay", tickMs: intervalMs },
		dependencies,
		async () => {
			const all = everything;
			everything = false;
			await ofRelay.ask(all);
			return done;
		},
	);
	// On its own: what waits for the chain must not hold up what the relay says.
	const otherLooks = new Looks(
		{ task: "following the chain", tickMs: intervalMs },
		dependencies,
		async () => {
			await ofChain.look();
			await ofFallback?.look();
			return done;
		},
	);

	let isPassing = false;
	let wasOut = relay.breaker.isOut;
	relay.breaker.onChange(() => {
		const { isOut } = relay.breaker;
		ofRelay.changed();
		if (wasOut !== isOut) {
			if (wasOut) everything = true;
			relayLooks.wake();
			otherLooks.wake();
		}
		wasOut = isOut;
	});

	return {
		name: "follower",
		async start() {
			// A process before this one saw them mined.
			for (const { entry, endedAt } of journal.recentlyMined()) {
				mined.add(entry, Math.max(0, clock.now() - endedAt));
			}
			everything = true;
			relayLooks.wake();
			otherLooks.wake();
		},
		learn: (hash, stage) => ofRelay.learn(hash, stage),
		passed() {
			if (journal.depth === 0 || isPassing) return;
			isPassing = true;
			clock.after(PASSED_MS, () => {
				isPassing = false;
				relayLooks.wake();
			});
		},
		async stop() {
			for (const part of [ofRelay, ofChain, ofFallback]) part?.stop();
			await Promise.all([relayLooks.stop(), otherLooks.stop()]);
		},
	};
}
