// Counts what the rules judge: what is under way at one upstream, faults in a row, the senders of a storm. Kept apart from
// opossum's own figures, which count what is in flight as successes and know neither silence nor senders.

import { LinkedList } from "../../shared/linkedList.ts";
import type { Attempted } from "../domain/ports.ts";
import {
	type AttemptKind,
	type HealthFigures,
	type HealthSettings,
	isCharged,
	type Seen,
	STORM_MS,
	type Unanswered,
} from "./rules.ts";

/** An attempt under way. Times are monotonic ms. */
export interface InFlight {
	readonly kind: AttemptKind;
	readonly sentAt: number;
	/** {@link Figures.answers} when it was sent. */
	readonly answersBefore: number;
	/** {@link Figures.epoch} in which it began: what comes of it counts in that one alone. */
	readonly epoch: number;
	/** It is under way no more. */
	leave: () => void;
}

const NOTHING = (): void => {};
/** Weight of the latest answer in the moving average. */
const LATEST = 0.2;
/** Senders remembered at most; far more than it takes. */
const MAX_SENDERS = 1_000;

/** What is counted of one upstream. Times are monotonic ms. */
export class Figures implements HealthFigures {
	readonly faults = { read: 0, submission: 0 };
	submissionMs = 0;
	/** Answers so far, −32603 among them: whoever sees the same number twice knows that none came. */
	answers = 0;
	/** One more with each change of the breaker's state. */
	epoch = 0;
	readonly #now: () => number;
	#all = new Silence();
	#submissions = new Silence();
	/** Under way, of all epochs. */
	readonly #every = new LinkedList<InFlight>();
	/** When each sender of the storm last got −32603, the longest ago first; and the good answers since it began. */
	readonly #senders = new Map<string, number>();
	#goodAnswers = 0;

	constructor(now: () => number) {
		this.#now = now;
	}

	get all(): Unanswered {
		return this.#all.at(this.#now());
	}

	get submissions(): Unanswered {
		return this.#submissions.at(this.#now());
	}

	get stormSenders(): number {
		return this.#senders.size;
	}

	/** Of all epochs. */
	get inFlight(): number {
		return this.#every.size;
	}

	/** When the oldest of all epochs was sent; null where none is under way. */
	get oldestAt(): number | null {
		return this.#every.first?.sentAt ?? null;
	}

	begin(kind: AttemptKind): InFlight {
		const one = this.seen(kind);
		const [all, submissions] = [this.#all.inFlight, this.#submissions.inFlight];
		const places = [this.#every.add(one), all.add(one)] as const;
		const own = kind === "submission" ? submissions.add(one) : null;
		one.leave = () => {
			this.#every.remove(places[0]);
			all.remove(places[1]);
			if (own !== null) submissions.remove(own);
		};
		return one;
	}

	/** One that began and ended elsewhere. */
	seen(kind: AttemptKind): InFlight {
		const { answers: answersBefore, epoch } = this;
		return { kind, sentAt: this.#now(), answersBefore, epoch, leave: NOTHING };
	}

	/** Counts an outcome of this epoch. Says whether it is an answer. */
	count({ outcome, sender }: Attempted, seen: Seen, settings: HealthSettings): boolean {
		const { kind, tookMs } = seen;
		if (outcome === "answered") this.faults[kind] = 0;
		else if (isCharged(outcome, seen, settings)) this.faults[kind]++;
		if (outcome !== "answered" && outcome !== "internal" && outcome !== "limited") return false;
		this.answers++;
		this.alive();
		if (kind !== "submission") return true;
		this.#submissions.heardAt = this.#now();
		this.submissionMs += LATEST * (tookMs - this.submissionMs);
		if (outcome === "answered") this.#countGood();
		else if (outcome === "internal" && sender !== undefined) this.#countInternal(sender);
		return true;
	}

	/** A sign of life. */
	alive(): void {
		this.#all.heardAt = this.#now();
	}

	/** Our own event loop was late by `ms`, in which it could hear nothing. */
	excuse(ms: number): void {
		this.#all.excuse(ms);
		this.#submissions.excuse(ms);
	}

	/** The state has changed: what was before it counts no more. */
	nextEpoch(): void {
		this.epoch++;
		this.#all = new Silence();
		this.#submissions = new Silence();
		this.faults.read = 0;
		this.faults.submission = 0;
		this.#senders.clear();
	}

	/** A storm is over once more were answered well since it began than senders met it. */
	#countGood(): void {
		this.#goodAnswers++;
		if (this.#goodAnswers > this.#senders.size) this.#senders.clear();
	}

	#countInternal(sender: string): void {
		if (this.#senders.size === 0) this.#goodAnswers = 0;
		const now = this.#now();
		this.#senders.delete(sender);
		this.#senders.set(sender, now);
		for (const [known, at] of this.#senders) {
			if (now - at < STORM_MS && this.#senders.size <= MAX_SENDERS) break;
			this.#senders.delete(known);
		}
	}
}

/** Some requests under way and when they last heard of their upstream. A set keeps the order in which they were sent. */
class Silence {
	readonly inFlight = new LinkedList<InFlight>();
	heardAt = Number.NEGATIVE_INFINITY;

	at(now: number): Unanswered {
		const oldest = this.inFlight.first;
		const silentMs = oldest === undefined ? 0 : now - Math.max(this.heardAt, oldest.sentAt);
		return { count: this.inFlight.size, silentMs };
	}

	excuse(ms: number): void {
		const oldest = this.inFlight.first;
		if (oldest !== undefined) this.heardAt = Math.max(this.heardAt, oldest.sentAt) + ms;
	}
}
