// What clients were told of the chain: its height, the blocks that were announced, and receipts. Behind a load balancer the next
// answer may come from a node that does not have them yet: that is an error then, and never a lower number, null or [].

import type { Clock } from "../../shared/clock.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import { recentlyUsed } from "../../shared/recentlyUsed.ts";
import { ToldHead } from "../../shared/toldHead.ts";
import type { Block, ChainUpdate } from "../domain/chain.ts";

export interface ToldChainOptions {
	readonly slot: SlotLength;
}

/** How long the node must be behind until the chain is taken to have gone back, in ms; at least a slot. */
const BACK_MS = 10_000;
/** Announced blocks that are remembered, as the tracker does. */
const KEPT_BLOCKS = 128;
const KEPT_RECEIPTS = 10_000;

export class ToldChain {
	readonly #head: ToldHead;
	/** The hash that was announced for each number, lowest first. */
	readonly #hashes = new Map<number, string>();
	/** Transactions whose receipts were told. */
	readonly #receipts = recentlyUsed<true>(KEPT_RECEIPTS);

	constructor(options: ToldChainOptions, dependencies: { readonly clock: Clock }) {
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
		this.#head = new ToldHead(waits, dependencies);
	}

	/** The highest number that clients were told; null if none. */
	get height(): number | null {
		return this.#head.number;
	}

	/** What clients are told where the node's head is `number`. */
	tell(number: number): number {
		return this.#head.tell(number);
	}

	/** Takes a change of the chain, and returns the blocks that clients have not been told yet, oldest first. */
	onUpdate({ head, reverted, applied, gap }: ChainUpdate): readonly Block[] {
		this.#forget();
		const isBranch = applied.some(({ number, hash }) => (this.#hashes.get(number) ?? hash) !== hash);
		if (isBranch) {
			for (const { number } of [...reverted, ...applied]) this.#hashes.delete(number);
			this.#receipts.clear();
			this.#head.restart(head.number);
		}
		const news = (gap ? [head] : applied).filter(({ number }) => !this.#hashes.has(number));
		for (const { number, hash } of news) this.#hashes.set(number, hash);
		this.#head.tell(head.number);
		return news;
	}

	/** Forgets old blocks, and those of a chain that went back for good. */
	#forget(): void {
		const height = this.height ?? 0;
		for (const number of this.#hashes.keys()) {
			if (number > height || number <= height - KEPT_BLOCKS) this.#hashes.delete(number);
		}
	}

	/** Whether clients know of the block with this number (0x hex) or hash. */
	hasBlock(reference: string): boolean {
		const height = this.height;
		if (height === null) return false;
		if (reference.length === 66) {
			const hash = reference.toLowerCase();
			for (const [number, announced] of this.#hashes) if (announced === hash) return number <= height;
			return false;
		}
		const number = parseNodeQuantity(reference);
		return number !== null && number <= BigInt(height);
	}

	/** Whether it is one of the last blocks that clients know of, which a node may lack that is behind. */
	hasRecent(reference: string): boolean {
		if (!this.hasBlock(reference)) return false;
		return reference.length === 66 || Number(reference) > (this.height ?? 0) - KEPT_BLOCKS;
	}

	receiptWasTold(hash: string): void {
		this.#receipts.set(hash, true);
	}

	hasReceipt(hash: string): boolean {
		return this.#receipts.has(hash);
	}
}
