// The chain as the relay sees it: headers, account states, updates, the tip, and the time for
// stored records.

import { type Clock, pause } from "../../shared/clock.ts";
import type { Fork, ForkAt } from "../../shared/ethereum/forks.ts";

/** The header fields that the relay needs. */
export interface Header {
	readonly number: number;
	readonly hash: string;
	readonly parentHash: string;
	/** Seconds since the epoch. */
	readonly timestamp: number;
	readonly gasLimit: bigint;
	readonly gasUsed: bigint;
	/** Wei per gas. */
	readonly baseFee: bigint;
	readonly excessBlobGas: bigint;
	readonly blobGasUsed: bigint;
	readonly miner: string;
	/** The newest fork that its fields show; absent if they show none of those that are known. */
	readonly shownFork?: Fork;
}

// Stored records are stamped with the later of the machine's and the chain's time. Their age is
// measured by the earlier one, so that a record expires only if it is old by both clocks.

/** The later of the machine's time `now` and the head's, in ms: for a stamp. */
export function laterTime(now: number, head: Pick<Header, "timestamp"> | null): number {
	return Math.max(now, (head?.timestamp ?? 0) * 1000);
}

/**
 * The earlier of the machine's time `now` and the head's, in ms: for judging how old a stamp is.
 */
export function earlierTime(now: number, head: Pick<Header, "timestamp">): number {
	return Math.min(now, head.timestamp * 1000);
}

/** A block of the canonical chain. */
export interface Block extends Header {
	/** Hash and sender of each transaction, in order. */
	readonly transactions: readonly { readonly hash: string; readonly from: string }[];
	/**
	 * The addresses whose nonces it may have changed: senders and EIP-7702 authorities, lower case.
	 */
	readonly touched: readonly string[];
}

/**
 * How the canonical chain changed: `reverted` newest first, `applied` oldest first; `head` is its
 * last block.
 */
export interface ChainUpdate {
	readonly head: Block;
	readonly reverted: readonly Block[];
	readonly applied: readonly Block[];
	/**
	 * True when blocks were missed and can't be fetched one by one, so that all state must be read
	 * again.
	 */
	readonly gap: boolean;
}

/** An account in the state after one block. */
export interface AccountState {
	readonly address: string;
	/** Number of the block whose state this is. */
	readonly block: number;
	readonly nonce: bigint;
	/** Wei. */
	readonly balance: bigint;
	/**
	 * `none`: no code; `delegated`: an EIP-7702 delegation; `contract`: any other code, which may not
	 * send (EIP-3607).
	 */
	readonly code: "none" | "delegated" | "contract";
}

/** Whether there is no such account on the chain (EIP-161). */
export function isEmpty({ nonce, balance, code }: Pick<AccountState, "nonce" | "balance" | "code">): boolean {
	return nonce === 0n && balance === 0n && code === "none";
}

/** The place of a mined transaction in the chain. */
export interface Inclusion {
	readonly hash: string;
	readonly block: number;
	readonly blockHash: string;
	readonly index: number;
	readonly reverted: boolean;
	/** The block's, lower case. */
	readonly coinbase: string;
}

/** Attributes that the consensus layer has published for the block on top of another one. */
export interface PayloadAttributes {
	/** Hash of that other block, lower case. */
	readonly parentHash: string;
	/** Seconds since the epoch. */
	readonly timestamp: number;
	/** 32 bytes of hex, like `beaconRoot`. */
	readonly prevRandao: string;
	/** The parent beacon block's root. https://eips.ethereum.org/EIPS/eip-4788 */
	readonly beaconRoot: string;
}

/** The next block as computed from the head, with its published attributes. */
export interface NextBlock {
	readonly number: number;
	/** Seconds since the epoch: the head's plus a slot, unless another time was published. */
	readonly timestamp: number;
	/** By how much timestamps rise from block to block, in ms. Absent: 12,000. */
	readonly stepMs?: number;
	/**
	 * The head's timestamp. The next block's may equal it if slots are shorter than a second.
	 * Absent if unknown.
	 */
	readonly parentTimestamp?: number;
	readonly baseFee: bigint;
	readonly blobBaseFee: bigint;
	readonly gasLimit: bigint;
	/** The fork whose rules apply. */
	readonly fork: Fork;
	/** The head's hash, which the next block makes available to contracts; absent if unknown. */
	readonly parentHash?: string;
	/** Absent if nothing was published; then PREVRANDAO and the beacon root are not known. */
	readonly published?: PayloadAttributes;
}

/** The usual {@link NextBlock.stepMs}: Ethereum's. */
const STEP_MS = 12_000;

/** The timestamp of the block that is `count` blocks after `block`, in seconds since the epoch. */
export function timestampBehind(block: Pick<NextBlock, "timestamp" | "stepMs">, count: number): number {
	return block.timestamp + Math.round((count * (block.stepMs ?? STEP_MS)) / 1_000);
}

/**
 * The attributes published for the block on top of the one with this hash; null if there are none.
 */
export type AttributesAfter = (hash: string) => PayloadAttributes | null;

/**
 * `next`, the block on top of `head`, with its published attributes; the same object if there is
 * nothing new.
 */
export function withPublished(
	next: NextBlock,
	head: Pick<Header, "hash" | "timestamp">,
	attributesAfter: AttributesAfter,
	forkAt: ForkAt = () => next.fork,
): NextBlock {
	const published = attributesAfter(head.hash);
	if (published === null || published === next.published || published.timestamp <= head.timestamp)
		return next;
	const { timestamp } = published;
	return { ...next, timestamp, fork: forkAt(timestamp), published };
}

/** The head that has been processed: transactions mined up to it have left the pool. */
export type Tip = Pick<ChainTip, "head" | "next">;

/** The processed head and the block after it; null before the first head. */
export class ChainTip {
	#head: Block | null = null;
	#next: NextBlock | null = null;
	readonly #attributesAfter: AttributesAfter;
	readonly #forkAt: ForkAt | undefined;
	/** Aborted when the next head is set. */
	#onNext = new AbortController();

	constructor(attributesAfter: AttributesAfter = () => null, forkAt?: ForkAt) {
		this.#attributesAfter = attributesAfter;
		this.#forkAt = forkAt;
	}

	head(): Block | null {
		return this.#head;
	}

	next(): NextBlock | null {
		return this.#next;
	}

	set(head: Block, next: NextBlock | null): void {
		this.#head = head;
		this.#next = next && withPublished(next, head, this.#attributesAfter, this.#forkAt);
		this.#onNext.abort();
		this.#onNext = new AbortController();
	}

	/** Applies attributes published since for the next block. Returns whether there were any. */
	refresh(): boolean {
		const before = this.#next;
		if (this.#head !== null && before !== null)
			this.#next = withPublished(before, this.#head, this.#attributesAfter, this.#forkAt);
		return this.#next !== before;
	}

	/** Resolves once there is a head, or after `ms` milliseconds. */
	first(wait: { readonly clock: Clock; readonly ms: number }): Promise<void> {
		return this.#head === null ? this.following(wait) : Promise.resolve();
	}

	/** Resolves when the next head is set, or after `ms` milliseconds. */
	following({ clock, ms }: { readonly clock: Clock; readonly ms: number }): Promise<void> {
		return pause(clock, ms, this.#onNext.signal);
	}
}
