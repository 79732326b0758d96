// A store in parts, if several processes of one kind run on one database. Each process has its own
// part with its own lease, reads the others, and moves records between them. A part is a store with
// a name such as "boost" or "boost/2".

import type pg from "pg";
import type { LeftPart, Moved, OtherPart, PartRecord, SharedStore, Wish } from "../port.ts";
import { Database, type Rows } from "./database.ts";
import { StoreInUseError } from "./errors.ts";
import { GroupRead } from "./groupRead.ts";
import { TERM, TTL_MS } from "./lease.ts";
import {
	type OpenPart,
	type OwnParts,
	openPostgres,
	type PostgresDependencies,
	type PostgresOptions,
} from "./postgres.ts";

type PartOptions = Pick<PostgresOptions, "url" | "verify" | "store">;

/** Maximum number of parts. */
const MAX_PARTS = 64;
/** Another process may open a part whose own process has not renewed its lease for this long. */
const LEFT_MS = 10_000;
/** A holder renews its row at least this long before it expires: see RENEWALS of lease.ts. */
const LEAST_LEFT_MS = (TTL_MS * 3) / 4;
const CHANNEL = "leeward_parts";
/** Connections for look-ups by hash, which clients can request without a limit. */
const LOOKUPS = 2;
/** Deadline of one query, since clients wait for it. */
const QUERY_MS = 1_000;
/** Deadline of a move, which no client waits for. */
const MOVE_MS = 5_000;

/** `until` is -infinity for an empty part, and long past for a part that was left in order. */
const OTHERS = `SELECT store, until < clock_timestamp() - $3 * interval '1 millisecond' AS left
	FROM leeward_lease WHERE (store = $2 OR store LIKE $2 || '/%') AND store <> $1 AND isfinite(until)`;
/** $1: the own part, $2: the whole store's name, $3: keys of the other parts. */
const OF_KEYS = `UNION ALL SELECT s.store, s.key, s.value, s.sender FROM leeward_holder h
	JOIN leeward_store s ON s.store = h.store AND s.key = ANY($3::text[])
	WHERE h.store <> $1 AND (h.store = $2 OR h.store LIKE $2 || '/%')`;
const OF_SENDERS = `SELECT store, key, value, sender FROM leeward_store 
	WHERE sender = ANY($4::text[]) AND store <> $1 ${OF_KEYS}`;
const OWN = "SELECT store, key, value FROM leeward_store WHERE sender = $2 AND store = $1";
const OF_HASHES = `SELECT store, key, value, sender FROM leeward_store
	WHERE right(key, 66) = ANY($4::text[]) AND sender IS NOT NULL ${OF_KEYS}`;
const ELSEWHERE = "SELECT DISTINCT sender FROM leeward_store WHERE sender = ANY($2::text[]) AND store <> $1";
/**
 * Both parts' rows stay locked until the commit, so that neither gets a new process in between.
 * With an account ($6), only moves records that the taker still requests: a withdrawn request is
 * never granted.
 */
const MOVE = `WITH terms AS MATERIALIZED (
		SELECT 1 FROM leeward_holder WHERE (store = $1 AND ${TERM} = $2) OR (store = $3 AND ${TERM} = $4)
		ORDER BY store FOR UPDATE),
	wish AS (DELETE FROM leeward_wish WHERE store = $1 AND sender = $6 AND taker = $3 AND term = $4 RETURNING 1),
	moved AS (UPDATE leeward_store s SET store = $3
		WHERE s.store = $1 AND s.key = ANY($5::text[]) AND (SELECT count(*) FROM terms) = 2
		AND ($6::text IS NULL OR EXISTS (SELECT 1 FROM wish))
		AND NOT EXISTS (SELECT 1 FROM leeward_store t WHERE t.store = $3 AND t.key = s.key)
		RETURNING s.key)
	SELECT (SELECT count(*)::integer FROM terms) AS terms, array(SELECT key FROM leeward_store
		WHERE store = $1 AND key = ANY($5::text[]) AND key NOT IN (SELECT key FROM moved)) AS left`;
