// Boost's settings, one row each, from which `--help`, `--print-config` and the tables in docs/ are
// made. Transactions are private, so a fallback outside the operator's own network needs https.

import { BlockList, isIPv4, isIPv6 } from "node:net";
import { type Clock, withDeadline } from "../shared/clock.ts";
import {
	adminTokenRow,
	databaseUrlRow,
	dataDirRow,
	flag,
	headerText,
	integer,
	oneOf,
	optional,
	portRow,
	readSettings,
	row,
	SERVER_ROWS,
	type Setting,
	SettingError,
	type Settings,
	type SettingTable,
	slotContradictions,
	traceRows,
	url,
} from "../shared/config.ts";
import { dialectOf } from "./dialects/dialects.ts";
import { DIALECTS, type DialectName } from "./domain/ports.ts";
import { BOOST_PATHS, type BoostPath } from "./domain/request.ts";

const NONE = "none";
const SAFE_URL = "an https URL (http only on loopback, in private networks, and to .internal and .flycast)";

/** Every setting of boost. */
export const BOOST_SETTINGS = {
	PORT: portRow("8081"),
	HOST: SERVER_ROWS.HOST,
	METRICS_PORT: SERVER_ROWS.METRICS_PORT,
	METRICS_TOKEN: SERVER_ROWS.METRICS_TOKEN,
	RELAY_URL: row(
		"the relay",
		"an http or https URL without a query, to which paths are added",
		"http://127.0.0.1:8080",
		baseUrl,
	),
	// Without it the relay sees all clients as one, so any client may cancel another's transaction.
	BOOST_SECRET: {
		...row(
			"secret shared with the relay, so that boost can name the client",
			"the relay's own BOOST_SECRET, any text of printable ASCII",
			"a long random text",
			headerText,
		),
		secret: true,
	},
	FALLBACK_URL: optional(
		"another private relay, used while the relay is down; paths are added",
		`${SAFE_URL}, or none: nothing is forwarded then`,
		"https://rpc.mevblocker.io",
		(text) => (text === NONE ? NONE : safe(wholeUrl)(text)),
	),
	FALLBACK_FAST_URL: optional(
		"URL for /fast instead of FALLBACK_URL, used unchanged",
		SAFE_URL,
		"https://rpc.flashbots.net/fast",
		safe(wholeUrl),
	),
	FALLBACK_NOREVERTS_URL: optional(
		"URL for /noreverts instead of FALLBACK_URL, used unchanged",
		SAFE_URL,
		"https://rpc.flashbots.net",
		safe(wholeUrl),
	),
	FALLBACK_STATUS_URL: optional(
		"URL of a transaction's status at the fallback; the hash is added; default: by the dialect",
		SAFE_URL,
		"https://protect.flashbots.net/tx/",
		safe(wholeUrl),
	),
	FALLBACK_DIALECT: row(
		"the fallback's form of paths, cancels and answers",
		`one of ${DIALECTS.join(", ")}`,
		"flashbots",
		oneOf(DIALECTS),
		"mevblocker",
	),
	FALLBACK_PRIVATE: optional(
		`whether the fallback keeps transactions from the public; ${unlessSet("isPrivate")}`,
		"true or false",
		"true",
		flag,
	),
	FALLBACK_REVERT_PROTECTED: optional(
		`whether the fallback lets no transaction of /noreverts revert on chain; ${unlessSet("isRevertProtected")}`,
		"true or false",
		"true",
		flag,
	),
	ETH_RPC_URL: optional(
		"independent node, to detect a stale relay and mined transactions",
		"an http or https URL",
		"http://127.0.0.1:8545",
		url("http:", "https:"),
	),
	DATA_DIR: dataDirRow("the journal", "boost"),
	DATABASE_URL: databaseUrlRow("the embedded journal"),
	DATABASE_VERIFY: SERVER_ROWS.DATABASE_VERIFY,
	TX_TTL_BLOCKS: SERVER_ROWS.TX_TTL_BLOCKS,
	SLOT_MS: SERVER_ROWS.SLOT_MS,
	SLOT_SECONDS: SERVER_ROWS.SLOT_SECONDS,
	TRUST_PROXY: SERVER_ROWS.TRUST_PROXY,
	ADMIN_TOKEN: adminTokenRow(
		"bearer token for GET /operator, /admin/state, POST /admin/open, /admin/close and /admin/auto; without it they are not served",
	),
	REQUEST_BUDGET_MS: duration("maximum duration of a request", 100, 60_000, "10000"),
	MAX_CONNECTIONS_PER_CLIENT: SERVER_ROWS.MAX_CONNECTIONS_PER_CLIENT,
	MAX_BODY_BYTES: SERVER_ROWS.MAX_BODY_BYTES,
	MAX_BATCH: SERVER_ROWS.MAX_BATCH,
	RATE_LIMIT_RPS: SERVER_ROWS.RATE_LIMIT_RPS,
	BREAKER_FAULTS: count("faults in a row that open a breaker", 100, "3"),
	BREAKER_STORM: count("different senders answered with -32603 within 10 s that open a breaker", 1000, "5"),
	BREAKER_HOLD_MS: duration(
		"minimum time that a breaker stays open; doubles with each failed probe",
		5,
		3_600_000,
		"2000",
	),
	BREAKER_HOLD_MAX_MS: duration("maximum of BREAKER_HOLD_MS after doubling", 5, 86_400_000, "60000"),
	PROBE_INTERVAL_MS: duration(
		"interval at which an upstream is probed; half of it while its breaker is open",
		5,
		3_600_000,
		"1000",
	),
	PROBE_TIMEOUT_MS: duration("timeout of a probe", 5, 60_000, "500"),
	PROBE_SUCCESSES: count("successful probes in a row that close a breaker", 100, "3"),
	MAX_HEAD_LAG: count("blocks by which the relay's head may lag", 1000, "3"),
	SIGNATURE_HIDING: SERVER_ROWS.SIGNATURE_HIDING,
	EXPLORER_URL: SERVER_ROWS.EXPLORER_URL,
	PUBLIC_STATS: SERVER_ROWS.PUBLIC_STATS,
	DRAIN_SECONDS: SERVER_ROWS.DRAIN_SECONDS,
	...traceRows("leeward-boost"),
	LOG_LEVEL: SERVER_ROWS.LOG_LEVEL,
} satisfies SettingTable;

