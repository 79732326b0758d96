// The height and the announced blocks that clients have received. The height does not fall if the
// next answer comes from a node that is some blocks behind.

import type { Clock } from "../../shared/clock.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import { ReportedHead } from "../../shared/reportedHead.ts";
import type { Block, ChainUpdate } from "../domain/chain.ts";

export interface ReportedChainOptions {
	readonly slot: SlotLength;
}

/**
 * How long the node must be behind before the chain counts as rolled back, in ms; at least a slot.
 */
const BACK_MS = 10_000;
/** Number of remembered announced blocks, the same as in the tracker. */
const KEPT_BLOCKS = 128;

export class ReportedChain {
	readonly #head: ReportedHead;
	/** The hash that was announced for each number, lowest first. */
	readonly #hashes = new Map<number, string>();

	constructor(options: ReportedChainOptions, dependencies: { readonly clock: Clock }) {
		const { slot } = options;
		// Read each time, since a slot's length is learnt.
		const waits = {
			get ownMs() {
				return Math.max(BACK_MS, slot.ms);
			},
			get otherMs() {
				return this.ownMs;
			},
		};
		this.#head = new ReportedHead(waits, dependencies);
	}

	/** The height that clients receive when the node's head is `number`. */
	tell(number: number): number {
		return this.#head.tell(number);
	}

	/**
	 * Applies a change of the chain, and returns the blocks that were not announced to clients yet,
	 * oldest first.
	 */
	onUpdate({ head, reverted, applied, gap }: ChainUpdate): readonly Block[] {
		this.#forget();
		const isBranch = applied.some(({ number, hash }) => (this.#hashes.get(number) ?? hash) !== hash);
		if (isBranch) {
			for (const { number } of [...reverted, ...applied]) this.#hashes.delete(number);
			this.#head.restart(head.number);
		}
		const news = (gap ? [head] : applied).filter(({ number }) => !this.#hashes.has(number));
		for (const { number, hash } of news) this.#hashes.set(number, hash);
		this.#head.tell(head.number);
		return news;
	}

	/** Forgets old blocks, and the blocks above the height after a lasting rollback. */
	#forget(): void {
		const height = this.#head.number ?? 0;
		for (const number of this.#hashes.keys()) {
			if (number > height || number <= height - KEPT_BLOCKS) this.#hashes.delete(number);
		}
	}
}
