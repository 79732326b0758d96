// Amounts that landed bids have left at builders, by block, builder and bidder. A bidder's record
// at a builder is the sum of the last 7,200 blocks. Only canonical blocks count whose coinbase is
// one of the builder's. A block with another coinbase, such as a proposer's own, gives no record.
// The amounts are on disk, so that they survive a restart.

import { type Change, type KeyValueStore, prefixRange } from "../../shared/kv/port.ts";
import { safeError } from "../../shared/log.ts";
import { clientIn } from "../domain/bundleStatus.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import { PAYMENTS } from "../domain/storeKeys.ts";
import type { MarketDependencies } from "./dependencies.ts";

/** The amount that a landed bid left at a builder. Stored as JSON. */
export interface Payment {
	/** Hash of the target. */
	readonly target: string;
	/** As returned by bidderKey in domain/bundleStatus.ts. */
	readonly bidder: string;
	/** Name of the builder. */
	readonly builder: string;
	/** In wei, as a decimal string. */
	readonly left: string;
}

interface PaidBlock {
	readonly number: number;
	readonly hash: string;
	readonly payments: readonly Payment[];
}
type KnownBlock = PaidBlock & { isCanonical: boolean };

/** Sums over the canonical blocks. */
interface Sums {
	/** By builder and bidder. */
	readonly wei: ReadonlyMap<string, ReadonlyMap<string, bigint>>;
	/** Clients of the bidders without a signature. */
	readonly clients: ReadonlySet<string>;
}

/** How long a payment counts, in blocks. */
const RECORD_BLOCKS = 7_200;
/** Digits of a block's number in keys: one JSON entry per block, in block order. */
const DIGITS = 12;
/** Blocks deeper than this are not checked for reorganisations. */
const REORG_BLOCKS = 128;

type LedgerDependencies = Pick<MarketDependencies, "kv" | "damaged" | "payments" | "background" | "log">;

/** Keeps payments and sums them. */
export class PaymentLedger {
	readonly #dependencies: LedgerDependencies;
	/** By hash. */
	readonly #blocks = new Map<string, KnownBlock>();
	/** Null after a change, until it is needed. */
	#sums: Sums | null = null;

	constructor(dependencies: LedgerDependencies) {
		this.#dependencies = dependencies;
	}

	/** Loads the stored payments; call before the first block. */
	async load(): Promise<void> {
		const { kv, damaged } = this.#dependencies;
		for await (const [key, bytes] of kv.range(...prefixRange(PAYMENTS))) {
			const [, number, hash = ""] = key.split("/");
			damaged.tried(key, () => {
				const payments = JSON.parse(bytes.toString("utf8")) as readonly Payment[];
				for (const { left } of payments) BigInt(left);
				this.#blocks.set(hash, { number: Number(number), hash, payments, isCanonical: true });
			});
		}
	}

	/** The bidder's record at a builder, in wei. */
	recordOf(builder: string, bidder: string): bigint {
		return this.#records().wei.get(builder)?.get(bidder) ?? 0n;
	}

	/** Whether the bidder has a record anywhere. */
	hasRecord(bidder: string): boolean {
		return [...this.#records().wei.values()].some((ofBuilder) => (ofBuilder.get(bidder) ?? 0n) > 0n);
	}

	/** Whether a bidder without a signature that came from `client` has a record anywhere. */
	hasUnsignedRecord(client: string): boolean {
		return this.#records().clients.has(client);
	}

	/** How many bidders have a record at a builder, in all. */
	get size(): number {
		return [...this.#records().wei.values()].reduce((sum, { size }) => sum + size, 0);
	}

	/**
	 * Adds payments in a block. Resolves when they are on disk. Only the first payment of a target
	 * counts, so that repeating it adds nothing.
	 */
	async record(
		block: { readonly number: number; readonly hash: string },
		payments: readonly Payment[],
	): Promise<void> {
		const known = this.#blocks.get(block.hash);
		const before = known?.payments ?? [];
		const fresh = payments.filter(({ target }) => !before.some((one) => one.target === target));
		if (fresh.length === 0) return;
		const entry = { ...block, payments: [...before, ...fresh] };
		await put(this.#dependencies.kv, [entry]);
		this.#blocks.set(block.hash, { ...entry, isCanonical: known?.isCanonical ?? true });
		this.#sums = null;
	}

	/** The chain has changed: only payments in canonical blocks count. */
	onChainUpdate({ reverted, applied, head, gap }: ChainUpdate): void {
		for (const { hash } of reverted) this.#setCanonical(hash, false);
		for (const { hash } of applied) this.#setCanonical(hash, true);
		if (this.#blocks.size === 0) return;
		const { background, kv, log } = this.#dependencies;
		const old = [...this.#blocks.values()].filter(({ number }) => number + RECORD_BLOCKS <= head.number);
		for (const { hash } of old) this.#blocks.delete(hash);
		if (old.length > 0) this.#sums = null;
		background.run("payments", async () => {
			try {
				await put(
					kv,
					old.map((block) => ({ ...block, payments: [] })),
				);
				if (gap) await this.#verify(head.number);
			} catch (thrown) {
				log.warn("could not update bidders' payments", { fault: safeError(thrown) });
			}
		});
	}

	/** After a gap, asks the node which blocks are canonical. */
	async #verify(head: number): Promise<void> {
		for (const block of this.#blocks.values()) {
			if (block.number <= head - REORG_BLOCKS) continue;
			const hash = await this.#dependencies.payments.canonicalHash(block.number);
			this.#setCanonical(block.hash, hash === block.hash);
		}
	}

	#setCanonical(hash: string, isCanonical: boolean): void {
		const block = this.#blocks.get(hash);
		if (block === undefined || block.isCanonical === isCanonical) return;
		block.isCanonical = isCanonical;
		this.#sums = null;
	}

	#records(): Sums {
		if (this.#sums !== null) return this.#sums;
		const wei = new Map<string, Map<string, bigint>>();
		const clients = new Set<string>();
		for (const { payments, isCanonical } of this.#blocks.values()) {
			for (const { builder, bidder, left } of isCanonical ? payments : []) {
				const ofBuilder = wei.get(builder) ?? new Map<string, bigint>();
				wei.set(builder, ofBuilder.set(bidder, (ofBuilder.get(bidder) ?? 0n) + BigInt(left)));
				const client = clientIn(bidder);
				if (client !== null) clients.add(client);
			}
		}
		this.#sums = { wei, clients };
		return this.#sums;
	}
}

/** Overwrites the stored payments of these blocks; a block without any is deleted. */
async function put(kv: KeyValueStore, blocks: readonly PaidBlock[]): Promise<void> {
	const changes = blocks.map(({ number, hash, payments }): Change => {
		const key = `${PAYMENTS}${number.toString().padStart(DIGITS, "0")}/${hash}`;
		return { key, value: payments.length === 0 ? null : Buffer.from(JSON.stringify(payments)) };
	});
	if (changes.length > 0) await kv.write(changes);
}
