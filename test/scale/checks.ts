// The rules for a cluster that hold whatever happens to it, read from the answers to users and
// searchers, the builder's record, the terms of the lease and the chain. Each violation is reported
// in words.

import type { BuiltBlock } from "../devnet/blockMaker.ts";
import type { FaultRecord } from "./faults.ts";
import type { BuilderCall } from "./scaleWorld.ts";
import type { Connection } from "./searchers.ts";
import type { Term } from "./terms.ts";
import type { Submitted } from "./wallets.ts";

/** All that was taken down. */
export interface Evidence {
	readonly submitted: readonly Submitted[];
	readonly connections: readonly Connection[];
	readonly calls: readonly BuilderCall[];
	readonly terms: readonly Term[];
	readonly blocks: readonly BuiltBlock[];
	readonly minedAt: ReadonlyMap<string, number>;
	readonly faults: readonly FaultRecord[];
	/** When each relay answered /readyz well, by its name. */
	readonly readyTimes: ReadonlyMap<string, readonly { readonly from: number; readonly to: number | null }[]>;
	/** Processes that ended, and when, in Unix ms. */
	readonly ends: readonly { readonly process: string; readonly at: number }[];
	/** Unix ms of the end. */
	readonly end: number;
}

/**
 * A request that was sent at a moment may reach the builder so much later, in ms: it is one
 * request.
 */
const ON_ITS_WAY_MS = 300;
/** Searchers are shown a transaction within so much of each other, in ms. */
const TOGETHER_MS = 1_000;
/**
 * A process may close its websockets so long before it ends, and its clients may notice its end so
 * much later, in ms.
 */
const [DRAIN_MS, HEARD_MS] = [8_000, 1_000];
/** Around it nothing may have happened to a connection that is judged, in ms. */
const CALM_MS = 1_500;
const MOST_SHOWN = 5;
const SENDS = /^(eth_send|mev_send)/;

/** Unix ms as a time of day, to compare with logs. */
export function timeOf(ms: number): string {
	return new Date(ms).toISOString().slice(11, 23);
}

/** All that does not hold. */
export function violationsOf(evidence: Evidence): readonly string[] {
	return [
		...lostOf(evidence),
		...sendersOf(evidence),
		...endedOf(evidence),
		...verdictsOf(evidence),
		...twiceOf(evidence),
		...apartOf(evidence),
		...brokenOf(evidence),
	];
}

/**
 * Acknowledged transactions are mined, unless their user ended them, or a nonce before them was
 * never used.
 */
function lostOf(evidence: Pick<Evidence, "submitted" | "minedAt">): readonly string[] {
	return told("acknowledged and not mined", openOf(evidence), describe);
}

/** Transactions that were acknowledged and must be mined, and are not. */
export function openOf({
	submitted,
	minedAt,
}: Pick<Evidence, "submitted" | "minedAt">): readonly Submitted[] {
	const mined = new Map<string, Set<number>>();
	for (const { hash, from, nonce } of submitted) {
		if (minedAt.has(hash)) mined.set(from, (mined.get(from) ?? new Set()).add(nonce));
	}
	return submitted.filter(({ ackedAt, ending, hash, from, nonce }) => {
		if (ackedAt === null || ending !== null || minedAt.has(hash)) return false;
		const before = Array.from({ length: nonce }, (_, i) => i);
		return before.every((one) => mined.get(from)?.has(one) === true);
	});
}

/**
 * A process sends for the term that it has: nothing once a later one has begun, but for what is on
 * its way.
 */
function sendersOf({ calls, terms }: Evidence): readonly string[] {
	const found = calls.flatMap((call) => {
		if (!isSend(call)) return [];
		const own = terms.findLast(({ process }) => process === call.process);
		if (own === undefined || call.at < own.from) return [`${at(call)} without ever having had the lease`];
		const next = terms.find(({ epoch }) => epoch > own.epoch);
		if (next === undefined || call.at <= next.from + ON_ITS_WAY_MS) return [];
		return [`${at(call)} ${call.at - next.from} ms after ${next.process} had taken term ${next.epoch}`];
	});
	return told("sent to the builder by one that had not the lease", found, (text) => text);
}

/** Boost's answer to a cancel that it can't forward yet; asked again it returns true. */
const TAKEN_BACK_LATER = /cancels it there as soon as possible/;