/** The defaults that the dialects imply, as help text. */
function unlessSet(promise: "isPrivate" | "isRevertProtected"): string {
	const without = DIALECTS.filter((name) => !dialectOf(name)[promise]);
	return `false for ${without.join(" and ")} by default, else true`;
}

/** The fallback, with what its dialect implies. */
export interface FallbackConfig {
	readonly dialect: DialectName;
	/** The dialect adds paths to it; null if only whole URLs are set. */
	readonly baseUrl: string | null;
	/** By path: used unchanged instead of the base. */
	readonly wholeUrls: Readonly<Record<BoostPath, string | null>>;
	/** The hash is appended; null: the dialect's path on the base. */
	readonly statusUrl: string | null;
	readonly isPrivate: boolean;
	readonly isRevertProtected: boolean;
}

/**
 * The settings, with those of the fallback combined in `fallback`; null if there is no fallback.
 */
export type BoostConfig = Settings<typeof BOOST_SETTINGS> & { readonly fallback: FallbackConfig | null };

/**
 * Reads boost's settings. Throws SettingError with all that are missing, invalid or contradictory.
 */
export function readBoostConfig(env: Readonly<Record<string, string | undefined>>): BoostConfig {
	const settings = readSettings(BOOST_SETTINGS, env, contradictions);
	return Object.freeze({ ...settings, fallback: fallbackOf(settings) });
}

