// The fixture for the journal: entries by number, rows on a disk in memory with a shorter
// interface, and a readable view of a row.

import { markGiven, markHeld, markNotHeld } from "../../../../boost-proxy/domain/deliveries.ts";
import { onlyOwner } from "../../../../boost-proxy/domain/owners.ts";
import { UPSTREAMS, type UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import {
	beginRequest,
	cancelsPendingAt,
	type Ending,
	endRequest,
	holdersOf,
	isLive,
	type NewRow,
	type Row,
	setCancelPending,
	setReplacementPending,
} from "../../../../boost-proxy/domain/row.ts";
import { ChainBinding } from "../../../../boost-proxy/journal/chain.ts";
import { type RowLimits, Rows, type RowsDependencies } from "../../../../boost-proxy/rows/rows.ts";
import { Background } from "../../../../shared/background.ts";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";

export const TTL_MS = 300_000;
export const REORG_MS = 144_000;

export const hashOf = (n: number): string => `0x${keccak256(Buffer.from(`${n}`)).toString("hex")}`;
export const senderOf = (n: number): string => `0x${n.toString(16).padStart(40, "a")}`;

/** The key of entry `n` on disk; `id`: its place in the order of arrival. */
export const diskKey = (prefix: string, n: number, id = n): string =>
	`${prefix}${id.toString(36).padStart(8, "0")}/${hashOf(n)}`;

export const FIELDS = { to: `0x${"ab".repeat(20)}`, gas: "21000", value: "7" };

/** Each its own client. */
export const addressOf = (n: number): string => `192.0.${2 + Math.floor(n / 250)}.${n % 250}`;

/** Entry `n` of sender 1, unless said; its bytes and its client are its own. */
export function newEntry(n: number, changed: Partial<NewRow> = {}): NewRow {
	const entry = {
		hash: hashOf(n),
		from: senderOf(1),
		nonce: BigInt(n),
		fields: FIELDS,
		raw: rawOf(n),
		path: "fast" as const,
		search: "",
		softCancellations: false,
		address: addressOf(n),
		receivedAt: Date.UTC(2026, 0, 1),
		requestId: `request-${n}`,
		replacesAtUpstreams: [],
		...changed,
	};
	return { ...entry, owners: [onlyOwner(entry)] };
}

export function rawOf(n: number, length = 120): Buffer {
	return Buffer.alloc(length, `raw ${n} `);
}

/** A journal on `disk`; what is left out is new. */
export async function fixture(options: Partial<RowLimits> = {}, disk = new FakeDisk()) {
	return { ...(await fixtureOn(disk, options)), disk };
}

/** The same on any store. */
export async function fixtureOn(kv: RowsDependencies["kv"], options: Partial<RowLimits> = {}) {
	const clock = new ManualClock();
	const faults = { count: 0 };
	const onFault = () => {
		faults.count += 1;
	};
	const journal = await openedVerbs(
		{ ttlMs: TTL_MS, reorgMs: REORG_MS, ...options },
		{ kv, clock, log: silentLogger, onFault },
	);
	return { journal, clock, faults };
}

/** A second journal on what lies in `disk` now, as after a SIGKILL. */
export async function reopened(disk: FakeDisk, options: Partial<RowLimits> = {}) {
	const copy = new FakeDisk();
	for (const [key, value] of disk.map) copy.map.set(key, value);
	return fixture(options, copy);
}

/** The contents of some hashes that a restart must restore. */
export function contents(journal: RowVerbs, hashes: readonly string[]) {
	return Promise.all(
		hashes.map(async (hash) => {
			const open = journal.get(hash);
			const kept = open === null ? null : { ...open, inProgress: null };
			return { hash, kept, raw: await journal.raw(hash), ended: await journal.ended(hash) };
		}),
	);
}

/** A live row. */
export interface LiveRow extends Omit<NewRow, "raw"> {
	readonly holders: readonly UpstreamName[];
	readonly inProgress: boolean;
	readonly acknowledged: boolean;
	readonly aliveUntil: number;
	readonly bytes: number;
}

/** One that has ended. */
export interface EndedRow extends Pick<NewRow, "hash" | "from" | "nonce" | "path" | "address"> {
	readonly ending: Ending;
	readonly endedAt: number;
	readonly cancelAt: readonly UpstreamName[];
}

function liveRow(row: Row): LiveRow {
	const {
		id: _id,
		desired: _desired,
		endedAt: _endedAt,
		at,
		version: _version,
		notes: _notes,
		requests,
		...more
	} = row;
	const { ownersPending: _pending, bySender: _by, ...known } = more;
	const replacesAtUpstreams = UPSTREAMS.filter((by) => at[by].replacementPending);
	return { ...known, replacesAtUpstreams, holders: holdersOf(row), inProgress: requests > 0 };
}

function endedRow(row: Row): EndedRow {
	const { hash, from, nonce, path, address, desired, endedAt } = row;
	if (desired === "live") throw new Error("it is live");
	return { hash, from, nonce, path, address, ending: desired, endedAt, cancelAt: cancelsPendingAt(row) };
}

/** The contents of a store, opened. */
export async function openedVerbs(
	limits: RowLimits,
	dependencies: Omit<RowsDependencies, "chainTime"> & Partial<RowsDependencies>,
): Promise<RowVerbs> {
	const { clock } = dependencies;
	const binding = await ChainBinding.open(dependencies.kv);
	const rows = await Rows.load(limits, { chainTime: { now: () => clock.now() }, ...dependencies });
	return new RowVerbs(rows, binding);
}

/** The verbs. Each resolves when its change is on disk, and rejects where the disk failed. */
export class RowVerbs {
	readonly rows: Rows;
	/** Those whose request is under way. */
	readonly #begun = new Set<string>();
	readonly #binding: ChainBinding;

	constructor(rows: Rows, binding: ChainBinding) {
		this.rows = rows;
		this.#binding = binding;
	}

	get depth(): number {
		return this.rows.liveCount;
	}

	get(hash: string): LiveRow | null {
		const row = this.rows.live(hash);
		return row === null ? null : liveRow(row);
	}

	async ended(hash: string): Promise<EndedRow | null> {
		const row = await this.rows.find(hash);
		return row === null || isLive(row) ? null : endedRow(row);
	}

	/** Null too if it is on disk alone. */
	justEnded(hash: string): EndedRow | null {
		const row = this.rows.get(hash);
		return row === null || isLive(row) ? null : endedRow(row);
	}

	raw(hash: string): Promise<Buffer | null> {
		return this.rows.raw(hash);
	}

	of(from: string): readonly LiveRow[] {
		return this.rows.liveOf(from).map(liveRow);
	}

	*open(): Generator<LiveRow> {
		for (const row of this.rows.allLive()) yield liveRow(row);
	}

	*pendingCancels(): Generator<EndedRow> {
		for (const row of this.rows.pendingCancels()) yield endedRow(row);
	}

	async add(entry: NewRow, first: UpstreamName): Promise<boolean> {
		const found = this.rows.find(entry.hash);
		if (found instanceof Promise) await found;
		if (!this.rows.add(entry)) return false;
		this.rows.change(entry.hash, (row) => markGiven(row, first, entry.receivedAt));
		// The request before it is over: two of one nonce go one after another.
		if (this.#begun.has(entry.hash)) this.rows.change(entry.hash, (row) => endRequest(row));
		this.#begun.add(entry.hash);
		return this.#written(entry.hash).then(() => true);
	}

	held(hash: string, by: UpstreamName): Promise<void> {
		return this.#change(hash, (row) => markHeld(row, by));
	}

	notHeld(hash: string, by: UpstreamName): Promise<void> {
		return this.#change(hash, (row) => markNotHeld(row, by));
	}

	replacementDelivered(hash: string, by: UpstreamName): Promise<void> {
		return this.#change(hash, (row) => setReplacementPending(row, by, false));
	}

	setInProgress(hash: string, isBegun: boolean): void {
		const least = this.#begun.has(hash) ? 1 : 0;
		const change = (row: Row) =>
			!isBegun && row.requests <= least ? row : isBegun ? beginRequest(row) : endRequest(row);
		this.rows.change(hash, change);
	}

	/** An acknowledged row stays acknowledged. */
	settle(hash: string, acknowledged: boolean): Promise<void> {
		const isFirst = this.#begun.delete(hash);
		return this.#change(hash, (row) => {
			if (isFirst) return endRequest(row, acknowledged);
			return isLive(row) && !row.acknowledged ? { ...row, acknowledged } : row;
		});
	}

	end(hash: string, ending: Ending, cancelAt: readonly UpstreamName[] = []): Promise<void> {
		const row = this.rows.get(hash);
		if (row !== null) this.rows.end(row, ending, cancelAt);
		return this.#written(hash);
	}

	markEnded({ ending, cancelAt, ...one }: Omit<EndedRow, "endedAt">): Promise<void> {
		const { hash, from, nonce, path, address } = one;
		this.rows.end({ hash, from, nonce, fields: FIELDS, path, address }, ending, cancelAt);
		return this.#written(hash);
	}

	cancelDone(hash: string, by: UpstreamName): Promise<void> {
		return this.#change(hash, (row) => setCancelPending(row, by, false));
	}

	reopen(hash: string): Promise<void> {
		this.rows.reopen(hash);
		return this.#written(hash);
	}

	/** As if the upstreams were on this chain. */
	async bindTo(chainId: bigint): Promise<void> {
		const result = `0x${chainId.toString(16)}`;
		const chain = { batch: async () => [{ ok: true, result } as const] };
		const background = new Background({}, { log: silentLogger });
		await this.#binding.start({ chain, background, clock: new ManualClock(), log: silentLogger });
	}

	close(): Promise<void> {
		return this.rows.close();
	}

	#change(hash: string, change: (row: Row) => Row): Promise<void> {
		this.rows.change(hash, change);
		return this.#written(hash);
	}

	async #written(hash: string): Promise<void> {
		if (!(await this.rows.written(hash))) throw new Error("disk");
	}
}