/**
 * A cancelled or replaced transaction is not sent once its user knows its end, unless an answer
 * said that it may be for a while.
 */
function endedOf({ submitted, calls }: Evidence): readonly string[] {
	const sends = calls.filter(isSend);
	const byRaw = new Map<string, BuilderCall[]>();
	for (const call of sends) {
		for (const raw of call.text.match(/0x[0-9a-f]{100,}/g) ?? []) {
			const known = byRaw.get(raw);
			if (known === undefined) byRaw.set(raw, [call]);
			else known.push(call);
		}
	}
	const found = submitted.flatMap((one) => {
		const ackedAt = one.ending?.ackedAt ?? null;
		const isLater = one.answers.some(({ error }) => TAKEN_BACK_LATER.test(error?.message ?? ""));
		if (ackedAt === null || isLater) return [];
		const late = (byRaw.get(one.raw) ?? []).filter((call) => call.at > ackedAt + ON_ITS_WAY_MS);
		const [first] = late;
		return first === undefined ? [] : [`${describe(one)}: ${late.length} times, first ${at(first)}`];
	});
	return told("sent though its end was acknowledged", found, (text) => text);
}

/**
 * A sound transaction is never refused for good, and no cancel of a pending transaction returns
 * that it is unknown.
 */
function verdictsOf({ submitted, minedAt }: Evidence): readonly string[] {
	const refused = submitted.filter(({ ackedAt, answers }) => {
		return ackedAt === null && answers.some(({ error }) => error !== undefined && error.code !== -32_603);
	});
	const wrong = submitted.filter(({ answers, hash }) => {
		return answers.some(({ result }) => typeof result === "string" && result !== hash);
	});
	const unknown = submitted.filter(({ notFoundAt, hash }) => {
		return notFoundAt !== null && (minedAt.get(hash) ?? Number.POSITIVE_INFINITY) > notFoundAt + TOGETHER_MS;
	});
	return [
		...told("sound and refused", refused, describe),
		...told("answered with another hash", wrong, describe),
		...told("acknowledged, and unknown to a cancel while pending", unknown, describe),
	];
}

/** No connection is shown a transaction twice. */
function twiceOf({ connections }: Evidence): readonly string[] {
	const found = connections.flatMap(({ relay, since, shown }) =>
		[...shown].flatMap(([hash, times]) =>
			times.length === 1
				? []
				: [`${hash} on a websocket of ${relay} since ${timeOf(since)}: ${times.map(timeOf).join(", ")}`],
		),
	);
	return told("shown twice on one connection", found, (text) => text);
}

/** Connections that nothing happened to are shown the same within a second. */
function apartOf(evidence: Evidence): readonly string[] {
	const late = judgedOf(evidence).filter(({ ms }) => ms === null || ms > TOGETHER_MS);
	return told("not shown within a second of the others", late, ({ hash, relay, first, ms }) => {
		return `${hash}, first shown ${timeOf(first)}: ${ms === null ? "never" : `${ms} ms later`} on a websocket of ${relay}`;
	});
}

/** How much later than the first one a connection was shown a transaction. */
interface Shown {
	readonly hash: string;
	readonly relay: string;
	/** When any connection was shown it, in Unix ms. */
	readonly first: number;
	/** Null: never. */
	readonly ms: number | null;
}

/**
 * Transactions that were shown while nothing happened to the core, on each connection to which
 * nothing happened either.
 */
export function judgedOf(evidence: Evidence): readonly Shown[] {
	const { connections, end } = evidence;
	const firsts = new Map<string, number>();
	for (const { shown } of connections) {
		for (const [hash, [time = 0]] of shown) firsts.set(hash, Math.min(time, firsts.get(hash) ?? time));
	}
	return [...firsts].flatMap(([hash, first]) => {
		const [from, to] = [first - CALM_MS, first + CALM_MS];
		if (to > end || !isCalm(evidence, from, to)) return [];
		return connections.flatMap(({ relay, since, endedAt, shown }) => {
			if (since > from || (endedAt ?? end) < to || !isWell(evidence, relay, from, to)) return [];
			const own = shown.get(hash)?.[0];
			return [{ hash, relay, first, ms: own === undefined ? null : own - first }];
		});
	});
}

