// Looks up transactions by hash in the database. A client has one query in flight, which covers all
// hashes that it waits for. The client that has used least is served next. So many unknown hashes
// from one client hardly delay the others.

import { type Clock, nextTurn, within } from "../../shared/clock.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { archivedKey, hashIn } from "../../shared/kv/archive.ts";
import type { Accounts, StoreRecord } from "../../shared/kv/port.ts";
import { FairScheduler } from "../../shared/shares/scheduler.ts";

/** The maximum number of hashes in one query. */
const MAX_HASHES = 64;
/** The maximum number of hashes that a client waits for, and of clients that wait for a query. */
const MAX_WAITING = 256;
const MAX_CLIENTS = 1_024;
/** How long a look-up may take, including its wait, in ms. */
const PATIENCE_MS = 2_000;

interface Lookup {
	readonly found: Promise<readonly StoreRecord[]>;
	readonly resolve: (records: readonly StoreRecord[]) => void;
	readonly reject: (thrown: unknown) => void;
}

interface HashLookupsDependencies {
	readonly accounts: Pick<Accounts, "ofHashes" | "lookups">;
	readonly clock: Clock;
}

export class HashLookups {
	readonly #dependencies: HashLookupsDependencies;
	readonly #scheduler: FairScheduler;
	/**
	 * Hashes that no query includes yet, by client and hash. A client is here while it has a query
	 * queued or in flight.
	 */
	readonly #waiting = new Map<string, Map<string, Lookup>>();

	constructor(dependencies: HashLookupsDependencies) {
		this.#dependencies = dependencies;
		this.#scheduler = new FairScheduler({
			concurrency: dependencies.accounts.lookups,
			maxWaiting: MAX_CLIENTS,
		});
	}

	/**
	 * The records of `hash`. Rejects with RpcError `limit` if the client waits for too
	 * many, and with DeadlineError if it takes too long. Otherwise rejects as the query does.
	 */
	find(hash: string, client: string): Promise<readonly StoreRecord[]> {
		const { clock } = this.#dependencies;
		const waiting = this.#waiting.get(client) ?? this.#opened(client);
		if (!waiting.has(hash) && waiting.size >= MAX_WAITING) {
			const message = "too many look-ups of transactions by this client at the same time";
			return Promise.reject(new RpcError("limit", message, { scope: "client" }));
		}
		const lookup = waiting.get(hash) ?? newLookup();
		waiting.set(hash, lookup);
		return within(clock, "look-up by hash", PATIENCE_MS, lookup.found);
	}

	#opened(client: string): Map<string, Lookup> {
		const waiting = new Map<string, Lookup>();
		this.#waiting.set(client, waiting);
		void this.#serve(client, waiting);
		return waiting;
	}

	/** Queues one query after another until the client waits for nothing more. */
	async #serve(client: string, waiting: Map<string, Lookup>): Promise<void> {
		// All look-ups before the event loop's next turn go into one query.
		await nextTurn();
		do {
			await this.#scheduler
				.run({ client, cost: 1 }, () => this.#ask(waiting))
				.catch((thrown: unknown) => {
					for (const { reject } of waiting.values()) reject(thrown);
					waiting.clear();
				});
		} while (waiting.size > 0);
		this.#waiting.delete(client);
	}

	/** Queries the hashes that have waited longest. Never rejects. */
	async #ask(waiting: Map<string, Lookup>): Promise<void> {
		const asked = [...waiting].slice(0, MAX_HASHES);
		for (const [hash] of asked) waiting.delete(hash);
		const hashes = asked.map(([hash]) => hash);
		try {
			const records = await this.#dependencies.accounts.ofHashes(hashes, hashes.map(archivedKey));
			const found = new Map<string, StoreRecord[]>(hashes.map((hash) => [hash, []]));
			for (const record of records) found.get(hashIn(record.key))?.push(record);
			for (const [hash, { resolve }] of asked) resolve(found.get(hash) ?? []);
		} catch (thrown) {
			for (const [, { reject }] of asked) reject(thrown);
		}
	}
}

function newLookup(): Lookup {
	let resolve: Lookup["resolve"] = () => {};
	let reject: Lookup["reject"] = () => {};
	const found = new Promise<readonly StoreRecord[]>((done, failed) => {
		resolve = done;
		reject = failed;
	});
	// Each caller gets the rejection, unless its time ended before.
	found.catch(() => {});
	return { found, resolve, reject };
}
