// Counts what the rules judge: what is in flight at one upstream, faults in a row, the senders of a storm. Kept apart from
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

/** An attempt in flight. Times are monotonic ms. */
export interface InFlight {
	readonly kind: AttemptKind;
	readonly sentAt: number;
	/** {@link Figures.answers} when it was sent. */
	readonly answersBefore: number;
	/** {@link Figures.epoch} in which it began: its outcome counts in that one alone. */
	readonly epoch: number;
	/** It is in flight no more. */
	leave: () => void;
}

/** Weight of the latest answer in the moving average. */
const LATEST = 0.2;
/** Senders remembered at most; far more than it takes. */
const MAX_SENDERS = 1_000;

/** What is counted of one upstream. Times are monotonic ms. */
export class Figures implements HealthFigures {
	readonly faults = { read: 0, submission: 0 };
	submissionMs = 0;
	/** Answers so far, −32603 among them: the same number twice means that none came in between. */
	answers = 0;
	/** One more with each change of the breaker's state. */
	epoch = 0;
	readonly #now: () => number;
	/** In the order in which they were sent. */
	readonly #inFlight = { read: new LinkedList<InFlight>(), submission: new LinkedList<InFlight>() };
	/** When the upstream was last heard of: by anything, and by an answer to a submission. */
	#heardAt = Number.NEGATIVE_INFINITY;
	#submissionHeardAt = Number.NEGATIVE_INFINITY;
	/** When each sender of the storm last got −32603, the longest ago first; and the good answers since it began. */
	readonly #senders = new Map<string, number>();
	#goodAnswers = 0;

	constructor(now: () => number) {
		this.#now = now;
	}

	get all(): Unanswered {
		const { read, submission } = this.#inFlight;
		return this.#unanswered(read.size + submission.size, this.#oldestAt, this.#heardAt);
	}

	get submissions(): Unanswered {
		const { submission } = this.#inFlight;
		return this.#unanswered(submission.size, sentAt(submission), this.#submissionHeardAt);
	}

	get stormSenders(): number {
		return this.#senders.size;
	}

	/** How long the oldest one is in flight, in ms; 0 where none is. */
	get oldestMs(): number {
		return Math.max(0, this.#now() - this.#oldestAt);
	}

	begin(kind: AttemptKind): InFlight {
		const one = this.seen(kind);
		const list = this.#inFlight[kind];
		const place = list.add(one);
		one.leave = () => void list.remove(place);
		return one;
	}

	/** One that began and ended elsewhere. */
	seen(kind: AttemptKind): InFlight {
		const { answers: answersBefore, epoch } = this;
		return { kind, sentAt: this.#now(), answersBefore, epoch, leave() {} };
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
		this.#submissionHeardAt = this.#now();
		this.submissionMs += LATEST * (tookMs - this.submissionMs);
		if (outcome === "answered") this.#countGood();
		else if (outcome === "internal" && sender !== undefined) this.#countInternal(sender);
		return true;
	}

	/** A sign of life. */
	alive(): void {
		this.#heardAt = this.#now();
	}

	/** Our own event loop was late by `ms`, in which it could hear nothing. */
	excuse(ms: number): void {
		if (this.all.count > 0) this.#heardAt = Math.max(this.#heardAt, this.#oldestAt) + ms;
		const { submission } = this.#inFlight;
		if (submission.size > 0)
			this.#submissionHeardAt = Math.max(this.#submissionHeardAt, sentAt(submission)) + ms;
	}

	/** The state has changed: what was counted and heard before it counts no more. */
	nextEpoch(): void {
		this.epoch++;
		this.#heardAt = this.#now();
		this.#submissionHeardAt = this.#now();
		this.faults.read = 0;
		this.faults.submission = 0;
		this.#senders.clear();
	}

	get #oldestAt(): number {
		return Math.min(sentAt(this.#inFlight.read), sentAt(this.#inFlight.submission));
	}

	#unanswered(count: number, oldestAt: number, heardAt: number): Unanswered {
		return { count, silentMs: count === 0 ? 0 : this.#now() - Math.max(heardAt, oldestAt) };
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

/** When the first of a list was sent; infinity where it is empty. */
function sentAt(list: LinkedList<InFlight>): number {
	return list.first?.sentAt ?? Number.POSITIVE_INFINITY;
}
