// Which bids one builder has on one target for a block, slot by slot. A slot is sent at most once a second, with the bid that it has
// by then: however often bids change, a target takes no more of a builder's attention than its slots. Pure.

import type { Bid } from "./bid.ts";

/** Between two requests of one slot, in ms. */
const SLOT_MS = 1_000;

interface Slot {
	bid: Bid | null;
	/** Monotonic ms. */
	sentAt: number;
}

/** What a builder is to be told. */
export interface SlotChanges {
	readonly send: readonly Bid[];
	readonly cancel: readonly Bid[];
	/** When there is more to tell it, in monotonic ms; null: nothing. */
	readonly nextAt: number | null;
}

export class HeldSlots {
	readonly #slots: Slot[] = [];

	/**
	 * The builder shall have the bids `wanted`, of different senders and not more than `slots`. What must wait for its slot leaves that
	 * to the bid that has it: an earlier one of its sender, or one that `mayStay`.
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
		// First those that replace a bid of their sender, under its name: else another one could take that slot and cancel the name.
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
