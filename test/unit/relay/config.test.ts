// The relay's settings and the rows of BUILDERS: defaults as documented; every bad value is refused by name, without being
// quoted.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { RELAY_SETTINGS, readRelayConfig } from "../../../relay/config.ts";
import { BUILDER_DOCS, parseBuilders } from "../../../relay/domain/builder.ts";
import { SettingError } from "../../../shared/config.ts";
import { addressOfKey } from "../../../shared/ethereum/signatures.ts";

const folder = mkdtempSync(join(tmpdir(), "leeward-config-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const ROW = { name: "local", url: "http://127.0.0.1:8083" };
const ROWS = JSON.stringify([ROW]);
const NEEDED = { ETH_RPC_URL: "http://127.0.0.1:8545", BUILDERS: ROWS };
const KEY = `0x${"a1".repeat(32)}`;
/** The order of secp256k1: keys are below it. */
const ORDER = "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";

test("with nothing but what is required, everything else has its documented default", () => {
	const { BUILDERS, ...rest } = readRelayConfig(NEEDED);
	assert.deepEqual(rest, {
		...{ PORT: 8080, HOST: "0.0.0.0", SEARCHER_PORT: undefined, METRICS_PORT: undefined },
		...{ ETH_RPC_URL: "http://127.0.0.1:8545", ETH_WS_URL: undefined, HEAD_POLL_MS: 1_000 },
		...{ CHAIN_ID: undefined, SLOT_SECONDS: 12, SIGNING_KEY: undefined, FEE_RECIPIENT: undefined },
		...{
			REFUND_PERCENT: 90,
			BIDS_PER_TARGET: 3,
			METRICS_TOKEN: undefined,
			MAX_CONNECTIONS_PER_CLIENT: 256,
			TX_TTL_BLOCKS: 25,
			DATA_DIR: "./data",
			DATABASE_URL: undefined,
			DATABASE_VERIFY: false,
		},
		SUBSCRIPTION_ALIASES: ["mevblocker_partialPendingTransactions"],
		CANCEL_POLICY: "origin",
		...{ TRUST_PROXY: 0, BOOST_SECRET: undefined, MAX_BODY_BYTES: 2_097_152, MAX_BATCH: 100 },
		...{
			RATE_LIMIT_RPS: 100,
			POOL_MAX_BYTES: 268_435_456,
			MAX_HEAD_AGE_S: undefined,
			SIGNATURE_HIDING: "always",
		},
		LOG_LEVEL: "info",
	});
	assert.deepEqual(
		BUILDERS.map(({ name, url }) => [name, url]),
		[["local", "http://127.0.0.1:8083"]],
	);
});

test("every setting can be set", () => {
	const file = join(folder, "builders.json");
	writeFileSync(file, ROWS);
	const config = readRelayConfig({
		...{ PORT: "0", HOST: "::1", SEARCHER_PORT: "8090", METRICS_PORT: "9090", CHAIN_ID: "31337" },
		...{ ETH_RPC_URL: "https://u:p@node.example/key/", ETH_WS_URL: "wss://node.example/ws" },
		...{
			HEAD_POLL_MS: "10",
			SLOT_SECONDS: "1",
			BUILDERS: file,
			SIGNING_KEY: KEY.toUpperCase().replace("X", "x"),
		},
		...{ FEE_RECIPIENT: `0x${"AB".repeat(20)}`, REFUND_PERCENT: "0", TX_TTL_BLOCKS: "1000", DATA_DIR: "/d" },
		...{ TRUST_PROXY: "2", BOOST_SECRET: "s", MAX_BODY_BYTES: "67108864", MAX_BATCH: "1" },
		...{ RATE_LIMIT_RPS: "0", MAX_HEAD_AGE_S: "86400", LOG_LEVEL: "trace" },
		...{ SUBSCRIPTION_ALIASES: "a_b-C9, second", CANCEL_POLICY: "open" },
	});
	assert.deepEqual(config.SUBSCRIPTION_ALIASES, ["a_b-C9", "second"]);
	assert.deepEqual(
		[config.CHAIN_ID, config.SIGNING_KEY, config.FEE_RECIPIENT, config.BUILDERS.length],
		[31_337n, KEY, `0x${"ab".repeat(20)}`, 1],
	);
	assert.deepEqual(
		[config.PORT, config.RATE_LIMIT_RPS, config.ETH_RPC_URL, config.CANCEL_POLICY],
		[0, 0, "https://u:p@node.example/key", "open"],
	);
	assert.ok(Object.isFrozen(config));
});

test("the list that comes with it is taken", () => {
	const { BUILDERS } = readRelayConfig({ ...NEEDED, BUILDERS: "mainnet" });
	assert.ok(BUILDERS.length >= 1 && BUILDERS.length <= 6);
	assert.ok(BUILDERS.every(({ url }) => url.startsWith("https://")));
});

test("what is required is missed by name", () => {
	const node =
		"ETH_RPC_URL is missing: expected an http or https URL, for example ETH_RPC_URL=http://127.0.0.1:8545";
	const builders = `BUILDERS is missing: expected ${RELAY_SETTINGS.BUILDERS.expects}, for example BUILDERS=${ROWS}`;
	assert.throws(() => readRelayConfig({}), { name: "SettingError", message: `${node}\n${builders}` });
	assert.throws(() => readRelayConfig({ ETH_RPC_URL: "http://n" }), {
		name: "SettingError",
		message: builders,
	});
});

/** Every one holds the mark, so that a quotation is seen; whole numbers are tested by their bounds. */
const MARK = "s3cret";
const BAD: Readonly<Record<string, readonly string[]>> = {
	PORT: ["65536", "-1", "80.5", "http", "0x50", "8080,8081", `80${MARK}`],
	SEARCHER_PORT: ["65536", "-1", MARK],
	METRICS_PORT: ["65536", "-1", MARK],
	ETH_RPC_URL: [
		"127.0.0.1:8545",
		"ws://127.0.0.1",
		"http://",
		MARK,
		`ftp://${MARK}`,
		`node.example/${MARK}`,
		"http://u:100%@h/",
	],
	ETH_WS_URL: ["http://127.0.0.1", MARK, "ws://"],
	HEAD_POLL_MS: ["9", "60001", "1s", "0"],
	CHAIN_ID: ["0", "-1", "0x1", "mainnet", "1.5", "9".repeat(21)],
	SLOT_SECONDS: ["0", "61", "0.5"],
	BUILDERS: ["[]", "{}", "[{", "null", `/nowhere/${MARK}.json`, "Mainnet", `[{"name":"${MARK}"}]`],
	SIGNING_KEY: [
		...["0x", "a1".repeat(32), `${KEY}00`, KEY.slice(0, -1), `0x${"zz".repeat(32)}`, MARK],
		...[`0x${"00".repeat(32)}`, ORDER, `0x${"ff".repeat(32)}`],
	],
	FEE_RECIPIENT: [
		"0x",
		`0x${"ab".repeat(19)}`,
		`0x${"ab".repeat(21)}`,
		`0x${"zz".repeat(20)}`,
		"ab".repeat(20),
	],
	REFUND_PERCENT: ["101", "-1", "90%", "0.9"],
	BIDS_PER_TARGET: ["0", "9", "2.5", MARK],
	METRICS_TOKEN: [`${MARK}\u00e9`, "a\nb"],
	MAX_CONNECTIONS_PER_CLIENT: ["0", "10001", MARK],
	TX_TTL_BLOCKS: ["0", "1001", "-25"],
	SUBSCRIPTION_ALIASES: [
		...["a,", ",a", "a,,b", "a b", "a.b", "n\u00e4me", "a".repeat(81), `a,${MARK}!`],
		...["newHeads", "a,service_partialPendingTransactions", "service_bundleStatus"],
	],
	DATABASE_URL: [`mysql://u:${MARK}@db/x`, `postgres://u:${MARK}%@db/x`, MARK],
	DATABASE_VERIFY: ["yes", "1", MARK],
	TRUST_PROXY: ["-1", "11", "true"],
	CANCEL_POLICY: ["Origin", "anyone", `open${MARK}`],
	MAX_BODY_BYTES: ["1023", "67108865", "2MiB"],
	MAX_BATCH: ["0", "10001"],
	RATE_LIMIT_RPS: ["-1", "1000001", "none"],
	POOL_MAX_BYTES: ["33554431", "17179869185", "256M"],
	MAX_HEAD_AGE_S: ["0", "86401"],
	SIGNATURE_HIDING: ["never", MARK],
	LOG_LEVEL: ["Info", "verbose", MARK],
};
const ANY_TEXT = ["HOST", "DATA_DIR", "BOOST_SECRET"];

test("every bad value is refused by name, with what was expected and an example, and is not quoted", () => {
	assert.deepEqual([...Object.keys(BAD), ...ANY_TEXT].sort(), Object.keys(RELAY_SETTINGS).sort());
	for (const [name, values] of Object.entries(BAD)) {
		const { expects, example } = RELAY_SETTINGS[name as keyof typeof RELAY_SETTINGS];
		for (const value of values) {
			assert.throws(
				() => readRelayConfig({ ...NEEDED, [name]: value }),
				(thrown: unknown) => {
					assert.ok(thrown instanceof SettingError, `${thrown}`);
					assert.equal(thrown.setting, name);
					assert.ok(thrown.message.startsWith(`${name} is not valid`), thrown.message);
					const [told] = thrown.message.split("; given ");
					assert.ok(told?.endsWith(`: expected ${expects}, for example ${name}=${example}`));
					assert.ok(!thrown.message.includes(MARK), thrown.message);
					return true;
				},
				`${name}=${value}`,
			);
		}
	}
});

test("a bad row of a builder is told with its place and its reason", () => {
	for (const [rows, reason] of [
		["[]", "the list: expected at least one builder: nothing could ever be mined"],
		['[{"name":"a","url":"http://far.example"}]', "0.url: expected an https URL (http only on loopback)"],
		["[{", "it is not JSON"],
		["./no-such-file.json", "the file can't be read"],
	] as const) {
		assert.throws(
			() => readRelayConfig({ ...NEEDED, BUILDERS: rows }),
			(thrown: Error) =>
				thrown.message.startsWith(`BUILDERS is not valid (${reason}): expected rows as JSON`),
		);
	}
});

test("every example but that of the key, which nobody should copy, is valid itself", () => {
	for (const [name, row] of Object.entries(RELAY_SETTINGS)) {
		if (name === "SIGNING_KEY") continue;
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
				...{ dialect: "bundle", fullPrivacy: false, refund: true, maxRefundPercent: 99, refundGas: 0 },
				...{ cancel: "both", privateMethod: "eth_sendPrivateRawTransaction", dropping: false },
			},
		],
	});
});

