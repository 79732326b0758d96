// The uuids that clients use and the status of each bundle, for bids and plain bundles alike. A status record outlives its
// bundle so that the owner can query it. In memory only, since a bundle lives for a few blocks.

import type { LRUCache } from "lru-cache";
import type { Clock } from "../../shared/clock.ts";
import { recentlyUsed } from "../../shared/recentlyUsed.ts";
import { Shares } from "../../shared/shares/shares.ts";
import type { BundleBlockStatus, BundleDelivery, BundleRecord } from "../domain/bundleStatus.ts";
import { bundleTopic } from "../domain/endpoints.ts";
import type { Publisher } from "../domain/ports.ts";

/** How its owner withdrew a bundle: by a replacement under its uuid, or by a cancel. */
export type Withdrawal = "REPLACED" | "CANCELLED";

export type BundleKind = "bid" | "plain";

/** A bundle under its uuid, from its arrival until its end. */
export interface BundleEntry {
	readonly kind: BundleKind;
	readonly owner: string;
	/** Null: it can be neither replaced nor cancelled. */
	readonly uuid: string | null;
	/** Set when its owner withdrew it before it was accepted. */
	withdrawn: Withdrawal | null;
	/** Aborted when it is withdrawn. */
	readonly stop: AbortController;
	/** Ends the accepted bundle, `by` the one that takes its uuid; null until it is accepted. */
	end: ((how: Withdrawal, by: BundleKind | null) => void) | null;
}

/** What may change of a bundle in one block. */
export type BlockChange = Partial<Omit<BundleBlockStatus, "block" | "at" | "deliveries">>;

/** The fields of a record that are known when the bundle is accepted. */
export type NewBundle = Pick<
	BundleRecord,
	"owner" | "hash" | "bidder" | "target" | "firstBlock" | "lastBlock"
>;

export interface BundleTableOptions {
	/** Most records, in all and of one client; the least recently changed one is evicted first. */
	readonly maxRecords: number;
	readonly maxPerClient: number;
}

export interface BundleTableDependencies {
	readonly clock: Clock;
	readonly publisher: Publisher;
	/** How a change is shown to subscribers. */
	readonly view: (record: BundleRecord, status: BundleBlockStatus) => unknown;
}

export const TABLE_LIMITS: BundleTableOptions = { maxRecords: 40_000, maxPerClient: 5_000 };

/** Deliveries kept of one bundle: a bid may be sent to the same builder many times. */
const MAX_DELIVERIES = 100;
/** Blocks kept of one bundle; a bundle that is submitted again and again loses its oldest ones. */
const MAX_BLOCKS = 64;

/** The bundles of all owners. */
export class BundleTable {
	readonly #deps: BundleTableDependencies;
	/** By owner and uuid, in the order of arrival. */
	readonly #entries = new Map<string, BundleEntry[]>();
	readonly #shares: Shares;
	readonly #records: LRUCache<string, { readonly client: string; readonly record: BundleRecord }>;

	constructor(options: BundleTableOptions, dependencies: BundleTableDependencies) {
		this.#deps = dependencies;
		this.#shares = new Shares({ total: options.maxRecords, perClient: options.maxPerClient });
		this.#records = recentlyUsed(options.maxRecords, ({ client }) => this.#shares.release(client, 1));
	}

	/** Registers an arriving bundle. {@link freeUuid} must be called when it ends. */
	enter(kind: BundleKind, owner: string, uuid: string | null): BundleEntry {
		const entry: BundleEntry = {
			kind,
			owner,
			uuid,
			withdrawn: null,
			stop: new AbortController(),
			end: null,
		};
		if (uuid === null) return entry;
		const key = JSON.stringify([owner, uuid]);
		this.#entries.set(key, [...(this.#entries.get(key) ?? []), entry]);
		return entry;
	}

	/** Whether accepting it would replace another bundle. */
	replaces(entry: BundleEntry): boolean {
		return entry.withdrawn === null && this.#under(entry).some(({ end }) => end !== null);
	}

	/** Marks it as accepted, and ends earlier bundles with its uuid. */
	take(entry: BundleEntry, end: NonNullable<BundleEntry["end"]>): void {
		const others = this.#under(entry);
		for (const other of others.slice(0, Math.max(0, others.indexOf(entry))))
			endOf(other, "REPLACED", entry.kind);
		entry.end = end;
	}

