// The chain as far as it was worked off: the block loop sets it, everybody else reads it. It follows nothing itself.

import type { Block, NextBlock } from "../domain/chain.ts";
import type { Tip } from "../domain/ports.ts";

/** The head whose inclusions are known, and the block after it. */
export class ChainTip implements Tip {
	#head: Block | null = null;
	#next: NextBlock | null = null;

	head(): Block | null {
		return this.#head;
	}

	next(): NextBlock | null {
		return this.#next;
	}

	set(head: Block, next: NextBlock | null): void {
		this.#head = head;
		this.#next = next;
	}
}