test("every field can be set", () => {
	const full = {
		...{ name: "Titan.2-x_y", url: "https://user:pass@rpc.example/v1?key=k", dialect: "mev-share" },
		...{ fullPrivacy: true, refund: false, maxRefundPercent: 0, refundGas: 21_000, cancel: "none" },
		...{ privateMethod: "eth_sendPrivateTransaction", dropping: true },
	};
	assert.deepEqual(parseBuilders([full]), { ok: true, rows: [full] });
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
	["an object", { ...ROW }, /^the list: /],
	["null", null, /^the list: /],
	["text", "mainnet", /^the list: /],
	["a row that is text", ["https://rpc.example"], /^0: /],
	["no name", [{ url: ROW.url }], /^0\.name: /],
	["no url", [{ name: "x" }], /^0\.url: /],
	["an empty name", [{ ...ROW, name: "" }], /^0\.name: expected 1 to 40 letters/],
	["a long name", [{ ...ROW, name: "x".repeat(41) }], /^0\.name: expected 1 to 40 letters/],
	["a name with a space", [{ ...ROW, name: "a b" }], /^0\.name: /],
	["a name with a line break", [{ ...ROW, name: "a\n" }], /^0\.name: /],
	[
		"two rows of one name",
		[ROW, { ...ROW, url: "https://b.example" }],
		/^the list: expected names to be unique/,
	],
	["an unknown dialect", [{ ...ROW, dialect: "bundles" }], /^0\.dialect: /],
	["fullPrivacy as text", [{ ...ROW, fullPrivacy: "true" }], /^0\.fullPrivacy: /],
	["fullPrivacy as a number", [{ ...ROW, fullPrivacy: 1 }], /^0\.fullPrivacy: /],
	["refund as null", [{ ...ROW, refund: null }], /^0\.refund: /],
	["percent over 100", [{ ...ROW, maxRefundPercent: 101 }], /^0\.maxRefundPercent: /],
	["percent below 0", [{ ...ROW, maxRefundPercent: -1 }], /^0\.maxRefundPercent: /],
	["half a percent", [{ ...ROW, maxRefundPercent: 0.5 }], /^0\.maxRefundPercent: /],
	["percent as text", [{ ...ROW, maxRefundPercent: "90" }], /^0\.maxRefundPercent: /],
	["negative gas", [{ ...ROW, refundGas: -1 }], /^0\.refundGas: /],
	["an unknown cancel", [{ ...ROW, cancel: "yes" }], /^0\.cancel: /],
	["a public method", [{ ...ROW, privateMethod: "eth_sendTransaction" }], /^0\.privateMethod: /],
	["dropping as text", [{ ...ROW, dropping: "no" }], /^0\.dropping: /],
	["a typo that would leak", [{ ...ROW, fullprivacy: true }], /^0: .*fullprivacy/i],
	["another unknown key", [ROW, { ...ROW, name: "b", extra: 1 }], /^1: /],
];
test("a row with anything unknown or out of its bounds is refused by the field's name", () => {
	for (const [name, value, expected] of BAD_ROWS) assert.match(expectedOf(value), expected, name);
});

test("a refusal quotes no value: URLs hold keys", () => {
	const key = "s3cr3t-k3y";
	const rows = [
		{ ...ROW, url: `http://user:${key}@rpc.example` },
		{ ...ROW, url: `${key}://x` },
		{ ...ROW, dialect: key },
		{ ...ROW, name: `${key} ${key}` },
		{ ...ROW, privateMethod: key },
		{ ...ROW, refundGas: key },
	];
	for (const row of rows) assert.ok(!expectedOf([row]).includes(key), JSON.stringify(row));
});
