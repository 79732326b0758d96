// Determines the length of a slot in ms: the operator's setting, else the length that the last 32
// heads show. Their timestamps are whole seconds. So the timestamps give the length of slots of two
// seconds and more, and the arrival times of heads that of shorter slots. Missed slots, bursts of
// blocks, pauses and reorganisations do not change it.

import type { Clock } from "../clock.ts";

/** The length of a slot, as far as it is known now. */
export interface SlotLength {
	/** The time between two blocks, in ms. */
	readonly ms: number;
}

/** A block, with the needed fields of its header. */
export interface SlotHead {
	readonly number: number;
	/** Seconds since the epoch. */
	readonly timestamp: number;
}

/** Ethereum's length, until the chain has shown another one. */
const USUAL_MS = 12_000;
const SHORTEST_MS = 250;
const LONGEST_MS = 30_000;
/** Heads that a length is learnt from. */
const HEADS = 32;
/**
 * A new length takes effect once this many heads in a row have shown it. Including the heads until
 * it shows, that is within 64 blocks.
 */
const PATIENCE = 36;
/** Lengths that differ by less are the same. */
const SAME = 0.05;
/** Meanwhile, the shown length may vary by this part. */
const STEADY = 0.1;
/**
 * The gap that counts is the one below which a third of all gaps are. More than half of the slots
 * may be missed, and blocks may come in bursts.
 */
const QUANTILE = 1 / 3;
/** Minimum number of gaps between timestamps, and between arrivals. Fewer are ignored. */
const ENOUGH = 16;
/** If this part of the gaps is equal, those gaps are the length. */
const MOST = 0.6;
/**
 * Blocks that arrive faster than this are a burst, or the node catches up, if their timestamps are
 * less than two seconds apart. They are ignored. In ms.
 */
const BURST_MS = 100;

interface Seen extends SlotHead {
	/**
	 * Time between the arrivals of the previous block and this one, in ms. Blocks that came at once
	 * share the time equally. Null if the arrival was not observed.
	 */
	readonly afterMs: number | null;
}

export interface SlotsDependencies {
	readonly clock: Clock;
	/** Called when a length was learnt, and when it has changed. */
	readonly onLearnt?: (ms: number) => void;
}

export class Slots implements SlotLength {
	readonly #setMs: number | undefined;
	readonly #clock: Clock;
	readonly #onLearnt: (ms: number) => void;
	/** The last heads, oldest first, without gaps. */
	#seen: readonly Seen[] = [];
	/** When the last one arrived, monotonic. */
	#at = 0;
	#learntMs: number | null = null;
	/** Another length, and the number of the block since which it is shown. */
	#other: { readonly ms: number; readonly since: number } | null = null;

	/** `setMs`: the operator's setting. If it is set, nothing is learnt. */
	constructor(options: { readonly setMs: number | undefined }, dependencies: SlotsDependencies) {
		this.#setMs = options.setMs;
		this.#clock = dependencies.clock;
		this.#onLearnt = dependencies.onLearnt ?? (() => {});
	}

	get ms(): number {
		return this.#setMs ?? this.#learntMs ?? USUAL_MS;
	}

	/**
	 * The increase of timestamps from block to block, in ms: the length of a slot. It is at least a
	 * second if no two of the last blocks have the same timestamp. A chain may demand that each is
	 * later than its parent's.
	 */
	get stepMs(): number {
		const repeats = this.#seen.some(({ timestamp }, i) => timestamp === this.#seen[i + 1]?.timestamp);
		return repeats ? this.ms : Math.max(this.ms, 1_000);
	}