	/** Frees the uuid of a bundle that was rejected or has ended. */
	freeUuid(entry: BundleEntry): void {
		const { owner, uuid } = entry;
		entry.end = null;
		if (uuid === null) return;
		const key = JSON.stringify([owner, uuid]);
		const left = this.#under(entry).filter((one) => one !== entry);
		if (left.length === 0) this.#entries.delete(key);
		else this.#entries.set(key, left);
	}

	/** Cancels the owner's bundles with this uuid, also those that are not accepted yet. */
	cancel(owner: string, uuid: string): void {
		for (const entry of this.#under({ owner, uuid })) endOf(entry, "CANCELLED", null);
	}

	/** The bundle that `owner` sent, or null. */
	bundle(owner: string, hash: string): BundleRecord | null {
		return this.#records.get(keyOf(owner, hash))?.record ?? null;
	}

	/** The record of a bundle that `client` sent: a new one, or the existing one with its range extended. */
	open(bundle: NewBundle, client: string): BundleRecord {
		const key = keyOf(bundle.owner, bundle.hash);
		const known = this.#records.get(key)?.record;
		if (known !== undefined) {
			known.firstBlock = Math.min(known.firstBlock, bundle.firstBlock);
			known.lastBlock = Math.max(known.lastBlock, bundle.lastBlock);
			return known;
		}
		const record = { ...bundle, receivedAt: this.#deps.clock.now(), blocks: [] };
		if (this.#shares.exceeded(client, 1) === "client") this.#forgetOneOf(client);
		this.#records.set(key, { client, record });
		this.#shares.takeAnyway(client, 1);
		return record;
	}

	/** Changes the status in `block`; publishes it only if something differs. */
	change(record: BundleRecord, block: number, change: BlockChange): void {
		const known = record.blocks.some((status) => status.block === block);
		const status = statusOf(record, block, this.#deps.clock.now());
		const names = Object.keys(change) as (keyof BlockChange)[];
		if (known && names.every((name) => status[name] === change[name])) return;
		Object.assign(status, change, { at: this.#deps.clock.now() });
		this.#publish(record, status);
	}

	/** Adds a builder's response. */
	delivered(record: BundleRecord, block: number, delivery: BundleDelivery): void {
		const status = statusOf(record, block, this.#deps.clock.now());
		status.deliveries.push(delivery);
		const kept = record.blocks.reduce((sum, one) => sum + one.deliveries.length, 0);
		if (kept > MAX_DELIVERIES) record.blocks.find((one) => one.deliveries.length > 0)?.deliveries.shift();
		this.#publish(record, status);
	}

	#under({ owner, uuid }: Pick<BundleEntry, "owner" | "uuid">): readonly BundleEntry[] {
		return uuid === null ? [] : (this.#entries.get(JSON.stringify([owner, uuid])) ?? []);
	}

	#forgetOneOf(client: string): void {
		for (const key of this.#records.rkeys()) {
			if (this.#records.peek(key)?.client !== client) continue;
			this.#records.delete(key);
			return;
		}
	}

	#publish(record: BundleRecord, status: BundleBlockStatus): void {
		const { publisher, view } = this.#deps;
		this.#records.get(keyOf(record.owner, record.hash));
		publisher.publish(bundleTopic(record.owner, record.hash), () => view(record, status));
	}
}

/** The bundle's status in `block`, or undefined. */
export function statusIn(record: BundleRecord, block: number): BundleBlockStatus | undefined {
	return record.blocks.find((status) => status.block === block);
}

function endOf(entry: BundleEntry, how: Withdrawal, by: BundleKind | null): void {
	if (entry.end !== null) {
		entry.end(how, by);
		return;
	}
	entry.withdrawn = how;
	entry.stop.abort();
}

function keyOf(owner: string, hash: string): string {
	return `${owner} ${hash}`;
}

/** The status in `block`, created at `now` (ms) if there is none. */
function statusOf(record: BundleRecord, block: number, now: number): BundleBlockStatus {
	const known = statusIn(record, block);
	if (known !== undefined) return known;
	const status: BundleBlockStatus = {
		block,
		stage: "ACCEPTED",
		reason: null,
		bid: null,
		winner: null,
		paid: null,
		blockHash: null,
		at: now,
		deliveries: [],
	};
	record.blocks.push(status);
	record.blocks.sort((a, b) => a.block - b.block);
	if (record.blocks.length > MAX_BLOCKS) record.blocks.shift();
	return status;
}
