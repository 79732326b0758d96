// What the attempts at one upstream say of it: what comes in is each one's outcome, what goes out is the reason to open
// its breaker, or none. It holds no state but its counts, sets no timer and opens nothing.

import type { Attempted, TripReason } from "../domain/breakerPorts.ts";
import type { Fault, UpstreamName } from "../domain/delivery.ts";

export interface TripRulesOptions {
	/** Whose: our relay says `limited` of a full pool alone, which is about one request. */
	readonly upstream: UpstreamName;
	/** Charged faults in a row, of submissions or of reads, that open it. */
	readonly faults: number;
	/** −32603 for so many different senders within {@link STORM_MS} are a storm; null: never. */
	readonly storm: number | null;
	/** A submission's share of the time in ms: who was given less than half of it is not charged for a time-out. */
	readonly shareMs: number;
}

/** What the rules need to know of an attempt beside its outcome. */
export interface Judged {
	readonly kind: "read" | "submission";
	/** Monotonic ms. */
	readonly sentAt: number;
	/** {@link TripRules.answers} when it was sent. */
	readonly answersBefore: number;
}

/** The window in which senders and answers are counted for a storm, in ms. */
export const STORM_MS = 10_000;

/** The counts of one generation; see `judge` for the rules. */
export class TripRules {
	readonly #options: TripRulesOptions;
	readonly #storm: Storm | null;
	#rows = { read: 0, submission: 0 };
	#answers = 0;

	constructor(options: TripRulesOptions) {
		this.#options = options;
		this.#storm = options.storm === null ? null : new Storm(options.storm);
	}

	/** How many answers came so far, faults in words among them: whoever sees the same number twice knows that none came. */
	get answers(): number {
		return this.#answers;
	}

	/** Whether `outcome` at `now` (monotonic ms) is charged to the upstream. */
	isCharged(outcome: Attempted["outcome"], { kind, sentAt }: Judged, now: number): outcome is Fault {
		switch (outcome) {
			case "answered":
			case "cut":
			case "internal":
			// About that request's size, or its answer's.
			case "tooLarge":
				return false;
			case "limited":
				return this.#options.upstream === "fallback";
			case "timeout":
				// A read may take its time; and where so little was given, our own budget was at its end.
				return kind === "submission" && now - sentAt >= this.#options.shareMs / 2;
			default:
				return true;
		}
	}

	/**
	 * Counts one outcome at `now` (monotonic ms) and answers why the breaker is to open, or null. `isProbation`: it was
	 * closed not long ago, so the first charged fault opens it again.
	 */
	judge(attempted: Attempted, judged: Judged, now: number, isProbation: boolean): TripReason | null {
		const { outcome, sender, own = false } = attempted;
		const { kind } = judged;
		if (outcome === "answered" || outcome === "internal" || outcome === "limited") this.#answers++;
		if (outcome === "answered") {
			this.#rows[kind] = 0;
			if (!own) this.#storm?.countAnswer(now);
			return null;
		}
		// It may be about this transaction alone, so it neither counts in the row nor ends it.
		if (outcome === "internal") {
			return !own && this.#storm?.countInternal(sender, now) === true ? "storm" : null;
		}
		if (!this.isCharged(outcome, judged, now)) return null;
		if (outcome === "refused") return outcome;
		if (outcome === "timeout" && judged.answersBefore === this.#answers) return "silence";
		if (isProbation) return outcome;
		this.#rows[kind]++;
		return this.#rows[kind] >= this.#options.faults ? "faults" : null;
	}

	/** A new generation: what was before it counts no more. */
	reset(): void {
		this.#rows = { read: 0, submission: 0 };
		this.#storm?.clear();
	}
}

/** The window is counted in so many parts. */
const PARTS = 10;
const PART_MS = STORM_MS / PARTS;
/** Senders remembered at most; far more than it takes. */
const MAX_SENDERS = 1_000;

/** −32603 over a sliding window. One sender whose transactions fail is no storm, nor are a few among many answers. */
class Storm {
	readonly #limit: number;
	/** Number of the part that each slot counts; slots are used in turn. */
	readonly #part = new Array<number>(PARTS).fill(-1);
	readonly #all = new Array<number>(PARTS).fill(0);
	readonly #internal = new Array<number>(PARTS).fill(0);
	/** When each sender last had one, the longest ago first. */
	readonly #senders = new Map<string, number>();

	constructor(limit: number) {
		this.#limit = limit;
	}

	countAnswer(now: number): void {
		this.#count(this.#all, now);
	}

	/** Whether it is a storm now. */
	countInternal(sender: string | undefined, now: number): boolean {
		this.#count(this.#all, now);
		this.#count(this.#internal, now);
		if (sender !== undefined) {
			this.#senders.delete(sender);
			this.#senders.set(sender, now);
		}
		for (const [known, at] of this.#senders) {
			if (now - at < STORM_MS && this.#senders.size <= MAX_SENDERS) break;
			this.#senders.delete(known);
		}
		return (
			this.#senders.size >= this.#limit && this.#sum(this.#internal, now) * 2 >= this.#sum(this.#all, now)
		);
	}

	clear(): void {
		this.#part.fill(-1);
		this.#senders.clear();
	}

	#count(counts: number[], now: number): void {
		const part = Math.floor(now / PART_MS);
		const slot = part % PARTS;
		if (this.#part[slot] !== part) {
			this.#part[slot] = part;
			this.#all[slot] = 0;
			this.#internal[slot] = 0;
		}
		counts[slot] = (counts[slot] ?? 0) + 1;
	}

	#sum(counts: readonly number[], now: number): number {
		const oldest = Math.floor(now / PART_MS) - PARTS + 1;
		return counts.reduce((sum, count, slot) => sum + ((this.#part[slot] ?? -1) >= oldest ? count : 0), 0);
	}
}
