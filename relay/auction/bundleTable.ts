// The uuids that clients use and the status of each bundle, for bids and plain bundles alike. A
// status record outlives its bundle so that the owner can query it. In memory only, since a bundle
// lives for a few blocks.

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
	/** Time of arrival, in ms since the epoch. */
	readonly receivedAt: number;
	/** Set when its owner withdrew it before it was accepted. */
	withdrawn: Withdrawal | null;
	/** Aborted when it is withdrawn. */
	readonly stop: AbortController;
	/**
	 * Ends the bundle; `by` is the kind of the bundle that replaces it. Null until it is accepted.
	 */
	end: ((how: Withdrawal, by: BundleKind | null) => void) | null;
}

/** The fields of a bundle's status in one block that may change. */
export type BlockChange = Partial<
	Pick<BundleBlockStatus, "stage" | "reason" | "bid" | "paid" | "placed" | "isDisclosed" | "blockHash">
>;

/** The fields of a record that are known when the bundle is accepted. */
export type NewBundle = Pick<
	BundleRecord,
	"owner" | "client" | "hash" | "bidder" | "target" | "receivedAt" | "feedMs" | "firstBlock" | "lastBlock"
> & {
	/** Whether its simulation has ended. */
	readonly isSimulated: boolean;
};

export interface BundleTableOptions {
	/** Most records, in all and of one client; the least recently changed one is evicted first. */
	readonly maxRecords: number;
	readonly maxPerClient: number;
}

export interface BundleTableDependencies {
	readonly clock: Clock;
	readonly publisher: Publisher;
	/** A changed status as subscribers receive it. */
	readonly view: (record: BundleRecord, status: BundleBlockStatus) => unknown;
	/** Receives each status when it is set (1), and again before it changes (-1). */
	readonly count: (record: BundleRecord, status: BundleBlockStatus, by: 1 | -1) => void;
}

export const TABLE_LIMITS: BundleTableOptions = { maxRecords: 40_000, maxPerClient: 5_000 };

/** Deliveries kept of one bundle: a bid may be sent to the same builder many times. */
const MAX_DELIVERIES = 100;
/** Blocks kept of one bundle; a bundle that is submitted again and again loses its oldest ones. */
const MAX_BLOCKS = 64;

/** The bundles of all owners. */
export class BundleTable {
	readonly #dependencies: BundleTableDependencies;
	/** By owner and uuid, in the order of arrival. */
	readonly #entries = new Map<string, BundleEntry[]>();
	readonly #shares: Shares;
	readonly #records: LRUCache<string, BundleRecord>;
	/** The same records by owner and hash, in the order of arrival. */
	readonly #byOwner = new Map<string, Map<string, BundleRecord>>();

	constructor(options: BundleTableOptions, dependencies: BundleTableDependencies) {
		this.#dependencies = dependencies;
		this.#shares = new Shares({ total: options.maxRecords, perClient: options.maxPerClient });
		this.#records = recentlyUsed(options.maxRecords, (record) => this.#forgotten(record));
	}

	/** Registers an arriving bundle. {@link freeUuid} must be called when it ends. */
	enter(kind: BundleKind, owner: string, uuid: string | null): BundleEntry {
		const entry: BundleEntry = {
			kind,
			owner,
			uuid,
			receivedAt: this.#dependencies.clock.now(),
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
		return this.#records.get(keyOf(owner, hash)) ?? null;
	}

	/** The bundles of `owner`, newest first. */
	bundles(owner: string): readonly BundleRecord[] {
		return [...(this.#byOwner.get(owner)?.values() ?? [])].reverse();
	}

	/** The record of an accepted bundle: a new one, or the existing one with its range extended. */
	open({ isSimulated, ...bundle }: NewBundle): BundleRecord {
		const { owner, client, hash } = bundle;
		const key = keyOf(owner, hash);
		const simulatedAt = isSimulated ? this.#dependencies.clock.now() : null;
		const known = this.#records.get(key);
		if (known !== undefined) {
			known.firstBlock = Math.min(known.firstBlock, bundle.firstBlock);
			known.lastBlock = Math.max(known.lastBlock, bundle.lastBlock);
			known.simulatedAt ??= simulatedAt;
			return known;
		}
		const record: BundleRecord = { ...bundle, simulatedAt, blocks: [] };
		if (this.#shares.exceeded(client, 1) === "client") this.#forgetOneOf(client);
		this.#records.set(key, record);
		this.#byOwner.set(owner, (this.#byOwner.get(owner) ?? new Map()).set(hash, record));
		this.#shares.takeAnyway(client, 1);
		return record;
	}

	/** Changes the status in `block`; publishes it only if something differs. */
	change(record: BundleRecord, block: number, change: BlockChange): void {
		const { clock, count } = this.#dependencies;
		const known = record.blocks.some((status) => status.block === block);
		const status = this.#statusOf(record, block);
		const names = Object.keys(change) as (keyof BlockChange)[];
		if (known && names.every((name) => status[name] === change[name])) return;
		count(record, status, -1);
		Object.assign(status, change, { at: clock.now() });
		count(record, status, 1);
		this.#publish(record, status);
	}

	/** Adds a builder's response. A bid's are not published before the block. */
	delivered(record: BundleRecord, block: number, delivery: BundleDelivery): void {
		const status = this.#statusOf(record, block);
		status.deliveries.push(delivery);
		const kept = record.blocks.reduce((sum, one) => sum + one.deliveries.length, 0);
		if (kept > MAX_DELIVERIES) record.blocks.find((one) => one.deliveries.length > 0)?.deliveries.shift();
		if (status.isDisclosed) this.#publish(record, status);
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

	#forgotten({ owner, hash, client }: BundleRecord): void {
		this.#shares.release(client, 1);
		const own = this.#byOwner.get(owner);
		own?.delete(hash);
		if (own?.size === 0) this.#byOwner.delete(owner);
	}

	/** The status in `block`, created if there is none. */
	#statusOf(record: BundleRecord, block: number): BundleBlockStatus {
		const known = statusIn(record, block);
		if (known !== undefined) return known;
		const now = this.#dependencies.clock.now();
		const status: BundleBlockStatus = {
			block,
			stage: "ACCEPTED",
			reason: null,
			bid: null,
			paid: null,
			placed: false,
			isDisclosed: record.target === null,
			blockHash: null,
			since: now,
			at: now,
			deliveries: [],
		};
		record.blocks.push(status);
		record.blocks.sort((a, b) => a.block - b.block);
		if (record.blocks.length > MAX_BLOCKS) record.blocks.shift();
		this.#dependencies.count(record, status, 1);
		return status;
	}

	#publish(record: BundleRecord, status: BundleBlockStatus): void {
		const { publisher, view } = this.#dependencies;
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
