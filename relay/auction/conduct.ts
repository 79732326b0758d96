// What bidders did in blocks, and what follows from it. Facts are of one block each; how a bidder stands is worked out
// from those of the canonical chain, so that a reorganisation takes them back with their block. Pure.
//
// The rule, in one place:
// - A bid that is in a block behind its target and brought the coinbase, by transfers, more than 1 % less than was bid is
//   `short`. Whose bid was short is barred, for 32 blocks, and twice as long with each time.
// - A bid that is in a block otherwise has `landed`.
// - A bid has `lost` where its target is in the block, and behind it a bid that brought less in all (fees too) or none,
//   although whoever may have made the block had it in time: all builders that may have had what is in the block have
//   accepted the bid a second before the block's time. A delivery that failed, is unanswered or was late is nobody's loss.
//   Three losses within 64 blocks without landing between: it ranks behind everybody else for 64 blocks, never worse.
// - A bar is on the backrun's sender, the bundle's owner and the called contract; losses are counted for these and for the
//   client too, or one could spread them over keys, which cost nothing.

import type { Bar, Bidder, BundleDelivery, Standing } from "../domain/bundleStatus.ts";
import type { DeliveryAnswer } from "../domain/events.ts";

/** What one bid did in one block. Wei are decimal strings: it is stored. */
export interface ConductFact {
	readonly kind: "short" | "lost" | "landed";
	readonly bundle: string;
	readonly bidder: Bidder;
	readonly bid: string;
	/** Null where the node can't tell, and of a lost one. */
	readonly paid: string | null;
}

/** A fact with its block's number. */
export type DatedFact = ConductFact & { readonly block: number };

/** A bid that was with builders when the block came. */
export interface RoundBid {
	readonly bundle: string;
	readonly backrun: string;
	readonly bidder: Bidder;
	/** Wei. */
	readonly value: bigint;
	/** How builders took it for this block. */
	readonly deliveries: readonly Pick<BundleDelivery, "at" | "builder" | "kind" | "answer">[];
}

/** What a block that holds a target tells of the bids on it. */
export interface Round {
	/** The block's own time, in ms. */
	readonly time: number;
	/** Builders that may have had what is in the block. */
	readonly makers: readonly string[];
	readonly bids: readonly RoundBid[];
	/** The backrun that is in it, with what it brought by transfers (null: the node can't tell) and in all; or null. */
	readonly landed: {
		readonly backrun: string;
		readonly transfers: bigint | null;
		readonly brought: bigint;
	} | null;
}

const BAR_BLOCKS = 32;
const MAX_BAR_BLOCKS = 7_200;
const LOSSES = 3;
const LOSS_BLOCKS = 64;
const BEHIND_BLOCKS = 64;
/** A bid may fall short by a hundredth. */
const SHORT_PERCENT = 99n;
/** A builder has been given time for what it accepted this long before the block's time, in ms. */
const IN_TIME_MS = 1_000;
/** Blocks for which facts are kept: short ones for a week of slots of 12 s, the others while they can count. */
const KEEP_SHORT_BLOCKS = 50_400;
const KEEP_BLOCKS = 2 * LOSS_BLOCKS + BEHIND_BLOCKS;

/** Answers by which a builder surely has not got what it was sent. */
const NEVER_HAD: ReadonlySet<DeliveryAnswer> = new Set(["failed", "rejected", "unsent"]);

/**
 * Who answers for a backrun; `by`: who sent its bundle, null where that is no longer known. A creation calls no contract,
 * and neither does a transfer to the coinbase where that is fixed: they count by their sender.
 */
export function bidderOf(
	{ from, to }: { readonly from: string; readonly to: string | null },
	by: { readonly owner: string; readonly network: string } | null,
	feeRecipient: string | undefined,
): Bidder {
	const contract = to === null || to === feeRecipient ? from : to;
	return { owner: by?.owner ?? null, client: by?.network ?? null, sender: from, contract };
}