	/**
	 * The numbers of the blocks before `head` that the caller must read and give to {@link came}
	 * with it, lowest first. None if `head` follows the last block, or if nothing is to be learnt.
	 */
	missingBefore({ number }: Pick<SlotHead, "number">): readonly number[] {
		const last = this.#seen.at(-1)?.number ?? -1;
		if (this.#setMs !== undefined || number <= last + 1) return [];
		const first = Math.max(0, number - HEADS + 1, last + 1);
		return Array.from({ length: number - first }, (_, i) => first + i);
	}

	/**
	 * `heads` are the last blocks of the chain now, oldest first: those that {@link missingBefore}
	 * named, then the new ones.
	 */
	came(heads: readonly SlotHead[]): void {
		const first = heads[0];
		const head = heads.at(-1);
		if (first === undefined || head === undefined) return;
		const last = this.#seen.at(-1)?.number ?? null;
		// Blocks that a reorganisation replaced are dropped.
		const kept = this.#seen.filter(({ number }) => number < first.number);
		const joins = kept.at(-1)?.number === first.number - 1;
		const now = this.#clock.monotonic();
		const count = joins && last !== null ? head.number - last : 0;
		const afterMs = count > 0 ? (now - this.#at) / count : null;
		if (!joins || count > 0) this.#at = now;
		this.#seen = joins ? kept : [];
		if (!joins) this.#other = null;
		for (const { number, timestamp } of heads) {
			const isNew = last !== null && number > last;
			this.#seen = [...this.#seen, { number, timestamp, afterMs: isNew ? afterMs : null }].slice(-HEADS);
			if (this.#setMs === undefined && this.#seen.length === HEADS) this.#learn(number, !joins);
		}
	}

	/** The timestamp of the block after `head`, in seconds since the epoch. */
	timestampAfter(head: SlotHead): number {
		const { stepMs } = this;
		// The true time of the head is somewhere in the second of its timestamp. The blocks before it
		// narrow that down.
		let from = head.timestamp * 1_000;
		let until = from + 1_000;
		const at = this.#seen.findLastIndex(
			({ number, timestamp }) => number === head.number && timestamp === head.timestamp,
		);
		for (const { number, timestamp } of this.#seen.slice(0, Math.max(at, 0)).reverse()) {
			const begin = timestamp * 1_000 + (head.number - number) * stepMs;
			// A slot was missed in between.
			if (begin >= until || begin + 1_000 <= from) break;
			from = Math.max(from, begin);
			until = Math.min(until, begin + 1_000);
		}
		return Math.floor(((from + until) / 2 + stepMs) / 1_000);
	}

	/** `isAnew`: so many blocks were missed that only the last ones are known. */
	#learn(number: number, isAnew: boolean): void {
		const ms = lengthOf(this.#seen);
		if (ms === null) return;
		const learnt = this.#learntMs;
		if (learnt !== null && isNear(ms, learnt, SAME)) {
			this.#other = null;
			return;
		}
		if (this.#other === null || !isNear(ms, this.#other.ms, STEADY)) this.#other = { ms, since: number };
		if (learnt !== null && !isAnew && number - this.#other.since < PATIENCE) return;
		this.#other = null;
		this.#learntMs = ms;
		this.#onLearnt(ms);
	}
}

function isNear(one: number, other: number, part: number): boolean {
	return Math.abs(one - other) <= part * other;
}

/** The length that 32 blocks in a row show, in ms; null: none, because they came in a burst. */
function lengthOf(blocks: readonly Seen[]): number | null {
	const gaps: number[] = [];
	const arrivals: number[] = [];
	for (const [i, { timestamp, afterMs }] of blocks.slice(1).entries()) {
		const gap = timestamp - (blocks[i]?.timestamp ?? timestamp);
		if (afterMs !== null && afterMs < BURST_MS && gap <= 1) continue;
		gaps.push(gap);
		if (afterMs !== null) arrivals.push(afterMs);
	}
	if (gaps.length < ENOUGH) return null;
	const usual = quantile(gaps, QUANTILE);
	// Leaves out missed slots, pauses, and short gaps if slots are long.
	const kept = gaps.filter((gap) => Math.abs(gap - usual) <= Math.max(1, usual / 2));
	const equal = gaps.filter((gap) => gap === usual).length;
	if (usual >= 2 && equal >= Math.min(kept.length, MOST * gaps.length)) return bounded(usual * 1_000);
	const byTimestamps = slope(kept) * 1_000;
	if (arrivals.length < ENOUGH) return bounded(byTimestamps);
	const middle = quantile(arrivals, 1 / 2);
	const steady = arrivals.filter((ms) => isNear(ms, middle, 1 / 2));
	const byArrivals = steady.reduce((sum, ms) => sum + ms, 0) / steady.length;
	// Timestamps that rise by one with each block only show that a slot is at most a second, since
	// they must rise.
	const least = usual >= 2 ? byTimestamps * 0.75 : BURST_MS;
	const most = usual >= 2 ? byTimestamps * 1.25 : Math.max(byTimestamps, 1_000) * 1.25;
	if (byArrivals < least || byArrivals > most) return bounded(byTimestamps);
	return bounded(isNear(byArrivals, 1_000, STEADY) ? 1_000 : byArrivals);
}

function bounded(ms: number): number | null {
	if (!(ms >= BURST_MS)) return null;
	return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, Math.round(ms / 10) * 10));
}

/** The value below which `part` of `values` are; NaN if there are none. */
function quantile(values: readonly number[], part: number): number {
	const sorted = values.toSorted((a, b) => a - b);
	return sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
}

/**
 * The slope of the sum of `gaps`, by least squares. Each gap is a whole number, and only their sum
 * is exact.
 */
function slope(gaps: readonly number[]): number {
	const middle = gaps.length / 2;
	let [sum, above, below] = [0, 0, middle * middle];
	for (const [i, gap] of gaps.entries()) {
		sum += gap;
		const from = i + 1 - middle;
		above += from * sum;
		below += from * from;
	}
	return above / below;
}
