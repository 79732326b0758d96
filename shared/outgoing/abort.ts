// Lets the owner of running requests end them.

import { LinkedList } from "../linkedList.ts";
import type { Abort } from "./httpClient.ts";

/** An {@link Abort} that its owner triggers. */
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
		const entry = this.#listeners.add(listener);
		return () => void this.#listeners.remove(entry);
	}

	/** Calls every listener once. */
	abort(): void {
		this.#isAborted = true;
		for (let listener = this.#listeners.shift(); listener !== undefined; listener = this.#listeners.shift()) {
			listener();
		}
	}
}
