// Who holds a replacementUuid: bundles and cancels of an owner come in, in the order in which they were sent; what must
// end for them is ended. A bundle takes its place only once it was found good, so it may be overtaken on the way.

/** How a bundle's place was lost before it was taken. */
export type Overtaken = "REPLACED" | "CANCELLED";

/** Ends the bundle that holds a uuid. */
export type EndBundle = (how: Overtaken) => void;

/** A bundle on its way in. */
export interface Ticket {
	/** How the bundle was overtaken by what was sent later under the same uuid; null where it was not. */
	overtaken(): Overtaken | null;
	/** Whether to take the uuid is to end another bundle. */
	replaces(): boolean;
	/** Takes the uuid, ending what held it; nothing happens where the bundle was overtaken. */
	take(end: EndBundle): void;
	/** Gives the uuid back, once the bundle has ended by itself. */
	release(): void;
	/** To be called when its way in is over, whatever came of it. */
	leave(): void;
}

interface Slot {
	/** The last cancel, and the last bundle that ever took it. */
	cancelled: number;
	taken: number;
	holder: { readonly seq: number; readonly end: EndBundle } | null;
	/** Bundles on their way. */
	entering: number;
}

/** Of a bundle without a uuid: nothing can overtake it, and it ends nothing. */
const NO_UUID: Ticket = {
	overtaken: () => null,
	replaces: () => false,
	take() {},
	release() {},
	leave() {},
};

/** The uuids of all owners; one that nothing is known of takes no memory. */
export class UuidSlots {
	readonly #slots = new Map<string, Slot>();
	#seq = 0;

	/** A bundle begins its way in; without a uuid nothing can end it. */
	enter(owner: string, uuid: string | null): Ticket {
		this.#seq += 1;
		const seq = this.#seq;
		if (uuid === null) return NO_UUID;
		const key = JSON.stringify([owner, uuid]);
		const slot = this.#slots.get(key) ?? { cancelled: 0, taken: 0, holder: null, entering: 0 };
		this.#slots.set(key, slot);
		slot.entering += 1;
		const overtaken = (): Overtaken | null => {
			if (slot.cancelled > seq) return "CANCELLED";
			return slot.taken > seq ? "REPLACED" : null;
		};
		return {
			overtaken,
			replaces: () => slot.holder !== null && overtaken() === null,
			take(end) {
				if (overtaken() !== null) return;
				const { holder } = slot;
				slot.holder = { seq, end };
				slot.taken = seq;
				holder?.end("REPLACED");
			},
			release: () => {
				if (slot.holder?.seq === seq) slot.holder = null;
				this.#forget(key, slot);
			},
			leave: () => {
				slot.entering -= 1;
				this.#forget(key, slot);
			},
		};
	}

	/** Ends what holds the uuid, and what was sent under it before and is still on its way. */
	cancel(owner: string, uuid: string): void {
		const key = JSON.stringify([owner, uuid]);
		const slot = this.#slots.get(key);
		if (slot === undefined) return;
		this.#seq += 1;
		slot.cancelled = this.#seq;
		const { holder } = slot;
		slot.holder = null;
		holder?.end("CANCELLED");
		this.#forget(key, slot);
	}

	#forget(key: string, slot: Slot): void {
		if (slot.entering === 0 && slot.holder === null && this.#slots.get(key) === slot) this.#slots.delete(key);
	}
}
