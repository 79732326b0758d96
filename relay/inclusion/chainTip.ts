// The chain as far as it was worked off: the block loop sets it, everybody else reads it. It follows nothing itself.

import { type Clock, pause } from "../../shared/clock.ts";
import type { Block, NextBlock } from "../domain/chain.ts";
import type { Tip } from "../domain/ports.ts";

/** The head whose inclusions are known, and the block after it. */
export class ChainTip implements Tip {
	#head: Block | null = null;
	#next: NextBlock | null = null;
	readonly #onFirst = new AbortController();

	head(): Block | null {
		return this.#head;
	}

	next(): NextBlock | null {
		return this.#next;
	}

	set(head: Block, next: NextBlock | null): void {
		this.#head = head;
		this.#next = next;
		this.#onFirst.abort();
	}

	/** Resolves once there is a head, or after `ms` milliseconds. */
	first({ clock, ms }: { readonly clock: Clock; readonly ms: number }): Promise<void> {
		return pause(clock, ms, this.#onFirst.signal);
	}
}
