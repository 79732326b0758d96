// Chooses the bids on a target that a builder gets. A builder runs every bundle in its real block
// and keeps those that pay. So the relay only makes sure that enough of them arrive and that nobody
// fills the slots alone. Half of the slots go by record, a quarter by bid, the rest by lot. A
// record is the amount that a bidder's bids have left at that builder. No bidder is penalised.
// Pure.

import { createHmac } from "node:crypto";
import { networkAddress, networkOf } from "../../shared/client.ts";
import { bidderKey } from "../domain/bundleStatus.ts";
import { type Bid, compare } from "./bid.ts";

export interface SlotOptions {
	/** Slots of one target at one builder. */
	readonly slots: number;
	/** The bidder's record at the builder, in wei. */
	readonly recordOf: (bidder: string) => bigint;
	/** The number drawn for a name, between 0 and 1. */
	readonly draw: (name: string) => number;
}

/**
 * Numbers between 0 and 1 for a block and a target, derived from a secret. A name's number depends
 * on nothing else. So it does not change when anybody bids, replaces or withdraws.
 */
export function drawing(secret: Buffer, block: number, target: string): (name: string) => number {
	const known = new Map<string, number>();
	return (name) => {
		const before = known.get(name);
		if (before !== undefined) return before;
		const digest = createHmac("sha256", secret).update(`${block} ${target} ${name}`).digest();
		// 48 bits; never 0, whose logarithm is infinite.
		const drawn = (digest.readUIntBE(0, 6) + 0.5) / 2 ** 48;
		known.set(name, drawn);
		return drawn;
	};
}

/**
 * The bids among `all` (one target's, for one builder) that get a slot, in the order of their
 * slots. By record: drawn among the bidders with a record, each with a chance in proportion to it.
 * By bid: the highest. By lot: a network, then a client in it. A backrun's sender has one slot, and
 * a client one by bid or lot. A slot by record is the bidder's and uses none of its client's, so
 * that no neighbour can take it away.
 */
export function slotsOf(all: readonly Bid[], { slots, recordOf, draw }: SlotOptions): readonly Bid[] {
	const bids = competing(all).sort(compare);
	const senders = new Set<string>();
	const isFree = ({ backrun }: Bid) => !senders.has(backrun.from);
	const taken = (count: number, from: Iterable<Bid>): readonly Bid[] => {
		const some: Bid[] = [];
		for (const bid of from) {
			if (some.length === count) break;
			senders.add(bid.backrun.from);
			some.push(bid);
		}
		return some;
	};

	const withRecord = bids.filter((bid) => recordOf(namesOf(bid).bidder) > 0n);
	// Drawing without replacement in proportion to a weight is sorting by -ln(number) / weight
	// (Efraimidis and Spirakis, https://doi.org/10.1016/j.ipl.2005.11.003).
	const chance = (bidder: string) => -Math.log(draw(`bidder ${bidder}`)) / Number(recordOf(bidder));
	const byRecord = taken(Math.ceil(slots / 2), bestOfEach(inOrder(withRecord, "bidder", chance), isFree));
	const byBid = taken(Math.floor(slots / 4), highest(bids, isFree));
	const clients = new Set(byBid.map((bid) => namesOf(bid).client));
	const left = bids.filter((bid) => !clients.has(namesOf(bid).client));
	const byLot = taken(slots - byRecord.length - byBid.length, drawnByLot(left, draw, isFree));
	return inTurn([byRecord, byLot, byBid]);
}

/**
 * The names of a bid's client and network that numbers are drawn for, and its bidder as in records.
 */
interface Names {
	readonly client: string;
	readonly network: string;
	readonly bidder: string;
}

/** Names never change. Creating them again for each builder would take most of the time. */
const NAMES = new WeakMap<Bid, Names>();

function namesOf(bid: Bid): Names {
	const known = NAMES.get(bid);
	if (known !== undefined) return known;
	const { client, bidder } = bid;
	const names = {
		client: `client ${networkAddress(client)}`,
		network: `network ${networkOf(client)}`,
		bidder: bidderKey(bidder),
	};
	NAMES.set(bid, names);
	return names;
}

/**
 * The bids that compete. If an address itself bids on a target, bids from web pages that a visitor
 * has open there do not.
 */
function competing(bids: readonly Bid[]): Bid[] {
	const own = new Set(bids.map(({ client }) => client).filter((client) => networkAddress(client) === client));
	return bids.filter(({ client }) => own.has(client) || !own.has(networkAddress(client)));
}

/** The highest free bid of each client. */
function* highest(bids: readonly Bid[], isFree: (bid: Bid) => boolean): Generator<Bid> {
	const clients = new Set<string>();
	for (const bid of bids) {
		const { client } = namesOf(bid);
		if (clients.has(client) || !isFree(bid)) continue;
		clients.add(client);
		yield bid;
	}
}

/**
 * A bid of each network, then one of another client of each, and so on. A network's clients are
 * drawn when its turn comes.
 */
function* drawnByLot(
	bids: readonly Bid[],
	draw: SlotOptions["draw"],
	isFree: (bid: Bid) => boolean,
): Generator<Bid> {
	let networks = [...inOrder(bids, "network", draw)].map((own) =>
		bestOfEach(inOrder(own, "client", draw), isFree),
	);
	while (networks.length > 0) {
		const left: typeof networks = [];
		for (const clients of networks) {
			const next = clients.next();
			if (next.done) continue;
			yield next.value;
			left.push(clients);
		}
		networks = left;
	}
}

/** The highest bid of each group that is free when its turn comes. */
function* bestOfEach(groups: Iterable<readonly Bid[]>, isFree: (bid: Bid) => boolean): Generator<Bid> {
	for (const bids of groups) {
		const best = bids.find(isFree);
		if (best !== undefined) yield best;
	}
}

/**
 * The bids of each name, in the order of the names' numbers. Draws nothing before the first is
 * requested.
 */
function* inOrder(
	bids: readonly Bid[],
	kind: keyof Names,
	numberOf: (name: string) => number,
): Generator<readonly Bid[]> {
	const byName = new Map<string, { readonly number: number; readonly own: Bid[] }>();
	for (const bid of bids) {
		const name = namesOf(bid)[kind];
		const known = byName.get(name);
		if (known === undefined) byName.set(name, { number: numberOf(name), own: [bid] });
		else known.own.push(bid);
	}
	for (const { own } of [...byName.values()].sort((one, other) => one.number - other.number)) yield own;
}

/** The first of each list, then the second of each, and so on. */
function inTurn(lists: readonly (readonly Bid[])[]): readonly Bid[] {
	const longest = Math.max(...lists.map(({ length }) => length));
	return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1))).flat();
}
