// What bids have paid in blocks, and what follows from it. Trust is earned by paying, and nobody else can take it away: only
// the transaction right behind its target is judged, by what the coinbase got from it by transfers. Each payment belongs to
// its block and goes with it. Pure.
//
// - A payment is short if it is over 1 % less than was bid. Who brought it is barred for 32 blocks, each further time for twice
//   as long: the backrun's sender, the network address and the signer of the bundle. Never a contract, which anybody may call.
// - A sender is proven up to eight times the most that it has paid in full within 7,200 blocks, for the network address or the
//   signer by which that was brought. A short payment that one of these brings later ends the proof. What others bring with the
//   sender's signed backruns, behind targets of their own, proves nothing and ends no proof.

import { networkAddress } from "../../shared/client.ts";
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
/** As long as places in vain can count: see placesHad.ts. */
const LANDING_BLOCKS = 128;
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

/**
 * The names of which a bar counts against a bidder: its own, and for a web page's bid the visitor's address too, or whoever is
 * barred would only have to call himself a page. What a page has done counts against pages alone.
 */
export function heldAgainst(bidder: Bidder): readonly string[] {
	const { client } = bidder;
	const behind = client === null ? null : networkAddress(client);
	return behind === client ? partiesOf(bidder) : [...partiesOf(bidder), `client ${behind}`];
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

/**
 * The highest bid in wei for which a bidder is proven for `block` by its sender's payments, ordered by block; 0: it is not. So a
 * payment proves for one short one at most, whoever brings that.
 */
export function provenBy(payments: readonly DatedPayment[], block: number, by: Bidder): bigint {
	let most = 0n;
	// From the last one on: the short ones behind each are known.
	const short: Bidder[] = [];
	for (const { kind, bidder, paid, block: at } of payments.toReversed()) {
		if (kind === "short") short.push(bidder);
		else if (at + PROOF_BLOCKS >= block && isBroughtBy(bidder, by)) {
			const isOver = short.some((one) => isBroughtBy(one, bidder));
			const upTo = isOver ? 0n : PROOF_TIMES * BigInt(paid ?? 0);
			if (upTo > most) most = upTo;
		}
	}
	return most;
}

/** A bid that landed and was not short. `upTo` is the bid in wei that it counts for; null: what it paid is not known. */
export interface Landing {
	readonly block: number;
	readonly upTo: bigint | null;
}

/** Those among a party's payments that can make up for places that it has had before `block`. */
export function landingsOf(payments: readonly DatedPayment[], block: number): readonly Landing[] {
	const landed = payments.filter((one) => one.kind === "landed" && one.block + LANDING_BLOCKS >= block);
	return landed.map(({ block, paid }) => ({
		block,
		upTo: paid === null ? null : PROOF_TIMES * BigInt(paid),
	}));
}

/** Whether two bids of one sender came from one signer or network address; where these are not known, they may have. */
function isBroughtBy(one: Bidder, other: Bidder): boolean {
	if (one.owner === null || other.owner === null) return true;
	return one.owner === other.owner || one.client === other.client;
}
