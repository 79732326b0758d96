// Tests rows of BUILDERS: what is accepted, with which defaults, and each typo and unsafe address refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BUILDER_DOCS, parseBuilders } from "../../../../relay/domain/builder.ts";

const ROW = { name: "local", url: "http://127.0.0.1:8083" };

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
