// Takes down in the database which process began which term of the relay's lease, by a trigger in
// the same transaction, and at what time. Nobody is asked who it takes itself for.

import pg from "pg";
import { systemClock, withDeadline } from "../../shared/clock.ts";

/** A term of the lease. */
export interface Term {
	readonly epoch: number;
	/** The process that took it, by the name in its URL. */
	readonly process: string;
	/** Unix ms. */
	readonly from: number;
}

/** The setting of a session that names its process. */
const NAME = "chaos.process";
const ANSWER_MS = 2_000;

const WATCH = `CREATE TABLE chaos_terms (
		epoch bigint NOT NULL, process text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
	CREATE FUNCTION chaos_term() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO chaos_terms (epoch, process) VALUES (NEW.epoch, coalesce(current_setting('${NAME}', true), ''));
		RETURN NULL;
	END $$;
	CREATE TRIGGER chaos_first AFTER INSERT ON leeward_holder FOR EACH ROW WHEN (NEW.store = 'relay')
		EXECUTE FUNCTION chaos_term();
	CREATE TRIGGER chaos_next AFTER UPDATE ON leeward_holder FOR EACH ROW
		WHEN (NEW.store = 'relay' AND NEW.epoch > OLD.epoch) EXECUTE FUNCTION chaos_term();
	INSERT INTO chaos_terms (epoch, process) SELECT epoch, 'FIRST' FROM leeward_holder WHERE store = 'relay'`;

/** The URL of `database` for the process called `name`, by way of `port`. */
export function urlOf(database: string, name: string, port: number): string {
	const url = new URL(database);
	url.port = String(port);
	url.searchParams.set("options", `-c ${NAME}=${name}`);
	return url.toString();
}

/**
 * Begins to take terms down. The tables must be there; the process called `first` is the only one
 * so far.
 */
export async function watchTerms(database: string, first: string): Promise<void> {
	await query(database, WATCH.replace("FIRST", first));
}

/** All terms, oldest first. Rejects while the database is down. */
export async function readTerms(database: string): Promise<readonly Term[]> {
	const rows = await query(
		database,
		"SELECT epoch::integer AS epoch, process, extract(epoch FROM at) * 1000 AS from FROM chaos_terms ORDER BY epoch",
	);
	return rows.map(({ epoch, process, from }) => ({
		epoch: Number(epoch),
		process: String(process),
		from: Number(from),
	}));
}

async function query(database: string, text: string): Promise<readonly Record<string, unknown>[]> {
	return withDeadline(systemClock, "question of terms", ANSWER_MS, async () => {
		const client = new pg.Client({ connectionString: database });
		client.on("error", () => {});
		await client.connect();
		try {
			return (await client.query<Record<string, unknown>>(text)).rows;
		} finally {
			await client.end();
		}
	});
}