/** Whether a builder that answered so may have what it was sent; not heard of (undefined) it may. */
export function mayHave(answer: DeliveryAnswer | undefined): boolean {
	return answer === undefined || !NEVER_HAD.has(answer);
}

/** The facts that a block comes to. */
export function factsOf({ time, makers, bids, landed }: Round): readonly ConductFact[] {
	return bids.flatMap((one): ConductFact[] => {
		const { bundle, bidder, value } = one;
		const about = { bundle, bidder, bid: value.toString() };
		if (one.backrun === landed?.backrun) {
			const { transfers } = landed;
			const isShort = transfers !== null && transfers * 100n < value * SHORT_PERCENT;
			return [{ kind: isShort ? "short" : "landed", ...about, paid: transfers?.toString() ?? null }];
		}
		const hadIt = (name: string) =>
			one.deliveries.some(
				({ kind, builder, answer, at }) =>
					kind === "bundle" && builder === name && answer === "accepted" && at + IN_TIME_MS <= time,
			);
		const hasLost = value > (landed?.brought ?? 0n) && makers.length > 0 && makers.every(hadIt);
		return hasLost ? [{ kind: "lost", ...about, paid: null }] : [];
	});
}

/** Whether a fact of `block` can still count when `head` is the head. */
export function isKept({ kind }: Pick<ConductFact, "kind">, block: number, head: number): boolean {
	return block + (kind === "short" ? KEEP_SHORT_BLOCKS : KEEP_BLOCKS) > head;
}

/** The names under which facts are counted. */
export function partiesOf(bidder: Bidder): {
	readonly barred: readonly string[];
	readonly all: readonly string[];
} {
	const { owner, client, sender, contract } = bidder;
	const barred = [`sender ${sender}`, `contract ${contract}`, ...(owner === null ? [] : [`owner ${owner}`])];
	return { barred, all: client === null ? barred : [...barred, `client ${client}`] };
}

/** How one stands for `block` by its facts, in the order of their blocks; null: as anybody. */
export function standingOf(facts: readonly DatedFact[], block: number): Standing | null {
	const bar = barOf(facts);
	const behindUntil = behindOf(facts);
	const current = {
		bar: bar !== null && bar.until >= block ? bar : null,
		behindUntil: behindUntil !== null && behindUntil >= block ? behindUntil : null,
	};
	return current.bar === null && current.behindUntil === null ? null : current;
}

/** The worst of several. */
export function worst(standings: readonly (Standing | null)[]): Standing | null {
	return standings.reduce((a, b) => {
		if (a === null || b === null) return a ?? b;
		const bar = (a.bar?.until ?? 0) >= (b.bar?.until ?? 0) ? a.bar : b.bar;
		const behind = Math.max(a.behindUntil ?? 0, b.behindUntil ?? 0);
		return { bar, behindUntil: behind === 0 ? null : behind };
	}, null);
}

function barOf(facts: readonly DatedFact[]): Bar | null {
	let worst: Bar | null = null;
	let blocks = BAR_BLOCKS;
	for (const { kind, block, bid, paid } of facts) {
		if (kind !== "short") continue;
		const until = block + blocks;
		blocks = Math.min(2 * blocks, MAX_BAR_BLOCKS);
		if (worst === null || until >= worst.until)
			worst = { until, bid: BigInt(bid), paid: BigInt(paid ?? 0), block };
	}
	return worst;
}

function behindOf(facts: readonly DatedFact[]): number | null {
	let until: number | null = null;
	let losses: number[] = [];
	for (const { kind, block } of facts) {
		if (kind === "lost") losses.push(block);
		else if (kind === "landed") losses = [];
		const first = losses.at(-LOSSES);
		if (first !== undefined && block - first < LOSS_BLOCKS) until = block + BEHIND_BLOCKS;
	}
	return until;
}
