// A bound on bytes that many share: whoever wants to take some asks, and is called again when others have given back.
// It holds no bytes itself.

/** So many bytes may be taken at a time. */
export class ByteBudget {
	readonly #limit: number;
	readonly #blocked = new Set<() => void>();
	#taken = 0;

	constructor(limitBytes: number) {
		this.#limit = limitBytes;
	}

	/** Takes `bytes`; where they don't fit nothing is taken, and `again` is called once some are given back. */
	take(bytes: number, again: () => void): boolean {
		// More than there can ever be goes alone.
		if (this.#taken > 0 && this.#taken + bytes > this.#limit) {
			this.#blocked.add(again);
			return false;
		}
		this.#taken += bytes;
		return true;
	}

	/** Gives back what was taken. */
	give(bytes: number): void {
		this.#taken -= bytes;
		const blocked = [...this.#blocked];
		this.#blocked.clear();
		for (const again of blocked) again();
	}

	/** Forgets one that waits: it has ended. */
	forget(again: () => void): void {
		this.#blocked.delete(again);
	}
}
