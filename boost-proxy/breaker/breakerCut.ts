// One switch that cuts off many attempts at once: what comes in are listeners, what goes out is one call of each. It
// knows nothing of why.

import type { Cut } from "../domain/breakerPorts.ts";

/** A {@link Cut} with the hand that does it. */
export class CutSwitch implements Cut {
	readonly #listeners = new Set<Once>();
	#isCut = false;

	get isCut(): boolean {
		return this.#isCut;
	}

	onCut(listener: () => void): () => void {
		if (this.#isCut) {
			listener();
			return () => {};
		}
		// A listener that is given twice is called twice.
		const once: Once = { listener };
		this.#listeners.add(once);
		return () => {
			this.#listeners.delete(once);
		};
	}

	/** Calls every listener once, also where one of them throws: the first fault is thrown when all were called. */
	cut(): void {
		if (this.#isCut) return;
		this.#isCut = true;
		const called = [...this.#listeners];
		this.#listeners.clear();
		const faults: unknown[] = [];
		for (const { listener } of called) {
			try {
				listener();
			} catch (thrown) {
				faults.push(thrown);
			}
		}
		if (faults.length > 0) throw faults[0];
	}
}

interface Once {
	readonly listener: () => void;
}
