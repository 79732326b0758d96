// The rule by which bids get places at builders. Pure.

import { networkAddress } from "../../shared/client.ts";
import { type Bid, compare } from "./bid.ts";

export interface PlacesOptions {
	/** Most bids of one target at one builder. */
	readonly places: number;
	/** Names of the refunding builders that have the target. */
	readonly buildersOf: (target: string) => readonly string[];
	/** The highest bid in wei for which the bid's sender is proven by what it has paid; 0: it is not. */
	readonly provenUpTo: (bid: Bid) => bigint;
	/** Whether its bidder is spent, unless it is proven. */
	readonly isSpent: (bid: Bid) => boolean;
}

/** The bids that compete: of an address that bids on a target itself, no web page's that a visitor has open there. */
function competing(bids: readonly Bid[]): readonly Bid[] {
	const own = new Set<string>();
	for (const { target, client } of bids) if (!isPage(client)) own.add(`${target} ${client}`);
	return bids.filter(
		({ target, client }) => !isPage(client) || !own.has(`${target} ${networkAddress(client)}`),
	);
}

function isPage(client: string): boolean {
	return networkAddress(client) !== client;
}

/** The builders that shall have a bid. */
export interface Award {
	readonly builders: readonly string[];
	/** Whether it is the dearest of its target at one of them. */
	readonly isBest: boolean;
}

/**
 * The bids that are with each builder. The first place of a target is the dearest proven bid's; the others go by the bid alone,
 * those of spent bidders last. A network address has one place of a target, and so has a backrun's sender. A builder gets a
 * sender's nonce from a client once: of two targets whose bids share one, the bid that is placed first keeps it.
 */
export function placesOf(
	all: readonly Bid[],
	{ places, buildersOf, provenUpTo, isSpent }: PlacesOptions,
): ReadonlyMap<Bid, Award> {
	const bids = competing(all);
	const proven = bids.filter((bid) => bid.value <= provenUpTo(bid)).sort(compare);
	const known = new Set(proven);
	const others = bids.filter((bid) => !known.has(bid));
	const spent = new Set(others.filter(isSpent));
	// Of equal bids a proven one goes first: it may be the same backrun, which somebody else has brought too.
	const inOrder = (a: Bid, b: Bid) =>
		a.value === b.value && known.has(a) !== known.has(b) ? (known.has(a) ? -1 : 1) : compare(a, b);
	const unspent = bids.filter((bid) => !spent.has(bid)).sort(inOrder);
	const last = [...spent].sort(compare);
	const targets = new Set(bids.map(({ target }) => target));
	const buildersAt = new Map([...targets].map((target) => [target, buildersOf(target)]));
	const claims = new Map(bids.map((bid) => [bid, claimsOf(bid)]));
	const placed = new Map<Bid, { builders: string[]; isBest: boolean }>();
	for (const name of new Set([...buildersAt.values()].flat())) {
		const taken = new Set<string>();
		const byTarget = new Map<string, Bid[]>();
		for (const [from, most] of [
			[proven, 1],
			[unspent, places],
			[last, places],
		] as const) {
			for (const bid of from) {
				const { target, builders } = bid;
				const its = byTarget.get(target) ?? [];
				const isFor = buildersAt.get(target)?.includes(name) === true && builders?.includes(name) !== false;
				if (its.length >= most || !isFor) continue;
				const own = claims.get(bid) ?? [];
				if (own.some((claim) => taken.has(claim))) continue;
				for (const claim of own) taken.add(claim);
				its.push(bid);
				byTarget.set(target, its);
			}
		}
		for (const its of byTarget.values()) {
			const best = its.reduce((high, bid) => (inOrder(bid, high) < 0 ? bid : high));
			for (const bid of its) {
				const award = placed.get(bid) ?? { builders: [], isBest: false };
				award.builders.push(name);
				award.isBest ||= bid === best;
				placed.set(bid, award);
			}
		}
	}
	return placed;
}

/**
 * What only one bid at a builder can have. Whoever says that a web page sends his bid gets no second place for that. A nonce is
 * the client's: who has another's signed backrun may bring it behind a target of his own, where it seems to pay more.
 */
function claimsOf({ target, client, backrun: { from, nonce } }: Bid): readonly string[] {
	return [
		`nonce ${client} ${from} ${nonce}`,
		`client ${target} ${networkAddress(client)}`,
		`sender ${target} ${from}`,
	];
}
