// Reads a process's settings from environment variables by a table. The table also makes the texts
// of --help and --print-config. Errors name the setting, the expected form and an example, but no
// value that may be a secret.

import { SIGNATURE_HIDING } from "./ethereum/rpcObjects.ts";
import { LOG_LEVELS, type LogLevel } from "./log.ts";
import { nearest } from "./nearest.ts";

/** One row of a process's table of settings. All are environment variables. */
export interface Setting<T> {
	/** One line. */
	readonly help: string;
	/** The form of a value, for errors and help: "a port, 0 to 65535". */
	readonly expects: string;
	readonly example: string;
	/** Used if the variable is absent or empty; without a default the setting is required. */
	readonly default?: string;
	/** If true, the variable may be absent. `parse` is then called with "" and must accept it. */
	readonly optional?: boolean;
	/** Never printed. */
	readonly secret?: boolean;
	/** Never throws; returns undefined for an invalid value. */
	readonly parse: (text: string) => T | undefined;
}

export type SettingTable = Readonly<Record<string, Setting<unknown>>>;
export type Settings<T extends SettingTable> = {
	readonly [K in keyof T]: T[K] extends Setting<infer V> ? V : never;
};

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A bad or missing setting. The message quotes `given` only if it can't be a secret. */
export class SettingError extends Error {
	readonly code = "SETTING";
	readonly setting: string;
	constructor(setting: string, problem: string, row: Setting<unknown>, given = "") {
		const expected = `expected ${row.expects}, for example ${setting}=${row.example}`;
		super(`${setting} ${problem}: ${expected}${quotedValue(given, row)}`);
		this.name = "SettingError";
		this.setting = setting;
	}
}

/**
 * Reads every row of `table` from `env`. `contradictions` checks the valid values against each
 * other. Throws one {@link SettingError} with a line for each problem.
 */
export function readSettings<T extends SettingTable>(
	table: T,
	env: Environment,
	contradictions: (settings: Partial<Settings<T>>) => readonly SettingError[] = () => [],
): Settings<T> {
	const values: Record<string, unknown> = {};
	const errors: SettingError[] = [];
	for (const [name, row] of Object.entries(table)) {
		try {
			values[name] = readSetting(name, row, env);
		} catch (thrown) {
			if (!(thrown instanceof SettingError)) throw thrown;
			errors.push(thrown);
		}
	}
	const reported = new Set(errors.map(({ setting }) => setting));
	errors.push(
		...contradictions(values as Partial<Settings<T>>).filter(({ setting }) => !reported.has(setting)),
	);
	const misspelt = new Map(misspelled(table, env).map(([given, meant]) => [meant, given]));
	for (const error of errors) {
		const given = misspelt.get(error.setting);
		if (given !== undefined) error.message += `; ${given} is set, did you mean ${error.setting}?`;
	}
	const [first] = errors;
	if (first === undefined) return Object.freeze(values) as Settings<T>;
	first.message = errors.map(({ message }) => message).join("\n");
	throw first;
}

function readSetting(name: string, row: Setting<unknown>, env: Environment): unknown {
	const given = env[name]?.trim() ?? "";
	const text = given === "" ? row.default : given;
	if (text === undefined && row.optional !== true) throw new SettingError(name, "is missing", row);
	const value = row.parse(text ?? "");
	if (value !== undefined || (row.optional === true && given === "")) return value;
	throw new SettingError(name, "is not valid", row, given);
}

/**
 * Quotes the given value if it can't be a secret: a number, or a misspelt keyword together with the
 * right one.
 */
function quotedValue(given: string, row: Setting<unknown>): string {
	if (row.secret === true || given === "") return "";
	const keywords = row.expects
		.split(/[\s,()]+/)
		.filter((part) => /^[a-z]/i.test(part) && row.parse(part) !== undefined);
	const meant = given.length > 20 ? null : nearest(given, keywords, 2);
	if (meant !== null) return `; given ${given}, did you mean ${meant}?`;
	return /^-?\d[\d.]{0,12}[a-z%]{0,3}$/i.test(given) ? `; given ${given}` : "";
}

/** Misspelt setting names in `env`, each with the right one. */
export function misspelled(table: SettingTable, env: Environment): readonly (readonly [string, string])[] {
	const known = Object.keys(table);
	return Object.keys(env)
		.filter((name) => !known.includes(name) && /^[A-Z][A-Z0-9_]{3,40}$/.test(name))
		.flatMap((name) => {
			const meant = nearest(name, known);
			return meant === null || (env[meant] ?? "").trim() !== "" ? [] : [[name, meant] as const];
		});
}

