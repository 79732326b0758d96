// What became of bundles, kept for those who sent them: changes come in, records go out, and the news to subscribers.
// A bounded number of records, in memory alone: a bundle's life is a few blocks.

import { LRUCache } from "lru-cache";
import type { Clock } from "../../shared/clock.ts";
import type { BundleBlockStatus, BundleDelivery, BundleRecord } from "../domain/bundleStatus.ts";
import type { BundleReader, Publisher } from "../domain/ports.ts";
import { bundleTopic } from "../domain/topics.ts";

/** Records at most; the one that changed longest ago goes first. */
const MAX_RECORDS = 20_000;
/** Deliveries kept of one bundle: a bid may go to a builder again and again as others come and go. */
const MAX_DELIVERIES = 100;

/** Blocks kept of one bundle: one that is bid with again and again loses its oldest. */
const MAX_BLOCKS = 64;

/** What may change of a bundle in one block. */
export type BlockChange = Partial<Omit<BundleBlockStatus, "block" | "at" | "deliveries">>;

/** How a change is shown to subscribers. */
export type BundleView = (record: BundleRecord, status: BundleBlockStatus) => unknown;

/** A bundle, as its owner names it. */
export interface BundleKey {
	readonly owner: string;
	readonly hash: string;
}

/** The records of all owners. */
export class BundleRecords implements BundleReader {
	readonly #records = new LRUCache<string, BundleRecord>({ max: MAX_RECORDS });
	readonly #deps: { readonly clock: Clock; readonly publisher: Publisher; readonly view: BundleView };

	constructor(dependencies: { clock: Clock; publisher: Publisher; view: BundleView }) {
		this.#deps = dependencies;
	}

	bundle(owner: string, hash: string): BundleRecord | null {
		return this.#records.get(keyOf({ owner, hash })) ?? null;
	}

	/** A bundle was accepted, maybe once more, for another range of blocks. */
	open(key: BundleKey, target: string | null, firstBlock: number, lastBlock: number): void {
		const known = this.#records.get(keyOf(key));
		if (known !== undefined) {
			known.firstBlock = Math.min(known.firstBlock, firstBlock);
			known.lastBlock = Math.max(known.lastBlock, lastBlock);
			return;
		}
		const receivedAt = this.#deps.clock.now();
		const record = { hash: key.hash, target, receivedAt, firstBlock, lastBlock, blocks: [] };
		this.#records.set(keyOf(key), record);
	}

	/** Takes down what became of it in `block`; what stays as it was is no news. */
	change(key: BundleKey, block: number, change: BlockChange): void {
		const record = this.#records.get(keyOf(key));
		if (record === undefined) return;
		const known = record.blocks.some((status) => status.block === block);
		const status = statusOf(record, block, this.#deps.clock.now());
		const names = Object.keys(change) as (keyof BlockChange)[];
		if (known && names.every((name) => status[name] === change[name])) return;
		Object.assign(status, change, { at: this.#deps.clock.now() });
		this.#publish(key, record, status);
	}

	/** Takes down how a builder took it. */
	delivered(key: BundleKey, block: number, delivery: BundleDelivery): void {
		const record = this.#records.get(keyOf(key));
		if (record === undefined) return;
		const status = statusOf(record, block, this.#deps.clock.now());
		status.deliveries.push(delivery);
		const kept = record.blocks.reduce((sum, one) => sum + one.deliveries.length, 0);
		if (kept > MAX_DELIVERIES) record.blocks.find((one) => one.deliveries.length > 0)?.deliveries.shift();
		this.#publish(key, record, status);
	}

	/** What is known of it in `block`, or undefined. */
	status(key: BundleKey, block: number): BundleBlockStatus | undefined {
		return this.#records.peek(keyOf(key))?.blocks.find((status) => status.block === block);
	}

	#publish(key: BundleKey, record: BundleRecord, status: BundleBlockStatus): void {
		const { publisher, view } = this.#deps;
		publisher.publish(bundleTopic(key.owner, key.hash), () => view(record, status));
	}
}

function keyOf({ owner, hash }: BundleKey): string {
	return `${owner} ${hash}`;
}

/** The status of `block`; a new one is of `now` (ms). */
function statusOf(record: BundleRecord, block: number, now: number): BundleBlockStatus {
	const known = record.blocks.find((status) => status.block === block);
	if (known !== undefined) return known;
	const status: BundleBlockStatus = {
		block,
		stage: "ACCEPTED",
		reason: null,
		bid: null,
		outbidBy: null,
		blockHash: null,
		at: now,
		deliveries: [],
	};
	record.blocks.push(status);
	record.blocks.sort((a, b) => a.block - b.block);
	if (record.blocks.length > MAX_BLOCKS) record.blocks.shift();
	return status;
}
