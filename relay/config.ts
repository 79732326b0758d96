// The relay's settings, one row each. `--help`, `--print-config` and the tables in the documents
// are generated from these rows.

import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import {
	adminTokenRow,
	databaseUrlRow,
	dataDirRow,
	flag,
	headerText,
	integer,
	oneOf,
	optional,
	port,
	portRow,
	readSettings,
	row,
	SERVER_ROWS,
	SettingError,
	type Settings,
	type SettingTable,
	slotContradictions,
	traceRows,
	url,
} from "../shared/config.ts";
import { addressOfKey } from "../shared/ethereum/signatures.ts";
import { internalUrl } from "../shared/internalUrl.ts";
import { nearest } from "../shared/nearest.ts";
import { MAINNET_BUILDERS } from "./broadcast/mainnet.ts";
import { type BuilderRow, parseBuilders } from "./domain/builder.ts";
import { SUBSCRIPTION_NAMES } from "./domain/endpoints.ts";
import { CANCEL_POLICIES } from "./domain/transaction.ts";

const EXAMPLE_ADDRESS = "0x00000000000000000000000000000000000000fe";
/** The value of BUILDERS for the list that comes with the relay. */
const MAINNET = "mainnet";
/** With this alias, bots written for MEV Blocker work unchanged. */
const DEFAULT_ALIASES = "mevblocker_partialPendingTransactions";

/** Every setting of the relay. */
export const RELAY_SETTINGS = {
	PORT: portRow("8080"),
	HOST: SERVER_ROWS.HOST,
	SEARCHER_PORT: optional(
		"separate port for the websocket; default: on PORT, where boost expects it",
		"a port, 0 to 65535",
		"8090",
		port,
	),
	METRICS_PORT: SERVER_ROWS.METRICS_PORT,
	METRICS_TOKEN: SERVER_ROWS.METRICS_TOKEN,
	ETH_RPC_URL: row("execution node", "an http or https URL", "http://127.0.0.1:8545", url("http:", "https:")),
	ETH_WS_URL: optional(
		"the node's websocket, to subscribe to heads instead of polling",
		"a ws or wss URL",
		"ws://127.0.0.1:8545",
		url("ws:", "wss:"),
	),
	BEACON_URL: optional(
		"consensus node, for the real PREVRANDAO and beacon root of the next slot in simulations",
		"an http or https URL",
		"http://127.0.0.1:5052",
		url("http:", "https:"),
	),
	HEAD_POLL_MS: optional(
		"interval at which the head is polled without ETH_WS_URL; default: a quarter of a slot, at most a second",
		"milliseconds, 10 to 60000",
		"500",
		integer(10, 60_000),
	),
	ACCOUNT_TIMEOUT_MS: row(
		"timeout of reading an account from the node at a submission",
		"milliseconds, 200 to 60000",
		"1000",
		integer(200, 60_000),
		"1000",
	),
	CHAIN_ID: optional("chain that the node must be on", "a chain id", "1", chainId),
	SLOT_MS: SERVER_ROWS.SLOT_MS,
	SLOT_SECONDS: SERVER_ROWS.SLOT_SECONDS,
	BUILDERS: row(
		"block builders",
		"rows as JSON, the path of a JSON file, or mainnet for the list that comes with it",
		'[{"name":"local","url":"http://127.0.0.1:8083"}]',
		builders,
	),
	SIGNING_KEY: {
		...optional(
			"key that signs requests to builders; default: a key kept in the store",
			"32 bytes as 0x hex",
			"0x…",
			privateKey,
		),
		secret: true,
	},
	FEE_RECIPIENT: optional(
		"coinbase of the next block, if all builders share one",
		"an address",
		EXAMPLE_ADDRESS,
		address,
	),
	REFUND_PERCENT: row("user's share of a bid", "percent, 0 to 100", "90", integer(0, 100), "90"),
	BIDS_PER_TARGET: row(
		"bids on one transaction that each builder gets",
		"whole number, 4 to 32",
		"16",
		integer(4, 32),
		"16",
	),
	TX_TTL_BLOCKS: SERVER_ROWS.TX_TTL_BLOCKS,
	SUBSCRIPTION_ALIASES: row(
		"other names of the subscription to pending transactions",
		"names of letters, digits, - and _, up to 80 each, with commas between",
		DEFAULT_ALIASES,
		aliases,
		DEFAULT_ALIASES,
	),
	DATA_DIR: dataDirRow("the embedded store", "relay"),
	DATABASE_URL: databaseUrlRow("the embedded store"),
	DATABASE_VERIFY: SERVER_ROWS.DATABASE_VERIFY,
	PUBLIC_URL: optional(
		"public origin of this relay; signatures for live reads and refunds must name its host",
		"an http or https origin",
		"https://relay.example",
		origin,
	),
	INTERNAL_URL: optional(
		"URL for the other relays on the same database; default: the host's private address and PORT",
		"an http or https URL",
		"http://10.0.0.7:8080",
		url("http:", "https:"),
	),
	CORE_TIMEOUT_MS: row(
		"silence after which a core counts as lost; the same on all relays of a database",
		"milliseconds, 200 to 60000",
		"1000",
		integer(200, 60_000),
		"1000",
	),
	TRUST_PROXY: SERVER_ROWS.TRUST_PROXY,
	CANCEL_POLICY: row(
		"right to cancel by hash: of the submitting address, or of anyone; the sender's signature always has it",
		`one of ${CANCEL_POLICIES.join(", ")}`,
		"origin",
		oneOf(CANCEL_POLICIES),
		"origin",
	),
	BOOST_SECRET: {
		...optional(
			"secret shared with boost, so that boost can name the client",
			"any text of printable ASCII",
			"a long random text",
			headerText,
		),
		secret: true,
	},
	MAX_CONNECTIONS_PER_CLIENT: SERVER_ROWS.MAX_CONNECTIONS_PER_CLIENT,
	MAX_BODY_BYTES: SERVER_ROWS.MAX_BODY_BYTES,
	MAX_BATCH: SERVER_ROWS.MAX_BATCH,
	RATE_LIMIT_RPS: SERVER_ROWS.RATE_LIMIT_RPS,
	POOL_MAX_BYTES: row(
		"maximum size of all pending transactions; a client may use a sixteenth",
		"bytes, 33554432 to 17179869184",
		"268435456",
		integer(33_554_432, 17_179_869_184),
		"268435456",
	),
	MAX_HEAD_AGE_S: optional(
		"age of the head above which /readyz is 503; default: five slots, at least five seconds",
		"seconds, 1 to 86400",
		"60",
		integer(1, 86_400),
	),
	SIGNATURE_THREAD: row(
		"whether a separate thread makes and recovers signatures, if there is a second CPU core",
		"true or false",
		"false",
		flag,
		"true",
	),
	CANARY_KEY: {
		...optional(
			"key of an account with a little ether, used for nothing else, whose canaries find builders that leak",
			"32 bytes as 0x hex",
			"0x…",
			privateKey,
		),
		secret: true,
	},
	CANARY_PER_DAY: row(
		"canaries that are sent in a day on average, at random times, if there is a CANARY_KEY",
		"whole number, 1 to 1440",
		"24",
		integer(1, 1_440),
		"24",
	),
	SIGNATURE_HIDING: SERVER_ROWS.SIGNATURE_HIDING,
	EXPLORER_URL: SERVER_ROWS.EXPLORER_URL,
	PUBLIC_STATS: SERVER_ROWS.PUBLIC_STATS,
	ADMIN_TOKEN: adminTokenRow(
		"bearer token for GET /operator, /operator/refunds.csv and /admin/state; without it they are not served",
	),
	DRAIN_SECONDS: SERVER_ROWS.DRAIN_SECONDS,
	...traceRows("leeward-relay"),
	LOG_LEVEL: SERVER_ROWS.LOG_LEVEL,
} satisfies SettingTable;