function contradictions(settings: Partial<Settings<typeof BOOST_SETTINGS>>): readonly SettingError[] {
	const { FALLBACK_URL, FALLBACK_FAST_URL, FALLBACK_NOREVERTS_URL } = settings;
	const { BREAKER_HOLD_MS = 0, BREAKER_HOLD_MAX_MS = BREAKER_HOLD_MS } = settings;
	const whole = FALLBACK_FAST_URL ?? FALLBACK_NOREVERTS_URL;
	const errors: SettingError[] = [...slotContradictions(settings)];
	if (BREAKER_HOLD_MAX_MS < BREAKER_HOLD_MS)
		errors.push(contradiction("BREAKER_HOLD_MAX_MS", "is below BREAKER_HOLD_MS"));
	if (FALLBACK_URL === undefined && whole === undefined)
		errors.push(contradiction("FALLBACK_URL", "is missing"));
	if (FALLBACK_URL === NONE && whole !== undefined)
		errors.push(contradiction("FALLBACK_URL", "is none beside FALLBACK_FAST_URL or FALLBACK_NOREVERTS_URL"));
	return errors;
}

/**
 * Why transactions of a path may never go to the fallback, as messages for clients; null if they
 * may.
 */
export function unfitPaths(fallback: FallbackConfig | null): Readonly<Record<BoostPath, string | null>> {
	return { fast: whyUnfit(fallback, "fast"), noreverts: whyUnfit(fallback, "noreverts") };
}

function whyUnfit(fallback: FallbackConfig | null, path: BoostPath): string | null {
	if (fallback === null) return "there is no fallback";
	if (fallback.baseUrl === null && fallback.wholeUrls[path] === null) {
		return `the fallback has no address for /${path}`;
	}
	if (!fallback.isPrivate) return "the fallback is not private";
	if (path === "noreverts" && !fallback.isRevertProtected)
		return "the fallback does not protect from reverts";
	return null;
}

function fallbackOf(settings: Settings<typeof BOOST_SETTINGS>): FallbackConfig | null {
	const { FALLBACK_URL, FALLBACK_FAST_URL, FALLBACK_NOREVERTS_URL, FALLBACK_DIALECT: dialect } = settings;
	if (FALLBACK_URL === NONE) return null;
	const { isPrivate, isRevertProtected } = dialectOf(dialect);
	return Object.freeze({
		dialect,
		baseUrl: FALLBACK_URL ?? null,
		wholeUrls: { fast: FALLBACK_FAST_URL ?? null, noreverts: FALLBACK_NOREVERTS_URL ?? null },
		statusUrl: settings.FALLBACK_STATUS_URL ?? null,
		isPrivate: settings.FALLBACK_PRIVATE ?? isPrivate,
		isRevertProtected: settings.FALLBACK_REVERT_PROTECTED ?? isRevertProtected,
	});
}

function contradiction(name: keyof typeof BOOST_SETTINGS, problem: string): SettingError {
	return new SettingError(name, problem, BOOST_SETTINGS[name]);
}

/** Milliseconds between `min` and `max`. */
function duration(help: string, min: number, max: number, usual: string): Setting<number> {
	return row(help, `milliseconds, ${min} to ${max}`, usual, integer(min, max), usual);
}

/** A number from 1 to `max`. */
function count(help: string, max: number, usual: string): Setting<number> {
	return row(help, `a number, 1 to ${max}`, usual, integer(1, max), usual);
}

function safe(parse: (text: string) => string | undefined): (text: string) => string | undefined {
	return (text) => {
		const parsed = parse(text);
		return parsed !== undefined && isSafeForThirdParty(parsed) ? parsed : undefined;
	};
}

const httpUrl = url("http:", "https:");
/**
 * Names that no public server can have: https://www.rfc-editor.org/rfc/rfc6761 and Fly's private
 * networks.
 */
const PRIVATE_NAME = /(^|\.)(localhost|internal|flycast)$/;
/**
 * Loopback, https://www.rfc-editor.org/rfc/rfc1918, https://www.rfc-editor.org/rfc/rfc4193 and
 * link-local.
 */
const PRIVATE_ADDRESSES = new BlockList();
for (const [net, bits] of [
	["127.0.0.0", 8],
	["10.0.0.0", 8],
	["172.16.0.0", 12],
	["192.168.0.0", 16],
	["169.254.0.0", 16],
] as const)
	PRIVATE_ADDRESSES.addSubnet(net, bits);
PRIVATE_ADDRESSES.addAddress("::1", "ipv6");
PRIVATE_ADDRESSES.addSubnet("fc00::", 7, "ipv6");
PRIVATE_ADDRESSES.addSubnet("fe80::", 10, "ipv6");

