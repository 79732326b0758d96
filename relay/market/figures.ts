// Counts each owner's bundles by day, for that owner. The figures change with each status of a
// bundle and are written with each block. So they outlive the bundles, which are in memory only. A
// bundle that is open when the relay stops stays counted, but gets no outcome any more.

import type { Background } from "../../shared/background.ts";
import { dayOf } from "../../shared/days.ts";
import type { DamagedEntries } from "../../shared/kv/damagedEntries.ts";
import { type Change, type KeyValueStore, prefixRange } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { MultiMap } from "../../shared/multiMap.ts";
import { Shares } from "../../shared/shares/shares.ts";
import type { BundleBlockStatus, BundleRecord } from "../domain/bundleStatus.ts";
import { count, type DayFigures, noFigures } from "../domain/searcherFigures.ts";
import { SEARCHER_DAY } from "../domain/storeKeys.ts";

export interface FiguresOptions {
	/**
	 * Most rows (one per owner and day), in all and of one client with any number of keys. If a
	 * limit is exceeded, that client, or the one with the most rows, loses its oldest row.
	 */
	readonly maxDays: number;
	readonly maxPerClient: number;
}

/** 1,000 days are almost three years for a signer with bundles on each day. */
export const FIGURES_LIMITS: FiguresOptions = { maxDays: 20_000, maxPerClient: 1_000 };

interface FiguresDependencies {
	readonly kv: KeyValueStore;
	readonly damaged: DamagedEntries;
	readonly background: Background;
	readonly log: Logger;
}

/** A day of an owner, and the client whose quota it uses. */
interface Row {
	readonly owner: string;
	readonly client: string;
	readonly figures: DayFigures;
}

/** A row as JSON; wei as decimal text. */
type StoredRow = Omit<DayFigures, "day" | "paid"> & { readonly client: string; readonly paid: string };

const DIGITS = 7;

/** Keeps the figures. */
export class SearcherFigures {
	readonly #dependencies: FiguresDependencies;
	readonly #shares: Shares;
	readonly #byOwner = new Map<string, Map<number, Row>>();
	/** In the order in which they were created. */
	readonly #byClient = new MultiMap<Row>();
	/**
	 * The row in which a bundle's status in a block counts. If that row is dropped meanwhile, it is
	 * created again without the bundle.
	 */
	readonly #countedIn = new WeakMap<BundleBlockStatus, Row>();
	/** Keys of rows that differ from the disk. */
	readonly #unwritten = new Set<string>();

	constructor({ maxDays, maxPerClient }: FiguresOptions, dependencies: FiguresDependencies) {
		this.#dependencies = dependencies;
		this.#shares = new Shares({ total: maxDays, perClient: maxPerClient });
	}

	/** Loads what is stored. */
	async load(): Promise<void> {
		const { kv, damaged } = this.#dependencies;
		for await (const [key, bytes] of kv.range(...prefixRange(SEARCHER_DAY))) {
			const [day, owner] = [
				Number(key.slice(SEARCHER_DAY.length, SEARCHER_DAY.length + DIGITS)),
				ownerIn(key),
			];
			damaged.tried(key, () => {
				const { client, paid, ...rest } = JSON.parse(bytes.toString("utf8")) as StoredRow;
				this.#add({ owner, client, figures: { ...noFigures(day), ...rest, paid: BigInt(paid) } });
			});
		}
	}

	/** An owner's days, newest first. */
	of(owner: string): readonly DayFigures[] {
		const rows = [...(this.#byOwner.get(owner)?.values() ?? [])];
		return rows.map(({ figures }) => figures).sort((a, b) => b.day - a.day);
	}

	/**
	 * Counts a bundle in a block with its current status (1), or removes it before that changes
	 * (-1).
	 */
	count(record: BundleRecord, status: BundleBlockStatus, by: 1 | -1): void {
		const { owner, client } = record;
		const day = dayOf(status.since);
		const known = by < 0 ? this.#countedIn.get(status) : this.#byOwner.get(owner)?.get(day);
		if (known === undefined && by < 0) return;
		const row = known ?? this.#make(owner, client, day);
		this.#countedIn.set(status, row);
		count(row.figures, record, status, by);
		this.#unwritten.add(keyOf(row));
	}

	/** Writes the changed rows. The next call retries rows that could not be written. */
	write(): void {
		if (this.#unwritten.size === 0) return;
		const { kv, background, log } = this.#dependencies;
		const keys = [...this.#unwritten];
		this.#unwritten.clear();
		background.run("figures", async () => {
			try {
				await kv.write(keys.map((key): Change => ({ key, value: this.#stored(key) })));
			} catch (thrown) {
				for (const key of keys) this.#unwritten.add(key);
				log.warn("could not write searchers' figures, retrying", { fault: safeError(thrown) });
			}
		});
	}

	#make(owner: string, client: string, day: number): Row {
		const over = this.#shares.exceeded(client, 1);
		if (over !== null) this.#forgetOneOf(over === "client" ? client : (this.#shares.largest() ?? client));
		const row = { owner, client, figures: noFigures(day) };
		this.#add(row);
		return row;
	}

	#add(row: Row): void {
		const { owner, client, figures } = row;
		const days = this.#byOwner.get(owner) ?? new Map<number, Row>();
		this.#byOwner.set(owner, days.set(figures.day, row));
		this.#byClient.add(client, row);
		this.#shares.takeAnyway(client, 1);
	}

	#forgetOneOf(client: string): void {
		const [first] = this.#byClient.get(client);
		if (first === undefined) return;
		this.#byClient.delete(client, first);
		const days = this.#byOwner.get(first.owner);
		days?.delete(first.figures.day);
		if (days?.size === 0) this.#byOwner.delete(first.owner);
		this.#shares.release(client, 1);
		this.#unwritten.add(keyOf(first));
	}

	/** The value to store under `key`; null: none. */
	#stored(key: string): Buffer | null {
		const row = this.#byOwner
			.get(ownerIn(key))
			?.get(Number(key.slice(SEARCHER_DAY.length, SEARCHER_DAY.length + DIGITS)));
		if (row === undefined) return null;
		const { day: _, paid, ...rest } = row.figures;
		const stored: StoredRow = { client: row.client, ...rest, paid: `${paid}` };
		return Buffer.from(JSON.stringify(stored));
	}
}

function keyOf({ owner, figures }: Row): string {
	return `${SEARCHER_DAY}${String(figures.day).padStart(DIGITS, "0")}/${owner}`;
}

function ownerIn(key: string): string {
	return key.slice(SEARCHER_DAY.length + DIGITS + 1);
}