export type RelayConfig = Settings<typeof RELAY_SETTINGS>;

/** Reads the relay's settings. Throws SettingError that lists every missing or invalid one. */
export function readRelayConfig(env: Readonly<Record<string, string | undefined>>): RelayConfig {
	const config = readSettings(RELAY_SETTINGS, env, slotContradictions);
	const { HOST: host, PORT: port, DATABASE_URL } = config;
	// Other relays can find this one only through a database.
	if (DATABASE_URL === undefined) return config;
	return { ...config, INTERNAL_URL: config.INTERNAL_URL ?? internalUrl({ env, host, port }) };
}

function chainId(value: string): bigint | undefined {
	return /^\d{1,20}$/.test(value) && BigInt(value) > 0n ? BigInt(value) : undefined;
}

function privateKey(value: string): string | undefined {
	if (!/^0x[0-9a-fA-F]{64}$/.test(value)) return undefined;
	try {
		addressOfKey(value);
		return value.toLowerCase();
	} catch {
		return undefined;
	}
}

/** A URL with nothing after its host. */
function origin(value: string): URL | undefined {
	const given = url("http:", "https:")(value);
	if (given === undefined || !/^https?:\/\/[^/?#@]+\/?$/i.test(given)) return undefined;
	return new URL(given);
}

function address(value: string): string | undefined {
	return /^0x[0-9a-fA-F]{40}$/.test(value) ? value.toLowerCase() : undefined;
}

/** Comma-separated names, none empty and none equal to a built-in subscription. */
function aliases(value: string): readonly string[] | undefined {
	const names = value.split(",").map((name) => name.trim());
	const taken: readonly string[] = SUBSCRIPTION_NAMES;
	return names.every((name) => /^[\w-]{1,80}$/.test(name) && !taken.includes(name)) ? names : undefined;
}

function builders(value: string): readonly BuilderRow[] | undefined {
	const parsed = readBuilders(value);
	if (parsed.ok) return parsed.rows;
	throw new SettingError("BUILDERS", `is not valid (${parsed.expected})`, {
		...RELAY_SETTINGS.BUILDERS,
	});
}

/**
 * The likely intended value of a path that does not exist: mainnet, or a file in the same folder.
 */
function nearestFile(path: string): string | null {
	const folder = dirname(path);
	const found = nearest(path, [MAINNET], 2);
	if (found !== null) return found;
	try {
		const file = nearest(basename(path), readdirSync(folder));
		return file && join(folder, file);
	} catch {
		return null;
	}
}

function readBuilders(value: string): ReturnType<typeof parseBuilders> {
	if (value === MAINNET) return parseBuilders(MAINNET_BUILDERS);
	const inline = /^\s*[[{]/.test(value);
	let json: string;
	try {
		json = inline ? value : readFileSync(value, "utf8");
	} catch {
		const meant = nearestFile(value);
		const hint = meant === null ? "" : `: did you mean ${meant}?`;
		return { ok: false, expected: `the file can't be read${hint}` };
	}
	try {
		return parseBuilders(JSON.parse(json));
	} catch {
		return { ok: false, expected: "it is not JSON" };
	}
}