/** A base URL without a query; a slash at its end is dropped. */
export function baseUrl(text: string): string | undefined {
	return httpUrl(text) !== undefined && !/[?#]/.test(text) ? text.replace(/\/+$/, "") : undefined;
}

/** A URL that may have a query, as for an API key. */
function wholeUrl(text: string): string | undefined {
	return httpUrl(text) !== undefined && !text.includes("#") ? text : undefined;
}

/** Whether it is https, or http in a private network. */
function isSafeForThirdParty(text: string): boolean {
	const { protocol, hostname } = new URL(text);
	return protocol === "https:" || isPrivateHost(hostname);
}

/** Whether a URL's host can only be this machine or one in a private network. */
function isPrivateHost(hostname: string): boolean {
	const host = hostname.replace(/^\[|\]$/g, "").toLowerCase();
	if (isIPv4(host)) return PRIVATE_ADDRESSES.check(host);
	if (isIPv6(host)) return PRIVATE_ADDRESSES.check(host, "ipv6");
	return PRIVATE_NAME.test(host.replace(/\.$/, ""));
}

/** Warnings for the log. No setting's value is quoted, since it may be secret. */
export function startWarnings(config: Pick<BoostConfig, "fallback">): readonly string[] {
	const warnings: string[] = [];
	const unfit = unfitPaths(config.fallback);
	for (const path of BOOST_PATHS) {
		const why = unfit[path];
		if (why !== null) warnings.push(`while the relay is down nothing of /${path} can be forwarded: ${why}`);
	}
	return warnings;
}

/** The warning if the relay and the fallback are the same. */
export function sameUpstreamWarning(same: "url" | "address"): string {
	return same === "url"
		? "the fallback is the relay itself: RELAY_URL and FALLBACK_URL are the same"
		: "the fallback may be the relay itself: both names have one address and port";
}

/** Deadline of the DNS look-ups, in ms. */
const LOOKUP_MS = 2_000;

/**
 * Whether the relay and the fallback are the same: by `url`, or by `address` and port; null if
 * neither is known.
 */
export async function sameUpstream(
	config: Pick<BoostConfig, "RELAY_URL" | "fallback">,
	dependencies: {
		readonly clock: Clock;
		/** All addresses of a name; rejects if it has none. */
		readonly addressesOf: (name: string) => Promise<readonly string[]>;
	},
): Promise<"url" | "address" | null> {
	const fallback = fallbackUrls(config);
	const relay = new URL(config.RELAY_URL);
	const relayUrls = [config.RELAY_URL, ...BOOST_PATHS.map((path) => `${config.RELAY_URL}/${path}`)].map(
		plain,
	);
	if (fallback.some((url) => relayUrls.includes(plain(url)))) return "url";
	const samePort = fallback.map((url) => new URL(url)).filter((url) => portOf(url) === portOf(relay));
	if (samePort.length === 0) return null;
	const { clock, addressesOf } = dependencies;
	return withDeadline(clock, "look-up of the upstreams", LOOKUP_MS, async () => {
		const ours = new Set(await addressesOf(nameOf(relay)));
		const theirs = await Promise.all(samePort.map((url) => addressesOf(nameOf(url))));
		return theirs.flat().some((address) => ours.has(address)) ? ("address" as const) : null;
		// The probes report upstreams that can't be resolved.
	}).catch(() => null);
}

function fallbackUrls({ fallback }: Pick<BoostConfig, "fallback">): readonly string[] {
	if (fallback === null) return [];
	const { baseUrl, wholeUrls } = fallback;
	return [baseUrl, ...Object.values(wholeUrls)].filter((url) => url !== null);
}

/** Without query, credentials and trailing slashes; URL lower-cases scheme and host. */
function plain(text: string): string {
	const { origin, pathname } = new URL(text);
	return origin + pathname.replace(/\/+$/, "");
}

function portOf({ port, protocol }: URL): string {
	return port === "" ? (protocol === "https:" ? "443" : "80") : port;
}

function nameOf({ hostname }: URL): string {
	return hostname.replace(/^\[|\]$/g, "");
}