/** A row: required, or with `fallback` as its default. */
export function row<T>(
	help: string,
	expects: string,
	example: string,
	parse: (value: string) => T | undefined,
	fallback?: string,
): Setting<T> {
	return { help, expects, example, parse, ...(fallback === undefined ? {} : { default: fallback }) };
}

/** An optional row, whose value is undefined if it is not set. */
export function optional<T>(
	help: string,
	expects: string,
	example: string,
	parse: (value: string) => T | undefined,
): Setting<T | undefined> {
	return {
		help,
		expects,
		example,
		optional: true,
		parse: (value) => (value === "" ? undefined : parse(value)),
	};
}

/** The text of `--help`. */
export function helpText(command: string, about: string, table: SettingTable): string {
	const lines = [`${command}: ${about}`, "", "Settings (environment variables):"];
	for (const [name, row] of Object.entries(table)) {
		const fallback =
			row.default !== undefined ? `default ${row.default}` : row.optional === true ? "optional" : "required";
		lines.push(`  ${name}`, `      ${row.help}`, `      ${row.expects}; ${fallback}; e.g. ${row.example}`);
	}
	const options = [
		"  --help          this text",
		"  --print-config  the settings in force, with secrets masked",
		"  --version       the version, and the commit that it was built from",
		"  --salvage       keeps what can be read of a damaged store in DATA_DIR",
	];
	return [...lines, "", "Options:", ...options].join("\n");
}

/** The text of `--print-config`: lines of `NAME=value`, with secrets and URL credentials masked. */
export function printedConfig(table: SettingTable, env: Environment): string {
	return Object.entries(table)
		.map(([name, row]) => {
			const given = env[name]?.trim() ?? "";
			const text = given === "" ? (row.default ?? "") : given;
			return `${name}=${row.secret === true && text !== "" ? "***" : maskText(text)}`;
		})
		.join("\n");
}

