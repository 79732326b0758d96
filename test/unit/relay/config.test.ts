// Tests the relay's settings and the rows of BUILDERS: documented defaults and valid values.
// Refusals of bad values are tested with the process, in test/integration/deploy/startup.test.ts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RELAY_SETTINGS, readRelayConfig } from "../../../relay/config.ts";
import { BUILDER_DOCS, parseBuilders } from "../../../relay/domain/builder.ts";
import { slotMsOf } from "../../../shared/config.ts";
import { addressOfKey } from "../../../shared/ethereum/signatures.ts";

const ROW = { name: "local", url: "http://127.0.0.1:8083" };
const ROWS = JSON.stringify([ROW]);
const NEEDED = { ETH_RPC_URL: "http://127.0.0.1:8545", BUILDERS: ROWS };

test("with nothing but what is required, everything else has its documented default", () => {
	const { BUILDERS, ...rest } = readRelayConfig(NEEDED);
	assert.deepEqual(rest, {
		...{ PORT: 8080, HOST: "0.0.0.0", SEARCHER_PORT: undefined, METRICS_PORT: undefined },
		...{
			ETH_RPC_URL: "http://127.0.0.1:8545",
			ETH_WS_URL: undefined,
			BEACON_URL: undefined,
			HEAD_POLL_MS: undefined,
		},
		...{
			CHAIN_ID: undefined,
			SLOT_MS: undefined,
			SLOT_SECONDS: undefined,
			SIGNING_KEY: undefined,
			FEE_RECIPIENT: undefined,
		},
		...{
			REFUND_PERCENT: 90,
			BIDS_PER_TARGET: 16,
			METRICS_TOKEN: undefined,
			ADMIN_TOKEN: undefined,
			MAX_CONNECTIONS_PER_CLIENT: 256,
			TX_TTL_BLOCKS: 25,
			DATA_DIR: "./data",
			DATABASE_URL: undefined,
			DATABASE_VERIFY: false,
			PUBLIC_URL: undefined,
			INTERNAL_URL: undefined,
			CORE_TIMEOUT_MS: 1_000,
			ACCOUNT_TIMEOUT_MS: 1_000,
		},
		SUBSCRIPTION_ALIASES: ["mevblocker_partialPendingTransactions"],
		CANCEL_POLICY: "origin",
		...{ TRUST_PROXY: 0, BOOST_SECRET: undefined, MAX_BODY_BYTES: 2_097_152, MAX_BATCH: 1_000 },
		...{
			RATE_LIMIT_RPS: 100,
			POOL_MAX_BYTES: 268_435_456,
			MAX_HEAD_AGE_S: undefined,
			CANARY_KEY: undefined,
			CANARY_PER_DAY: 24,
			SIGNATURE_THREAD: true,
			SIGNATURE_HIDING: "always",
			EXPLORER_URL: undefined,
			PUBLIC_STATS: true,
		},
		...{ DRAIN_SECONDS: 20, LOG_LEVEL: "info" },
		...{ OTEL_EXPORTER_OTLP_ENDPOINT: undefined, OTEL_EXPORTER_OTLP_HEADERS: undefined },
		...{ OTEL_SERVICE_NAME: "leeward-relay", OTEL_TRACES_SAMPLER: "parentbased_always_on" },
		OTEL_TRACES_SAMPLER_ARG: 1,
	});
	assert.deepEqual(
		BUILDERS.map(({ name, url }) => [name, url]),
		[["local", "http://127.0.0.1:8083"]],
	);
});

test("a slot's length is set by SLOT_MS or SLOT_SECONDS, both if they agree", () => {
	for (const [given, expected] of [
		[{}, undefined],
		[{ SLOT_MS: "450" }, 450],
		[{ SLOT_SECONDS: "12" }, 12_000],
		[{ SLOT_MS: "2000", SLOT_SECONDS: "2" }, 2_000],
		[{ SLOT_MS: "", SLOT_SECONDS: "" }, undefined],
	] as const) {
		assert.equal(slotMsOf(readRelayConfig({ ...NEEDED, ...given })), expected);
	}
	assert.throws(() => readRelayConfig({ ...NEEDED, SLOT_MS: "450", SLOT_SECONDS: "1" }), {
		message:
			"SLOT_MS is 450 beside SLOT_SECONDS=1, which is 1000: set one of them: expected milliseconds, 250 to 30000, for example SLOT_MS=12000",
	});
});

test("the list that comes with it is taken", () => {
	const { BUILDERS } = readRelayConfig({ ...NEEDED, BUILDERS: "mainnet" });
	assert.ok(BUILDERS.length >= 1 && BUILDERS.length <= 6);
	assert.ok(BUILDERS.every(({ url }) => url.startsWith("https://")));
});

test("every example but that of the key, which nobody should copy, is valid itself", () => {
	for (const [name, row] of Object.entries(RELAY_SETTINGS)) {
		if (name === "SIGNING_KEY" || name === "CANARY_KEY") continue;
		assert.notEqual(row.parse(row.example), undefined, `${name}=${row.example}`);
	}
	assert.throws(() => addressOfKey(RELAY_SETTINGS.SIGNING_KEY.example));
});

