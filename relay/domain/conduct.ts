// Derives a builder's conduct towards the transactions of a day from their records. Pure.

import { dayOf } from "../../shared/days.ts";
import type { Delivery, TransactionRecord } from "./record.ts";
import { inclusionOf } from "./refundRow.ts";

/** The counts of a builder's conduct, in transactions. */
export const CONDUCT_COUNTS = [
	/** It was sent them. Those are the sum of the next three. */
	"sent",
	"accepted",
	"refused",
	/** It did not answer. */
	"failed",
	/** They are in blocks with one of its fee recipients, like those of all counts below. */
	"mined",
	/** A backrun that we sent is right behind them. */
	"backrun",
	/** It had accepted a backrun in time, and another transaction that pays is behind them. */
	"otherBackrun",
	/** It had accepted a backrun in time, and nothing that pays is behind them. */
	"noBackrun",
	/** Less than the owed refund was paid. */
	"shortRefunds",
	/** It had acknowledged their cancel in time. */
	"minedAfterCancel",
	/** The public mempool had them while only this builder did. */
	"seenAlone",
	/** Canaries that it accepted. */
	"canaries",
	/** Those canaries that were seen in public, or mined by another builder. */
	"leakedCanaries",
] as const;
export type ConductCount = (typeof CONDUCT_COUNTS)[number];

/** A builder's conduct towards the transactions that arrived on one day. */
export interface Conduct extends Record<ConductCount, number> {
	/** Days since the epoch, UTC. */
	readonly day: number;
	readonly builder: string;
	/** Refunds owed and paid in its blocks, in wei. */
	owed: bigint;
	paid: bigint;
}

export interface ConductTerms {
	/** Names of the builders whose blocks have this coinbase. */
	readonly builtBy: (coinbase: string) => readonly string[];
	/** The account that sends canaries, lower case; null: none. */
	readonly canary: string | null;
}

/**
 * How long before its block was seen a builder must have answered, in ms. A block is fixed some
 * seconds before this relay sees it, so a later answer says nothing about the block.
 */
export const IN_TIME_MS = 4_000;

export function noConduct(day: number, builder: string): Conduct {
	// A literal, since each mined transaction makes one for each builder.
	return {
		day,
		builder,
		sent: 0,
		accepted: 0,
		refused: 0,
		failed: 0,
		mined: 0,
		backrun: 0,
		otherBackrun: 0,
		noBackrun: 0,
		shortRefunds: 0,
		minedAfterCancel: 0,
		seenAlone: 0,
		canaries: 0,
		leakedCanaries: 0,
		owed: 0n,
		paid: 0n,
	};
}

/** Adds the counts and sums of `other`. */
export function addConduct(to: Conduct, other: Conduct): void {
	for (const name of CONDUCT_COUNTS) to[name] += other[name];
	to.owed += other.owed;
	to.paid += other.paid;
}

/** The conduct towards one transaction, as its record shows it now, of each builder that had it. */
export function conductOf(record: TransactionRecord, terms: ConductTerms): readonly Conduct[] {
	const day = dayOf(record.receivedAt);
	/** The best answer of each builder. */
	const best = new Map<string, "accepted" | "refused" | "failed">();
	for (const delivery of record.deliveries) {
		const { builder, answer } = delivery;
		if (!isSend(delivery) || best.get(builder) === "accepted") continue;
		if (answer === "accepted") best.set(builder, "accepted");
		else if (answer === "rejected") best.set(builder, "refused");
		else if (!best.has(builder)) best.set(builder, "failed");
	}
	return Array.from(best, ([builder, answer]) => {
		const one = noConduct(day, builder);
		if (record.from === terms.canary) {
			if (answer !== "accepted") return one;
			one.canaries = 1;
			one.leakedCanaries = isLeaked(record, builder, terms) ? 1 : 0;
			return one;
		}
		one.sent = 1;
		one[answer] = 1;
		if (record.events.some((event) => event.type === "seenInPublic" && event.alone === builder))
			one.seenAlone = 1;
		addBlock(one, record, terms);
		return one;
	});
}

/** Adds what its block shows, if the builder made that. */
function addBlock(one: Conduct, record: TransactionRecord, { builtBy }: ConductTerms): void {
	const { events, deliveries } = record;
	const included = inclusionOf(record);
	if (included?.coinbase === undefined || !builtBy(included.coinbase).includes(one.builder)) return;
	one.mined = 1;
	const since = events.slice(events.lastIndexOf(included) + 1);
	const refunded = since.findLast((event) => event.type === "refunded");
	const leftOut = since.findLast((event) => event.type === "backrunLeftOut");
	if (refunded !== undefined) {
		one.backrun = 1;
		one.owed = BigInt(refunded.owed);
		one.paid = BigInt(refunded.paid);
		one.shortRefunds = one.paid < one.owed ? 1 : 0;
	} else if (leftOut?.builders.includes(one.builder)) one[leftOut.isOther ? "otherBackrun" : "noBackrun"] = 1;
	const own = deliveries.filter(({ builder }) => builder === one.builder);
	const lastSend = own.findLast(isSend)?.at ?? 0;
	const isCancelled = own.some(
		({ kind, backrun, answer, at }) =>
			kind === "cancel" &&
			backrun !== true &&
			answer === "accepted" &&
			at >= lastSend &&
			at + IN_TIME_MS <= included.at,
	);
	// Anybody may mine what is public.
	if (isCancelled && record.seenAt === null && record.exposed === null) one.minedAfterCancel = 1;
}

/**
 * Whether a canary got out. A block with a coinbase of no known builder shows nothing: some
 * builders give the proposer's address.
 */
function isLeaked(record: TransactionRecord, builder: string, { builtBy }: ConductTerms): boolean {
	if (record.seenAt !== null) return true;
	const coinbase = inclusionOf(record)?.coinbase;
	const makers = coinbase === undefined ? [] : builtBy(coinbase);
	return makers.length > 0 && !makers.includes(builder);
}

function isSend({ kind, answer }: Delivery): boolean {
	return kind !== "cancel" && answer !== "unsent";
}
