// What bids have paid in blocks, and what follows from it. Trust is earned by paying, and nobody else can take it away: only
// the transaction right behind its target is judged, by what the coinbase got from it by transfers. Each payment belongs to
// its block and goes with it. Pure.
//
// - A payment is short if it is over 1 % less than was bid. Who brought it is barred for 32 blocks, each further time for twice
//   as long: the backrun's sender, the network address and the signer of the bundle. Never a contract, which anybody may call.
// - A sender is proven up to eight times the most that it has paid in full within 7,200 blocks, since its last short payment.

import type { Bar, Bidder } from "../domain/bundleStatus.ts";

/** What a bid paid that is in a block right behind its target. Stored as JSON, with wei as decimal strings. */
export interface Payment {
	readonly kind: "short" | "landed";
	readonly bundle: string;
	readonly bidder: Bidder;
	readonly bid: string;
	/** Null if the node can't trace it: it proves nothing, and nothing is held against it. */
	readonly paid: string | null;
}

/** A payment with its block's number. */
export type DatedPayment = Payment & { readonly block: number };

const BAR_BLOCKS = 32;
const MAX_BAR_BLOCKS = 7_200;
/** A bid may fall short by a hundredth. */
const SHORT_PERCENT = 99n;
const PROOF_TIMES = 8n;
const PROOF_BLOCKS = 7_200;
/** Short payments are kept for a week of 12 s slots, for the doubling of bars. */
const KEEP_SHORT_BLOCKS = 50_400;

/** The payment of a bid of `bid` wei that brought `paid` wei by transfers (null: the node can't trace it). */
export function paymentOf(bundle: string, bidder: Bidder, bid: bigint, paid: bigint | null): Payment {
	const isShort = paid !== null && paid * 100n < bid * SHORT_PERCENT;
	const kind = isShort ? "short" : "landed";
	return { kind, bundle, bidder, bid: bid.toString(), paid: paid?.toString() ?? null };
}

/** Whether a payment in `block` can still count at `head`. */
export function isKept({ kind }: Pick<Payment, "kind">, block: number, head: number): boolean {
	return block + (kind === "short" ? KEEP_SHORT_BLOCKS : PROOF_BLOCKS) > head;
}

/** The names under which a bidder's payments are counted. */
export function partiesOf({ owner, client, sender }: Bidder): readonly string[] {
	const parties = [`sender ${sender}`];
	if (client !== null) parties.push(`client ${client}`);
	if (owner !== null) parties.push(`owner ${owner}`);
	return parties;
}

/** The bar for `block` that follows from a party's payments, ordered by block; null: none. */
export function barOf(payments: readonly DatedPayment[], block: number): Bar | null {
	let bar: Bar | null = null;
	let blocks = BAR_BLOCKS;
	for (const one of payments) {
		if (one.kind !== "short") continue;
		const until = one.block + blocks;
		blocks = Math.min(2 * blocks, MAX_BAR_BLOCKS);
		if (bar === null || until >= bar.until)
			bar = { until, bid: BigInt(one.bid), paid: BigInt(one.paid ?? 0), block: one.block };
	}
	return bar !== null && bar.until >= block ? bar : null;
}

/** The highest bid in wei for which a sender with these payments, ordered by block, is proven for `block`; 0: it is not. */
export function provenBy(payments: readonly DatedPayment[], block: number): bigint {
	const since = payments.findLastIndex(({ kind }) => kind === "short") + 1;
	return payments.slice(since).reduce((most, { paid, block: at }) => {
		const upTo = at + PROOF_BLOCKS >= block ? PROOF_TIMES * BigInt(paid ?? 0) : 0n;
		return upTo > most ? upTo : most;
	}, 0n);
}
