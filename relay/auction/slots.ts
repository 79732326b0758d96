// Which bids on a target a builder gets. A builder runs every bundle in its real block and keeps what pays, so the relay only has
// to see that enough of them get there and that nobody fills the slots alone. Half of the slots go by record (what a bidder's bids
// have left at that builder), a quarter by bid, the rest by lot. Nothing is held against anybody. Pure.

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
 * Numbers between 0 and 1 for a block and a target, from a secret: a name's number follows from these alone, so that nobody's
 * changes with what others, or it itself, bid, replace or withdraw.
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
 * The bids among `all` (one target's, for one builder) that get a slot, in the order of their slots. By record: drawn among the
 * bidders with a record, each with a chance in proportion to it. By bid: the highest. By lot: a network, then a client in it. A
 * backrun's sender has one slot, and a client one by bid or lot; one by record is the bidder's and uses up none of its client's,
 * so that no neighbour can take it away.
 */
export function slotsOf(all: readonly Bid[], { slots, recordOf, draw: drawn }: SlotOptions): readonly Bid[] {
	const bids = competing(all).sort(compare);
	// Where there is room for all, nothing has to be drawn.
	const draw = bids.length > slots ? drawn : () => 0.5;
	const senders = new Set<string>();
	const clients = new Set<string>();
	const isFree = ({ backrun }: Bid) => !senders.has(backrun.from);
	const take = (bid: Bid): Bid => {
		senders.add(bid.backrun.from);
		return bid;
	};

	const byRecord: Bid[] = [];
	for (const own of drawnByRecord(bids, { recordOf, draw })) {
		if (byRecord.length === Math.ceil(slots / 2)) break;
		const best = own.find(isFree);
		if (best !== undefined) byRecord.push(take(best));
	}

	const byBid: Bid[] = [];
	for (const bid of bids) {
		if (byBid.length === Math.floor(slots / 4)) break;
		const client = networkAddress(bid.client);
		if (clients.has(client) || !isFree(bid)) continue;
		clients.add(client);
		byBid.push(take(bid));
	}

	const byLot: Bid[] = [];
	const left = bids.filter(({ client }) => !clients.has(networkAddress(client)));
	const networks = drawnByLot(left, draw);
	for (let isMore = true; isMore; ) {
		isMore = false;
		for (const waiting of networks) {
			if (byRecord.length + byBid.length + byLot.length === slots) return inTurn([byRecord, byLot, byBid]);
			const next = waiting.findIndex((own) => own.some(isFree));
			const best = waiting.splice(0, next < 0 ? waiting.length : next + 1)[next]?.find(isFree);
			if (best === undefined) continue;
			byLot.push(take(best));
			isMore = true;
		}
	}
	return inTurn([byRecord, byLot, byBid]);
}

/** The bids that compete: of an address that bids on a target itself, no web page's that a visitor has open there. */
function competing(bids: readonly Bid[]): Bid[] {
	const own = new Set(bids.map(({ client }) => client).filter((client) => networkAddress(client) === client));
	return bids.filter(({ client }) => own.has(client) || !own.has(networkAddress(client)));
}

/**
 * The bids of each bidder with a record, those of the first one drawn first. Drawing without replacement in proportion to a weight
 * is sorting by -ln(number) / weight (Efraimidis and Spirakis, https://doi.org/10.1016/j.ipl.2005.11.003).
 */
function drawnByRecord(
	bids: readonly Bid[],
	{ recordOf, draw }: Pick<SlotOptions, "recordOf" | "draw">,
): readonly (readonly Bid[])[] {
	const own = [...grouped(bids, ({ bidder }) => bidderKey(bidder))].flatMap(([name, bids]) => {
		const record = recordOf(name);
		return record > 0n ? [{ bids, number: -Math.log(draw(`bidder ${name}`)) / Number(record) }] : [];
	});
	return own.sort((one, other) => one.number - other.number).map(({ bids }) => bids);
}

/** The networks in the order of their numbers: of each its clients in the order of theirs, with the bids of each. */
function drawnByLot(bids: readonly Bid[], draw: SlotOptions["draw"]): readonly (readonly Bid[])[][] {
	const clients = grouped(bids, ({ client }) => networkAddress(client));
	const networks = [...grouped([...clients], ([client]) => networkOf(client))];
	const inOrder = networks.sort(([one], [other]) => draw(`network ${one}`) - draw(`network ${other}`));
	return inOrder.map(([, own]) =>
		own.sort(([one], [other]) => draw(`client ${one}`) - draw(`client ${other}`)).map(([, bids]) => bids),
	);
}

/** The first of each list, then the second of each, and so on. */
function inTurn(lists: readonly (readonly Bid[])[]): readonly Bid[] {
	const longest = Math.max(...lists.map(({ length }) => length));
	return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1))).flat();
}

function grouped<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
	const groups = new Map<string, T[]>();
	for (const one of all) {
		const key = keyOf(one);
		const group = groups.get(key);
		if (group === undefined) groups.set(key, [one]);
		else group.push(one);
	}
	return groups;
}
