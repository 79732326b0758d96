// What happens to the journal's entries beyond single requests: each that no live upstream holds goes to one that may
// have it, replacements and cancels reach all holders. It looks at the state of things whenever it is woken, and decides
// nothing by what has changed. How transactions end is follower.ts's.

import type { Background } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Logger } from "../../shared/log.ts";
import type { UpstreamName } from "../domain/delivery.ts";
import type { ChainReads, Handover, Journal, Upstreams } from "../domain/ports.ts";
import { inParallel, type Look, Looks } from "./handoverLooks.ts";
import { HandoverMarks } from "./handoverMarks.ts";
import { HandoverTelling } from "./handoverTelling.ts";
import { type HandoverOutcome, HandoverWalk } from "./handoverWalk.ts";

export interface HandoverOptions {
	/** Of one delivery or question, in ms. It bounds the stop. */
	readonly deadlineMs: number;
	/** Accounts at a time; one account's transactions go one after another. */
	readonly concurrency?: number;
	/** Until the next look where something is left to do, in ms. */
	readonly tickMs?: number;
}

export interface HandoverDependencies {
	readonly journal: Journal;
	readonly upstreams: Upstreams;
	readonly chain: ChainReads;
	readonly clock: Clock;
	readonly background: Background;
	readonly log: Logger;
	readonly onHandover?: (to: UpstreamName, outcome: HandoverOutcome) => void;
}

/** The handover as its owner and the follower see it. */
export interface Handing extends Handover {
	/**
	 * `by`, though well, has no record of what it acknowledged. Our relay gets it again; a third party only where nobody
	 * else has it, and nobody else takes it.
	 */
	lost(hash: string, by: UpstreamName): void;
	/** `by` has given it up by its own rules, and does not get it again. */
	spent(hash: string, by: UpstreamName): void;
	/** Sends nothing more, and waits for what is under way. */
	stop(): Promise<void>;
}

const CONCURRENCY = 16;
const TICK_MS = 1_000;

/** Begins with the first {@link Handover.wake}. */
export function createHandover(options: HandoverOptions, dependencies: HandoverDependencies): Handing {
	const { deadlineMs, concurrency = CONCURRENCY, tickMs = TICK_MS } = options;
	const { journal, upstreams, chain, clock, log, onHandover } = dependencies;
	const marks = new HandoverMarks({ clock });
	const telling = new HandoverTelling(
		{ concurrency, deadlineMs },
		{ journal, upstreams, marks: new HandoverMarks({ clock }), clock },
	);
	const tellings = new Looks({ task: "telling", tickMs }, dependencies, () => telling.look());
	const walk = new HandoverWalk(
		{ deadlineMs },
		{ journal, upstreams, chain, marks, clock, log, onHandover, onLate: () => wake() },
	);
	const observed = new Map<UpstreamName, boolean>();
	let isFirst = true;

	const noteChanges = (): void => {
		let changed = false;
		for (const upstream of [upstreams.relay, upstreams.fallback]) {
			if (upstream === null) continue;
			const { isOut } = upstream.breaker;
			if ((observed.get(upstream.name) ?? false) !== isOut) changed = true;
			observed.set(upstream.name, isOut);
		}
		if (changed) marks.changed();
	};

	const look = async (): Promise<Look> => {
		const begun = clock.monotonic();
		marks.sweep((hash) => journal.get(hash) !== null);
		noteChanges();
		const senders = new Set<string>();
		for (const entry of journal.open()) {
			// A process before this one may have ended before the fallback's verdict.
			if (isFirst && entry.holders.length > 1) marks.unsure(entry.hash, "fallback");
			if (walk.isWanting(entry)) senders.add(entry.from);
		}
		isFirst = false;
		const scanMs = clock.monotonic() - begun;
		let left = false;
		await inParallel(senders, concurrency, async (from) => {
			if (await walk.walk(from)) left = true;
		});
		return { left, scanMs };
	};
	const looks = new Looks({ task: "handover", tickMs }, dependencies, look);

	const wake = (): void => {
		looks.wake();
		tellings.wake();
	};
	return {
		wake,
		lost(hash, by) {
			if (journal.get(hash) === null) return;
			marks.lost(hash, by);
			looks.wake();
		},
		spent(hash, by) {
			marks.refuse(hash, by, "forGood");
		},
		async stop() {
			walk.stop();
			telling.stop();
			await Promise.all([looks.stop(), tellings.stop()]);
		},
	};
}