/** A websocket ends with its relay's process, and with nobody else's. */
function brokenOf({ connections, ends, end }: Evidence): readonly string[] {
	const found = connections.flatMap(({ relay, since, endedAt, end: why }) => {
		if (endedAt === null || endedAt > end) return [];
		const isOwn = ends.some(({ process, at: ended }) => {
			return relayOf(process) === relay && ended > endedAt - HEARD_MS && ended < endedAt + DRAIN_MS;
		});
		return isOwn ? [] : [`a websocket of ${relay} since ${timeOf(since)} ended ${timeOf(endedAt)}: ${why}`];
	});
	return told("broken though its relay lived", found, (text) => text);
}

/** Whether the core stood the same and untouched, and no fault of the database began. */
function isCalm(evidence: Evidence, from: number, to: number): boolean {
	const core = evidence.terms.findLast(({ from: begun }) => begun <= from);
	if (core === undefined || evidence.terms.some((term) => term.from > from && term.from < to)) return false;
	return isWell(evidence, relayOf(core.process), from, to);
}

/** Whether a relay was ready and nothing was done to it. */
function isWell({ faults, readyTimes }: Evidence, relay: string, from: number, to: number): boolean {
	const wasReady = (readyTimes.get(relay) ?? []).some((one) => {
		return one.from <= from && (one.to ?? Number.POSITIVE_INFINITY) >= to;
	});
	const isTouched = faults.some((fault) => {
		const touches = fault.target === relay || (fault.kind.startsWith("core") && fault.role !== "edge");
		return touches && fault.from <= to && (fault.to ?? Number.POSITIVE_INFINITY) >= from;
	});
	return wasReady && !isTouched;
}

/** A refund that a block paid. The status of its target must report it once. */
export interface PaidRefund {
	readonly target: string;
	readonly backrun: string;
	readonly wei: bigint;
}

/**
 * Refunds that the builder paid, as its blocks have them; where one was due and not paid, in words.
 */
export function refundsOf({ blocks }: Evidence): {
	readonly paid: readonly PaidRefund[];
	readonly unpaid: readonly string[];
} {
	const paid: PaidRefund[] = [];
	const unpaid: string[] = [];
	for (const { orders, number } of blocks) {
		for (const { kind, hashes, refunds } of orders) {
			const [target, backrun] = hashes;
			if (kind !== "bundle" || target === undefined || backrun === undefined) continue;
			const [refund] = refunds;
			if (refund?.hash == null)
				unpaid.push(`${backrun} behind ${target} in block ${number}: ${refund?.skipped ?? "none asked for"}`);
			else paid.push({ target, backrun, wei: refund.amount });
		}
	}
	return { paid, unpaid: told("bid that was mined without a refund", unpaid, (text) => text) };
}

/** The relay that a process is a life of. */
function relayOf(process: string): string {
	return process.split(".")[0] ?? "";
}

function isSend({ method, text }: BuilderCall): boolean {
	// An empty bundle is a cancel.
	return SENDS.test(method) && /0x[0-9a-f]{100,}/.test(text);
}

function at({ at: time, process, method }: BuilderCall): string {
	return `${timeOf(time)} ${method} by ${process}`;
}

/** A transaction with what its user was answered. */
export function describe({ hash, path, nonce, from, ackedAt, ending, answers }: Submitted): string {
	const said = answers.slice(-4).map(({ at: time, by, result, error, fault }) => {
		return `${timeOf(time)} ${by}: ${fault ?? JSON.stringify(error ?? result)}`;
	});
	const acked = ackedAt === null ? "never acknowledged" : `acknowledged ${timeOf(ackedAt)}`;
	const ended =
		ending === null
			? ""
			: `, ${ending.kind} acknowledged ${ending.ackedAt === null ? "never" : timeOf(ending.ackedAt)}`;
	return `${hash} of ${from} nonce ${nonce} on ${path}, ${acked}${ended} [${said.join(" | ")}]`;
}

/** The first of those found, and their number. */
export function told<T>(what: string, found: readonly T[], text: (one: T) => string): readonly string[] {
	if (found.length === 0) return [];
	return [`${found.length} × ${what}:\n    ${found.slice(0, MOST_SHOWN).map(text).join("\n    ")}`];
}