function expectedOf(value: unknown): string {
	const parsed = parseBuilders(value);
	assert.ok(!parsed.ok, `${JSON.stringify(value)} was taken`);
	return parsed.expected;
}

test("a row needs a name and a URL, and has the decided defaults", () => {
	assert.deepEqual(parseBuilders([ROW]), {
		ok: true,
		rows: [
			{
				...ROW,
				...{ dialect: "bundle", fullPrivacy: false, refund: true, maxRefundPercent: 99 },
				refundGas: "usual",
				...{
					cancel: "both",
					privateMethod: "eth_sendPrivateRawTransaction",
					dropping: false,
					requestsPerSecond: 30,
					feeRecipients: [],
				},
			},
		],
	});
});

test("every field can be set", () => {
	const full = {
		...{ name: "Titan.2-x_y", url: "https://user:pass@rpc.example/v1?key=k", dialect: "mev-share" },
		...{ fullPrivacy: true, refund: false, maxRefundPercent: 0, refundGas: 21_000, cancel: "none" },
		...{
			privateMethod: "eth_sendPrivateTransaction",
			dropping: true,
			requestsPerSecond: 50,
			feeRecipients: [`0x${"ab".repeat(20)}`],
		},
	};
	const shouted = { ...full, feeRecipients: [`0x${"AB".repeat(20)}`] };
	for (const one of [full, shouted]) assert.deepEqual(parseBuilders([one]), { ok: true, rows: [full] });
	assert.deepEqual(BUILDER_DOCS.map(({ name }) => name).sort(), Object.keys(full).sort());
});

test("the documented defaults are those that a row gets", () => {
	const parsed = parseBuilders([ROW]);
	const row: Readonly<Record<string, unknown>> = parsed.ok ? { ...parsed.rows[0] } : {};
	for (const { name, fallback, help } of BUILDER_DOCS) {
		assert.notEqual(help, "", name);
		if (name in ROW) assert.equal(fallback, "required", name);
		else assert.equal(fallback, JSON.stringify(row[name]), name);
	}
});

const GOOD_URLS = [
	...["https://rpc.example", "https://rpc.example:8443/path?key=1", "https://1.2.3.4", "HTTPS://RPC.EXAMPLE"],
	...[
		"http://localhost:1",
		"http://LOCALHOST",
		"http://127.0.0.1",
		"http://127.1.2.3:80",
		"http://[::1]:8083",
	],
	// All forms of one loopback address.
	...["http://127.1", "http://2130706433", "http://0x7f000001"],
];
const BAD_URLS = [
	...["", "rpc.example", "https://", "//rpc.example", "http:/", "ftp://127.0.0.1", "ws://127.0.0.1"],
	// Plain http anywhere but here would show every transaction to the road.
	...["http://rpc.example", "http://10.0.0.1", "http://192.168.1.1", "http://0.0.0.0", "http://[::2]"],
	...["http://localhost.example", "http://127.0.0.1.example", "http://127.0.0.1@rpc.example"],
	...["http://128.0.0.1", "http://xlocalhost", "http://localhost@10.0.0.1", "file:///etc/passwd"],
];
test("https anywhere and http on loopback are taken, every other URL is refused", () => {
	for (const url of GOOD_URLS) assert.ok(parseBuilders([{ ...ROW, url }]).ok, url);
	for (const url of BAD_URLS) {
		assert.match(
			expectedOf([{ ...ROW, url }]),
			/^0\.url: expected an https URL \(http only on loopback\)/,
			url,
		);
	}
});

const BAD_ROWS: readonly [string, unknown, RegExp][] = [
	["no rows", [], /^the list: expected at least one builder: nothing could ever be mined/],
	["no name", [{ url: ROW.url }], /^0\.name: /],
	["no url", [{ name: "x" }], /^0\.url: /],
	["a long name", [{ ...ROW, name: "x".repeat(41) }], /^0\.name: expected 1 to 40 letters/],
	["a name with a line break", [{ ...ROW, name: "a\n" }], /^0\.name: /],
	[
		"two rows of one name",
		[ROW, { ...ROW, url: "https://b.example" }],
		/^the list: expected names to be unique/,
	],
	["refund as null", [{ ...ROW, refund: null }], /^0\.refund: /],
	["percent below 0", [{ ...ROW, maxRefundPercent: -1 }], /^0\.maxRefundPercent: /],
	["half a percent", [{ ...ROW, maxRefundPercent: 0.5 }], /^0\.maxRefundPercent: /],
	["dropping as text", [{ ...ROW, dropping: "no" }], /^0\.dropping: /],
	[
		"a fee recipient's name",
		[{ ...ROW, feeRecipients: ["titan"] }],
		/^0\.feeRecipients\.0: expected an address/,
	],
	["a typo that would leak", [{ ...ROW, fullprivacy: true }], /^0: .*fullprivacy/i],
	["another unknown key", [ROW, { ...ROW, name: "b", extra: 1 }], /^1: /],
];
test("a row with anything unknown or out of its bounds is refused by the field's name", () => {
	for (const [name, value, expected] of BAD_ROWS) assert.match(expectedOf(value), expected, name);
});
