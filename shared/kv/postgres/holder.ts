// Reads who has a store, for a process that does not: where the holder is reached, and what it wants to be shown.

import type { Clock } from "../../clock.ts";
import { Database, type DatabaseOptions } from "./database.ts";
import { refusedError } from "./errors.ts";

/** Who has a store now, or had it last. */
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
/** Of the first one, which looks for a pooler too. */
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

	/** The holder; null if nobody has had the store, or nobody tells where it is reached. Throws as `Database` does. */
	async read(ms = READ_MS): Promise<Holder | null> {
		const query = { name: "holder", text: READ, values: [this.#store] };
		const [row] = await this.#database.query(query, ms);
		if (row === undefined) return null;
		return { term: Number(row.epoch), address: String(row.address), secret: String(row.secret) };
	}

	/** Throws DatabaseRefusedError if the database takes nobody by this URL; any other fault is for later. */
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
