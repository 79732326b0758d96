// Counts the figures that the rules use: attempts in flight at one upstream, faults in a row,
// senders of a storm. opossum's own figures include neither the time without answers nor senders.

import { LinkedList } from "../../shared/linkedList.ts";
import type { Attempted } from "../domain/ports.ts";
import {
	type AttemptKind,
	countsAsFault,
	type EndedAttempt,
	type HealthFigures,
	type HealthSettings,
	type Met,
	STORM_MS,
	type Unanswered,
} from "./rules.ts";

/** An attempt in flight. Times are monotonic ms. */
export interface InFlight {
	readonly kind: AttemptKind;
	/** See {@link EndedAttempt.client}. */
	readonly client: string | null;
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
	readonly faults = { read: new FaultRow(), submission: new FaultRow() };
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
	/**
	 * The last −32603 to each sender of the storm, oldest first, and the number of good answers since
	 * the storm began.
	 */
	readonly #senders = new Map<string, { readonly at: number; readonly client: string | null }>();
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

	get submissionsAreShared(): boolean {
		return areShared(this.#inFlight.submission);
	}

	get storm() {
		const { size: count } = this.#senders;
		return { count, isShared: count > 1 && areShared(this.#senders.values()) };
	}

	/** Age of the oldest attempt in flight, in ms; 0 if there is none. */
	get oldestMs(): number {
		return Math.max(0, this.#now() - this.#oldestAt);
	}

	begin(kind: AttemptKind, client: string | null): InFlight {
		const one = this.seen(kind, client);
		const list = this.#inFlight[kind];
		const entry = list.add(one);
		one.leave = () => void list.remove(entry);
		return one;
	}

	/** An attempt that is not counted as in flight. */
	seen(kind: AttemptKind, client: string | null): InFlight {
		const { answers: answersBefore, epoch } = this;
		return { kind, client, sentAt: this.#now(), answersBefore, epoch, leave() {} };
	}

	/** Counts an outcome of the current epoch. Returns whether it is an answer. */
	count({ outcome, sender }: Attempted, seen: EndedAttempt, settings: HealthSettings): boolean {
		const { kind, client, tookMs } = seen;
		if (outcome === "answered") this.faults[kind].end();
		else if (countsAsFault(outcome, seen, settings)) this.faults[kind].add(client);
		if (outcome !== "answered" && outcome !== "internal" && outcome !== "limited") return false;
		this.answers++;
		this.noteAnswer(kind);
		if (kind !== "submission") return true;
		this.submissionMs += LATEST * (tookMs - this.submissionMs);
		if (outcome === "answered") this.#countGood();
		else if (outcome === "internal" && sender !== undefined) this.#countInternal(sender, client);
		return true;
	}

	/** The upstream gave an answer of any kind. */
	noteAnswer(kind: AttemptKind): void {
		this.#lastAnswerAt = this.#now();
		if (kind === "submission") this.#lastSubmissionAnswerAt = this.#now();
	}

	/**
	 * The event loop was blocked for `ms`, so no answer could be read. That time does not count as
	 * silence.
	 */
	excuse(ms: number): void {
		if (this.all.count > 0) this.#lastAnswerAt = Math.max(this.#lastAnswerAt, this.#oldestAt) + ms;
		const { submission } = this.#inFlight;
		if (submission.size > 0)
			this.#lastSubmissionAnswerAt = Math.max(this.#lastSubmissionAnswerAt, sentAt(submission)) + ms;
	}

	/** The state has changed: earlier faults, answers and senders no longer count. */
	nextEpoch(): void {
		this.epoch++;
		this.noteAnswer("submission");
		this.faults.read.end();
		this.faults.submission.end();
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

	#countInternal(sender: string, client: string | null): void {
		if (this.#senders.size === 0) this.#goodAnswers = 0;
		const now = this.#now();
		this.#senders.delete(sender);
		this.#senders.set(sender, { at: now, client });
		for (const [known, { at }] of this.#senders) {
			if (now - at < STORM_MS && this.#senders.size <= MAX_SENDERS) break;
			this.#senders.delete(known);
		}
	}
}

/** Counted faults in a row. */
class FaultRow implements Met {
	count = 0;
	isShared = false;
	#client: string | null = null;

	/** Adds a fault of a request of `client`. */
	add(client: string | null): void {
		this.count++;
		this.#client ??= client;
		this.isShared ||= client !== null && client !== this.#client;
	}

	end(): void {
		this.count = 0;
		this.isShared = false;
		this.#client = null;
	}
}

/**
 * Whether they belong to at least two clients. Boost's own requests belong to none, since their
 * content may come from one client.
 */
function areShared(all: Iterable<{ readonly client: string | null }>): boolean {
	let first: string | null = null;
	for (const { client } of all) {
		if (client !== null && first !== null && client !== first) return true;
		first ??= client;
	}
	return false;
}

/** When the oldest attempt of a list was sent; infinity if the list is empty. */
function sentAt(list: LinkedList<InFlight>): number {
	return list.first?.sentAt ?? Number.POSITIVE_INFINITY;
}