/** Locks the term, so that the next holder's lease is not overwritten. */
const LEAVE = `WITH held AS (SELECT store FROM leeward_holder WHERE store = $1 AND ${TERM} = $2 FOR SHARE)
	UPDATE leeward_lease l SET until = $3::timestamptz FROM held WHERE l.store = held.store`;
const WISHES = "SELECT sender, taker, term FROM leeward_wish WHERE store = $1";
const WISH = `WITH wished AS (INSERT INTO leeward_wish (store, sender, taker, term)
		SELECT s, $2, $3, $4 FROM unnest($1::text[]) AS t(s)
		ON CONFLICT (store, sender, taker) DO UPDATE SET term = excluded.term RETURNING store)
	SELECT pg_notify('${CHANNEL}', store) FROM wished`;
const UNWISH = "DELETE FROM leeward_wish WHERE taker = $1 AND sender = $2";
const IS_OPEN = "SELECT 1 FROM leeward_wish WHERE taker = $1 AND sender = $2 LIMIT 1";
const GRANTED = `WITH gone AS (DELETE FROM leeward_wish WHERE store = $1 AND sender = $2 AND taker = $3)
	SELECT pg_notify('${CHANNEL}', $3)`;

/**
 * Opens the first part of the store that has no process, so that a single process always has the
 * first one. Throws as {@link openPostgres} does.
 */
export async function openPart(
	options: PartOptions,
	dependencies: PostgresDependencies,
): Promise<SharedStore> {
	for (let number = 1; number <= MAX_PARTS; number += 1) {
		const store = number === 1 ? options.store : `${options.store}/${number}`;
		try {
			return await openPostgres(
				{
					...options,
					...{ store, patience: AT_ONCE },
					partsOf: (open) => new PostgresParts(open, options, dependencies),
				},
				dependencies,
			);
		} catch (thrown) {
			if (!(thrown instanceof StoreInUseError)) throw thrown;
		}
	}
	throw new StoreInUseError(options.store);
}

/** Does not wait for another process. */
const AT_ONCE = { onWait: async () => {}, signal: AbortSignal.abort() };

class PostgresParts implements OwnParts {
	readonly lookups = LOOKUPS;
	readonly #open: OpenPart;
	/**
	 * Separate from the journal's, so that look-ups neither delay its writes nor make it back off.
	 */
	readonly #lookups: Database;
	readonly #options: PartOptions;
	readonly #dependencies: PostgresDependencies;
	/** Look-ups by an account and a key, with a space between them. */
	readonly #looks = new GroupRead<readonly PartRecord[]>((looks) => this.#look(looks));
	#onNews = (): void => {};

	/** `options` are those of the whole store. */
	constructor(open: OpenPart, options: PartOptions, dependencies: PostgresDependencies) {
		this.#open = open;
		this.#options = options;
		this.#dependencies = dependencies;
		const { url, verify } = options;
		const name = `${open.store}-lookups`;
		this.#lookups = new Database({ url, verify, name, connections: LOOKUPS }, dependencies);
		this.#lookups.tellBy(dependencies.log.child("lookups"));
	}

	get own(): string {
		return this.#open.store;
	}

	listenOn(session: pg.PoolClient): void {
		session.on("notification", ({ payload }) => {
			if (payload === this.own) this.#onNews();
		});
		// If listening fails or a notification is lost, a timer finds the news.
		session.query(`LISTEN ${CHANNEL}`).catch(() => {});
	}

	onNews(listener: () => void): void {
		this.#onNews = listener;
	}

	/** Marks the part so that the next process to look can open it at once. */
	async giveUp(): Promise<void> {
		await this.#query("", LEAVE, [this.own, this.#open.term(), "epoch"]).catch(() => {});
	}

	close(): Promise<void> {
		return this.#lookups.close();
	}

