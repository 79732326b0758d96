// Rows of settings that relay and boost have alike, so that both word and check them the same.

import { flag, integer, oneOf, optional, row, type Setting, text, url } from "./config.ts";
import { LOG_LEVELS, type LogLevel } from "./log.ts";

/** A port number. */
export const port = integer(0, 65_535);

/** The port that is served on; `usual` unless it is set. */
export function portRow(usual: string): Setting<number> {
	return row("port for HTTP and websocket", "a port, 0 to 65535 (0: any free one)", usual, port, usual);
}

/** The folder that `process` keeps its own folder in. */
export function dataDirRow(what: string, process: string): Setting<string> {
	return row(`folder of ${what} (in it: ${process}/)`, "a folder", "./data", text, "./data");
}

/** The URL of a PostgreSQL database. */
const databaseUrl = url("postgres:", "postgresql:");

/** PostgreSQL in the place of `what`. */
export function databaseUrlRow(what: string): Setting<string | undefined> {
	const [expects, example] = ["a postgres:// URL", "postgres://user:password@host:5432/name"];
	return { ...optional(`PostgreSQL in the place of ${what}`, expects, example, databaseUrl), secret: true };
}

/** Rows that are worded alike in both tables. */
export const SERVER_ROWS = {
	HOST: row("address to listen on", "an address of this machine", "127.0.0.1", text, "0.0.0.0"),
	DATABASE_VERIFY: row(
		"whether the database's certificate must be valid, whatever sslmode its URL says",
		"true or false",
		"true",
		flag,
		"false",
	),
	METRICS_PORT: optional("port of its own for /metrics", "a port, 0 to 65535", "9090", port),
	METRICS_TOKEN: {
		...optional(
			"opens /metrics on PORT to Authorization: Bearer; without it that path is not there",
			"any text of printable ASCII",
			"a long random text",
			headerText,
		),
		secret: true,
	},
	SLOT_SECONDS: row("time between blocks", "seconds, 1 to 60", "12", integer(1, 60), "12"),
	TX_TTL_BLOCKS: row("life of a transaction", "blocks, 1 to 1000", "25", integer(1, 1000), "25"),
	TRUST_PROXY: row(
		"proxies in front whose X-Forwarded-For entry is believed",
		"a number, 0 to 10",
		"1",
		integer(0, 10),
		"0",
	),
	MAX_CONNECTIONS_PER_CLIENT: row(
		"connections of one client at most; behind proxies its requests and websockets under way",
		"a number, 1 to 10000",
		"256",
		integer(1, 10_000),
		"256",
	),
	MAX_BODY_BYTES: row(
		"size of a request at most",
		"bytes, 1024 to 67108864",
		"2097152",
		integer(1024, 67_108_864),
		"2097152",
	),
	MAX_BATCH: row("entries of a batch at most", "a number, 1 to 10000", "100", integer(1, 10_000), "100"),
	RATE_LIMIT_RPS: row(
		"requests a second of each client, with ten seconds' worth of burst",
		"a number, 0 (no limit) to 1000000",
		"100",
		integer(0, 1_000_000),
		"100",
	),
	LOG_LEVEL: row<LogLevel>(
		"what is logged",
		`one of ${LOG_LEVELS.join(", ")}`,
		"info",
		oneOf(LOG_LEVELS),
		"info",
	),
} as const;

/** Text that may stand in a header of HTTP. */
export function headerText(value: string): string | undefined {
	return /^[\x20-\x7e]+$/.test(value) ? value : undefined;
}
