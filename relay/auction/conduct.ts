// The rules about bidders' conduct in blocks. Each fact belongs to one block, and a bidder's standing is computed from the
// facts of the canonical chain, so that a reorganisation undoes them. Pure.
//
// - `short`: the bid is in a block behind its target and paid the coinbase, by transfers, over 1 % less than was bid. Its bidder
//   is barred for 32 blocks, each further time for twice as long.
// - `landed`: the bid is in a block and was not short.
// - `lost`: the target is in the block without a bid, or with one that brought less in all (fees included), although every
//   builder that may have made the block had accepted this bid a second before the block's time. Failed, unanswered and late
//   deliveries are no losses. Three losses within 64 blocks with no landed bid between them: the bidder ranks behind all others
//   for 64 blocks.
// - A bar applies to the backrun's sender, the bundle's owner and the called contract. Losses are also counted by client, since
//   new keys cost nothing.

import type { Bar, Bidder, BundleDelivery, Standing } from "../domain/bundleStatus.ts";
import type { DeliveryAnswer } from "../domain/events.ts";

/** What happened to one bid in one block. Stored as JSON, with wei as decimal strings. */
export interface ConductFact {
	readonly kind: "short" | "lost" | "landed";
	readonly bundle: string;
	readonly bidder: Bidder;
	readonly bid: string;
	/** Null if the node can't trace it, and for a lost bid. */
	readonly paid: string | null;
}

/** A fact with its block's number. */
export type DatedFact = ConductFact & { readonly block: number };

/** A bid that was with builders when the block was made. */
export interface RoundBid {
	readonly bundle: string;
	readonly backrun: string;
	readonly bidder: Bidder;
	/** Wei. */
	readonly value: bigint;
	/** The builders' responses for this block. */
	readonly deliveries: readonly Pick<BundleDelivery, "at" | "builder" | "kind" | "answer">[];
}

/** The bids on a target in the block that contains it. */
export interface Round {
	/** The block's own time, by this machine's clock, in ms. */
	readonly time: number;
	/** Builders that may have made the block. */
	readonly makers: readonly string[];
	readonly bids: readonly RoundBid[];
	/** The backrun in the block, with its wei by transfers (null: the node can't trace it) and in all; null: none. */
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
/** A bid that was accepted this long before the block's time was in time, in ms. */
const IN_TIME_MS = 1_000;
/** Blocks for which facts are kept: `short` ones for a week of 12 s slots, the others as long as they can count. */
const KEEP_SHORT_BLOCKS = 50_400;
const KEEP_BLOCKS = 2 * LOSS_BLOCKS + BEHIND_BLOCKS;

/** Answers that mean that the builder does not have what it was sent. */
const NEVER_HAD: ReadonlySet<DeliveryAnswer> = new Set(["failed", "rejected", "unsent"]);

/**
 * The bidder of a backrun; `by` is the sender of its bundle, null when unknown. Creations and transfers to a fixed fee
 * recipient call no contract, so their sender counts instead.
 */
export function bidderOf(
	{ from, to }: { readonly from: string; readonly to: string | null },
	by: { readonly owner: string; readonly network: string } | null,
	feeRecipient: string | undefined,
): Bidder {
	const contract = to === null || to === feeRecipient ? from : to;
	return { owner: by?.owner ?? null, client: by?.network ?? null, sender: from, contract };
}

/** Whether a builder with this answer may have what it was sent. Without an answer it may. */
export function mayHave(answer: DeliveryAnswer | undefined): boolean {
	return answer === undefined || !NEVER_HAD.has(answer);
}

/** The facts that follow from a block. */
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

/** Whether a fact of `block` must still be kept at `head`. */
export function isKept({ kind }: Pick<ConductFact, "kind">, block: number, head: number): boolean {
	return block + (kind === "short" ? KEEP_SHORT_BLOCKS : KEEP_BLOCKS) > head;
}

/** The names under which a bidder's facts are counted; `barred` are those that a bar applies to. */
export function partiesOf(bidder: Bidder): {
	readonly barred: readonly string[];
	readonly all: readonly string[];
} {
	const { owner, client, sender, contract } = bidder;
	const barred = [`sender ${sender}`, `contract ${contract}`, ...(owner === null ? [] : [`owner ${owner}`])];
	return { barred, all: client === null ? barred : [...barred, `client ${client}`] };
}

/** The standing for `block` that follows from `facts`, ordered by block; null: nothing against the bidder. */
export function standingOf(facts: readonly DatedFact[], block: number): Standing | null {
	const bar = barOf(facts);
	const behindUntil = behindOf(facts);
	const current = {
		bar: bar !== null && bar.until >= block ? bar : null,
		behindUntil: behindUntil !== null && behindUntil >= block ? behindUntil : null,
	};
	return current.bar === null && current.behindUntil === null ? null : current;
}

/** The most severe of several standings. */
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