	async others(): Promise<readonly OtherPart[]> {
		const rows = await this.#query("others", OTHERS, [
			this.own,
			this.#options.store,
			LEFT_MS - LEAST_LEFT_MS,
		]);
		return rows.map(({ store, left }) => ({ part: String(store), isLeft: left === true }));
	}

	async ofSender(sender: string, key: string): Promise<readonly PartRecord[]> {
		return (await this.#looks.get(`${sender} ${key}`)) ?? [];
	}

	async ownOf(sender: string): Promise<readonly PartRecord[]> {
		return (await this.#query("own", OWN, [this.own, sender])).map(recordOf);
	}

	async #look(looks: readonly string[]): Promise<ReadonlyMap<string, readonly PartRecord[]>> {
		const split = looks.map((look) => look.split(" ") as [sender: string, key: string]);
		const keys = split.flatMap(([, key]) => (key === "" ? [] : [key]));
		const values = [this.own, this.#options.store, keys, split.map(([sender]) => sender)];
		const rows = await this.#query("of senders", OF_SENDERS, values);
		if (rows.length === 0) return NOTHING;
		const of = (one: string, other: string) =>
			rows.filter(({ sender, key }) => sender === one || key === other).map(recordOf);
		return new Map(split.map(([sender, key], i) => [looks[i] ?? "", of(sender, key)]));
	}

	async ofHashes(hashes: readonly string[], keys: readonly string[]): Promise<readonly PartRecord[]> {
		const values = [this.own, this.#options.store, keys, hashes];
		return (await this.#lookups.query({ name: "of hashes", text: OF_HASHES, values }, QUERY_MS)).map(
			recordOf,
		);
	}

	async alsoElsewhere(senders: readonly string[]): Promise<readonly string[]> {
		const rows = await this.#query("elsewhere", ELSEWHERE, [this.own, senders]);
		return rows.map(({ sender }) => String(sender));
	}

	async open(part: string): Promise<LeftPart | null> {
		const { clock, log } = this.#dependencies;
		let left: OpenPart | null = null;
		const kv = await openPostgres(
			{
				...this.#options,
				...{ store: part, patience: AT_ONCE },
				partsOf(open) {
					left = open;
					return null;
				},
			},
			{ clock, log },
		).catch((thrown: unknown) => {
			if (thrown instanceof StoreInUseError) return null;
			throw thrown;
		});
		const from = left as OpenPart | null;
		if (kv === null || from === null) return null;
		return Object.assign(kv, {
			moveHere: (keys: readonly string[]) =>
				this.#move(from, { store: this.own, term: this.#open.term(), sender: null }, keys),
			leave: async (isEmpty: boolean): Promise<void> => {
				if (isEmpty) await this.#query("", LEAVE, [part, from.term(), "-infinity"]);
				await kv.close();
			},
		});
	}

	give(keys: readonly string[], { taker, term, sender }: Wish): Promise<Moved> {
		return this.#move(this.#open, { store: taker, term, sender }, keys);
	}

	async wishes(): Promise<readonly Wish[]> {
		const rows = await this.#query("wishes", WISHES, [this.own]);
		return rows.map(({ sender, taker, term }) => ({
			sender: String(sender),
			taker: String(taker),
			term: String(term),
		}));
	}

	async wish(sender: string, parts: readonly string[]): Promise<void> {
		await this.#query("wish", WISH, [parts, sender, this.own, this.#open.term()]);
	}

	async unwish(sender: string): Promise<void> {
		await this.#query("unwish", UNWISH, [this.own, sender]);
	}

	async isOpen(sender: string): Promise<boolean> {
		return (await this.#query("is open", IS_OPEN, [this.own, sender])).length > 0;
	}

	async granted({ sender, taker }: Wish): Promise<void> {
		await this.#query("granted", GRANTED, [this.own, sender, taker]);
	}

	async #move(
		from: OpenPart,
		to: { readonly store: string; readonly term: string; readonly sender: string | null },
		keys: readonly string[],
	): Promise<Moved> {
		const values = [from.store, from.term(), to.store, to.term, keys, to.sender];
		const [row] = await this.#open.database.query({ name: "move", text: MOVE, values }, MOVE_MS);
		return { left: row?.left as readonly string[], isFenced: row?.terms !== 2 };
	}

	#query(name: string, text: string, values: unknown[]): Promise<Rows> {
		return this.#open.database.query({ ...(name === "" ? {} : { name }), text, values }, QUERY_MS);
	}
}

const NOTHING: ReadonlyMap<string, readonly PartRecord[]> = new Map();

function recordOf({ store, key, value }: Rows[number]): PartRecord {
	return { part: String(store), key: String(key), value: value as Buffer };
}
