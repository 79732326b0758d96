// Counts what the rules judge by: attempts in flight at one upstream, faults in a row, senders of a storm. opossum's own
// figures have neither the time without answers nor senders.

import { LinkedList } from "../../shared/linkedList.ts";
import type { Attempted } from "../domain/ports.ts";
import {
	type AttemptKind,
	countsAsFault,
	type EndedAttempt,
	type HealthFigures,
	type HealthSettings,
	STORM_MS,
	type Unanswered,
} from "./rules.ts";

/** An attempt in flight. Times are monotonic ms. */
export interface InFlight {
	readonly kind: AttemptKind;
	readonly sentAt: number;
	/** {@link Figures.answers} when it was sent. */
	readonly answersBefore: number;
	/** {@link Figures.epoch} when it began: its outcome counts only in that epoch. */
	readonly epoch: number;
	/** Removes it from the attempts in flight. */
	leave: () => void;
}

/** Weight of the latest answer in the moving average. */
const LATEST = 0.2;
/** The most senders remembered, far more than a storm needs. */
const MAX_SENDERS = 1_000;

/** The figures of one upstream. Times are monotonic ms. */
export class Figures implements HealthFigures {
	readonly faults = { read: 0, submission: 0 };
	submissionMs = 0;
	/** Number of answers so far, −32603 included. */
	answers = 0;
	/** Counts the changes of the breaker's state. */
	epoch = 0;
	readonly #now: () => number;
	/** In the order in which they were sent. */
	readonly #inFlight = { read: new LinkedList<InFlight>(), submission: new LinkedList<InFlight>() };
	/** Time of the last answer of any kind, and of the last answer to a submission. */
	#lastAnswerAt = Number.NEGATIVE_INFINITY;
	#lastSubmissionAnswerAt = Number.NEGATIVE_INFINITY;
	/** When each sender of the storm last got −32603, oldest first; and the good answers since the storm began. */
	readonly #senders = new Map<string, number>();
	#goodAnswers = 0;

	constructor(now: () => number) {
		this.#now = now;
	}

	get all(): Unanswered {
		const { read, submission } = this.#inFlight;
		return this.#unanswered(read.size + submission.size, this.#oldestAt, this.#lastAnswerAt);
	}

	get submissions(): Unanswered {
		const { submission } = this.#inFlight;
		return this.#unanswered(submission.size, sentAt(submission), this.#lastSubmissionAnswerAt);
	}

	get stormSenders(): number {
		return this.#senders.size;
	}

	/** Age of the oldest attempt in flight, in ms; 0 if there is none. */
	get oldestMs(): number {
		return Math.max(0, this.#now() - this.#oldestAt);
	}

	begin(kind: AttemptKind): InFlight {
		const one = this.seen(kind);
		const list = this.#inFlight[kind];
		const entry = list.add(one);
		one.leave = () => void list.remove(entry);
		return one;
	}

	/** An attempt that is not counted as in flight. */
	seen(kind: AttemptKind): InFlight {
		const { answers: answersBefore, epoch } = this;
		return { kind, sentAt: this.#now(), answersBefore, epoch, leave() {} };
	}

	/** Counts an outcome of the current epoch. Returns whether it is an answer. */
	count({ outcome, sender }: Attempted, seen: EndedAttempt, settings: HealthSettings): boolean {
		const { kind, tookMs } = seen;
		if (outcome === "answered") this.faults[kind] = 0;
		else if (countsAsFault(outcome, seen, settings)) this.faults[kind]++;
		if (outcome !== "answered" && outcome !== "internal" && outcome !== "limited") return false;
		this.answers++;
		this.noteAnswer();
		if (kind !== "submission") return true;
		this.#lastSubmissionAnswerAt = this.#now();
		this.submissionMs += LATEST * (tookMs - this.submissionMs);
		if (outcome === "answered") this.#countGood();
		else if (outcome === "internal" && sender !== undefined) this.#countInternal(sender);
		return true;
	}

	/** The upstream answered something. */
	noteAnswer(): void {
		this.#lastAnswerAt = this.#now();
	}

	/** Our event loop was late by `ms`, in which no answer could be read: that time does not count as silence. */
	excuse(ms: number): void {
		if (this.all.count > 0) this.#lastAnswerAt = Math.max(this.#lastAnswerAt, this.#oldestAt) + ms;
		const { submission } = this.#inFlight;
		if (submission.size > 0)
			this.#lastSubmissionAnswerAt = Math.max(this.#lastSubmissionAnswerAt, sentAt(submission)) + ms;
	}

	/** The state has changed: earlier faults, answers and senders no longer count. */
	nextEpoch(): void {
		this.epoch++;
		this.#lastAnswerAt = this.#now();
		this.#lastSubmissionAnswerAt = this.#now();
		this.faults.read = 0;
		this.faults.submission = 0;
		this.#senders.clear();
	}

	get #oldestAt(): number {
		return Math.min(sentAt(this.#inFlight.read), sentAt(this.#inFlight.submission));
	}

	#unanswered(count: number, oldestAt: number, lastAnswerAt: number): Unanswered {
		return { count, silentMs: count === 0 ? 0 : this.#now() - Math.max(lastAnswerAt, oldestAt) };
	}

	/** A storm ends when it has brought more good answers than failing senders. */
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

/** When the oldest of a list was sent; infinity if it is empty. */
function sentAt(list: LinkedList<InFlight>): number {
	return list.first?.sentAt ?? Number.POSITIVE_INFINITY;
}
