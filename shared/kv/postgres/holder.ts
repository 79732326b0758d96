// Reads the current holder of a store, for a process that does not have it: the holder's URL, and
// the secret to present to it.

import type { Clock } from "../../clock.ts";
import { Database, type DatabaseOptions } from "./database.ts";
import { refusedError } from "./errors.ts";

/** The process that has a store now, or had it last. */
export interface Holder {
	/** Rises with each holder. */
	readonly term: number;
	/** An http URL. */
	readonly address: string;
	readonly secret: string;
}

const READ = "SELECT epoch, address, secret FROM leeward_holder WHERE store = $1 AND address IS NOT NULL";
/** Deadline of one reading, in ms. */
const READ_MS = 1_000;
/** Deadline of the first one, which also checks for a pooler. */
const TRY_MS = 5_000;

/** Reads the row of one store. */
export class HolderReader {
	readonly #store: string;
	readonly #database: Database;

	constructor(
		options: DatabaseOptions & { readonly store: string },
		dependencies: { readonly clock: Clock },
	) {
		this.#store = options.store;
		this.#database = new Database(options, dependencies);
	}

	/**
	 * The holder. Null if no process has had the store, or if the holder gives no URL. Throws as
	 * `Database` does.
	 */
	async read(ms = READ_MS): Promise<Holder | null> {
		const query = { name: "holder", text: READ, values: [this.#store] };
		const [row] = await this.#database.query(query, ms);
		if (row === undefined) return null;
		return { term: Number(row.epoch), address: String(row.address), secret: String(row.secret) };
	}

	/**
	 * Throws DatabaseRefusedError if the database refuses this URL. Ignores any other fault, which
	 * later reads report.
	 */
	async tryOut(): Promise<void> {
		try {
			await this.read(TRY_MS);
		} catch (thrown) {
			const refused = refusedError(thrown);
			if (refused !== null) throw refused;
		}
	}

	close(): Promise<void> {
		return this.#database.close();
	}
}
