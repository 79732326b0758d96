// What clients have sent under which uuid, and what became of each bundle. Bids and plain bundles stand in it alike. A
// record outlives its bundle for a while, so that its owner can ask; in memory alone, since a bundle's life is a few blocks.

import { LRUCache } from "lru-cache";
import type { Clock } from "../../shared/clock.ts";
import { Shares } from "../../shared/shares/shares.ts";
import type { BundleBlockStatus, BundleDelivery, BundleRecord } from "../domain/bundleStatus.ts";
import { bundleTopic } from "../domain/endpoints.ts";
import type { Publisher } from "../domain/ports.ts";

/** How a bundle's place under its uuid was lost. */
export type Overtaken = "REPLACED" | "CANCELLED";

/** What was sent in, from its arrival on: first being considered, then in place. */
export interface Submission {
	readonly owner: string;
	/** Null: nothing can end it. */
	readonly uuid: string | null;
	/** How it was overtaken before it came into its place, by what was sent later under the same uuid. */
	overtaken: Overtaken | null;
	/** Aborted then: it need not be considered any further. */
	readonly stop: AbortController;
	/** Ends what holds the place; null while it is being considered. */
	end: ((how: Overtaken) => void) | null;
}

/** What may change of a bundle in one block. */
export type BlockChange = Partial<Omit<BundleBlockStatus, "block" | "at" | "deliveries">>;

/** What is known of a bundle when it is accepted. */
export type NewBundle = Pick<
	BundleRecord,
	"owner" | "hash" | "bidder" | "target" | "firstBlock" | "lastBlock"
>;

export interface BundleTableOptions {
	/** Records at most, in all and of one client: the one that changed longest ago goes first. */
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

/** Deliveries kept of one bundle: a bid may go to a builder again and again as others come and go. */
const MAX_DELIVERIES = 100;
/** Blocks kept of one bundle: one that is bid with again and again loses its oldest. */
const MAX_BLOCKS = 64;

/** The bundles of all owners. */
export class BundleTable {
	readonly #deps: BundleTableDependencies;
	/** By owner and uuid, in the order of their arrival; a uuid that nothing is sent under takes no memory. */
	readonly #submissions = new Map<string, Submission[]>();
	readonly #shares: Shares;
	readonly #records: LRUCache<string, { readonly client: string; readonly record: BundleRecord }>;

	constructor(options: BundleTableOptions, dependencies: BundleTableDependencies) {
		this.#deps = dependencies;
		this.#shares = new Shares({ total: options.maxRecords, perClient: options.maxPerClient });
		this.#records = new LRUCache({
			max: options.maxRecords,
			dispose: ({ client }) => this.#shares.give(client, 1),
		});
	}

	/** A bundle arrives; {@link release} must follow, once it is over. */
	enter(owner: string, uuid: string | null): Submission {
		const submission: Submission = { owner, uuid, overtaken: null, stop: new AbortController(), end: null };
		if (uuid === null) return submission;
		const key = JSON.stringify([owner, uuid]);
		this.#submissions.set(key, [...(this.#submissions.get(key) ?? []), submission]);
		return submission;
	}

	/** Whether to take its place is to end another bundle. */
	replaces(submission: Submission): boolean {
		return submission.overtaken === null && this.#under(submission).some(({ end }) => end !== null);
	}

	/** It was found good: it takes its place, and what came before it under its uuid ends. */
	take(submission: Submission, end: (how: Overtaken) => void): void {
		const others = this.#under(submission);
		for (const other of others.slice(0, Math.max(0, others.indexOf(submission)))) endOf(other, "REPLACED");
		submission.end = end;
	}

	/** It is over: refused, or its bundle has ended. */
	release(submission: Submission): void {
		const { owner, uuid } = submission;
		submission.end = null;
		if (uuid === null) return;
		const key = JSON.stringify([owner, uuid]);
		const left = this.#under(submission).filter((one) => one !== submission);
		if (left.length === 0) this.#submissions.delete(key);
		else this.#submissions.set(key, left);
	}

	/** Ends what the owner has under a uuid, what is still being considered too. */
	cancel(owner: string, uuid: string): void {
		for (const submission of this.#under({ owner, uuid })) endOf(submission, "CANCELLED");
	}

	/** The bundle that `owner` sent, or null. */
	bundle(owner: string, hash: string): BundleRecord | null {
		return this.#records.get(keyOf(owner, hash))?.record ?? null;
	}

	/** The record of a bundle that `client` has sent: a new one, or the known one for these blocks too. */
	open(bundle: NewBundle, client: string): BundleRecord {
		const key = keyOf(bundle.owner, bundle.hash);
		const known = this.#records.get(key)?.record;
		if (known !== undefined) {
			known.firstBlock = Math.min(known.firstBlock, bundle.firstBlock);
			known.lastBlock = Math.max(known.lastBlock, bundle.lastBlock);
			return known;
		}
		const record = { ...bundle, receivedAt: this.#deps.clock.now(), blocks: [] };
		if (this.#shares.refusal(client, 1) === "client") this.#forgetOneOf(client);
		this.#records.set(key, { client, record });
		this.#shares.force(client, 1);
		return record;
	}

	/** Takes down what became of it in `block`; what stays as it was is no news. */
	change(record: BundleRecord, block: number, change: BlockChange): void {
		const known = record.blocks.some((status) => status.block === block);
		const status = statusOf(record, block, this.#deps.clock.now());
		const names = Object.keys(change) as (keyof BlockChange)[];
		if (known && names.every((name) => status[name] === change[name])) return;
		Object.assign(status, change, { at: this.#deps.clock.now() });
		this.#publish(record, status);
	}

	/** Takes down how a builder took it. */
	delivered(record: BundleRecord, block: number, delivery: BundleDelivery): void {
		const status = statusOf(record, block, this.#deps.clock.now());
		status.deliveries.push(delivery);
		const kept = record.blocks.reduce((sum, one) => sum + one.deliveries.length, 0);
		if (kept > MAX_DELIVERIES) record.blocks.find((one) => one.deliveries.length > 0)?.deliveries.shift();
		this.#publish(record, status);
	}

	#under({ owner, uuid }: Pick<Submission, "owner" | "uuid">): readonly Submission[] {
		return uuid === null ? [] : (this.#submissions.get(JSON.stringify([owner, uuid])) ?? []);
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

/** What is known of a bundle in `block`, or undefined. */
export function statusIn(record: BundleRecord, block: number): BundleBlockStatus | undefined {
	return record.blocks.find((status) => status.block === block);
}

function endOf(submission: Submission, how: Overtaken): void {
	if (submission.end !== null) {
		submission.end(how);
		return;
	}
	submission.overtaken = how;
	submission.stop.abort();
}

function keyOf(owner: string, hash: string): string {
	return `${owner} ${hash}`;
}

/** The status of `block`; a new one is of `now` (ms). */
function statusOf(record: BundleRecord, block: number, now: number): BundleBlockStatus {
	const known = statusIn(record, block);
	if (known !== undefined) return known;
	const status: BundleBlockStatus = {
		...{ block, stage: "ACCEPTED", reason: null, bid: null, winner: null, paid: null, blockHash: null },
		...{ at: now, deliveries: [] },
	};
	record.blocks.push(status);
	record.blocks.sort((a, b) => a.block - b.block);
	if (record.blocks.length > MAX_BLOCKS) record.blocks.shift();
	return status;
}
