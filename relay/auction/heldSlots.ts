// The bids that one builder has on one target for a block, by slot. Each slot is sent at most once
// a second, with the bid that it holds at that time. However often bids change, a target costs a
// builder no more requests than that. Pure.

import type { Bid } from "./bid.ts";

/** Least time between two requests for one slot, in ms. */
const SLOT_MS = 1_000;

interface Slot {
	bid: Bid | null;
	/** Monotonic ms. */
	sentAt: number;
}

/** The requests to make to a builder. */
export interface SlotChanges {
	readonly send: readonly Bid[];
	readonly cancel: readonly Bid[];
	/** When the next slot may be sent, in monotonic ms; null: no bid waits. */
	readonly nextAt: number | null;
}

export class HeldSlots {
	readonly #slots: Slot[] = [];

	/**
	 * Gives the slots to the bids `wanted`, which have different senders and number at most
	 * `slots`. While a bid waits for its slot, the builder keeps the slot's present bid if that has
	 * the same sender or `mayStay`.
	 */
	update(
		wanted: readonly Bid[],
		{
			slots,
			now,
			mayStay,
		}: { readonly slots: number; readonly now: number; readonly mayStay: (bid: Bid) => boolean },
	): SlotChanges {
		const isWanted = new Set(wanted);
		const send: Bid[] = [];
		const cancel: Bid[] = [];
		const waits: number[] = [];
		const has = new Set(this.#slots.map(({ bid }) => bid));
		const free = new Set(this.#slots.filter(({ bid }) => bid === null || !isWanted.has(bid)));
		const ownOf = ({ backrun }: Bid) => [...free].find((slot) => slot.bid?.backrun.from === backrun.from);
		const fresh = wanted.filter((bid) => !has.has(bid));
		// A bid's name at the builder depends on its sender. Another bid must not take that
		// sender's slot first, and cancel the name.
		const inOrder = [...fresh.filter((bid) => ownOf(bid)), ...fresh.filter((bid) => !ownOf(bid))];
		for (const bid of inOrder) {
			const own = ownOf(bid);
			const isNew = own === undefined && this.#slots.length < slots;
			const slot = own ?? (isNew ? this.#added() : earliest([...free]));
			if (slot === undefined) continue;
			free.delete(slot);
			if (slot.sentAt + SLOT_MS > now) {
				waits.push(slot.sentAt + SLOT_MS);
				if (slot.bid !== null && (own !== undefined || mayStay(slot.bid))) continue;
				if (slot.bid !== null) cancel.push(slot.bid);
				slot.bid = null;
				continue;
			}
			if (slot.bid !== null && own === undefined) cancel.push(slot.bid);
			slot.bid = bid;
			slot.sentAt = now;
			send.push(bid);
		}
		for (const slot of free) {
			if (slot.bid !== null) cancel.push(slot.bid);
			slot.bid = null;
		}
		return { send, cancel, nextAt: waits.length === 0 ? null : Math.min(...waits) };
	}

	#added(): Slot {
		const slot = { bid: null, sentAt: Number.NEGATIVE_INFINITY };
		this.#slots.push(slot);
		return slot;
	}
}

function earliest(slots: readonly Slot[]): Slot | undefined {
	return slots.reduce<Slot | undefined>(
		(first, slot) => (first === undefined || slot.sentAt < first.sentAt ? slot : first),
		undefined,
	);
}