/** Masks URLs in a setting's text; JSON is parsed first, so that escapes can't hide a URL. */
function maskText(text: string): string {
	if (!/^\s*[[{]/.test(text)) return maskUrls(text);
	try {
		return JSON.stringify(JSON.parse(text), (_key, value: unknown) => {
			if (typeof value !== "string" || !URL.canParse(value)) return value;
			const { protocol, host } = new URL(value);
			return host === "" ? value : `${protocol}//${host}/***`;
		});
	} catch {
		return maskUrls(text);
	}
}

/**
 * Keeps only scheme and host of every URL in `text`, since paths, queries and users of provider
 * URLs contain keys. A URL ends at white space or a double quote. Any other character may be part
 * of a password.
 */
export function maskUrls(text: string): string {
	return text.replace(/\b([a-z][a-z0-9+.-]*:\/\/)([^\s"]*)/gi, (_whole, scheme: string, rest: string) => {
		const authority = /^[^/?#]*/.exec(rest)?.[0] ?? "";
		const host = authority.slice(authority.lastIndexOf("@") + 1);
		const tail = rest.slice(authority.length);
		const bare = host === authority && (tail === "" || tail === "/");
		return `${scheme}${host}${bare ? tail : "/***"}`;
	});
}

/** A whole number between `min` and `max`. */
export function integer(min: number, max: number): (text: string) => number | undefined {
	return (text) => {
		if (!/^\d{1,15}$/.test(text)) return undefined;
		const value = Number(text);
		return value >= min && value <= max ? value : undefined;
	};
}

/** One of `values`. */
export function oneOf<const V extends string>(values: readonly V[]): (text: string) => V | undefined {
	return (text) => values.find((value) => value === text);
}

/** `true` or `false`. */
export function flag(text: string): boolean | undefined {
	return text === "true" ? true : text === "false" ? false : undefined;
}

/**
 * A URL with one of `schemes` ("http:"), as it is written. Unusual spellings that URL parsers
 * accept are invalid.
 */
export function url(...schemes: readonly string[]): (text: string) => string | undefined {
	return (text) => {
		if (!URL.canParse(text) || !/^[a-z]+:\/\/[^\s"\\]+$/i.test(text)) return undefined;
		const { username, password } = new URL(text);
		try {
			decodeURIComponent(`${username}${password}`);
		} catch {
			return undefined;
		}
		return schemes.includes(new URL(text).protocol) ? text : undefined;
	};
}

/** The base URL of an explorer, without a slash at its end. It is public, since pages show it. */
function explorerUrl(value: string): string | undefined {
	const given = url("http:", "https:")(value);
	if (given === undefined || /[?#]/.test(given) || new URL(given).username !== "") return undefined;
	return new URL(given).password === "" ? given.replace(/\/+$/, "") : undefined;
}

/** Any nonempty text. */
export function text(value: string): string | undefined {
	return value === "" ? undefined : value;
}

/** A port number. */
export const port = integer(0, 65_535);

/** The server's port; `usual` is the default. */
export function portRow(usual: string): Setting<number> {
	return row("port for HTTP and websocket", "a port, 0 to 65535 (0: any free one)", usual, port, usual);
}

/** The folder in which `process` has its own folder. */
export function dataDirRow(what: string, process: string): Setting<string> {
	return row(`folder of ${what} (in it: ${process}/)`, "a folder", "./data", text, "./data");
}

/** The token of the operator's page. `opens`: its purpose. */
export function adminTokenRow(opens: string): Setting<string | undefined> {
	return {
		...optional(opens, "any text of printable ASCII", "a long random text", headerText),
		secret: true,
	};
}

/** A URL of one host, since pg would read a list as the name of one host. */
function databaseUrl(value: string): string | undefined {
	const given = url("postgres:", "postgresql:")(value);
	if (given === undefined) return undefined;
	const { hostname, searchParams } = new URL(given);
	const isList = [hostname, ...searchParams.getAll("host"), ...searchParams.getAll("port")].some((part) =>
		/,|%2c/i.test(part),
	);
	return isList ? undefined : given;
}

export function databaseUrlRow(what: string): Setting<string | undefined> {
	const expects =
		"a postgres:// URL of one host (for several servers a DNS name or balancer that leads to the primary)";
	const example = "postgres://user:password@host:5432/name";
	return { ...optional(`PostgreSQL instead of ${what}`, expects, example, databaseUrl), secret: true };
}

/** A whole number of `what`, between `min` and `max`; `usual` is the default. */
function numberRow(help: string, what: string, min: number, max: number, usual: number, example = usual) {
	return row(help, `${what}, ${min} to ${max}`, String(example), integer(min, max), String(usual));
}

/** Rows of both relay and boost. */
export const SERVER_ROWS = {
	HOST: row("address to listen on", "an address of this machine", "127.0.0.1", text, "0.0.0.0"),
	DATABASE_VERIFY: row(
		"whether the database's certificate must be valid, regardless of its URL's sslmode",
		"true or false",
		"true",
		flag,
		"false",
	),
	METRICS_PORT: optional(
		"separate port for /metrics, reached by an address or a private name",
		"a port, 0 to 65535",
		"9090",
		port,
	),
	METRICS_TOKEN: {
		...optional(
			"bearer token for /metrics on PORT; without it, PORT does not serve /metrics",
			"any text of printable ASCII",
			"a long random text",
			headerText,
		),
		secret: true,
	},
	SLOT_MS: optional(
		"time between blocks; learnt from the chain unless set",
		"milliseconds, 250 to 30000",
		"12000",
		integer(250, 30_000),
	),
	SLOT_SECONDS: optional("SLOT_MS in seconds", "seconds, 1 to 60", "12", integer(1, 60)),
	TX_TTL_BLOCKS: numberRow("lifetime of a transaction", "blocks", 1, 1000, 25),
	EXPLORER_URL: optional(
		"block explorer that the pages link to; /tx/HASH, /address/A and /block/N are added",
		"an http or https URL without credentials and query",
		"https://etherscan.io",
		explorerUrl,
	),
	PUBLIC_STATS: row(
		"whether the statistics are served, to everybody: GET /stats, /stats.json, /stats/builders.json and /stats/service.json",
		"true or false",
		"false",
		flag,
		"true",
	),
	TRUST_PROXY: numberRow(
		"number of proxies in front whose X-Forwarded-For entry is trusted",
		"a number",
		0,
		10,
		0,
		1,
	),
	MAX_CONNECTIONS_PER_CLIENT: numberRow(
		"maximum connections of a client; behind proxies, its requests in flight and websockets",
		"a number",
		1,
		10_000,
		256,
	),
	MAX_BODY_BYTES: numberRow("maximum size of a request", "bytes", 1024, 67_108_864, 2_097_152),
	MAX_BATCH: numberRow("maximum entries of a batch", "a number", 1, 10_000, 1_000),
	RATE_LIMIT_RPS: row(
		"requests per second of each client, with a burst of ten seconds' worth",
		"a number, 0 (no limit) to 1000000",
		"100",
		integer(0, 1_000_000),
		"100",
	),
	SIGNATURE_HIDING: row(
		"transactions that eth_getTransactionByHash shows with gasPrice, v, r, s and yParity as 0x0",
		"always (all), or pending (only pending private ones)",
		"pending",
		oneOf(SIGNATURE_HIDING),
		"always",
	),
	DRAIN_SECONDS: numberRow(
		"time over which websockets are closed on shutdown; allow 10 s more before SIGKILL",
		"seconds",
		0,
		300,
		20,
	),
	LOG_LEVEL: row<LogLevel>(
		"lowest level that is logged",
		`one of ${LOG_LEVELS.join(", ")}`,
		"info",
		oneOf(LOG_LEVELS),
		"info",
	),
} as const;

/** OpenTelemetry's names for the sampling of traces. */
const TRACES_SAMPLERS = [
	"always_on",
	"always_off",
	"traceidratio",
	"parentbased_always_on",
	"parentbased_always_off",
	"parentbased_traceidratio",
] as const;

/**
 * Rows of traces, under OpenTelemetry's own names. `service`: the name of this process in the
 * traces.
 */
export function traceRows(service: string) {
	return {
		OTEL_EXPORTER_OTLP_ENDPOINT: optional(
			"collector of traces, by OTLP over HTTP as JSON (its /v1/traces); without it nothing is traced",
			"an http or https URL",
			"http://127.0.0.1:4318",
			url("http:", "https:"),
		),
		OTEL_EXPORTER_OTLP_HEADERS: {
			...optional(
				"headers of each request to the collector",
				"NAME=VALUE, with commas between, values percent-encoded",
				"authorization=Bearer%20secret",
				otlpHeaders,
			),
			secret: true,
		},
		OTEL_SERVICE_NAME: row(
			"name of this process in traces",
			"any text of printable ASCII",
			service,
			headerText,
			service,
		),
		OTEL_TRACES_SAMPLER: row(
			"sampler of submissions; parentbased_ follows boost's decision",
			`one of ${TRACES_SAMPLERS.join(", ")}`,
			"parentbased_traceidratio",
			oneOf(TRACES_SAMPLERS),
			"parentbased_always_on",
		),
		OTEL_TRACES_SAMPLER_ARG: row(
			"fraction that is traced, for samplers by ratio",
			"a number, 0 to 1",
			"0.1",
			ratio,
			"1",
		),
	};
}

/** The settings of {@link traceRows}. */
export type TraceSettings = Settings<ReturnType<typeof traceRows>>;

/** The two settings for the length of a slot. */
export interface SlotSettings {
	readonly SLOT_MS?: number | undefined;
	readonly SLOT_SECONDS?: number | undefined;
}

/** The configured length of a slot in ms. Undefined if it is to be learnt. */
export function slotMsOf({ SLOT_MS, SLOT_SECONDS }: SlotSettings): number | undefined {
	return SLOT_MS ?? (SLOT_SECONDS === undefined ? undefined : SLOT_SECONDS * 1_000);
}

/** An error if both settings for the length of a slot are given and differ. */
export function slotContradictions({ SLOT_MS, SLOT_SECONDS }: SlotSettings): readonly SettingError[] {
	if (SLOT_MS === undefined || SLOT_SECONDS === undefined || SLOT_MS === SLOT_SECONDS * 1_000) return [];
	const problem = `is ${SLOT_MS} beside SLOT_SECONDS=${SLOT_SECONDS}, which is ${SLOT_SECONDS * 1_000}: set one of them`;
	return [new SettingError("SLOT_MS", problem, SERVER_ROWS.SLOT_MS)];
}

/** A number from 0 to 1. */
function ratio(text: string): number | undefined {
	return /^(0|1|0?\.\d{1,9}|1\.0{1,9})$/.test(text) ? Number(text) : undefined;
}

/** Headers as OpenTelemetry's settings write them: `a=1,b=2`, with percent-encoded values. */
function otlpHeaders(text: string): Readonly<Record<string, string>> | undefined {
	const headers: Record<string, string> = {};
	for (const pair of text.split(",")) {
		if (pair.trim() === "") continue;
		const [, name, encoded] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
		const value = encoded === undefined ? undefined : decoded(encoded);
		if (name === undefined || value === undefined || headerText(value) === undefined) return undefined;
		headers[name] = value;
	}
	return headers;
}

function decoded(text: string): string | undefined {
	try {
		return decodeURIComponent(text);
	} catch {
		return undefined;
	}
}

/** Text that is valid in an HTTP header. */
export function headerText(value: string): string | undefined {
	return /^[\x20-\x7e]+$/.test(value) ? value : undefined;
}
